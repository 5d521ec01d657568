"""What a claimant gains who makes keys until one fits a log that others made: the best of 2^k keys, and how many it
takes, measured and calculated. Keys are of a random function, and for some logs of the real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import comb, exp, log1p, log2, sqrt
from random import Random
from statistics import fmean, stdev

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.evidence import Evidence
from agentmark.core.public_step import step_input, step_key_of
from agentmark.core.schemes import SCHEMES
from agentmark.core.symbols import SYMBOL_COUNT
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks

NAME = "public_grinding"
TITLE = "Public mode: keys made until one fits a log of others"

STEPS = 12
THRESHOLD = 1e-6
SCHEME = SCHEMES["R"]
EVEN = BehaviorDistribution.quantise({"Search": 0.25, "Book": 0.25, "Pay": 0.25, "Ask": 0.25})
# Pr[the evidence of the best of 2^k keys is k + 8 bits or more] is at most 2^-8.
FAR_BEYOND = 8.0
# Means over logs may lie this many standard errors from what is calculated.
FAR_OFF = 4.0
# What is calculated goes on to so many doublings.
MOST_DOUBLINGS = 26
# For each number of steps that agree, drawn to see how the worth of these steps varies.
DRAWS = 2000

RANDOM_FUNCTION, REAL = "random function", "the real function"

# The step key at a context, of one key.
StepKeys = Callable[[bytes], bytes]
# Of each log, the most evidence that the first 2^k keys find, by k.
Grown = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Keys made for each log are 2^bits; logs with each function."""

    bits: int
    random_function: int
    real: int


FULL = Effort(bits=12, random_function=30, real=3)
QUICK = Effort(bits=6, random_function=3, real=1)


@dataclass(frozen=True, slots=True)
class Log:
    """One log that others made, by its number."""

    function: str
    bits: int
    seed: int
    number: int


def run(options: Options, progress: Progress) -> Findings:
    if find_spec("nacl") is None:
        raise MissingError("pynacl", "pip install '.[public]'")
    effort = QUICK if options.quick else FULL
    logs = [Log(REAL, effort.bits, options.seed, number) for number in range(effort.real)]
    logs += [Log(RANDOM_FUNCTION, effort.bits, options.seed, number) for number in range(effort.random_function)]
    label = f"2^{effort.bits} keys a log"
    grown = map_chunks(ground, logs, workers=options.workers, progress=progress, label=label)
    chances = Chances.of_logs(generator(options.seed, NAME, "calculated"))
    return _findings(grown[effort.real :], grown[: effort.real], chances)


# Grinding ------------------------------------------------------------------------------------------------------------


def random_function(rng: Random) -> StepKeys:
    key = random_key(rng)
    return lambda context: key.step_key(context, 0)


def real_function(rng: Random) -> StepKeys:
    from agentmark.keys.vrf import VrfSecret

    secret = VrfSecret(rng.randbytes(32))
    return lambda context: step_key_of(secret.output(step_input(context, 0)))


FUNCTIONS = {RANDOM_FUNCTION: random_function, REAL: real_function}


def ground(log: Log) -> list[float]:
    rng = generator(log.seed, NAME, log.function, log.number)
    return best_of(rng, FUNCTIONS[log.function], log.bits)


def best_of(rng: Random, new_key: Callable[[Random], StepKeys], bits: int) -> list[float]:
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


# What is calculated ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chances:
    """What one key finds in such a log: `bits` of evidence, least first, each with the chance of so many or more.

    Of equal options a key agrees with a step with the chance of one of them, whatever the log. How many steps agree is
    binomial, and exact. What they are worth varies a little and is drawn, for each number of steps alike: the symbols
    of a step that lead to its option are one more than binomial, if one of them is the key's.
    """

    bits: tuple[float, ...]
    tail: tuple[float, ...]
    # The mean, by the number of steps that agree.
    mean_bits: tuple[float, ...]

    @classmethod
    def of_logs(cls, rng: Random, *, steps: int = STEPS, draws: int = DRAWS) -> "Chances":
        share = 1 / len(EVEN.behaviors)
        found: list[tuple[float, float]] = []
        means = []
        for agree in range(steps + 1):
            chance = comb(steps, agree) * share**agree * (1 - share) ** (steps - agree)
            bits = [_drawn_evidence(rng, share, agree, steps) for _ in range(draws)]
            found += [(value, chance / draws) for value in bits]
            means.append(fmean(bits))
        found.sort()
        tail, total = [], 0.0
        for _, chance in reversed(found):
            total += chance
            tail.append(min(total, 1.0))
        return cls(tuple([value for value, _ in found]), tuple(reversed(tail)), tuple(means))

    def best_of(self, keys: int) -> tuple[float, float]:
        """Mean and standard deviation of the most evidence that so many keys find."""
        below = [0.0 if tail >= 1 else exp(keys * log1p(-tail)) for tail in self.tail]
        chances = [above - under for under, above in zip(below, [*below[1:], 1.0], strict=True)]
        mean = sum([bits * chance for bits, chance in zip(self.bits, chances, strict=True)])
        variance = sum([(bits - mean) ** 2 * chance for bits, chance in zip(self.bits, chances, strict=True)])
        return mean, sqrt(variance)

    def doublings_to(self, bits: float) -> float:
        """log2 of how many keys there are to one that finds so much evidence."""
        return -log2(next(tail for found, tail in zip(self.bits, self.tail, strict=True) if found >= bits))

    def least_left(self) -> float:
        """What is left of the price, at the least, where the keys are just as many as one of them needs: in bits."""
        return min([-log2(tail) - bits for bits, tail in zip(self.bits, self.tail, strict=True)])


