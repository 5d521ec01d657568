"""Chained logs in memory and on the disk, and shorthands for what a check says of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from support import marked_log

from agentmark import LogWriter, SharedKey, StepRecord, Verdict, Verifier, read_log
from agentmark.chain.check import ChainReport, verify_chain
from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.findings import FindingKind
from agentmark.chain.links import link_digest
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningKey
from agentmark.log.signer_file import signer_file_beside

KEY = SharedKey(bytes(range(100, 132)))
OTHER_KEY = SharedKey(bytes(range(150, 182)))
SIGNER = SigningKey(bytes(range(7, 39)))
STRANGER = SigningKey(bytes(range(200, 232)))
TIME = "2026-01-02T03:04:05+00:00"
PAYLOAD = 0x5EED
Line = StepRecord | Checkpoint
Kind = FindingKind


def write_lines(records: Iterable[StepRecord], *, signer: SigningKey | None = SIGNER, every: int = 20) -> list[Line]:
    """A log in memory, as a LogWriter would write it, closed by a checkpoint."""
    chain = ChainWriter(signer, every=every, clock=lambda: TIME)
    lines: list[Line] = []

    def sign() -> None:
        checkpoint = chain.checkpoint()
        if checkpoint is not None:
            lines.append(checkpoint)
            chain.appended(checkpoint)

    for record in records:
        linked = chain.link(record)
        lines.append(linked.record)
        chain.appended(linked)
        if chain.checkpoint_is_due:
            sign()
    sign()
    return lines


@cache
def one_session() -> tuple[Line, ...]:
    """60 records; checkpoints after 20, 40 and 60."""
    return tuple(write_lines(marked_log(KEY, steps=60)))


@cache
def two_sessions() -> tuple[Line, ...]:
    """Two agents that write to one log in turn, 30 records each; checkpoints after every 20 records."""
    records = marked_log(KEY, steps=30, sessions=2)
    return tuple(write_lines([record for pair in zip(records[:30], records[30:], strict=True) for record in pair]))


def records_of(lines: Iterable[Line]) -> list[StepRecord]:
    return [line for line in lines if isinstance(line, StepRecord)]


def checkpoints_of(lines: Iterable[Line]) -> list[Checkpoint]:
    return [line for line in lines if isinstance(line, Checkpoint)]


def judge(log: Iterable[Line], public_key: str | None = SIGNER.public_key, **settings: Any) -> ChainReport:
    log = list(log)
    return verify_chain(records_of(log), checkpoints_of(log), public_key, **settings)


def kinds(report: ChainReport) -> Counter[FindingKind]:
    return Counter(finding.kind for finding in report.findings)


def count_of(report: ChainReport, kind: FindingKind) -> int | None:
    (finding,) = [finding for finding in report.findings if finding.kind is kind]
    return finding.count


def read_mark(lines: Iterable[Line]) -> Verdict:
    return Verifier(KEY).verify(records_of(lines))


def without(lines: Sequence[Line], *places: int) -> list[Line]:
    gone = {place % len(lines) for place in places}
    return [line for i, line in enumerate(lines) if i not in gone]


def changed(record: Line, **members: Any) -> StepRecord:
    """A record as a tamperer leaves it: some members replaced, its links as they were."""
    return StepRecord.from_dict(record.as_dict() | members)


def check_file(path: Path, public_key: str | None = SIGNER.public_key) -> ChainReport:
    log = read_log(path, skip_bad=True)
    return verify_chain(
        log.records,
        log.summary.checkpoints,
        public_key,
        lines=log.lines,
        unreadable=[*log.summary.bad_lines, *log.summary.bad_checkpoints],
    )


def signed_again(checkpoint: Checkpoint, key: SigningKey, **members: Any) -> Checkpoint:
    facts = {"sessions": checkpoint.sessions, "total": checkpoint.total, "previous": checkpoint.previous} | members
    return Checkpoint.sign(key, facts["sessions"], total=facts["total"], previous=facts["previous"], time=TIME)


def append(
    path: Path,
    records: Iterable[StepRecord],
    *,
    signer: SigningKey | None = SIGNER,
    every: int = 7,
    predecessors: Sequence[str] = (),
    **settings: Any,
) -> None:
    chain = ChainWriter(signer, every=every, predecessors=predecessors, clock=lambda: TIME)
    with LogWriter(path, chain=chain, **settings) as log:
        for record in records:
            log.write(record)


def signer_file(path: Path, signer: SigningKey = SIGNER) -> Path:
    return signer_file_beside(path, signer)


def crash(path: Path, records: Iterable[StepRecord], *, every: int = 7, signer: SigningKey = SIGNER) -> None:
    """Write as `append` does, and stop without a word: what a killed process leaves behind."""
    log = LogWriter(path, chain=ChainWriter(signer, every=every, clock=lambda: TIME))
    for record in records:
        log.write(record)
    log._let_go()


def forged_tail(path: Path, count: int = 3, *, session: str | None = None, head: str | None = None) -> list[StepRecord]:
    """Records that follow the last linked one of a log, with links as anybody can work them out: no key is needed."""
    last = [record for record in read_log(path, skip_bad=True).records if session in (None, record.session)][-1]
    head = head or link_digest(last)
    forged: list[StepRecord] = []
    for i, record in enumerate(marked_log(OTHER_KEY, steps=count), start=1):
        forged.append(replace(record, session=last.session, step_index=last.step_index + i, prev=head))
        head = link_digest(forged[-1])
    return forged


def forged_session(count: int = 3, session: str = "forged") -> list[StepRecord]:
    records = [replace(record, session=session) for record in marked_log(OTHER_KEY, steps=count)]
    return records_of(write_lines(records, signer=None))


def append_raw(path: Path, records: Iterable[StepRecord]) -> None:
    """As whoever can write the file does it: without a lock, without a key."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join([record.to_json() + "\n" for record in records]))
