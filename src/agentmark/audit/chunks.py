"""Records on their way from shards to parts: as columns where the extra `fast` is installed, else as lines.

Both kinds give the same results. `PLAIN` is the reference that the other is compared with.
"""

import json
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentmark.audit.shards import Shard
from agentmark.audit.spill import part_of
from agentmark.core.errors import AgentMarkError
from agentmark.log.read.events import Entry
from agentmark.log.read.limits import Limits
from agentmark.log.read.open import Log, open_log
from agentmark.log.read.parquet import size_to_read
from agentmark.log.read.summary import LogSummary
from agentmark.record import StepRecord
from agentmark.verify.intake import reading_cost
from agentmark.verify.keyring import Keyring
from agentmark.verify.many import Group
from agentmark.verify.roll import By
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.state import accumulate
from agentmark.verify.work import reading_work

PLAIN, FAST = "plain", "fast"
# Records of a chunk of lines.
CHUNK_RECORDS = 2000
# The name of the one group of all records.
ALL_GROUP = "all"


class Chunk(Protocol):
    """Some records of one shard."""

    @property
    def nbytes(self) -> int: ...

    @property
    def key_ids(self) -> Iterable[str]: ...

    def __len__(self) -> int: ...


class ChunkReading(Protocol):
    """A shard that is read chunk by chunk. `summary` and `lines` are known at its end."""

    def chunks(self) -> Generator[Any]: ...

    @property
    def summary(self) -> LogSummary: ...

    @property
    def lines(self) -> int: ...


class ChunkKind(Protocol):
    """How records are held between a shard and a part."""

    def read(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> ChunkReading: ...

    def by_part(self, chunks: list[Any], by: By, part_count: int) -> Iterator[tuple[int, bytes]]:
        """The same records as blocks, each of one part, in their order."""

    def of_blocks(self, blocks: Iterable[bytes]) -> Iterable[Any]:
        """The records of a part again, as chunks."""

    def held(self, chunk: Any, keys: Keyring) -> Any:
        """A chunk as it is kept in memory until all have come."""

    def sorted_out(self, held: Sequence[Any], keys: Keyring, by: By, payload_len: int | None) -> list[SortedLog]:
        """All of them read under the keys and sorted out by group, in the order of their names."""


def group_of(record: StepRecord, file: str, by: By) -> str:
    """The name of the group that a record belongs to."""
    match by:
        case By.SESSION:
            return record.session
        case By.FILE:
            return file
        case By.TENANT:
            return record.key_id
    return ALL_GROUP


# Plain ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlainChunk:
    file: str
    entries: tuple[Entry, ...]

    @property
    def nbytes(self) -> int:
        # About what a record takes in memory.
        return 2200 * len(self.entries)

    @property
    def key_ids(self) -> set[str]:
        return {entry.record.key_id for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)


class PlainChunks:
    """Records as lines of JSON, each block with the name of its file before them."""

    def read(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> ChunkReading:
        return PlainReading(shard, skip_bad=skip_bad, limits=limits, work_limit=work_limit)

    def by_part(self, chunks: list[PlainChunk], by: By, part_count: int) -> Iterator[tuple[int, bytes]]:
        for chunk in chunks:
            lines: dict[int, list[str]] = defaultdict(list)
            for entry in chunk.entries:
                part = part_of(group_of(entry.record, chunk.file, by), part_count)
                lines[part].append(entry.record.to_json())
            for part, mine in sorted(lines.items()):
                yield part, "\n".join([json.dumps(chunk.file), *mine]).encode("utf-8", "surrogatepass")

    def of_blocks(self, blocks: Iterable[bytes]) -> Iterator["PlainChunk"]:
        for block in blocks:
            head, *lines = block.decode("utf-8", "surrogatepass").split("\n")
            yield PlainChunk(json.loads(head), tuple([Entry(StepRecord.from_json(line)) for line in lines]))

    def held(self, chunk: PlainChunk, _keys: Keyring) -> PlainChunk:
        return chunk

    def sorted_out(self, held: Sequence[PlainChunk], keys: Keyring, by: By, payload_len: int | None) -> list[SortedLog]:
        records: dict[str, list[StepRecord]] = defaultdict(list)
        files: dict[str, set[str]] = defaultdict(set)
        for chunk in held:
            for entry in chunk.entries:
                name = group_of(entry.record, chunk.file, by)
                records[name].append(entry.record)
                files[name].add(chunk.file)
        logs = []
        for name in sorted(records):
            state = accumulate(records.pop(name), keys)
            group = Group(name=name, files=tuple(sorted(files.pop(name))), state=state, disclosed=keys.disclosed)
            logs.append(group.sorted_out(payload_len))
        return logs


class PlainReading:
    """A shard through the plain readers, which know every format."""

    def __init__(self, shard: Shard, *, skip_bad: bool, limits: Limits, work_limit: int) -> None:
        self._shard = shard
        self._log: Log = open_log(
            shard.path,
            skip_bad=skip_bad,
            limits=limits,
            span=None if shard.end is None else (shard.start, shard.end),
        )
        self._allowance = ReadingAllowance(shard, work_limit)

    def chunks(self) -> Generator[PlainChunk]:
        gathered: list[Entry] = []
        for entry in self._log.entries():
            self._allowance.take(entry.record)
            gathered.append(entry)
            if len(gathered) == CHUNK_RECORDS:
                yield PlainChunk(self._shard.name, tuple(gathered))
                gathered = []
        if gathered:
            yield PlainChunk(self._shard.name, tuple(gathered))

    @property
    def summary(self) -> LogSummary:
        return self._log.summary

    @property
    def lines(self) -> int:
        return self._log.span_lines


class CostlyShardError(AgentMarkError, RuntimeError):
    """A packed file whose records take far more work than its size accounts for."""

    def __init__(self, name: str, allowed: float) -> None:
        super().__init__(
            f"{name}: to read its records takes more than {allowed:.1e} operations, the most that a file of its size "
            "may ask for. If you trust the file, raise --work-limit"
        )


class ReadingAllowance:
    """What reading the records of a packed file under a key may cost. A file that is not packed is never beyond it.

    `verify` stops reading there, in the order of the files. Here the order must not matter, so that the file is
    refused as a whole, as one that is beyond the other limits is.
    """

    def __init__(self, shard: Shard, work_limit: int) -> None:
        self._name = shard.name
        self.counts = shard.end is None and _is_packed(Path(shard.path))
        self._work = reading_work(work_limit, size_to_read(Path(shard.path)) if self.counts else shard.size)

    def take(self, record: StepRecord) -> None:
        if self.counts:
            self.take_cost(reading_cost(record))

    def take_cost(self, cost: float) -> None:
        if self.counts and not self._work.take(cost):
            raise CostlyShardError(self._name, self._work.limit)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4096)
    return head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] not in (b"{", b"[", b"")
