"""AgentMark-F over columns: what `core.scheme_f.decode` says of each step, for all steps at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from agentmark.batch.arrays import Bools, Int64s, NDArray, np
from agentmark.batch.hashing import Steps, UInt64s, code_rows, first_words, further_words, step_keys
from agentmark.core.prf import F_STEP
from agentmark.core.scheme_f import PAD_BITS, PAD_START, ROWS_START

# Weights that are looked at together: enough for arrays to pay, few enough for the cache.
NUMBERS = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FReadings:
    """Of each step whether the key can have chosen so; if it can, how many rows it says, and their parities as one
    number. The rows of all steps stand one behind the other."""

    possible: Bools
    width: NDArray[np.uint8]
    symbol: NDArray[np.uint16]
    rows: UInt64s


def read_f(steps: Steps) -> FReadings:
    """Algorithm 2 over columns, steps of equally many options together."""
    total = len(steps)
    keys = step_keys(steps)
    words = first_words(keys, F_STEP)
    possible = np.zeros(total, dtype=np.bool_)
    width = np.zeros(total, dtype=np.uint8)
    symbol = np.zeros(total, dtype=np.uint16)
    for rows, options in chunks(steps.options, lambda options: max(NUMBERS // options, 1)):
        possible[rows], width[rows], symbol[rows] = _codewords(steps, rows, options, words[rows])
    needed = np.where(width > 0, ROWS_START + width.astype(np.int64) * steps.payload_len, 0)
    words = further_words(words, keys, F_STEP, needed)
    most = int(width.max(initial=0))
    code = code_rows(words, ROWS_START, steps.payload_len, most)
    flat = code[np.arange(most) < width[:, None]]
    return FReadings(possible=possible, width=width, symbol=symbol, rows=flat)


def _codewords(
    steps: Steps, rows: Int64s, options: int, words: UInt64s
) -> tuple[Bools, NDArray[np.uint8], NDArray[np.uint16]]:
    """Bin, shift and codeword of steps with so many options; the codeword without its pad."""
    weights = steps.weight[steps.listed(rows, options)]
    heights = weights.copy()
    heights[:, :-1] -= weights[:, 1:]
    masses = heights * np.arange(1, options + 1)
    ends = np.cumsum(masses, axis=1)
    first = words[:, 1]
    draw = (first >> np.uint64(32)).astype(np.int64)
    chosen = np.count_nonzero(ends <= draw[:, None], axis=1)
    line = np.arange(len(rows))
    size = chosen + 1
    offset = draw - (ends[line, chosen] - masses[line, chosen])
    shift = offset // heights[line, chosen]

    position = steps.position[rows]
    possible = position < size
    index = (position - shift) % size
    # floor(log2 size): exact, since a double holds these sizes.
    short = np.frexp(size)[1].astype(np.int64) - 1
    short_count = (np.int64(2) << short) - size
    is_long = index >= short_count
    length = short + is_long
    bits = np.where(is_long, index + short_count, index)
    pad = (first >> np.uint64(64 - PAD_START - PAD_BITS)).astype(np.int64) & ((1 << PAD_BITS) - 1)
    symbol = bits ^ pad >> (PAD_BITS - length)
    return (
        possible,
        np.where(possible, length, 0).astype(np.uint8),
        np.where(possible, symbol, 0).astype(np.uint16),
    )


def chunks(options: Int64s, size: Callable[[int], int]) -> Iterator[tuple[Int64s, int]]:
    """The rows of each number of options, with that number; in pieces of at most the size that it calls for."""
    order = np.argsort(options, kind="stable")
    ordered = options[order]
    borders = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(order)]
    for start, end in pairwise(borders):
        if start < end:
            count = int(ordered[start])
            piece = size(count)
            for at in range(start, end, piece):
                yield order[at : min(at + piece, end)], count
