"""SynthID-Text: its tournament as transformers has it, and a reading that needs no trained detector.

The reading is the mean of the g-values, repeated contexts left out: the arithmetic of
`SynthIDTextWatermarkLogitsProcessor` in transformers, in plain Python. The sampling table is taken from there, because
its bits come from torch's generator. A text is detected where hardly any of many keys that were drawn like the right
one does as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import sqrt
from typing import Any

from agentmark_lab.kit.data import GET_OASIS, imported

NGRAM_LEN = 5
CONTEXT_HISTORY = 1024
TOP_K = 100
TABLE_SIZE, TABLE_SEED = 1 << 16, 0
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

    def means(self, hashes: Sequence[int], many: Sequence[Sequence[int]]) -> list[float]:
        """The mean under each of many keys. Places in the table count modulo its size, so low bits are enough."""
        numpy = imported("numpy", remedy=GET_OASIS)
        last = len(self.table) - 1
        low = numpy.array([digest & last for digest in hashes], dtype=numpy.int64)
        shifts = numpy.array([[key & last for key in keys] for keys in many], dtype=numpy.int64)
        places = ((low[:, None, None] + shifts[None]) * (_MULTIPLIER & last) + 1) & last
        flips = numpy.asarray(self.table, dtype=numpy.uint8)[places]
        return [float(mean) for mean in flips.mean(axis=(0, 2))]


def _accumulate(value: int, data: Sequence[int]) -> int:
    for item in data:
        value = ((value + item) * _MULTIPLIER + 1) & _MASK
    return value


@dataclass(frozen=True, slots=True)
class TextReading:
    """A text under the key and under wrong ones, which were drawn like it and know nothing of the text."""

    tokens: int
    right: GValues
    wrong: list[float]

    @property
    def p_value(self) -> float:
        """How many of all keys do as well as the right one, itself counted in. If the text does not depend on the right
        key, any of them is as likely to come first, and the p-value is at most x with a chance of at most x."""
        return (1 + sum([mean >= self.right.mean for mean in self.wrong])) / (1 + len(self.wrong))


def read_text(
    reader: Reader, tokens: Sequence[int], keys: Sequence[int], wrong: Sequence[Sequence[int]]
) -> TextReading:
    hashes = reader.hashes(tokens)
    return TextReading(len(tokens), reader.flips(hashes, keys), reader.means(hashes, wrong))


# Marking -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SynthId:
    """A key of SynthID-Text (one number for each layer of the tournament) and the number of leaves."""

    keys: tuple[int, ...]
    leaves: int


@dataclass(frozen=True, slots=True)
class GreenList:
    """No SynthID, but the bias that it is to be compared with (Kirchenbauer and others, 2023): half of all tokens,
    drawn anew for each context, become likelier by so many nats."""

    key: int
    bias: float


TextMark = SynthId | GreenList


def sampling_table() -> list[int]:
    return [int(flip) for flip in tournament(SynthId((0,), 2)).sampling_table]


def tournament(mark: TextMark, *, top_k: int = TOP_K) -> Any:
    """The processor of transformers, on the likeliest tokens only (it hashes the whole vocabulary, at many times the
    cost), and with any number of leaves (it has two); or with a green list in place of the tournament."""
    return _tournament_class()(
        mark=mark,
        top_k=top_k,
        ngram_len=NGRAM_LEN,
        keys=list(mark.keys) if isinstance(mark, SynthId) else [mark.key],
        sampling_table_size=TABLE_SIZE,
        sampling_table_seed=TABLE_SEED,
        context_history_size=CONTEXT_HISTORY,
        device=import_module("torch").device("cpu"),
    )


@cache
def _tournament_class() -> Any:
    torch = imported("torch", remedy=GET_OASIS)
    base = imported("transformers", remedy=GET_OASIS).SynthIDTextWatermarkLogitsProcessor

    class Tournament(base):  # type: ignore[misc, valid-type]
        def __init__(self, *, mark: TextMark, top_k: int, **settings: Any) -> None:
            super().__init__(**settings)
            self.mark = mark
            self.top_k = top_k

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            likeliest = torch.topk(scores, min(self.top_k, scores.shape[1]), dim=1)
            self._indices = likeliest.indices
            marked = super().__call__(input_ids, likeliest.values)
            return torch.full_like(scores, -torch.inf).scatter(1, likeliest.indices, marked)

        def _compute_keys(self, n_minus_1_grams: Any, indices: Any) -> Any:
            # The caller numbers what it was given from zero; these are the tokens.
            return super()._compute_keys(n_minus_1_grams, self._indices)

        def update_scores(self, scores: Any, g_values: Any) -> Any:
            """A tournament of so many leaves in every layer: the winner is drawn from those with g = 1, if any."""
            if isinstance(self.mark, GreenList):
                return scores + self.mark.bias * g_values[:, :, 0]
            leaves = self.mark.leaves
            if leaves == 2:
                return super().update_scores(scores, g_values)
            probs = torch.softmax(scores, dim=1)
            for layer in range(g_values.shape[2]):
                g = g_values[:, :, layer]
                lost = 1 - (g * probs).sum(dim=1, keepdim=True).clamp(0, 1)
                won = sum([lost**power for power in range(leaves)])
                probs = probs * torch.where(g == 1, won, lost ** (leaves - 1))
            log_probs = torch.log(probs)
            return torch.where(torch.isfinite(log_probs), log_probs, torch.finfo(log_probs.dtype).min)

    return Tournament
