"""What a record costs to write, without a chain, linked and signed; what opening a log costs; and how logs pack."""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeVar

from agentmark.chain.check import verify_chain
from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.writer import DEFAULT_INTERVAL, ChainWriter
from agentmark.keys.signing import SigningKey
from agentmark.log.jsonl import LogWriter
from agentmark.log.read.limits import Limits
from agentmark.log.read.open import read_log
from agentmark.record import StepRecord
from agentmark_lab.experiments.theory.packed_logs import GROWTH, OPTIONS, PACKERS, PROMPTS, Packed, pack_all, steps
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress

NAME = "log_costs"
TITLE = "What a log costs: links and signatures, and bytes when it is packed"

UNCHAINED, LINKED, SIGNED = "without a chain", "with links", "with links, state and checkpoints"
STATED_SESSIONS = (1, 10, 100)

MAX_ADDED_US = 200.0
MAX_OPENING_GROWTH = 1.5

Name = TypeVar("Name")
# What chains a new log in each way.
Chaining = Callable[[], ChainWriter | None]


@dataclass(frozen=True, slots=True)
class Effort:
    """Rounds in turns, records written in each, records of the logs that are opened, and those of the packed logs:
    lines, and steps for each first length of a prompt."""

    rounds: int
    written: int
    opened: tuple[int, int]
    packed: int
    prompt_steps: tuple[int, int]


FULL = Effort(rounds=21, written=2000, opened=(1000, 10_000), packed=2000, prompt_steps=(400, 300))
QUICK = Effort(rounds=3, written=200, opened=(100, 400), packed=200, prompt_steps=(20, 5))


@dataclass(frozen=True, slots=True)
class Timed:
    """Microseconds of processor time for each record, one value a round."""

    values: Sequence[float]

    @property
    def fastest(self) -> float:
        return min(self.values)

    def over(self, other: "Timed") -> list[float]:
        """How many times as much as the other, round by round."""
        return [mine / theirs for mine, theirs in zip(self.values, other.values, strict=True)]


