"""Records as columns on their way from shards to parts (extra: fast)."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from math import fsum

from agentmark.audit.chunks import ALL_GROUP, ChunkReading, ReadingAllowance
from agentmark.audit.shards import Shard
from agentmark.audit.spill import part_of
from agentmark.batch.arrays import Int64s, np, row_of_each
from agentmark.batch.chunks import read_chunks
from agentmark.batch.columns import StepColumns
from agentmark.batch.from_lines import read_line_chunks
from agentmark.batch.groups import sort_out
from agentmark.batch.joined import JoinedColumns
from agentmark.batch.reading import ReadingColumns, read_columns
from agentmark.log.read.files import shown
from agentmark.log.read.limits import MIB, Limits
from agentmark.log.read.meter import Meter
from agentmark.log.read.open import UnreadLogError
from agentmark.log.read.packing import as_it_is
from agentmark.log.read.span import FileSpan
from agentmark.log.read.summary import LogSummary, Tally
from agentmark.verify.intake import reading_cost
from agentmark.verify.keyring import Keyring
from agentmark.verify.roll import By
from agentmark.verify.sorted_log import SortedLog

# Rows of a chunk: some 3 MB for lists of six.
CHUNK_ROWS = 16384


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

    def of_blocks(self, blocks: Iterable[bytes]) -> Iterator[ColumnChunk]:
        for block in blocks:
            yield ColumnChunk(StepColumns.from_bytes(block))

    def held(self, chunk: ColumnChunk, keys: Keyring) -> "ReadChunk":
        """Read at once, while what it takes is still at hand."""
        return ReadChunk(chunk.columns, read_columns(chunk.columns, keys))

    def sorted_out(
        self, held: Sequence["ReadChunk"], keys: Keyring, by: By, payload_len: int | None
    ) -> list[SortedLog]:
        columns = JoinedColumns.of([chunk.columns for chunk in held])
        readings = ReadingColumns.concat([chunk.readings for chunk in held if len(chunk.columns)])
        return sorted(sort_out(columns, readings, by, payload_len), key=lambda log: log.name)


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Some records, and what they say."""

    columns: StepColumns
    readings: ReadingColumns


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
    """A shard as columns: a file of any format, or a range of one of lines."""

    def __init__(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> None:
        self._shard = shard
        self._skip_bad = skip_bad
        self._limits = limits
        self._allowance = ReadingAllowance(shard, work_limit)
        self._summary: LogSummary | None = None
        self.lines = 0

    def chunks(self) -> Generator[ColumnChunk]:
        for columns in self._whole() if self._shard.end is None else self._range(self._shard.end):
            if self._allowance.counts:
                self._allowance.take_cost(reading_costs(columns))
            # Its name here is text that every file can hold.
            yield ColumnChunk(replace(columns, files=(self._shard.name,)))

    def _whole(self) -> Iterator[StepColumns]:
        log = read_chunks(self._shard.path, skip_bad=self._skip_bad, limits=self._limits, rows=CHUNK_ROWS)
        yield from log
        self._summary = log.summary

    def _range(self, end: int) -> Iterator[StepColumns]:
        name = shown(self._shard.path)
        meter, tally = Meter(name, self._limits), Tally(name)
        span = FileSpan(self._shard.path, self._shard.start, end)
        file: BufferedReader = BufferedReader(span, MIB)
        with file:
            stream = as_it_is(file, meter)
            yield from read_line_chunks(stream, name, meter, tally, skip_bad=self._skip_bad, rows=CHUNK_ROWS)
        self._summary = tally.summary()
        self.lines = span.lines

    @property
    def summary(self) -> LogSummary:
        if self._summary is None:
            raise UnreadLogError(self._shard.name)
        return self._summary


def reading_costs(columns: StepColumns) -> float:
    """What reading these rows costs in all: it depends on sizes alone, so it is asked once for each of them."""
    if not len(columns):
        return 0.0
    row = row_of_each(columns.list_start)
    listed = columns.weight > 0
    lengths = np.array([len(name) for name in columns.names], np.int64)
    options = np.bincount(row[listed], minlength=len(columns))
    letters = np.bincount(row, weights=np.where(listed, lengths[columns.name], 0), minlength=len(columns))
    sizes = np.stack([columns.scheme, columns.partial, columns.payload_len, options, letters.astype(np.int64)], axis=1)
    _, first, counts = np.unique(sizes, axis=0, return_index=True, return_counts=True)
    return fsum([reading_cost(columns.record(i)) * n for i, n in zip(first.tolist(), counts.tolist(), strict=True)])
