"""Step records as columns: what verifying needs of many records, in arrays, a code in place of every text.

Each row has passed the checks of `StepRecord.from_dict`. No key is in it and nothing that only a key can tell, so that
columns on a disk hold no more than the logs do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from struct import Struct
from typing import Any, Self

from agentmark.batch.arrays import Bools, Bytes, Int8s, Int32s, Int64s, np, spread
from agentmark.batch.laws import Arrays, broken_lists, out_of_order, repeated_names
from agentmark.core.canonical import MAX_SAFE_INTEGER
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.errors import StateError
from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.schemes import SCHEMES
from agentmark.record import StepRecord

SCHEME_NAMES = tuple(SCHEMES)
_SCHEME_CODES = {name: code for code, name in enumerate(SCHEME_NAMES)}

# How `enforced` stands in a column: nobody has checked, false, true.
UNCHECKED = -1
ENFORCED_CODES = {None: UNCHECKED, False: 0, True: 1}

# The line of a record that has none to itself.
NO_LINE = -1

_MAGIC = b"AMSC\x01"
_CHECK_SIZE = 16
_COUNTS = Struct("<QQ")
_TABLE = Struct("<QQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepColumns:
    """Row i is one record. Tables hold each text once; a column of codes says which one a row has."""

    sessions: tuple[str, ...]
    session: Int32s
    key_ids: tuple[str, ...]
    key_id: Int32s
    files: tuple[str, ...]
    file: Int32s
    # The line in the file, or NO_LINE.
    line: Int64s
    # Behaviors, of the lists and of the choices.
    names: tuple[str, ...]
    # An index into SCHEME_NAMES.
    scheme: Bytes
    payload_len: Int32s
    step: Int64s
    # A digest a row: N rows of 32 bytes.
    context: Bytes
    marked: Bools
    # UNCHECKED, 0 or 1.
    enforced: Int8s
    # Whether only a part of the list is logged.
    partial: Bools
    # Whether a list is logged at all; where not, the row's list is empty.
    listed: Bools
    # The lists, one behind the other: row i has the entries list_start[i] to list_start[i + 1]. Whole lists are in
    # canonical order (L2), parts in the order in which they were logged.
    list_start: Int64s
    name: Int32s
    weight: Int64s
    choice: Int32s
    # Whether a raw context is logged that is not that of the digest.
    mismatch: Bools

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def empty(cls) -> "StepColumns":
        return ColumnBuilder("").columns()

    @classmethod
    def of_records(cls, records: Iterable[StepRecord], file: str, lines: Iterable[int | None]) -> "StepColumns":
        """Records that were read from one file, each with its line or None."""
        builder = ColumnBuilder(file)
        for record, line in zip(records, lines, strict=True):
            builder.add(record, line)
        return builder.columns()

    @classmethod
    def concat(cls, parts: Iterable["StepColumns"]) -> "StepColumns":
        """The rows of all parts, in their order; equal texts of their tables become one."""
        listed = [part for part in parts if len(part)]
        if not listed:
            return cls.empty()
        if len(listed) == 1:
            return listed[0]
        sessions, session = merged_codes([(part.sessions, part.session) for part in listed])
        key_ids, key_id = merged_codes([(part.key_ids, part.key_id) for part in listed])
        files, file = merged_codes([(part.files, part.file) for part in listed])
        # Lists and choices share a table.
        names, both = merged_codes([(part.names, np.concatenate([part.name, part.choice])) for part in listed])
        name, choice = _parted(both, [(len(part.name), len(part)) for part in listed])
        starts = np.cumsum([0, *(len(part.name) for part in listed)])
        moved = [part.list_start[1:] + start for part, start in zip(listed, starts[:-1], strict=True)]
        return cls(
            sessions=sessions,
            session=session,
            key_ids=key_ids,
            key_id=key_id,
            files=files,
            file=file,
            names=names,
            name=name,
            choice=choice,
            list_start=np.concatenate([np.zeros(1, np.int64), *moved]),
            weight=np.concatenate([part.weight for part in listed]),
            **{column: np.concatenate([getattr(part, column) for part in listed]) for column in _PLAIN_COLUMNS},
        )

    def take(self, rows: Int64s) -> Self:
        """These rows, in this order. The tables shrink to what they use."""
        lengths = np.diff(self.list_start)[rows]
        entries = spread(self.list_start[:-1][rows], lengths)
        sessions, session = _shrunk(self.sessions, self.session[rows])
        key_ids, key_id = _shrunk(self.key_ids, self.key_id[rows])
        files, file = _shrunk(self.files, self.file[rows])
        names, both = _shrunk(self.names, np.concatenate([self.name[entries], self.choice[rows]]))
        return type(self)(
            sessions=sessions,
            session=session,
            key_ids=key_ids,
            key_id=key_id,
            files=files,
            file=file,
            names=names,
            name=both[: len(entries)],
            choice=both[len(entries) :],
            list_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
            weight=self.weight[entries],
            **{column: getattr(self, column)[rows] for column in _PLAIN_COLUMNS},
        )

    def record(self, row: int) -> StepRecord:
        """The record of a row: all of it but meta, the raw context, the reason and the link of a chain."""
        begin, end = self.list_start[row : row + 2].tolist()
        names = [self.names[code] for code in self.name[begin:end].tolist()]
        weights = self.weight[begin:end].tolist()
        partial, listed, enforced = bool(self.partial[row]), bool(self.listed[row]), int(self.enforced[row])
        return StepRecord(
            scheme=SCHEME_NAMES[self.scheme[row]],
            key_id=self.key_ids[self.key_id[row]],
            payload_len=int(self.payload_len[row]),
            session=self.sessions[self.session[row]],
            step_index=int(self.step[row]),
            context=self.context[row].tobytes(),
            distribution=BehaviorDistribution(tuple(names), tuple(weights)) if listed and not partial else None,
            behavior=self.names[self.choice[row]],
            marked=bool(self.marked[row]),
            partial_weights=dict(zip(names, weights, strict=True)) if partial else None,
            enforced=None if enforced == UNCHECKED else enforced == 1,
        )

    def to_bytes(self) -> bytes:
        """Magic, a check of all that follows, the numbers of rows and of entries in lists; then the tables and the
        columns, in the order of `_TABLES` and `_LAYOUT`. Little-endian."""
        parts = [_COUNTS.pack(len(self), len(self.name))]
        for table in _TABLES:
            parts += _table_parts(getattr(self, table))
        for column, (kind, _) in _LAYOUT.items():
            parts.append(getattr(self, column).astype(kind, copy=False).tobytes())
        body = b"".join(parts)
        return _MAGIC + blake2b(body, digest_size=_CHECK_SIZE).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The columns that these bytes are of; StateError if they are of none, or hold what no record can."""
        head = len(_MAGIC) + _CHECK_SIZE
        if not data.startswith(_MAGIC) or len(data) < head:
            raise StateError("not columns of steps of version 1")
        if blake2b(data[head:], digest_size=_CHECK_SIZE).digest() != data[len(_MAGIC) : head]:
            raise StateError("columns of steps are damaged")
        source = _Source(data, head)
        row_count, entry_count = source.numbers(_COUNTS)
        tables = {table: _read_table(source, table) for table in _TABLES}
        sizes = {"rows": row_count, "starts": row_count + 1, "digests": row_count * DIGEST_SIZE, "entries": entry_count}
        arrays = {column: source.array(kind, sizes[size]) for column, (kind, size) in _LAYOUT.items()}
        source.expect_end()
        _check(arrays, tables)
        arrays["context"] = arrays["context"].reshape(row_count, DIGEST_SIZE)
        for column in _BOOLEANS:
            arrays[column] = arrays[column].view(np.bool_)
        return cls(**arrays, **tables)  # type: ignore[arg-type]