def _drawn_evidence(rng: Random, share: float, agree: int, steps: int) -> float:
    symbols = [1 + sum([rng.random() < share for _ in range(SYMBOL_COUNT - 1)]) for _ in range(agree)]
    evidence = Evidence()
    evidence.update_all([*[SYMBOL_COUNT / count for count in symbols], *[0.0] * (steps - agree)])
    return evidence.bits


# The report ----------------------------------------------------------------------------------------------------------


def _findings(random: Grown, real: Grown, chances: Chances) -> Findings:
    most = max([bits - k for grown in (*random, *real) for k, bits in enumerate(grown)])
    furthest = max([_standard_errors(chances, logs, k) for logs in (random, real) for k in range(len(logs[0]))])
    left = chances.least_left()
    claims = [
        Claim(
            "Of 2^k keys at most 2^(k - b) find b bits on average, for every k and b: a bit is paid for each doubling, "
            f"and where so many keys are made that one of them finds as much, {left:.1f} bits are left over at the "
            "least (calculated; below none, and the price would be too low).",
            left >= 0,
        ),
        Claim(
            f"The measured means of the best of 2^k keys are those that are calculated, k up to {len(random[0]) - 1} "
            f"({len(random)} logs with a random function, {len(real)} with the real one; the furthest is "
            f"{furthest:.1f} standard errors off; fails above {FAR_OFF:g}).",
            furthest <= FAR_OFF,
        ),
        Claim(
            f"What the best key finds, less what its tries cost, is nowhere above {FAR_BEYOND:g} bits (most: "
            f"{most:.1f}), in {len(random)} logs with a random function and {len(real)} with the real one.",
            most <= FAR_BEYOND,
        ),
    ]
    data = {"random_function": [list(grown) for grown in random], "real": [list(grown) for grown in real]}
    tables = [_growth_table(random, real, chances), _agreeing_table(chances), _price_table(random, chances)]
    return Findings(claims, tables, data)


def _error(values: Sequence[float]) -> float:
    """The standard error of their mean."""
    return stdev(values) / sqrt(len(values))


def _standard_errors(chances: Chances, logs: Grown, k: int) -> float:
    """How far the mean of these logs is from the calculated one."""
    mean, deviation = chances.best_of(1 << k)
    return abs(fmean([grown[k] for grown in logs]) - mean) / (deviation / sqrt(len(logs)))


def _growth_table(random: Grown, real: Grown, chances: Chances) -> Table:
    rows: list[list[Cell]] = []
    before: float | None = None
    for k in range(MOST_DOUBLINGS + 1):
        mean, _ = chances.best_of(1 << k)
        measured, with_real = "-", "-"
        if k < len(random[0]):
            of_logs = [grown[k] for grown in random]
            measured, with_real = f"{fmean(of_logs):.2f} ± {_error(of_logs):.2f}", f"{fmean([g[k] for g in real]):.2f}"
        more = "-" if before is None else f"{mean - before:.2f}"
        rows.append([f"2^{k}", measured, with_real, f"{mean:.2f}", more, f"{mean - k:.2f}"])
        before = mean
    note = (
        f"Bits of evidence that the key made the log, under the default mixture of noise rates: mean of {len(random)} "
        f"logs and its standard error. Each has {STEPS} steps of four equal options (scheme R, no payload), chosen "
        f"without a key. Keys are of a random function; of the real one for {len(real)} logs more (mean). Calculated: "
        f"how many steps agree is binomial; what they are worth is drawn ({DRAWS:,} times for each number of them). "
        "Less the price: the calculated mean less a bit for each doubling. A doubling adds more than a bit at times: "
        "the price is above all that is found, and not above each gain."
    )
    columns = ["keys", "best evidence", "with the real function", "calculated", "a doubling adds", "less the price"]
    return Table("The best of 2^k keys", columns, rows, note)


def _agreeing_table(chances: Chances) -> Table:
    rows: list[list[Cell]] = []
    for agree, bits in enumerate(chances.mean_bits):
        share = 1 / len(EVEN.behaviors)
        tail = sum([comb(STEPS, n) * share**n * (1 - share) ** (STEPS - n) for n in range(agree, STEPS + 1)])
        rows.append([f"{agree} of {STEPS}", f"{bits:.1f}", f"2^{max(0.0, -log2(tail)):.1f}"])
    note = (
        "Calculated. Evidence: the mean; it varies a little with what the steps are worth. One key in: with which so "
        "many steps agree, or more."
    )
    return Table("What it takes", ["steps that agree", "bits of evidence", "one key in"], rows, note)


def _price_table(random: Grown, chances: Chances) -> Table:
    needed = -log2(THRESHOLD)
    rows: list[list[Cell]] = [
        ["logs", len(random)],
        ["steps of each", STEPS],
        ["largest k that was measured", len(random[0]) - 1],
        ["bits of evidence at a bound of one in a million, if keys cost nothing", f"{needed:.1f}"],
        ["k at which one of 2^k keys finds as much", f"{chances.doublings_to(needed):.1f}"],
        ["bits that the price leaves over, at the least", f"{chances.least_left():.1f}"],
    ]
    return Table("What it costs", ["what", "number"], rows, "Calculated, but for the first three.")
