"""Parts on disk into rows: read under the keys, sorted out by group, judged."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentmark.audit.chunks import FAST, group_of, plain_records
from agentmark.audit.judged import JudgedRow
from agentmark.audit.progress import Progress
from agentmark.audit.spill import read_blocks
from agentmark.core.payload import PayloadLike
from agentmark.record import StepRecord
from agentmark.verify.correction import Correction
from agentmark.verify.many import Group, judge_roll
from agentmark.verify.roll import By, Pool
from agentmark.verify.state import accumulate
from agentmark.verify.verifier import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The rows, in the order of their names, and what is said of all of them."""

    rows: Iterable[JudgedRow]
    pools: tuple[Pool, ...]
    questions: int


def judge_parts(
    verifier: Verifier,
    files: Sequence[Path],
    part_count: int,
    *,
    engine: str,
    by: By,
    correction: Correction,
    claim: PayloadLike,
    pools: bool,
    progress: Progress,
) -> Judged:
    """Judge every group of every part."""
    groups: list[Group] = []
    for part in range(part_count):
        groups += _groups(_records(files, part, engine), verifier, by)
    roll = judge_roll(
        verifier,
        groups,
        by=by,
        correction=correction,
        claim=claim,
        pools=pools,
        watch=lambda done, total: progress.bar(done, total, "groups judged"),
    )
    return Judged(rows=[JudgedRow.of(row, roll.pools) for row in roll.rows], pools=roll.pools, questions=roll.questions)


def _records(files: Sequence[Path], part: int, engine: str) -> Iterator[tuple[str, StepRecord]]:
    blocks = (block for path in files for block in read_blocks(path, part))
    if engine != FAST:
        yield from plain_records(blocks)
        return
    from agentmark.audit.column_chunks import part_columns

    columns = part_columns(blocks)
    for i in range(len(columns)):
        yield columns.files[columns.file[i]], columns.record(i)


def _groups(records: Iterable[tuple[str, StepRecord]], verifier: Verifier, by: By) -> Iterator[Group]:
    found: dict[str, list[StepRecord]] = defaultdict(list)
    files: dict[str, set[str]] = defaultdict(set)
    for file, record in records:
        name = group_of(record, file, by)
        found[name].append(record)
        files[name].add(file)
    for name, mine in found.items():
        yield Group(name=name, files=tuple(sorted(files[name])), state=accumulate(mine, verifier.keys))