# Columns that stand for themselves: neither codes of a table nor lists.
_PLAIN_COLUMNS = (
    "line",
    "scheme",
    "payload_len",
    "step",
    "context",
    "marked",
    "enforced",
    "partial",
    "listed",
    "mismatch",
)
_TABLES = ("sessions", "key_ids", "files", "names")
_BOOLEANS = ("marked", "partial", "listed", "mismatch")
# Each column as it stands in bytes, and how many numbers it has. The order is the format.
_LAYOUT = {
    "session": ("<i4", "rows"),
    "key_id": ("<i4", "rows"),
    "file": ("<i4", "rows"),
    "line": ("<i8", "rows"),
    "scheme": ("<u1", "rows"),
    "payload_len": ("<i4", "rows"),
    "step": ("<i8", "rows"),
    "context": ("<u1", "digests"),
    "marked": ("<u1", "rows"),
    "enforced": ("<i1", "rows"),
    "partial": ("<u1", "rows"),
    "listed": ("<u1", "rows"),
    "list_start": ("<i8", "starts"),
    "name": ("<i4", "entries"),
    "weight": ("<i8", "entries"),
    "choice": ("<i4", "rows"),
    "mismatch": ("<u1", "rows"),
}


class Codes(dict[str, int]):
    """A table of texts as it grows: a text that is new gets the next code."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code


class ColumnBuilder:
    """Takes in records of one file, one by one or as arrays, and makes columns of them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.sessions, self.key_ids, self.names = Codes(), Codes(), Codes()
        self._arrays: list[Arrays] = []
        self._size = 0
        self._forget_rows()

    def _forget_rows(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._contexts: list[bytes] = []
        self._name: list[int] = []
        self._weight: list[int] = []

    def __len__(self) -> int:
        return self._size

    def add(self, record: StepRecord, line: int | None) -> None:
        weights: Mapping[str, int] = {}
        if record.distribution is not None:
            weights = record.distribution.as_weights()
        elif record.partial_weights is not None:
            weights = record.partial_weights
        self._rows.append(
            (
                self.sessions[record.session],
                self.key_ids[record.key_id],
                NO_LINE if line is None else line,
                _SCHEME_CODES[record.scheme],
                record.payload_len,
                record.step_index,
                record.marked,
                ENFORCED_CODES[record.enforced],
                record.partial_weights is not None,
                bool(weights),
                self.names[record.behavior],
                record.context_matches() is False,
                len(weights),
            )
        )
        self._contexts.append(record.context)
        self._name += map(self.names.__getitem__, weights)
        self._weight += weights.values()
        self._size += 1

    def add_arrays(self, arrays: Arrays) -> None:
        """Rows behind those that are here, with codes of this builder's tables."""
        self._gather()
        self._arrays.append(arrays)
        self._size += len(arrays["step"])

    def take_rows(self) -> Arrays:
        """What was taken in one by one since the last arrays, as arrays; it is not in the columns then."""
        rows = np.array(self._rows, np.int64).reshape(len(self._rows), 13).T
        arrays = {column: rows[number].astype(kind) for number, (column, kind) in enumerate(_ROW_KINDS.items())}
        arrays["context"] = np.frombuffer(b"".join(self._contexts), np.uint8).reshape(-1, DIGEST_SIZE)
        arrays["name"] = np.array(self._name, np.int32)
        arrays["weight"] = np.array(self._weight, np.int64)
        self._size -= len(self._rows)
        self._forget_rows()
        return arrays

    def _gather(self) -> None:
        if self._rows:
            arrays = self.take_rows()
            self._arrays.append(arrays)
            self._size += len(arrays["step"])

    def columns(self) -> StepColumns:
        if self._rows or not self._arrays:
            self._arrays.append(self.take_rows())
            self._size = sum(len(arrays["step"]) for arrays in self._arrays)
        joined = {column: np.concatenate([arrays[column] for arrays in self._arrays]) for column in self._arrays[0]}
        return StepColumns(
            sessions=tuple(self.sessions),
            key_ids=tuple(self.key_ids),
            files=(self._file,) if self._size else (),
            file=np.zeros(self._size, np.int32),
            names=tuple(self.names),
            list_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(joined.pop("length"))]),
            **joined,
        )