def run(options: Options, progress: Progress) -> Findings:
    """In this process only, whatever the workers: a second one on the machine would be measured too."""
    effort = QUICK if options.quick else FULL
    rng = generator(options.seed, NAME)
    key = SigningKey(rng.randbytes(32))
    chainings: dict[str, Chaining] = {UNCHAINED: lambda: None, LINKED: ChainWriter, SIGNED: lambda: ChainWriter(key)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writing = time_writing(steps(options.seed, effort.written), chainings, effort.rounds, folder, progress)
        opening = time_opening(options.seed, chainings, effort, folder, progress)
        sizes = Sizes.measure(steps(options.seed, effort.written), key, rng, folder)
        progress("packing logs")
        prompts = dict(zip(PROMPTS, effort.prompt_steps, strict=True))
        logs = list(pack_all(options.seed, effort.packed, prompts, folder))
    limits = Limits()
    claims = [*_chain_claims(writing, opening, sizes), *_packing_claims(logs, limits)]
    tables = [
        _writing_table(writing, effort),
        _opening_table(opening, effort),
        _sizes_table(sizes),
        _packing_table(logs, limits),
    ]
    data = {
        "writing_us": {way: timed.values for way, timed in writing.items()},
        "opening_us": {f"{way}, {length} records": timed.values for (way, length), timed in opening.items()},
        "link_bytes": sizes.links,
        "checkpoint_bytes": {str(sessions): size for sessions, size in sizes.checkpoints.items()},
        "packed": [asdict(log) for log in logs],
    }
    return Findings(claims, tables, data)


# What is timed -------------------------------------------------------------------------------------------------------


def time_writing(
    records: Sequence[StepRecord], chainings: Mapping[str, Chaining], rounds: int, folder: Path, progress: Progress
) -> dict[str, Timed]:
    numbers = count()

    def written(chaining: Chaining) -> float:
        path = folder / f"written-{next(numbers)}.jsonl"
        log = LogWriter(path, chain=chaining())
        begun = time.process_time()
        for record in records:
            log.write(record)
        log.close()
        return (time.process_time() - begun) / len(records) * 1e6

    calls = {way: partial(written, chaining) for way, chaining in chainings.items()}
    return _in_turns(calls, rounds, progress)


def time_opening(
    seed: int, chainings: Mapping[str, Chaining], effort: Effort, folder: Path, progress: Progress
) -> dict[tuple[str, int], Timed]:
    """Of logs that are chained already, of each length."""

    def opened(path: Path, chaining: Chaining, length: int) -> float:
        chain = chaining()
        begun = time.process_time()
        log = LogWriter(path, chain=chain)
        spent = time.process_time() - begun
        log.close()
        return spent / length * 1e6

    calls: dict[tuple[str, int], Callable[[], float]] = {}
    for way in (LINKED, SIGNED):
        for length in effort.opened:
            path = folder / f"opened-{len(calls)}.jsonl"
            write_log(path, steps(seed, length), chainings[way]())
            calls[way, length] = partial(opened, path, chainings[way], length)
    return _in_turns(calls, max(3, effort.rounds // 3), progress)


def _in_turns(calls: Mapping[Name, Callable[[], float]], rounds: int, progress: Progress) -> dict[Name, Timed]:
    """One after the other, and not each by itself: what else the machine does meanwhile falls on all of them alike."""
    values: dict[Name, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, call in calls.items():
            values[name].append(call())
    return {name: Timed(found) for name, found in values.items()}


def write_log(path: Path, records: Sequence[StepRecord], chain: ChainWriter | None) -> None:
    with LogWriter(path, chain=chain) as log:
        for record in records:
            log.write(record)


# What is counted -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes: what each link adds (all that were found), a checkpoint by the sessions that it states, and whether the
    log that was weighed is intact to a check."""

    links: list[int]
    checkpoints: dict[int, int]
    intact: bool

    @classmethod
    def measure(cls, records: Sequence[StepRecord], key: SigningKey, rng: Random, folder: Path) -> "Sizes":
        path = folder / "weighed.jsonl"
        write_log(path, records, ChainWriter(key))
        log = read_log(path)
        report = verify_chain(log.records, log.summary.checkpoints, key.public_key)
        lines = [line.removesuffix(b"\n") for line in path.read_bytes().splitlines()]
        linked = [line for line in lines if b'"agentmark_checkpoint"' not in line]
        bare = [len(record.to_json().encode("utf-8")) for record in records]
        added = {len(line) - length for line, length in zip(linked, bare, strict=True)}
        checkpoints = {sessions: checkpoint_size(key, sessions, rng) for sessions in STATED_SESSIONS}
        return cls(sorted(added), checkpoints, report.intact)

    @property
    def each_session(self) -> float:
        """What each further session that has grown adds to a checkpoint."""
        few, many = STATED_SESSIONS[0], STATED_SESSIONS[-1]
        return (self.checkpoints[many] - self.checkpoints[few]) / (many - few)

    @property
    def beside_sessions(self) -> float:
        return self.checkpoints[STATED_SESSIONS[0]] - STATED_SESSIONS[0] * self.each_session


def checkpoint_size(key: SigningKey, sessions: int, rng: Random) -> int:
    """The bytes of the line, behind another checkpoint, with ids of 32 digits as sessions have them and a hundred
    records in each."""
    stated = {rng.randbytes(16).hex(): Statement(DEFAULT_INTERVAL, rng.randbytes(32).hex()) for _ in range(sessions)}
    checkpoint = Checkpoint.sign(
        key, stated, total=1000, previous=rng.randbytes(32).hex(), time="2026-01-31T09:30:00+00:00"
    )
    return len(checkpoint.to_json().encode("utf-8")) + 1


# The report ----------------------------------------------------------------------------------------------------------


def _chain_claims(writing: Mapping[str, Timed], opening: Mapping[tuple[str, int], Timed], sizes: Sizes) -> list[Claim]:
    added = writing[SIGNED].fastest - writing[UNCHAINED].fastest
    links = ", ".join([str(size) for size in sizes.links])
    short, long = sorted({length for _, length in opening})
    growth = max(opening[way, long].fastest / opening[way, short].fastest for way in (LINKED, SIGNED))
    return [
        Claim(f"Every link adds the same number of bytes (found: {links}).", len(sizes.links) == 1),
        Claim("The signed log that was weighed is intact to a check with its public key.", sizes.intact),
        Claim(
            f"Links, state and checkpoints add {added:.0f} us to a record (aim: under {MAX_ADDED_US:g}).",
            added < MAX_ADDED_US,
            aim=True,
        ),
        Claim(
            f"Opening a chained log of {long:,} records takes {growth:.2f} times as long a record as one of {short:,} "
            f"at most (aim: under {MAX_OPENING_GROWTH:g}).",
            growth < MAX_OPENING_GROWTH,
            aim=True,
        ),
    ]


def _packing_claims(logs: Sequence[Packed], limits: Limits) -> list[Claim]:
    pairs = [(log, packer) for log in logs for packer in PACKERS]
    within = [(log, packer) for log, packer in pairs if log.is_within(packer, limits)]
    stopped = [log.log for log, packer in within if log.stopped_by[packer] is not None]
    most = max(log.most_records_per_kib for log in logs if log.copies == 1)
    return [
        Claim(
            f"Of {len(pairs)} packed logs, all {len(within)} whose rates are within the default limits are read whole "
            f"(stopped: {len(stopped)}).",
            not stopped,
        ),
        Claim(
            f"No packer puts more than {limits.records_per_kib} records into a KiB where each stands once "
            f"(most: {most:.1f}).",
            most <= limits.records_per_kib,
        ),
    ]


def _spread(values: Sequence[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _writing_table(writing: Mapping[str, Timed], effort: Effort) -> Table:
    before = (UNCHAINED, UNCHAINED, LINKED)
    rows: list[list[Cell]] = [
        [
            way,
            round(timed.fastest, 1),
            _spread(timed.values, 1),
            _spread(timed.over(writing[UNCHAINED]), 1),
            _spread(timed.over(writing[base]), 2),
        ]
        for (way, timed), base in zip(writing.items(), before, strict=True)
    ]
    note = (
        f"Microseconds of one core's time for `LogWriter.write`, `close` included, of {effort.written:,} records of "
        f"one session with lists of {OPTIONS}, {effort.rounds} rounds of all in turns: the fastest, and the middle of "
        "the rounds with the least and the most. The ratios are those within a round. Without `fsync`; a checkpoint "
        f"every {DEFAULT_INTERVAL} records."
    )
    columns = ["a record", "fastest, us", "all rounds, us", "times without a chain", "times the row above"]
    return Table("Writing a record", columns, rows, note)


def _opening_table(opening: Mapping[tuple[str, int], Timed], effort: Effort) -> Table:
    rows: list[list[Cell]] = [
        [way, length, round(timed.fastest, 1), _spread(timed.values, 1)] for (way, length), timed in opening.items()
    ]
    note = (
        "Microseconds of one core's time for each record of the log: a writer that chains reads all of it once. "
        f"{max(3, effort.rounds // 3)} rounds in turns."
    )
    return Table("Opening a chained log", ["chained", "records", "fastest, us", "all rounds, us"], rows, note)


def _sizes_table(sizes: Sizes) -> Table:
    rows: list[list[Cell]] = [["a link", sizes.links[-1]]]
    rows += [[f"a checkpoint, sessions in it: {sessions}", size] for sessions, size in sizes.checkpoints.items()]
    rows += [
        ["a checkpoint without its sessions", round(sizes.beside_sessions)],
        ["each session in it", round(sizes.each_session)],
    ]
    note = "Sessions have ids of 32 digits. A checkpoint states those that have grown since the one before it."
    return Table("Bytes of links and checkpoints", ["", "bytes"], rows, note)


def _packing_table(logs: Sequence[Packed], limits: Limits) -> Table:
    rows: list[list[Cell]] = [
        [
            log.log,
            log.records,
            round(log.plain_bytes / log.records),
            *[f"{log.ratio(packer):.1f}" for packer in PACKERS],
            round(log.least_per_record),
            _stops(log),
        ]
        for log in logs
    ]
    note = (
        f"How many times smaller each packer makes a log (gzip at level 6). Lists of {OPTIONS} random weights; prompts "
        f"of made-up words that grow by {GROWTH} bytes a step, of {PROMPTS[0]:,} and {PROMPTS[1]:,} bytes at first, "
        "whole in the span of each call. OTLP lines are in the shape of OpenTelemetry's JSON file exporter, a request "
        f"a line. Defaults: {limits.unpacked_ratio} times, {limits.records_per_kib} records a KiB; a file has 16 MiB "
        "and a thousand records free. The claim on these limits picks the logs by the reader's own formula for its "
        "rates, so it says that the reader stops at no other limit, and not that the formula suits honest logs: that "
        "is for the table to show."
    )
    columns = ["log", "records", "bytes a record", *PACKERS, "packed bytes a record, at least"]
    return Table("How logs pack", [*columns, "a reader with the default limits"], rows, note)


def _stops(log: Packed) -> str:
    stops = [f"{packer}: {limit}" for packer, limit in log.stopped_by.items() if limit is not None]
    return f"stops ({'; '.join(stops)})" if stops else "reads all"
