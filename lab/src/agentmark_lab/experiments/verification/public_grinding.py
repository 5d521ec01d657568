"""What a claimant gains who makes keys until one fits a log that others made: the best of 2^k keys, and how many it
takes. Keys are of a random function, and for some logs of the real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import log2, sqrt
from random import Random
from statistics import fmean, stdev

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.evidence import Evidence
from agentmark.core.public_step import step_input, step_key_of
from agentmark.core.schemes import SCHEMES
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

RANDOM_FUNCTION, REAL = "random function", "the real function"

# The step key at a context, of one key.
StepKeys = Callable[[bytes], bytes]


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
    return _findings(grown[effort.real :], grown[: effort.real])


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


@dataclass(frozen=True, slots=True)
class Line:
    """Through the evidence over k: where it begins, and what each doubling of the keys adds."""

    begin: float
    slope: float

    @classmethod
    def through(cls, grown: Sequence[float]) -> "Line":
        count = len(grown)
        middle, mean = (count - 1) / 2, fmean(grown)
        rise = sum([(k - middle) * (bits - mean) for k, bits in enumerate(grown)])
        slope = rise / sum([(k - middle) ** 2 for k in range(count)])
        return cls(mean - slope * middle, slope)

    def doublings_to(self, threshold: float) -> float:
        """log2 of the number of keys at which the line reaches a bound."""
        return (-log2(threshold) - self.begin) / self.slope


# The report ----------------------------------------------------------------------------------------------------------


def _findings(random: Sequence[Sequence[float]], real: Sequence[Sequence[float]]) -> Findings:
    means = [fmean(of_logs) for of_logs in zip(*random, strict=True)]
    line = Line.through(means)
    error = _error([Line.through(grown).slope for grown in random])
    most = max([bits - k for grown in (*random, *real) for k, bits in enumerate(grown)])
    claims = [
        Claim(
            f"A doubling of the keys adds {line.slope:.2f} ± {error:.2f} bits of evidence, no more than the bit that "
            f"it is charged ({len(random)} logs; fails if it is more by three standard errors).",
            line.slope - 3 * error <= 1,
        ),
        Claim(
            f"What the best key finds, less what its tries cost, is nowhere above {FAR_BEYOND:g} bits (most: "
            f"{most:.1f}), in {len(random)} logs with a random function and {len(real)} with the real one.",
            most <= FAR_BEYOND,
        ),
    ]
    data = {"random_function": [list(grown) for grown in random], "real": [list(grown) for grown in real]}
    tables = [_growth_table(random, real, means), _line_table(line, error, random)]
    return Findings(claims, tables, data)


def _error(values: Sequence[float]) -> float:
    """The standard error of their mean."""
    return stdev(values) / sqrt(len(values))


def _growth_table(random: Sequence[Sequence[float]], real: Sequence[Sequence[float]], means: Sequence[float]) -> Table:
    rows: list[list[Cell]] = []
    for k, mean in enumerate(means):
        error, with_real = _error([grown[k] for grown in random]), fmean([grown[k] for grown in real])
        rows.append([f"2^{k}", f"{mean:.2f} ± {error:.2f}", f"{with_real:.2f}", f"{mean - k:.2f}"])
    note = (
        f"Bits of evidence that the key made the log, under the default mixture of noise rates: mean of {len(random)} "
        f"logs and its standard error. Each has {STEPS} steps of four equal options (scheme R, no payload), chosen "
        f"without a key. Keys are of a random function; of the real one for {len(real)} logs more (mean). Less the "
        "price: a bit for each doubling."
    )
    columns = ["keys", "best evidence", "with the real function", "less the price"]
    return Table("The best of 2^k keys", columns, rows, note)


def _line_table(line: Line, error: float, random: Sequence[Sequence[float]]) -> Table:
    rows: list[list[Cell]] = [
        ["logs", len(random)],
        ["steps of each", STEPS],
        ["largest k", len(random[0]) - 1],
        ["bits of evidence where it begins", f"{line.begin:.2f}"],
        ["bits more for each doubling", f"{line.slope:.2f} ± {error:.2f}"],
        ["k at a bound of one in a million, if keys cost nothing", f"{line.doublings_to(THRESHOLD):.1f}"],
    ]
    return Table("The line through it", ["what", "number"], rows, "Least squares through the means over k.")