# The numbers of a record that is taken in by itself, in the order in which the builder keeps them.
_ROW_KINDS = {
    "session": np.int32,
    "key_id": np.int32,
    "line": np.int64,
    "scheme": np.uint8,
    "payload_len": np.int32,
    "step": np.int64,
    "marked": np.bool_,
    "enforced": np.int8,
    "partial": np.bool_,
    "listed": np.bool_,
    "choice": np.int32,
    "mismatch": np.bool_,
    "length": np.int64,
}


def merged_codes(columns: Sequence[tuple[tuple[str, ...], Int32s]]) -> tuple[tuple[str, ...], Int32s]:
    """Columns of codes one behind the other, with one table for all."""
    codes = Codes()
    recoded = []
    for table, column in columns:
        new = np.fromiter(map(codes.__getitem__, table), np.int32, len(table))
        recoded.append(new[column])
    return tuple(codes), np.concatenate(recoded)


def _parted(joined: Int32s, lengths: Sequence[tuple[int, int]]) -> tuple[Int32s, Int32s]:
    """Undo what was joined in pairs: all the firsts, and all the seconds."""
    cuts = np.cumsum([length for pair in lengths for length in pair])[:-1]
    pieces = np.split(joined, cuts)
    return np.concatenate(pieces[::2]), np.concatenate(pieces[1::2])


