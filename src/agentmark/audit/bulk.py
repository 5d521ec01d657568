"""A bulk audit: every group of records in many files judged, within bounded memory, and taken up again after anything.

    audit = BulkAudit(paths=["logs/"], keys=[SharedKey.load("key.json")], registry=registry, out=Path("results.csv"))
    summary = audit.run()

    files --shards--> chunks of records --by hash of the group's name--> parts on disk     `shards`, `shard_reading`
    part  --read under the keys, sorted out by group--> judged in phases                   `judging`
    rows  --in the order of their names--> results, summary                                `results`, `judged`

The keys are given to worker processes when these are started, and stand in no file.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agentmark.audit.bulk_report import ReportAbout, ReportAsked, ReportRows, write_report
from agentmark.audit.case import claim_as_asked, claim_as_taken
from agentmark.audit.chunk_kinds import chunk_kind, default_engine
from agentmark.audit.chunks import FAST, PLAIN
from agentmark.audit.held import HELD_BYTES, HeldAudit, TooMuchToHoldError
from agentmark.audit.judged import AuditSummary, JudgedRow, ReadTotals, RowTally
from agentmark.audit.judging import Given, Judged, Judging
from agentmark.audit.progress import Progress, Silent
from agentmark.audit.results import Discarded, RowWriter, check_results, results_writer
from agentmark.audit.shard_reading import ReadJob, ShardOutcome, read_shards
from agentmark.audit.shards import (
    RANGE_BYTES,
    BadShard,
    FoundShards,
    Shard,
    batches,
    find_shards,
    fingerprint,
    ranges_of,
)
from agentmark.audit.work_dir import WorkDir, beside
from agentmark.audit.workers import Workers, count, default_workers
from agentmark.core.payload import PayloadLike
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.handover import HandedKeys
from agentmark.keys.key import Key
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.verify.correction import Correction, Familywise
from agentmark.verify.roll import By
from agentmark.verify.verifier import Verifier

# What a part has, in bytes of columns or of lines: it is held at once by whoever reads it.
PART_BYTES = {FAST: 64 << 20, PLAIN: 16 << 20}
# With several workers there are so many parts for each at least, so that none waits long for the last.
PARTS_A_WORKER = 4
MOST_WORKERS = 512
# So little is done by one process sooner than others are started.
ONE_PROCESS_BYTES = 32 << 20
MOST_PARTS = 4096
# What a byte of a file comes to in a part, roughly: a line becomes columns of a third of its size; what is packed is
# larger than it looks.
COLUMNS_OF_LINES = 0.35
UNPACKED = {".gz": 8.0, ".zst": 8.0, ".zip": 8.0, ".eval": 8.0, ".parquet": 4.0}
# Notes on files that are kept for the summary; further ones are counted.
MOST_NOTES = 1000

# Handed every row as it is written.
RowWatch = Callable[[JudgedRow], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAudit:
    """What is asked, of which files, and how the work is done. Nothing is read before `run`."""

    # Files, folders, and patterns such as "logs/**/*.jsonl.gz".
    paths: Sequence[str]
    keys: Sequence[Key]
    registry: Registry | None = None
    by: By = By.SESSION
    # Familywise, unless said otherwise: many groups are many questions.
    correction: Correction | None = None
    claim: PayloadLike = None
    payload_len: int | None = None
    noise: float | None = None
    any_key_id: bool = False
    work_limit: int = DEFAULT_WORK_LIMIT
    limits: Limits = DEFAULT_LIMITS
    # Whether identities are looked for that explain short groups together.
    pools: bool = True
    # Stop at the first file or record that is bad, in place of naming it and going on.
    strict: bool = False
    # The results: a file that ends in .parquet, .csv or .jsonl.
    out: Path | None = None
    # Processes; by default as many as there are cores.
    workers: int | None = None
    # By default beside the results, or a temporary one. It is removed at the end.
    work_dir: Path | None = None
    resume: bool = False
    keep_work_dir: bool = False
    # "fast" or "plain"; by default fast if the extra is installed. The results are the same.
    engine: str | None = None
    # Pages on all of it; then the SHA-256 of every file is stated.
    report: ReportAsked | None = None
    # What a worker takes at a time, and what a part has (by default as the engine holds it well).
    shard_bytes: int = RANGE_BYTES
    part_bytes: int | None = None
    # What else whoever asks will write: never taken for an input.
    own: Sequence[Path] = ()

    def __post_init__(self) -> None:
        """What cannot be meant is refused now, not after the work is done."""
        if not self.paths:
            raise SettingError("paths", "there must be at least one")
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise SettingError("workers", f"{self.workers} is not a number of processes from 1 to {MOST_WORKERS}")
        if self.resume and self.work_dir is None and self.out is None:
            raise SettingError("resume", "needs --out or --work-dir: from where to go on")
        if self.out is not None:
            check_results(self.out)
        if self.report is not None:
            self.report.check()
        if self.verifier().keys.disclosed:
            raise SettingError("keys", "a disclosure proves records one by one, and is judged by `Verifier`")

    def verifier(self) -> Verifier:
        """The verifier of the question; what it cannot mean is refused here."""
        return Verifier(
            self.keys,
            payload_len=self.payload_len,
            registry=self.registry,
            noise=self.noise,
            any_key_id=self.any_key_id,
            work_limit=self.work_limit,
        )

    @property
    def asked_correction(self) -> Correction:
        return self.correction or Familywise()

    def run(self, progress: Progress | None = None, on_row: RowWatch | None = None) -> AuditSummary:
        """Do all of it. A run that was stopped leaves its working folder, and `resume` goes on from there."""
        return _Run(self, progress or Silent(), on_row).run()

    @property
    def settings(self) -> dict[str, Any]:
        """What makes a difference to the results: an audit that is taken up again must ask the same."""
        return {
            "by": self.by.value,
            "correction": {
                name: value for name, value in self.asked_correction.as_dict().items() if name != "explained"
            },
            "claim": claim_as_asked(self.claim),
            "payload_len": self.payload_len,
            "noise": self.noise,
            "any_key_id": self.any_key_id,
            "work_limit": self.work_limit,
            "limits": self.limits.as_dict(),
            "pools": self.pools,
            "strict": self.strict,
            "digests": self.report is not None,
            # A value that only the same keys have, and that says nothing of them.
            "keys": self.verifier().keys.check.hex(),
            "registry": None if self.registry is None else _registry_digest(self.registry),
        }


def _registry_digest(registry: Registry) -> str:
    digest = blake2b(str(registry.payload_len).encode(), digest_size=16)
    for identity in sorted(registry, key=lambda identity: identity.payload):
        digest.update(repr((identity.name, identity.payload, identity.revoked_at)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class _Run:
    """One audit at work."""

    def __init__(self, asked: BulkAudit, progress: Progress, on_row: RowWatch | None) -> None:
        self._asked = asked
        self._progress = progress
        self._on_row = on_row
        self._workers = asked.workers or default_workers()

    def run(self) -> AuditSummary:
        with ExitStack() as stack:
            path = self._work_path(stack)
            found = find_shards(self._asked.paths, own=self._own(path), strict=self._asked.strict)
            engine = self._asked.engine or default_engine()
            if self._is_held(path, found, engine):
                with suppress(TooMuchToHoldError):
                    return self._run_held(found, engine)
            work_dir = WorkDir(path, resume=self._asked.resume)
            # Left as it is, so that a run that stops can be taken up again.
            stack.callback(work_dir.close)
            chosen = work_dir.settle(
                self._asked.settings, {"engine": engine, "part_count": self._part_count(found, engine)}
            )
            reading = _Reading(self._asked, work_dir, chosen, found)
            workers = stack.enter_context(self._pool(max(len(reading.jobs), chosen["part_count"])))
            files, outcomes = reading.read(workers, self._progress)
            judging = self._judging(work_dir, workers, files, chosen)
            summary = self._summed_up(judging.judged(), judging.engine, outcomes, read_totals(outcomes, found))
            if not self._asked.keep_work_dir:
                work_dir.remove()
        return summary

    def _work_path(self, stack: ExitStack) -> Path:
        if self._asked.work_dir is not None:
            return self._asked.work_dir
        if self._asked.out is not None:
            return beside(self._asked.out)
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentmark-audit-"))) / "work"

    def _own(self, work_path: Path) -> list[Path]:
        out = [] if self._asked.out is None else [self._asked.out]
        report = [] if self._asked.report is None else [self._asked.report.folder]
        return [work_path, *out, *report, *self._asked.own]

    def _part_count(self, found: FoundShards, engine: str) -> int:
        """So many that a part can be held at once, whatever the size of all."""
        if self._asked.by is By.ALL:
            return 1
        size = _expected_bytes(found, engine)
        least = PARTS_A_WORKER * self._workers if self._workers > 1 else 1
        return min(MOST_PARTS, max(least, 1 + int(size // (self._asked.part_bytes or PART_BYTES[engine]))))

    def _is_held(self, work_path: Path, found: FoundShards, engine: str) -> bool:
        """Whether one process does all of it in memory: it is little, and nobody asked for a working folder, or for
        the work to be divided."""
        asked = self._asked
        is_kept = asked.work_dir is not None or asked.resume or asked.keep_work_dir or work_path.exists()
        if is_kept or asked.part_bytes is not None or asked.shard_bytes != RANGE_BYTES:
            return False
        one = self._workers == 1 or found.size <= ONE_PROCESS_BYTES
        return one and _expected_bytes(found, engine) <= HELD_BYTES

    def _run_held(self, found: FoundShards, engine: str) -> AuditSummary:
        asked = self._asked
        verifier = asked.verifier()
        pieces = tuple([piece for shard in found.shards for piece in ranges_of(shard, asked.shard_bytes)])
        job = read_job(asked, pieces, engine)
        audit = HeldAudit(chunk_kind(engine), verifier.keys)
        outcomes = audit.read(job, self._progress, found.size)
        judged = audit.judged(
            verifier,
            job,
            correction=asked.asked_correction,
            claim=asked.claim,
            pools=asked.pools,
            progress=self._progress,
        )
        self._workers = 1
        return self._summed_up(judged, engine, outcomes, read_totals(outcomes, found))

    def _pool(self, most: int) -> Workers:
        """No more processes than there is work for."""
        asked = self._asked
        given = Given(keys=HandedKeys(asked.keys), any_key_id=asked.any_key_id, registry=asked.registry)
        return Workers(max(1, min(self._workers, most)), given)

    def _judging(self, work_dir: WorkDir, workers: Workers, files: Sequence[Path], chosen: dict[str, Any]) -> Judging:
        asked = self._asked
        return Judging(
            verifier=asked.verifier(),
            workers=workers,
            folder=work_dir.judged,
            files=files,
            part_count=chosen["part_count"],
            engine=chosen["engine"],
            by=asked.by,
            correction=asked.asked_correction,
            claim=asked.claim,
            pools=asked.pools,
            progress=self._progress,
        )

    def _summed_up(
        self, judged: Judged, engine: str, outcomes: Sequence[ShardOutcome], read: ReadTotals
    ) -> AuditSummary:
        asked, verifier = self._asked, self._asked.verifier()
        tally, listed = RowTally(), ReportRows()
        writer: RowWriter = Discarded() if asked.out is None else results_writer(asked.out)
        with writer:
            for row in judged.rows:
                writer.write(row.row)
                tally.take(row)
                if asked.report is not None:
                    listed.take(row)
                if self._on_row is not None:
                    self._on_row(row)
        summary = AuditSummary(
            by=asked.by,
            rows=tally.rows,
            standings=tally.standings,
            outcomes=tally.outcomes,
            pooled=tally.pooled,
            totals=tally.totals(judged.pools),
            pools=judged.pools,
            questions=judged.questions,
            correction=asked.asked_correction,
            read=read,
            key_ids_given=verifier.keys.ids,
            claim=claim_as_asked(asked.claim),
            claim_taken_as=claim_as_taken(asked.claim, asked.registry),
            engine=engine,
            workers=self._workers,
            not_pooled=judged.not_pooled,
        )
        if asked.report is not None:
            about = ReportAbout(
                noise_rates=verifier.noise_rates,
                registry_size=None if asked.registry is None else len(asked.registry),
                results=None if asked.out is None else str(asked.out),
            )
            write_report(asked.report, summary, listed, outcomes, about)
        return summary


class _Reading:
    """Shards into files of parts; those that are finished are not read again."""

    def __init__(self, asked: BulkAudit, work_dir: WorkDir, chosen: dict[str, Any], found: FoundShards) -> None:
        self._asked = asked
        self._dir = work_dir
        self._chosen = chosen
        self._size = found.size
        self._pieces = [piece for shard in found.shards for piece in ranges_of(shard, asked.shard_bytes)]
        self._kept = list(self._finished({piece.piece: piece for piece in self._pieces}))
        self._done = {
            outcome.piece: replace(outcome, resumed=True) for line in self._kept for outcome in _outcomes(line)
        }
        left = [piece for piece in self._pieces if piece.piece not in self._done]
        self.jobs = [self._job(batch) for batch in batches(left, asked.shard_bytes)]

    def read(self, workers: Workers, progress: Progress) -> tuple[list[Path], list[ShardOutcome]]:
        """The files of parts that hold all shards, and what each shard held."""
        self._dir.rewrite_manifest(self._kept)
        self._drop_leftovers({line["file"] for line in self._kept})
        before = sum([piece.bytes_to_read for piece in self._pieces if piece.piece in self._done])
        places = {line["file"]: _outcomes(line)[0].piece for line in self._kept}

        def watch() -> None:
            done, records = workers.counted
            progress.bar(before + done, self._size, "bytes read", steps=records)

        for job, (outcomes, size) in workers.map(_read_job, self.jobs, watch):
            name = Path(job.file).name
            self._dir.add_to_manifest(
                {"file": name, "size": size, "shards": [outcome.as_dict() for outcome in outcomes]}
            )
            self._done |= {outcome.piece: outcome for outcome in outcomes}
            places[name] = job.shards[0].piece
        order = {piece.piece: i for i, piece in enumerate(self._pieces)}
        files = sorted(places, key=lambda name: order[places[name]])
        return [self._dir.parts / name for name in files], [self._done[piece.piece] for piece in self._pieces]

    def _finished(self, wanted: dict[Any, Shard]) -> Iterator[dict[str, Any]]:
        """Lines of the manifest of which every shard is there, and unchanged."""
        for line in self._dir.manifest():
            try:
                path, outcomes = self._dir.parts / line["file"], _outcomes(line)
            except (KeyError, TypeError):
                # Damaged, or of another version: what it is of is read again.
                continue
            is_there = path.is_file() and path.stat().st_size == line.get("size")
            if is_there and all(_is_unchanged(outcome, wanted.get(outcome.piece)) for outcome in outcomes):
                yield line

    def _drop_leftovers(self, kept: set[str]) -> None:
        for path in self._dir.parts.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _job(self, shards: tuple[Shard, ...]) -> ReadJob:
        # Another name each time: what was judged of a file of parts holds for that one (`judging.py`).
        file = str(self._dir.parts / f"{secrets.token_hex(12)}.parts")
        return read_job(self._asked, shards, self._chosen["engine"], file=file, part_count=self._chosen["part_count"])


def read_job(
    asked: BulkAudit, shards: tuple[Shard, ...], engine: str, *, file: str = "", part_count: int = 1
) -> ReadJob:
    """What whoever reads these shards is told."""
    return ReadJob(
        shards=shards,
        file=file,
        part_count=part_count,
        by=asked.by,
        engine=engine,
        limits=asked.limits,
        strict=asked.strict,
        work_limit=asked.work_limit,
        digests=asked.report is not None,
    )


def _expected_bytes(found: FoundShards, engine: str) -> float:
    """What all records come to, in bytes of columns or of lines."""
    size = sum([shard.size * UNPACKED.get(Path(shard.path).suffix, 1.0) for shard in found.shards])
    return size * COLUMNS_OF_LINES if engine == FAST else size


def _read_job(job: ReadJob) -> tuple[list[ShardOutcome], int]:
    return read_shards(job, count)


def _outcomes(line: dict[str, Any]) -> list[ShardOutcome]:
    return [ShardOutcome.from_dict(content) for content in line["shards"]]


def _is_unchanged(outcome: ShardOutcome, shard: Shard | None) -> bool:
    if shard is None or outcome.refused or (shard.size, shard.mtime_ns) != (outcome.size, outcome.mtime_ns):
        return False
    try:
        return fingerprint(shard) == outcome.fingerprint
    except OSError:
        return False


def read_totals(outcomes: Sequence[ShardOutcome], found: FoundShards) -> ReadTotals:
    notes: list[str] = []
    bad: dict[str, BadShard] = {shard.name: shard for shard in found.bad}
    key_ids: set[str] = set()
    unlisted = lines = 0
    path = None
    for outcome in outcomes:
        lines = lines if outcome.path == path else 0
        path = outcome.path
        notes += outcome.renumbered(lines)
        unlisted += outcome.more_notes
        lines += outcome.lines
        key_ids.update(outcome.key_ids)
        if outcome.failed is not None:
            bad.setdefault(outcome.name, BadShard(name=outcome.name, fault=outcome.failed))
    return ReadTotals(
        shards=len({*bad, *[shard.name for shard in found.shards]}),
        size=found.size,
        resumed=len({outcome.path for outcome in outcomes if outcome.resumed}),
        records=sum([outcome.records for outcome in outcomes]),
        bad_records=sum([outcome.bad for outcome in outcomes]),
        same_files=found.same_files,
        bad_shards=tuple(bad.values()),
        notes=tuple(notes[:MOST_NOTES]),
        more_notes=unlisted + max(0, len(notes) - MOST_NOTES),
        key_ids=tuple(sorted(key_ids)),
    )
