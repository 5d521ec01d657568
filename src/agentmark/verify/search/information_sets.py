"""Decoding payloads too long for a transform when some steps are wrong: guess a set of steps that are all right.

Each trial takes steps in a random order, those that say most first as a rule, until they determine the payload; if they
happen to be right, so is the payload. What comes out is judged like any other candidate.
"""

from collections.abc import Iterator, Sequence
from random import Random

from agentmark.core.linear import LinearSystem
from agentmark.core.symbols import SYMBOL_BITS, SymbolSet
from agentmark.verify.search.symbols import PACKED_CHECKS, GuessPlan

# Below this many guesses a trial's payloads are all worth a full look; above, only those that agree with a few checks.
UNCHECKED_WORK = 64
# What building one basis costs, in guesses.
TRIAL_COST = 4096


def likely_payloads(readings: Sequence[SymbolSet], payload_len: int, *, rng: Random, work_limit: int) -> Iterator[int]:
    """Candidates, each once, until the work limit (in guesses) is spent."""
    telling = [reading for reading in readings if reading.rows and reading.evidence_bits > 0]
    seen: set[int] = set()
    spent = 0
    while spent < work_limit:
        ordered = sorted(telling, key=lambda reading: rng.expovariate(reading.evidence_bits**2))
        plan = GuessPlan(LinearSystem(payload_len), ordered)
        if not plan.determined:
            return
        spent += TRIAL_COST
        if spent + plan.work > work_limit:
            continue
        spent += plan.work
        checks: list[SymbolSet] = []
        if plan.work > UNCHECKED_WORK:
            # The rest of the order begins with steps that say much; take the checks from there.
            unsettled = [step for step in plan.unsettled(ordered) if len(step.rows) <= SYMBOL_BITS]
            checks = sorted(unsettled[: 4 * PACKED_CHECKS], key=lambda step: step.share)[:PACKED_CHECKS]
        for payload in plan.payloads(checks):
            if payload not in seen:
                seen.add(payload)
                yield payload
