"""Parts on disk into rows: read under the keys, sorted out by group, judged in phases, each over a pool of processes.

The phases are those of `verify.many`. What a phase has said of a part is kept, so that a run which is taken up again
goes on with the part at which it was stopped.
"""

import io
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import merge
from pathlib import Path
from typing import Any

from agentmark.audit.judged import JudgedRow
from agentmark.audit.progress import Progress
from agentmark.audit.sorted_parts import PHASE, DiskPart, SortJob, load_sealed, save_sealed, sort_part
from agentmark.audit.workers import Workers, held
from agentmark.core.payload import PayloadLike
from agentmark.identity.registry import Registry
from agentmark.keys.handover import HandedKeys
from agentmark.verify.correction import Correction
from agentmark.verify.keyring import Keyring
from agentmark.verify.many import Settled, commonest_length, judge_parts, settle, survey
from agentmark.verify.roll import By, Pool
from agentmark.verify.verifier import Verifier

# As much of a file of rows as is read at a time: with thousands of parts no file stays open.
ROWS_READ = 1 << 18
_OF = "of.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What every worker is given when it is started: the keys, and the registry, which may be large."""

    keys: HandedKeys
    any_key_id: bool
    registry: Registry | None

    def keyring(self) -> Keyring:
        return Keyring(self.keys.keys, any_key_id=self.any_key_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The rows, in the order of their names, and what is said of all of them."""

    rows: Iterable[JudgedRow]
    pools: tuple[Pool, ...]
    questions: int
    # Usable steps in groups that are too short alone, and too many to be asked about together.
    not_pooled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is asked of all parts, where they are, and who does the work."""

    verifier: Verifier
    workers: Workers
    folder: Path
    files: Sequence[Path]
    part_count: int
    engine: str
    by: By
    correction: Correction
    claim: PayloadLike
    pools: bool
    progress: Progress

    def judged(self) -> Judged:
        """All groups of all parts. In memory are a few numbers of each group, and the parts at hand."""
        self._drop_what_is_of_other_files()
        # Of another audit in this process, perhaps in the same folder.
        PHASE.at_hand.clear()
        payload_len = self.verifier.payload_len
        parts = self._sorted_out(payload_len)
        mapper = _PhaseMapper(self.workers, self.folder, self.verifier.keys)
        if payload_len is None and self.claim is not None:
            # A claim is an identity of one length, whatever a single group states.
            payload_len = commonest_length(mapper(_survey_of, parts))
            parts = self._sorted_out(payload_len)
        judged = judge_parts(
            self.verifier,
            parts,
            correction=self.correction,
            claim=self.claim,
            pools=self.pools,
            mapper=mapper,
            watch=lambda done, total: self.progress.bar(done, total, "groups judged"),
        )
        jobs = [(part, settled, judged.pools) for part, settled in zip(parts, judged.settled, strict=True)]
        files = list(mapper(_write_rows, jobs))
        PHASE.at_hand.clear()
        rows = merge(*[_read_rows(Path(path)) for path in files], key=lambda row: row.row.group)
        return Judged(rows=rows, pools=judged.pools, questions=judged.questions, not_pooled=judged.not_pooled)

    def _sorted_out(self, payload_len: int | None) -> list[DiskPart]:
        folder = self.folder / ("own-length" if payload_len is None else f"length-{payload_len}")
        folder.mkdir(mode=0o700, exist_ok=True)
        parts = [DiskPart(str(folder), number) for number in range(self.part_count)]
        files = tuple(map(str, self.files))
        jobs = [
            SortJob(
                part=number,
                files=files,
                engine=self.engine,
                by=self.by,
                payload_len=payload_len,
                to=str(part.logs_file),
            )
            for number, part in enumerate(parts)
            if not part.logs_file.exists()
        ]
        done = self.part_count - len(jobs)
        for _ in self.workers.map(_sort_job, jobs):
            done += 1
            self.progress.bar(done, self.part_count, "parts read under the keys")
        return parts

    def _drop_what_is_of_other_files(self) -> None:
        """What an earlier run has judged holds for the files that it was judged from, and for no others."""
        of = blake2b(repr([path.name for path in self.files]).encode(), digest_size=16).hexdigest()
        known = self.folder / _OF
        if known.exists() and json.loads(known.read_text(encoding="utf-8")) == of:
            return
        for path in sorted(self.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        known.write_text(json.dumps(of), encoding="utf-8")


def _sort_job(job: SortJob) -> None:
    sort_part(job, _given().keyring())


def _survey_of(part: DiskPart) -> Any:
    return survey(part.logs())


def _write_rows(job: tuple[DiskPart, Settled, tuple[Pool, ...]]) -> str:
    """The rows of a part as lines, in the order of their names."""
    part, settled, pools = job
    rows = [JudgedRow.of(row, pools) for row in settle(part.logs(), part.verdicts(), settled)]
    rows.sort(key=lambda row: row.row.group)
    path = part.logs_file.with_suffix(".rows")
    path.write_text("".join([row.to_json() + "\n" for row in rows]), encoding="utf-8")
    return str(path)


def _read_rows(path: Path) -> Iterator[JudgedRow]:
    at, held_back = 0, b""
    while True:
        with path.open("rb") as file:
            file.seek(at)
            data = file.read(ROWS_READ)
        at += len(data)
        *lines, held_back = (held_back + data).split(b"\n")
        for line in lines:
            yield JudgedRow.from_json(line.decode("utf-8"))
        if not data:
            return


# Phases --------------------------------------------------------------------------------------------------------------


class _PhaseMapper:
    """`map` over the workers, phase after phase. What came of an item is kept, and not asked again by a later run."""

    def __init__(self, workers: Workers, folder: Path, keys: Keyring) -> None:
        self._workers = workers
        self._folder = folder
        self._keys = keys
        self._phase = 0

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        self._phase += 1
        jobs = [
            _PhaseJob(function, item, self._phase, str(self._folder / f"phase-{self._phase:03}-{number:05}"))
            for number, item in enumerate(items)
        ]
        return self._in_order(jobs)

    def _in_order(self, jobs: Sequence["_PhaseJob"]) -> Iterator[Any]:
        done = [Path(job.kept).exists() for job in jobs]
        running = self._workers.map(_run_phase, [job for job, is_done in zip(jobs, done, strict=True) if not is_done])
        finished: set[str] = {job.kept for job, is_done in zip(jobs, done, strict=True) if is_done}
        for job in jobs:
            while job.kept not in finished:
                finished.add(next(running)[0].kept)
            yield load_sealed(Path(job.kept), self._keys)


class _PhaseJob:
    """A function of `verify.many` and its item. The registry stays where it is: every worker has it."""

    def __init__(self, function: Callable[[Any], Any], item: Any, phase: int, kept: str) -> None:
        self.function = function
        self.item = item
        self.phase = phase
        self.kept = kept

    def __getstate__(self) -> tuple[bytes, int, str]:
        stream = io.BytesIO()
        _Sending(stream, protocol=pickle.HIGHEST_PROTOCOL).dump((self.function, self.item))
        return stream.getvalue(), self.phase, self.kept

    def __setstate__(self, state: tuple[bytes, int, str]) -> None:
        data, self.phase, self.kept = state
        self.function, self.item = _Receiving(io.BytesIO(data)).load()


class _Sending(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        return "registry" if isinstance(value, Registry) else None


class _Receiving(pickle.Unpickler):
    def persistent_load(self, _: Any) -> Registry | None:
        return _given().registry


def _run_phase(job: _PhaseJob) -> None:
    PHASE.number, PHASE.held = job.phase, _given().keyring()
    save_sealed(Path(job.kept), job.function(job.item), PHASE.keys)


def _given() -> Given:
    given: Given = held()
    return given
