"""Columns of many records without their lists: what sorting them out by group takes, of chunks that stay as they are.

Lists are most of the bytes of a record, and once it was read they are looked into again for a few rows only. So they
are not moved: the record of a row is made from the chunk that it came in.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agentmark.batch.arrays import Bools, Bytes, Int8s, Int32s, np
from agentmark.batch.columns import StepColumns, merged_codes
from agentmark.record import StepRecord

_MOVED = ("payload_len", "context", "marked", "enforced", "partial", "listed", "scheme", "mismatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedColumns:
    """The rows of all chunks, in their order; the columns are those of `StepColumns`."""

    sessions: tuple[str, ...]
    session: Int32s
    key_ids: tuple[str, ...]
    key_id: Int32s
    files: tuple[str, ...]
    file: Int32s
    payload_len: Int32s
    context: Bytes
    marked: Bools
    enforced: Int8s
    partial: Bools
    listed: Bools
    scheme: Bytes
    mismatch: Bools
    chunks: tuple[StepColumns, ...]
    # Where the rows of each chunk begin.
    begins: tuple[int, ...]

    @classmethod
    def of(cls, chunks: Sequence[StepColumns]) -> "JoinedColumns":
        present = [chunk for chunk in chunks if len(chunk)] or [StepColumns.empty()]
        sessions, session = merged_codes([(chunk.sessions, chunk.session) for chunk in present])
        key_ids, key_id = merged_codes([(chunk.key_ids, chunk.key_id) for chunk in present])
        files, file = merged_codes([(chunk.files, chunk.file) for chunk in present])
        return cls(
            sessions=sessions,
            session=session,
            key_ids=key_ids,
            key_id=key_id,
            files=files,
            file=file,
            chunks=tuple(present),
            begins=tuple(accumulate([len(chunk) for chunk in present[:-1]], initial=0)),
            **{name: np.concatenate([getattr(chunk, name) for chunk in present]) for name in _MOVED},
        )

    def __len__(self) -> int:
        return len(self.scheme)

    def record(self, row: int) -> StepRecord:
        """The record of a row, as its chunk has it."""
        number = bisect_right(self.begins, row) - 1
        return self.chunks[number].record(row - self.begins[number])
