"""What the chain of a log shows of tampering, session by session and checkpoint by checkpoint.

A layer beside the watermark: a broken chain never stops the mark from being read, and a whole one says nothing of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.findings import Finding, FindingKind
from agentmark.chain.links import Link, is_digest, link_digest
from agentmark.chain.session import SessionCheck
from agentmark.core.prf import DIGEST_SIZE
from agentmark.errors import SettingError
from agentmark.keys.signing import check_public_key
from agentmark.record import RecordError, StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """What the chain of a log shows. It says nothing about whose log it is: that is the verdict's."""

    record_count: int
    session_count: int
    checkpoint_count: int
    # Records that a checkpoint vouches for: its signer wrote them, and they are as they were when it was signed.
    checked_count: int
    signers: tuple[str, ...]
    last_checkpoint: str | None
    findings: tuple[Finding, ...]

    @property
    def intact(self) -> bool:
        """Nothing that is here contradicts anything else. What no checkpoint covers may still have been rewritten."""
        return all(finding.kind is FindingKind.UNCHECKED for finding in self.findings)

    @property
    def sentence(self) -> str:
        """The outcome for people."""
        held = f"{self.record_count} records of {self.session_count} session" + ("s" if self.session_count != 1 else "")
        if not self.intact:
            kinds = Counter(f.kind.value for f in self.findings if f.kind is not FindingKind.UNCHECKED)
            return f"Not intact: {held}; found " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()) + "."
        if self.checked_count == self.record_count:
            return f"Intact: {held}, all vouched for by signed checkpoints."
        return f"Intact: {held}, of which {self.checked_count} are vouched for by signed checkpoints."

    def as_dict(self) -> dict[str, Any]:
        content = asdict(self)
        findings = [{k: v for k, v in finding.items() if v is not None} for finding in content.pop("findings")]
        return {"intact": self.intact, "sentence": self.sentence} | content | {"findings": findings}


def verify_chain(
    records: Iterable[StepRecord],
    checkpoints: Iterable[Checkpoint] = (),
    public_key: str | Iterable[str] | None = None,
    *,
    anchor: str | None = None,
    lines: Sequence[int] | None = None,
    unreadable: Iterable[RecordError] = (),
) -> ChainReport:
    """Judge a log's chain. Records and checkpoints stand in the order of the log.

    Without `public_key` every checkpoint counts that is signed by the key in it, which stops no forger. `anchor` is the
    digest of a checkpoint that was kept elsewhere. `lines` are the records' line numbers, for the sentences.
    """
    if anchor is not None and not is_digest(anchor):
        raise SettingError("anchor", f"{anchor!r} is not a digest of {2 * DIGEST_SIZE} lower-case hexadecimal digits")
    noun = "record" if lines is None else "line"
    log = _sort_by_session(records, lines)

    # (1) Whose are the checkpoints, and are they all there?
    testimony = _Testimony(checkpoints, _trusted(public_key))
    findings = [Finding(FindingKind.UNREADABLE, str(error)) for error in unreadable]
    findings += testimony.findings
    if anchor is not None and anchor not in [checkpoint.digest for checkpoint in testimony.genuine]:
        sentence = f"the log does not hold the checkpoint {anchor}: it was cut or replaced, or is another log"
        findings.append(Finding(FindingKind.ANCHOR_MISSING, sentence))

    # (2) Does each session's chain hold, and does it hold what the checkpoints state?
    checked = 0
    for session, links in log.links.items():
        check = SessionCheck(session, testimony.stated.get(session, {}), noun)
        check.run(links)
        findings += check.findings
        checked += check.checked_count
        if testimony.genuine:
            findings += check.unvouched(testimony.last_line if lines is not None else 0)
    findings += _unchained(log, noun)

    # (3) Is anything gone altogether, or never covered?
    findings += _missing_sessions(log, testimony)
    if log.record_count == 0:
        findings.append(Finding(FindingKind.EMPTY, "the log holds no record: nothing is left to check"))
    elif not testimony.genuine and public_key is None:
        sentence = "no checkpoint vouches for any record: whoever can write the file can rewrite it and its links"
        findings.append(Finding(FindingKind.UNCHECKED, sentence, count=log.record_count))

    # (4) In the order of the log; what has no place in it comes last.
    findings.sort(key=lambda finding: (finding.line is None, finding.line or 0))
    return ChainReport(
        record_count=log.record_count,
        session_count=len(log.links),
        checkpoint_count=len(testimony.genuine),
        checked_count=checked,
        signers=tuple(sorted({checkpoint.public_key for checkpoint in testimony.genuine})),
        last_checkpoint=testimony.genuine[-1].digest if testimony.genuine else None,
        findings=tuple(findings),
    )


