"""Lines into columns by the native library: those lines that are just as `StepRecord.to_json` writes them."""

from ctypes import CDLL, POINTER, Structure, byref, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

from agentmark.batch.arrays import Bools, Int64s, NDArray, np
from agentmark.core.prf import DIGEST_SIZE

# Texts of one kind that a scan has room for. A block of a megabyte hardly has more, and one that has is read otherwise.
MOST_TEXTS = 1 << 14
SLOTS = 4 * MOST_TEXTS
# The shortest entry of a list: a name of one letter in quotes, a colon, a digit, a comma.
SHORTEST_ENTRY = 6

_ROW_KINDS = {
    "scheme": np.uint8,
    "marked": np.bool_,
    "listed": np.bool_,
    "context": np.uint8,
    "enforced": np.int8,
    "payload_len": np.int32,
    "session": np.int32,
    "key_id": np.int32,
    "choice": np.int32,
    "step": np.int64,
    "length": np.int64,
    "reason_length": np.int64,
}


class _Table(Structure):
    _fields_ = (
        *[(name, c_void_p) for name in ("slots", "start", "length")],
        *[(name, c_int64) for name in ("slot_count", "room", "count")],
    )


class _Columns(Structure):
    _fields_ = (
        *[(name, c_void_p) for name in _ROW_KINDS],
        *[(name, c_void_p) for name in ("name", "weight")],
        *[(name, c_int64) for name in ("entry_room", "entry_count")],
        ("seen", c_void_p),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What was taken of some lines: `arrays` as the columns of those rows, with codes into these tables."""

    taken: Bools
    arrays: dict[str, NDArray[Any]]
    sessions: list[str]
    key_ids: list[str]
    names: list[str]


def scan(library: CDLL, block: bytes, starts: Int64s, ends: Int64s) -> Scanned | None:
    """Take of these lines what is in the form of `to_json`. None if a text in them is no text at all."""
    count = len(starts)
    if count and not (starts.min() >= 0 and ends.max() <= len(block) and bool(np.all(starts <= ends))):
        raise ValueError("lines that are not within their text")
    starts, ends = (np.ascontiguousarray(array, dtype=np.int64) for array in (starts, ends))
    rows: dict[str, NDArray[Any]] = {
        name: np.zeros(count * (DIGEST_SIZE if name == "context" else 1), kind) for name, kind in _ROW_KINDS.items()
    }
    room = len(block) // SHORTEST_ENTRY + 1
    name, weight = np.empty(room, np.int32), np.empty(room, np.int64)
    seen = np.full(MOST_TEXTS, -1, np.int64)
    tables = [_TextTable() for _ in range(3)]
    pointers = [array.ctypes.data for array in (*rows.values(), name, weight)]
    columns = _Columns(*pointers, room, 0, seen.ctypes.data)
    taken = np.zeros(count, np.bool_)
    scanner = library.agentmark_scan
    scanner.restype = c_int64
    scanner.argtypes = (*[c_void_p] * 3, c_int64, POINTER(_Columns), *[POINTER(_Table)] * 3, c_void_p)
    text = np.frombuffer(block, np.uint8)
    found = scanner(
        *[array.ctypes.data for array in (text, starts, ends)],
        count,
        byref(columns),
        *[byref(table.given) for table in tables],
        taken.ctypes.data,
    )
    try:
        sessions, key_ids, names = (table.texts(block) for table in tables)
    except UnicodeDecodeError:
        return None
    rows["context"] = rows["context"].reshape(count, DIGEST_SIZE)
    arrays = {column: values[:found] for column, values in rows.items()}
    arrays |= {"name": name[: columns.entry_count], "weight": weight[: columns.entry_count]}
    return Scanned(taken=taken, arrays=arrays, sessions=sessions, key_ids=key_ids, names=names)


class _TextTable:
    """Room for the texts of one kind, each once."""

    def __init__(self) -> None:
        self._slots = np.full(SLOTS, -1, np.int32)
        self._start, self._length = np.empty(MOST_TEXTS, np.int64), np.empty(MOST_TEXTS, np.int64)
        pointers = [array.ctypes.data for array in (self._slots, self._start, self._length)]
        self.given = _Table(*pointers, SLOTS, MOST_TEXTS, 0)

    def texts(self, block: bytes) -> list[str]:
        count = self.given.count
        spans = zip(self._start[:count].tolist(), self._length[:count].tolist(), strict=True)
        return [block[start : start + length].decode("utf-8") for start, length in spans]
