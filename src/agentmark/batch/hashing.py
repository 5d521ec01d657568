"""Keyed BLAKE2b over many steps: states prepared once and copied, digests joined and taken as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

from agentmark.batch.arrays import Bytes, Int32s, Int64s, NDArray, np
from agentmark.core.prf import BLOCK_SIZE, R_CLOCK
from agentmark.keys.shared import SharedKey

UInt64s: TypeAlias = NDArray[np.uint64]

WORDS_OF_BLOCK = BLOCK_SIZE // 8
BLOCK_BITS = 8 * BLOCK_SIZE
_BIG_ENDIAN = np.dtype(">u8")
_ALL_BITS = (1 << 64) - 1
# 64 keyed bits make a clock.
_CLOCK_SIZE = 8
_CLOCK_LABEL = R_CLOCK + b"\0"


class Names:
    """The names of options, in UTF-8."""

    def __init__(self, names: Sequence[str]) -> None:
        self.texts = [name.encode("utf-8") for name in names]

    @cached_property
    def joined(self) -> Bytes:
        """All of them, one behind the other."""
        return np.frombuffer(b"".join(self.texts), np.uint8)

    @cached_property
    def starts(self) -> Int64s:
        """Where each of them begins in `joined`; at the end, where the last ends."""
        return np.cumsum([0, *map(len, self.texts)], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Marked steps of one scheme and one payload length, with whole lists and keys that are held: what is read in bulk.

    Options of weight zero are left out: they are the last of a list, and have neither a bin nor a clock.
    """

    keys: Sequence[SharedKey]
    key: Int32s  # which of `keys`
    payload_len: int
    context: Bytes  # 32 bytes a row
    list_start: Int64s  # where in `weight` and `name` a step's list begins
    options: Int64s  # how many of positive weight it has
    position: Int64s  # of the choice in its list; not below `options` if the choice has no weight
    weight: Int64s
    name: Int32s
    names: "Names"

    def __len__(self) -> int:
        return len(self.key)

    def listed(self, rows: Int64s, options: int) -> Int64s:
        """Where in `weight` and `name` the options of these rows are, a line a row; all have this number of them."""
        return self.list_start[rows, None] + np.arange(options)


def step_keys(steps: Steps) -> list[bytes]:
    """The step key of each row."""
    makers = [key.step_key_maker(steps.payload_len) for key in steps.keys]
    contexts: list[bytes] = np.ascontiguousarray(steps.context).view("V32").ravel().tolist()
    if len(makers) == 1:
        return list(map(makers[0], contexts))
    return [makers[key](context) for key, context in zip(steps.key.tolist(), contexts, strict=True)]


def first_words(keys: Sequence[bytes], label: bytes) -> UInt64s:
    """The keyed bits of each step as words, a line a step: block 0 of them, behind a word of zeros."""
    words = np.zeros((len(keys), 1 + WORDS_OF_BLOCK), dtype=np.uint64)
    words[:, 1:] = _block_words(keys, label, 0)
    return words


def further_words(words: UInt64s, keys: Sequence[bytes], label: bytes, bits: Int64s) -> UInt64s:
    """The same with as many bits as each step needs; what lies beyond them is zero."""
    block_count = -(-int(bits.max(initial=0)) // BLOCK_BITS)
    if block_count <= 1:
        return words
    wider = np.zeros((len(keys), 1 + WORDS_OF_BLOCK * block_count), dtype=np.uint64)
    wider[:, : words.shape[1]] = words
    for block in range(1, block_count):
        rows = np.flatnonzero(bits > BLOCK_BITS * block)
        start = 1 + WORDS_OF_BLOCK * block
        wider[rows, start : start + WORDS_OF_BLOCK] = _block_words([keys[row] for row in rows.tolist()], label, block)
    return wider


def _block_words(keys: Sequence[bytes], label: bytes, block: int) -> UInt64s:
    message = label + b"\0" + block.to_bytes(4, "big")
    digests = b"".join([blake2b(message, key=key).digest() for key in keys])
    return np.frombuffer(digests, _BIG_ENDIAN).reshape(-1, WORDS_OF_BLOCK).astype(np.uint64)


def words_of_row(payload_len: int) -> int:
    """How many words a row of the code fills."""
    return -(-payload_len // 64)


def code_rows(words: UInt64s, start: int, payload_len: int, count: int) -> UInt64s:
    """Rows of the code, [step, row, word]: runs of `payload_len` bits from bit `start` on, as numbers of words of which
    the first is the least significant."""
    width = words_of_row(payload_len)
    rows = np.empty((len(words), count, width), dtype=np.uint64)
    top_mask = np.uint64(_ALL_BITS >> (64 * width - payload_len)) if width else np.uint64(0)
    for row in range(count):
        end = start + (row + 1) * payload_len
        for word in range(width):
            # The 64 bits that end where this word does. Those of the last may begin before the row: they are cut off,
            # and the word of zeros in front is there to be read.
            column, shift = divmod(64 + end - 64 * (word + 1), 64)
            run = words[:, column]
            if shift:
                run = run << np.uint64(shift) | words[:, column + 1] >> np.uint64(64 - shift)
            rows[:, row, word] = run & top_mask if word == width - 1 else run
    return rows


def clock_words(keys: Sequence[bytes], names: Sequence[bytes], codes: Int32s) -> UInt64s:
    """The 64 bits of each option's clocks, [step, option]; `codes` says which name each is."""
    digests: list[bytes] = []
    add = digests.append
    for key, options in zip(keys, codes.tolist(), strict=True):
        copy = blake2b(_CLOCK_LABEL, key=key, digest_size=_CLOCK_SIZE).copy
        for code in options:
            state = copy()
            state.update(names[code])
            add(state.digest())
    return np.frombuffer(b"".join(digests), _BIG_ENDIAN).reshape(codes.shape).astype(np.uint64)
