"""What can be read without a registry or a claim: whether a search of these steps fits the work limit.

It foretells, from the costs that the searches themselves spend, and without searching.
"""

from bisect import insort
from math import ceil

from agentmark.core.costs import GUESS, basis_cost, elimination_cost, guess_bits, set_trial_cost, set_trial_success
from agentmark.core.symbols import SYMBOL_BITS, Reading, SymbolSet
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.verify.search.information_sets import TELLING_STEPS, TRIALS
from agentmark.verify.search.walsh import one_transform, transform_limit


class OpenSearch:
    """The steps seen so far, as far as a search for a payload of this length depends on them."""

    def __init__(self, payload_len: int, noise: float = 0.0, work_limit: float = DEFAULT_WORK_LIMIT) -> None:
        self._payload_len = payload_len
        self._noise = noise
        self._limit = work_limit
        self._steps_needed = ceil(payload_len / SYMBOL_BITS)
        # The smallest sets of symbols, which are the ones to guess.
        self._counts: list[int] = []
        self._equations = 0
        self._has_sets = self._has_soft = False

    def add(self, reading: Reading) -> None:
        if not isinstance(reading, SymbolSet):
            self._has_soft = True
        elif reading.symbol_count == 1 and len(reading.rows) < SYMBOL_BITS:
            self._equations += len(reading.rows)
        elif reading.symbol_count > 1 or reading.rows:
            self._has_sets = True
            insort(self._counts, reading.symbol_count)
            del self._counts[self._steps_needed :]

    @property
    def succeeds(self) -> bool:
        """Whether the search is expected to find the payload within the work limit."""
        if self._payload_len <= transform_limit():
            # One transform finds the likeliest payload under any noise.
            return self._payload_len == 0 or one_transform(self._payload_len) <= self._limit
        if self._has_soft:
            return False
        if not self._has_sets:
            return self._linear_cost() <= self._limit
        return self._guessing_cost() <= self._limit

    def _linear_cost(self) -> float:
        if self._equations < self._payload_len:
            return float("inf")
        if self._noise == 0:
            return elimination_cost(self._payload_len)
        chance = set_trial_success(self._payload_len, self._noise)
        if chance * TRIALS < 1:
            return float("inf")
        equations = min(self._equations, 2 * TELLING_STEPS)
        return set_trial_cost(self._payload_len, equations, TELLING_STEPS) / chance

    def _guessing_cost(self) -> float:
        chance = (1 - self._noise) ** self._steps_needed
        bits = min(guess_bits(self._counts, self._payload_len), 1000.0)
        return float((basis_cost(self._payload_len) + GUESS * 2.0**bits) / chance)
