"""What a claimant gains who makes keys until one fits a log that others made: the best of 2^k, and how many it takes.

    python tools/public_grinding.py [BITS] [LOGS]

Prints, for k from 0 to BITS, the evidence that the best of 2^k keys finds, its mean over so many logs; the line through
these; and the number of keys at which that line reaches a bound of 10^-6, if they were not paid for. Keys are of a
random function, and for one log more of the real one (extra `public`).
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from math import log2, sqrt
from statistics import fmean, stdev

from agentmark import SharedKey
from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.evidence import Evidence
from agentmark.core.public_step import step_input, step_key_of
from agentmark.core.schemes import SCHEMES
from agentmark.keys.vrf import VrfSecret

BITS, LOGS, STEPS = 12, 10, 12
THRESHOLD = 1e-6
SCHEME = SCHEMES["R"]
EVEN = BehaviorDistribution.quantise({"Search": 0.25, "Book": 0.25, "Pay": 0.25, "Ask": 0.25})

# The step key at a context, of one key.
StepKeys = Callable[[bytes], bytes]


def random_function(rng: random.Random) -> StepKeys:
    key = SharedKey(rng.randbytes(32))
    return lambda context: key.step_key(context, 0)


def real_function(rng: random.Random) -> StepKeys:
    secret = VrfSecret(rng.randbytes(32))
    return lambda context: step_key_of(secret.output(step_input(context, 0)))


def best_of(rng: random.Random, new_key: Callable[[random.Random], StepKeys], bits: int) -> list[float]:
    """Of one log that others made: the most evidence that the first 2^k keys find, for k from 0 to `bits`."""
    session = rng.randbytes(16).hex()
    log = [(context_digest(context_fields(session, i)), EVEN.at(rng.getrandbits(WEIGHT_BITS))) for i in range(STEPS)]
    best, grown = float("-inf"), []
    for number in range(1, (1 << bits) + 1):
        best = max(best, _evidence(new_key(rng), log))
        if number & (number - 1) == 0:
            grown.append(best)
    return grown


def _evidence(step_keys: StepKeys, log: Sequence[tuple[bytes, str]]) -> float:
    """As a verifier counts it: the default mixture of noise rates."""
    readings = [SCHEME.read(EVEN, step_keys(context), choice, payload_len=0) for context, choice in log]
    evidence = Evidence()
    evidence.update_all([reading.e_value(0) for reading in readings if reading is not None])
    return evidence.bits


def fitted(grown: Sequence[float]) -> tuple[float, float]:
    """The line through the evidence over k: where it begins, and what each doubling of the keys adds."""
    count = len(grown)
    middle, mean = (count - 1) / 2, fmean(grown)
    slope = sum([(k - middle) * (bits - mean) for k, bits in enumerate(grown)]) / sum(
        [(k - middle) ** 2 for k in range(count)]
    )
    return mean - slope * middle, slope


def keys_needed(line: tuple[float, float]) -> float:
    """log2 of the number of keys at which the line reaches the threshold."""
    begin, slope = line
    return (-log2(THRESHOLD) - begin) / slope


def lines(bits: int, logs: int, seed: int = 1) -> Iterator[str]:
    grown = [best_of(random.Random(f"{seed} {number}"), random_function, bits) for number in range(logs)]
    real = best_of(random.Random(f"{seed} real"), real_function, bits)
    yield f"{logs} logs of {STEPS} steps, four equal options, R, no payload; default noise rates; seed {seed}\n"
    yield "| keys | best evidence, bits (mean, standard error) | one log, the real function | less log2(keys), mean |"
    yield "|---|---|---|---|"
    for k, of_logs in enumerate(zip(*grown, strict=True)):
        mean = fmean(of_logs)
        yield f"| 2^{k} | {mean:.2f} ± {stdev(of_logs) / sqrt(logs):.2f} | {real[k]:.2f} | {mean - k:.2f} |"
    line = fitted([fmean(of_logs) for of_logs in zip(*grown, strict=True)])
    yield f"\nFitted: {line[0]:.2f} + {line[1]:.2f} k bits for 2^k keys. If they were not paid for, a bound of "
    yield f"{THRESHOLD:g} would take 2^{keys_needed(line):.0f} of them."


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:]]
    for line in lines(*(numbers + [BITS, LOGS][len(numbers) :])):
        print(line, flush=True)


if __name__ == "__main__":
    main()
