"""What was handed in, read once: every file with its records, its chain and what was passed over."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentmark.audit.progress import Progress, Silent
from agentmark.audit.sessions import find_session
from agentmark.disclosure.check import DisclosedSteps
from agentmark.log.read.events import Entry
from agentmark.log.read.files import find_logs, shown
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.log.read.open import ReadLog, open_log
from agentmark.log.read.parquet import size_to_read
from agentmark.record import StepRecord
from agentmark.report.chain_part import ChainPart, describe_chain
from agentmark.report.provenance import InputFile, describe_file
from agentmark.verify.roll import By

# How often whoever watches is told, in records.
TOLD_EVERY = 500


@dataclass(frozen=True, slots=True)
class Part:
    """The records of one session, or of one file, as they stand in each file that holds some."""

    name: str
    by_file: dict[str, list[StepRecord]]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self.by_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Logs that were read to their ends. Chains are those of whole files; records may be those of some sessions."""

    logs: tuple[ReadLog, ...]
    # Size and digest of every file before it was read, if a report is to state them.
    inputs: tuple[InputFile, ...] = ()
    chosen: frozenset[str] | None = None
    # What in the folders cannot be a log, in sentences.
    left_out: tuple[str, ...] = ()

    @property
    def records(self) -> list[list[StepRecord]]:
        """The records of each file, in order."""
        if self.chosen is None:
            return [log.records for log in self.logs]
        return [[record for record in log.records if record.session in self.chosen] for log in self.logs]

    @property
    def sessions(self) -> Counter[str]:
        """How many records each session has."""
        return Counter(record.session for records in self.records for record in records)

    def parts(self, by: By) -> list[Part]:
        """The records by session, across files, or by file; in the order of their names."""
        parts: dict[str, dict[str, list[StepRecord]]] = defaultdict(dict)
        for log, records in zip(self.logs, self.records, strict=True):
            path = shown(log.path)
            if by is By.FILE:
                # A file that was named twice is one file, and its records are copies.
                parts[path].setdefault(path, []).extend(records)
                continue
            for record in records:
                parts[record.session].setdefault(path, []).append(record)
        return [Part(name, dict(sorted(parts[name].items()))) for name in sorted(parts)]

    def only(self, sessions: Iterable[str]) -> "Material":
        """The same with the records of these sessions alone; the beginning of an id will do if no other begins so."""
        there = self.sessions
        chosen = frozenset(find_session(wanted, there) for wanted in sessions)
        return self if not chosen else replace(self, chosen=chosen)

    @property
    def size_to_read(self) -> int:
        return sum([size_to_read(log.path) for log in self.logs])

    @property
    def key_ids(self) -> list[str]:
        """The keys that the records state."""
        return sorted({record.key_id for records in self.records for record in records})

    def missing(self, keys: Iterable[object]) -> list[str]:
        """Of disclosures: which of their records are in none of the files, in sentences."""
        records = [record for log in self.logs for record in log.records]
        sentences = [key.missing(records) for key in keys if isinstance(key, DisclosedSteps)]
        return [sentence for sentence in sentences if sentence is not None]

    @property
    def passed_over(self) -> list[str]:
        """What was not read, in sentences."""
        return [*self.left_out, *[line for log in self.logs for line in log.summary.passed_over]]

    @property
    def evidence(self) -> list[InputFile]:
        """The files that a report on these records rests on, and the registry: of chosen sessions those that hold
        some of them; else all, those without a record last."""
        holding = {shown(log.path) for log, records in zip(self.logs, self.records, strict=True) if records}
        first = [file for file in self.inputs if file["kind"] != "log" or file["path"] in holding]
        return first if self.chosen is not None else [*first, *[file for file in self.inputs if file not in first]]

    def changed(self, registry_file: Path | None = None) -> list[str]:
        """Files that are not the same now as before they were read: the digest may not be that of what was judged."""
        later = describe_inputs([log.path for log in self.logs], registry_file) if self.inputs else []
        return [
            f"{file['path']} changed while it was read; its digest is that of the file before"
            for file, now in zip(self.inputs, later, strict=True)
            if file != now
        ]

    def chains(self, public_keys: Sequence[str] | None) -> list[ChainPart]:
        """What the chain of each file shows: of those that have one, and of all if somebody is to have signed them."""
        parts = []
        for log in self.logs:
            found = log.summary
            chained = found.checkpoints or found.bad_checkpoints or any(record.prev for record in log.records)
            if public_keys or chained:
                part = describe_chain(
                    log.path,
                    log.records,
                    found.checkpoints,
                    public_keys=public_keys,
                    lines=log.lines,
                    bad_lines=found.bad_lines,
                    bad_checkpoints=found.bad_checkpoints,
                )
                parts.append(part)
        return parts


def read_material(
    paths: Iterable[str | Path],
    *,
    left_out: Iterable[str] = (),
    skip_bad: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    described: bool = False,
    registry_file: Path | None = None,
    progress: Progress | None = None,
) -> Material:
    """Read every file, and every file of a folder, once. `described` states size and digest of each beforehand."""
    found = find_logs([Path(path) for path in paths], skip_bad=skip_bad)
    files = found.files
    # Described before they are read, so that a change in between shows.
    inputs = describe_inputs(files, registry_file) if described else []
    reading = _Reading(progress or Silent())
    logs = [reading.read(path, skip_bad=skip_bad, limits=limits) for path in files]
    return Material(logs=tuple(logs), inputs=tuple(inputs), left_out=(*left_out, *found.passed_over))


class _Reading:
    """Reads files, and counts along."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = 0

    def read(self, path: Path, *, skip_bad: bool, limits: Limits) -> ReadLog:
        log = open_log(path, skip_bad=skip_bad, limits=limits)
        entries: list[Entry] = []
        for entry in log.entries():
            entries.append(entry)
            self._count += 1
            if self._count % TOLD_EVERY == 0:
                self._progress.count(self._count, None, "records read")
        return ReadLog(path=path, entries=tuple(entries), summary=log.summary)


def describe_inputs(files: Iterable[Path], registry_file: Path | None) -> list[InputFile]:
    """Size and digest of the logs, and of the registry if there is one."""
    described = [describe_file("log", path) | {"path": shown(path)} for path in files]
    return described if registry_file is None else [*described, describe_file("registry", registry_file)]
