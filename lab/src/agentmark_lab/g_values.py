"""Reading SynthID-Text without a trained detector: the mean of its g-values, repeated contexts left out.

The arithmetic is that of `SynthIDTextWatermarkLogitsProcessor` in transformers, in plain Python; the sampling table is
taken from there, because its bits come from torch's generator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

NGRAM_LEN = 5
CONTEXT_HISTORY = 1024
_MULTIPLIER = 6364136223846793005
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class GValues:
    """How many coin flips a text holds under a key, and how many of them show heads; half of them without the mark."""

    heads: int
    flips: int

    @property
    def mean(self) -> float:
        return self.heads / self.flips

    @property
    def z(self) -> float:
        """Standard errors above one half."""
        return (self.mean - 0.5) * 2 * sqrt(self.flips)


@dataclass(frozen=True, slots=True)
class Reader:
    """`table` maps a hash to a coin flip; its size is a power of two."""

    table: Sequence[int]
    ngram_len: int = NGRAM_LEN

    def hashes(self, tokens: Sequence[int]) -> list[int]:
        """One for each n-gram whose context is new in this text, so that all keys share the work. (The history in
        transformers forgets a context after CONTEXT_HISTORY tokens; texts here are shorter.)"""
        seen: set[int] = set()
        found = []
        for start in range(len(tokens) - self.ngram_len + 1):
            *context, token = tokens[start : start + self.ngram_len]
            digest = _accumulate(1, context)
            if digest not in seen:
                found.append(_accumulate(digest, [token]))
            seen.add(digest)
        return found

    def flips(self, hashes: Sequence[int], keys: Sequence[int]) -> GValues:
        last = len(self.table) - 1
        heads = sum([self.table[((one + key) * _MULTIPLIER + 1) & last] for one in hashes for key in keys])
        return GValues(heads, len(hashes) * len(keys))

    def read(self, tokens: Sequence[int], keys: Sequence[int]) -> GValues:
        return self.flips(self.hashes(tokens), keys)


def _accumulate(value: int, data: Sequence[int]) -> int:
    for item in data:
        value = ((value + item) * _MULTIPLIER + 1) & _MASK
    return value
