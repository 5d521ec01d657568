"""The native kernel, if it was built: `read_f` and `read_r` in C, behind the same columns.

It knows nothing of Python: it is handed arrays, whose sizes are checked here, and refuses indices that leave them.
"""

from ctypes import CDLL, POINTER, Structure, byref, c_double, c_int64, c_void_p
from typing import Any

from agentmark.batch.arrays import NDArray, np
from agentmark.batch.hashing import Steps, words_of_row
from agentmark.batch.library import built_library
from agentmark.batch.read_f import FReadings
from agentmark.batch.read_r import INVERSES, NEAR_GAP, PRODUCT_TABLE, RATIOS_PER_E, RReadings, thresholds
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT
from agentmark.keys.shared import SharedKey

# A state of BLAKE2b.
_STATE_WORDS = 8


class _Steps(Structure):
    _fields_ = (
        *[(name, c_int64) for name in ("count", "key_count", "entry_count", "name_count", "payload_len")],
        *[(name, c_void_p) for name in ("secrets", "key", "context", "list_start", "options", "position")],
        *[(name, c_void_p) for name in ("weight", "name", "name_start", "name_bytes")],
    )


class _Races(Structure):
    _fields_ = (
        *[(name, c_void_p) for name in ("products", "inverses", "open_to", "unsure_from")],
        ("bucket_count", c_int64),
        ("ratios_per_e", c_int64),
        ("near_gap", c_double),
    )


class Kernel:
    """`read_f` and `read_r` of a library."""

    def __init__(self, library: CDLL) -> None:
        self._f = library.agentmark_read_f
        self._f.restype = c_int64
        self._f.argtypes = [POINTER(_Steps), *[c_void_p] * 5, c_int64]
        self._r = library.agentmark_read_r
        self._r.restype = c_int64
        self._r.argtypes = [POINTER(_Steps), POINTER(_Races), *[c_void_p] * 6]

    def read_f(self, steps: Steps) -> FReadings:
        """What `read_f.read_f` says."""
        given = _Given(steps)
        count = len(steps)
        possible, width = np.zeros(count, np.bool_), np.zeros(count, np.uint8)
        symbol = np.zeros(count, np.uint16)
        # As many rows as the largest bin of each list may need.
        row_words = words_of_row(steps.payload_len)
        room = row_words * int(np.frexp(steps.options)[1].sum(dtype=np.int64))
        words = np.empty(room, np.uint64)
        pointers = [array.ctypes.data for array in (given.states, possible, width, symbol, words)]
        used = self._f(byref(given.steps), *pointers, room)
        _refuse_if(used < 0)
        rows = words[:used].reshape(int(width.sum(dtype=np.int64)), row_words)
        return FReadings(possible=possible, width=width, symbol=symbol, rows=rows)

    def read_r(self, steps: Steps) -> RReadings:
        """What `read_r.read_r` says; steps near a tie may be others."""
        given = _Given(steps)
        count = len(steps)
        open_to, unsure_from = thresholds()
        races = _Races(
            *[table.ctypes.data for table in (PRODUCT_TABLE, INVERSES, open_to, unsure_from)],
            len(open_to),
            RATIOS_PER_E,
            NEAR_GAP,
        )
        possible, near = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        symbols, pad = np.empty((count, SYMBOL_COUNT // 64), np.uint64), np.empty(count, np.uint8)
        rows = np.empty((count, SYMBOL_BITS, words_of_row(steps.payload_len)), np.uint64)
        pointers = [array.ctypes.data for array in (given.states, possible, near, symbols, pad, rows)]
        used = self._r(byref(given.steps), byref(races), *pointers)
        _refuse_if(used < 0)
        return RReadings(possible=possible, near=near, symbols=symbols[:used], pad=pad[:used], rows=rows[:used])


class _Given:
    """Steps as the kernel takes them. It keeps the arrays that it points into."""

    def __init__(self, steps: Steps) -> None:
        count, entries, names = len(steps), len(steps.weight), len(steps.names.texts)
        # The key's bytes go to the hash and nowhere else (law L5): no copy outlives the call.
        secrets = np.frombuffer(b"".join([_secret(key) for key in steps.keys]), np.uint8)
        self._arrays = (
            _sized(secrets, np.uint8, DIGEST_SIZE * len(steps.keys)),
            _sized(steps.key, np.int32, count),
            _sized(steps.context, np.uint8, DIGEST_SIZE * count),
            _sized(steps.list_start, np.int64, count),
            _sized(steps.options, np.int64, count),
            _sized(steps.position, np.int64, count),
            _sized(steps.weight, np.int64, entries),
            _sized(steps.name, np.int32, entries),
            _sized(steps.names.starts, np.int64, names + 1),
            _sized(steps.names.joined, np.uint8, int(steps.names.starts[-1])),
        )
        self.states = np.empty((len(steps.keys), _STATE_WORDS), np.uint64)
        pointers = [array.ctypes.data for array in self._arrays]
        self.steps = _Steps(count, len(steps.keys), entries, names, steps.payload_len, *pointers)


def _secret(key: SharedKey) -> bytes:
    return key._secret


def _sized(array: NDArray[Any], kind: type[np.generic], size: int) -> NDArray[Any]:
    """The array as the kernel reads it: of this kind, of this size, without gaps."""
    _refuse_if(array.size != size or array.dtype != kind)
    return np.ascontiguousarray(array)


def _refuse_if(is_broken: bool) -> None:
    if is_broken:
        raise ValueError("columns of steps that contradict each other")


def built_kernel() -> Kernel | None:
    """The kernel that was built with this package; None if there is none, or if it is turned off."""
    library = built_library()
    return None if library is None else Kernel(library)