@dataclass(slots=True)
class _Log:
    """A log by session. A session without a chain has an empty list of links."""

    links: dict[str, list[Link]] = field(default_factory=lambda: defaultdict(list))
    unchained: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    record_count: int = 0


def _sort_by_session(records: Iterable[StepRecord], lines: Sequence[int] | None) -> _Log:
    log = _Log()
    for i, record in enumerate(records):
        number = i + 1 if lines is None else lines[i]
        links = log.links[record.session]
        log.record_count += 1
        if record.prev is None:
            log.unchained[record.session].append(number)
        else:
            links.append(Link(number, record.step_index, link_digest(record), record.prev))
    return log


def _unchained(log: _Log, noun: str) -> list[Finding]:
    findings = []
    for session, numbers in log.unchained.items():
        linked = len(log.links[session])
        sentence = f"{len(numbers)} of its {len(numbers) + linked} records are not linked, from {noun} {numbers[0]} on"
        findings.append(Finding(FindingKind.UNCHAINED, sentence, session, line=numbers[0], count=len(numbers)))
    return findings


class _Testimony:
    """What the checkpoints say. `stated`: of those that count, by session, the counts of its stated heads."""

    def __init__(self, checkpoints: Iterable[Checkpoint], trusted: frozenset[str] | None) -> None:
        """Without `trusted` keys every checkpoint counts that is signed by the key in it."""
        self.genuine: list[Checkpoint] = []
        self.stated: dict[str, dict[str, int]] = defaultdict(dict)
        self.findings: list[Finding] = []
        # Where the last of those that count stands.
        self.last_line = 0
        self._trusted = trusted
        # Where each well-signed checkpoint stands, by digest, in the order of the log.
        self._places: dict[str, str] = {}
        for i, checkpoint in enumerate(checkpoints, start=1):
            self._hear(checkpoint, f"checkpoint {i}")
        if trusted is not None and not self.genuine:
            sentence = "the log holds no checkpoint that a given key has signed"
            self.findings.append(Finding(FindingKind.UNSIGNED, sentence))

    def _hear(self, checkpoint: Checkpoint, place: str) -> None:
        def find(kind: FindingKind, fault: str) -> None:
            self.findings.append(Finding(kind, f"{place} {fault}", line=checkpoint.line))

        if not checkpoint.is_genuine():
            find(FindingKind.BAD_SIGNATURE, "was altered: its signature is not that of its key over what it says")
            return
        digest = checkpoint.digest
        if digest in self._places:
            find(FindingKind.REPLAYED, f"repeats {self._places[digest]}")
            return
        if checkpoint.previous != next(reversed(self._places), None):
            find(FindingKind.CHECKPOINT_BREAK, _checkpoint_break(checkpoint.previous, self._places))
        self._places[digest] = place
        if self._trusted is not None and checkpoint.public_key not in self._trusted:
            find(FindingKind.FOREIGN_SIGNATURE, f"is signed by {checkpoint.public_key}, none of the keys given")
            return
        if self._trusted is None and self.genuine and checkpoint.public_key != self.genuine[0].public_key:
            find(FindingKind.FOREIGN_SIGNATURE, "is signed by another key than the first; say which keys you trust")
        self.genuine.append(checkpoint)
        self.last_line = max(self.last_line, checkpoint.line or 0)
        for session, statement in checkpoint.sessions.items():
            self.stated[session][statement.head] = statement.count


def _trusted(public_key: str | Iterable[str] | None) -> frozenset[str] | None:
    if public_key is None:
        return None
    keys = [public_key] if isinstance(public_key, str) else public_key
    return frozenset([check_public_key(key) for key in keys])


def _checkpoint_break(previous: str | None, places: Mapping[str, str]) -> str:
    if previous is None:
        return "says it is the first, and is not: it was moved, or comes from another log"
    if previous in places:
        return f"follows {places[previous]}, not the one before it: one was inserted or moved"
    return "follows one that is not before it: that was removed, altered or moved"


def _missing_sessions(log: _Log, testimony: _Testimony) -> list[Finding]:
    findings = []
    counts = {session: max(stated.values()) for session, stated in testimony.stated.items()}
    for session, count in counts.items():
        if session not in log.links:
            sentence = f"all of its {count} records that a checkpoint counts are missing"
            findings.append(Finding(FindingKind.MISSING_SESSION, sentence, session, count=count))
    # A session may be gone together with each checkpoint that named it; the totals still count it.
    total = max([checkpoint.total for checkpoint in testimony.genuine], default=0)
    unstated = sum([len(links) for session, links in log.links.items() if session not in counts])
    lost = total - sum(counts.values()) - unstated
    if lost > 0:
        sentence = f"a checkpoint counts {total} records in all; {lost} are missing in sessions that are not named here"
        findings.append(Finding(FindingKind.MISSING_SESSION, sentence, count=lost))
    return findings
