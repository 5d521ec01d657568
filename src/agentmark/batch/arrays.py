"""NumPy, for the whole room: imported here alone, so that where it is missing the error says how to get it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from agentmark.errors import MissingExtraError

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingExtraError("numpy", "fast") from None

Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

__all__ = [
    "Bools",
    "Bytes",
    "Int8s",
    "Int32s",
    "Int64s",
    "NDArray",
    "np",
    "row_of_each",
    "sizes_of",
    "spread",
    "starts_of",
]


def row_of_each(list_start: Int64s) -> Int64s:
    """For each entry of lists that stand one behind the other: the row whose list it is in."""
    return np.repeat(np.arange(len(list_start) - 1, dtype=np.int64), np.diff(list_start))


def spread(starts: Int64s, lengths: Int64s) -> Int64s:
    """The indices start, start + 1, ... of each list, one list behind the other."""
    ends = np.cumsum(lengths)
    indices: Int64s = np.repeat(starts - (ends - lengths), lengths)
    return indices + np.arange(len(indices), dtype=np.int64)


def starts_of(lengths: Int64s) -> Int64s:
    """Where lists of these lengths begin that stand one behind the other, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def sizes_of(measure: Callable[[Any], int], values: Sequence[Any]) -> Int64s:
    """What a measure says of each of these."""
    return np.fromiter(map(measure, values), np.int64, len(values))
