"""Records as columns on their way from shards to parts (extra: fast)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentmark.audit.chunks import ALL_GROUP, ChunkReading, PlainReading
from agentmark.audit.shards import Shard
from agentmark.audit.spill import part_of
from agentmark.batch.arrays import Int64s, np
from agentmark.batch.columns import StepColumns
from agentmark.log.read.limits import Limits
from agentmark.log.read.summary import LogSummary
from agentmark.verify.roll import By


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    columns: StepColumns

    @property
    def nbytes(self) -> int:
        columns = self.columns
        return sum([array.nbytes for array in (columns.context, columns.name, columns.weight)]) + 80 * len(columns)

    @property
    def key_ids(self) -> Iterable[str]:
        return self.columns.key_ids

    def __len__(self) -> int:
        return len(self.columns)


class ColumnChunks:
    """Columns, sorted by part as they are written."""

    def read(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> ChunkReading:
        return ColumnReading(shard, skip_bad=skip_bad, limits=limits, work_limit=work_limit)

    def by_part(self, chunks: list[ColumnChunk], by: By, part_count: int) -> Iterator[tuple[int, bytes]]:
        columns = StepColumns.concat([chunk.columns for chunk in chunks])
        parts = parts_of(columns, by, part_count)
        order = np.argsort(parts, kind="stable")
        ends = np.searchsorted(parts[order], np.arange(part_count + 1))
        for part in range(part_count):
            rows = order[ends[part] : ends[part + 1]]
            if len(rows):
                yield part, columns.take(rows).to_bytes()


def parts_of(columns: StepColumns, by: By, part_count: int) -> Int64s:
    """The part that each row belongs to. Each name is hashed once."""
    match by:
        case By.SESSION:
            names, codes = columns.sessions, columns.session
        case By.FILE:
            names, codes = columns.files, columns.file
        case By.TENANT:
            names, codes = columns.key_ids, columns.key_id
        case _:
            return np.full(len(columns), part_of(ALL_GROUP, part_count), np.int64)
    return np.array([part_of(name, part_count) for name in names], np.int64)[codes]


class ColumnReading:
    """A shard as columns."""

    def __init__(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> None:
        self._plain = PlainReading(shard, skip_bad=skip_bad, limits=limits, work_limit=work_limit)

    def chunks(self) -> Iterator[ColumnChunk]:
        for chunk in self._plain.chunks():
            records = [entry.record for entry in chunk.entries]
            lines = [entry.line for entry in chunk.entries]
            yield ColumnChunk(StepColumns.of_records(records, chunk.file, lines))

    @property
    def summary(self) -> LogSummary:
        return self._plain.summary

    @property
    def lines(self) -> int:
        return self._plain.lines

    @property
    def place(self) -> int:
        return 0


def part_columns(blocks: Iterable[bytes]) -> StepColumns:
    """All of a part."""
    return StepColumns.concat([StepColumns.from_bytes(block) for block in blocks])