def _shrunk(table: tuple[str, ...], column: Int32s) -> tuple[tuple[str, ...], Int32s]:
    """The column with a table of those texts alone that it has."""
    used = np.zeros(len(table), bool)
    used[column] = True
    recoded = np.cumsum(used, dtype=np.int32) - 1
    return tuple([table[code] for code in np.flatnonzero(used).tolist()]), recoded[column].astype(np.int32)


def _table_parts(table: tuple[str, ...]) -> Iterator[bytes]:
    # The name of a file may hold bytes that are no UTF-8, which Python keeps as halves of surrogate pairs.
    texts = [text.encode("utf-8", "surrogatepass") for text in table]
    blob = b"".join(texts)
    yield _TABLE.pack(len(texts), len(blob))
    yield np.array([len(text) for text in texts], "<u4").tobytes()
    yield blob


def _read_table(source: "_Source", table: str) -> tuple[str, ...]:
    count, size = source.numbers(_TABLE)
    lengths = source.array("<u4", count)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    if ends[-1] != size:
        raise StateError(f"columns of steps: {table}: the lengths do not add up")
    blob = source.take(size)
    errors = "surrogatepass" if table == "files" else "strict"
    try:
        texts = [blob[begin:end].decode("utf-8", errors) for begin, end in pairwise(ends.tolist())]
    except UnicodeDecodeError:
        raise StateError(f"columns of steps: {table}: not text") from None
    if len(set(texts)) != len(texts) or ("" in texts and table != "files"):
        raise StateError(f"columns of steps: {table}: a text is empty, or stands twice")
    return tuple(texts)


class _Source:
    """Bytes, taken from the front. What is cut short or padded is refused, before anything is made of it."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = memoryview(data)
        self._at = at

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise StateError("columns of steps are cut short")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def numbers(self, kind: Struct) -> tuple[int, ...]:
        return kind.unpack(self.take(kind.size))

    def array(self, kind: str, count: int) -> Any:
        dtype = np.dtype(kind)
        # Into the order of this machine's bytes, which is the same on all but a few.
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="), copy=False)

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise StateError("columns of steps are padded")


def _check(arrays: dict[str, Any], tables: dict[str, tuple[str, ...]]) -> None:
    """Refuse what no record has. The order matters: lists are looked into once their bounds and codes are known to be
    within them."""
    bounds = {
        "session": (0, len(tables["sessions"]) - 1),
        "key_id": (0, len(tables["key_ids"]) - 1),
        "file": (0, len(tables["files"]) - 1),
        "name": (0, len(tables["names"]) - 1),
        "choice": (0, len(tables["names"]) - 1),
        "line": (NO_LINE, np.iinfo(np.int64).max),
        "scheme": (0, len(SCHEME_NAMES) - 1),
        "payload_len": (0, MAX_PAYLOAD_LEN),
        "step": (0, MAX_SAFE_INTEGER),
        "enforced": (UNCHECKED, 1),
        **{column: (0, 1) for column in _BOOLEANS},
    }
    for column, (least, most) in bounds.items():
        values = arrays[column]
        if len(values) and not (least <= values.min() and values.max() <= most):
            raise StateError(f"columns of steps: {column}: outside {least} to {most}")
    starts = arrays["list_start"]
    if starts[0] != 0 or starts[-1] != len(arrays["name"]) or np.any(starts[1:] < starts[:-1]):
        raise StateError("columns of steps: list_start: the lists do not stand one behind the other")
    if np.any(arrays["line"] == 0):
        raise StateError("columns of steps: line: lines are counted from 1")
    listed, partial = arrays["listed"].astype(bool), arrays["partial"].astype(bool)
    lists = (starts, arrays["name"], arrays["weight"])
    broken = broken_lists(*lists, listed=listed, partial=partial, choice=arrays["choice"])
    broken |= repeated_names(starts, arrays["name"], len(tables["names"]))
    broken |= ~partial & out_of_order(*lists, tables["names"])
    broken |= arrays["marked"].astype(bool) & ~listed & ~partial
    if np.any(broken):
        raise StateError(f"columns of steps: row {int(np.argmax(broken))} is none of a record")
