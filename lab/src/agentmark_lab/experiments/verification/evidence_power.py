"""How many steps it takes to name an identity, by scheme and by how much of each step was logged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import expm1, inf, log, log2
from random import Random

from agentmark.core import scheme_f, scheme_r
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.statistics import Interval, wilson_interval
from agentmark.core.symbols import SymbolSet
from agentmark.core.theory import gamma_tail_bits
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table, aims_in_words
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import quantile, quantile_interval
from agentmark_lab.kit.worlds import ALFWORLD, TOOLBENCH

NAME = "evidence_power"
TITLE = "Steps until an identity is named at one in a million"

THRESHOLD = 1e-6
POWER = 0.95
LENGTHS = (0, 8, 16, 32)
# The step key binds the length; for a payload that is right, evidence does not depend on it. One length serves all.
PAYLOAD_LEN = 32
CONFIDENCE = 0.95

FULL_LIST = "full list"
CHOSEN_WEIGHT = "chosen weight only"
ACTION_ONLY = "action only"
GAMMA = "action only, fixed length"
MIXTURE = "default mixture"
CLEAN = "none assumed"

WORLDS = {world.name: world for world in (TOOLBENCH, ALFWORLD)}
AIMS = {
    (FULL_LIST, TOOLBENCH.name): 48,
    (FULL_LIST, ALFWORLD.name): 20,
    (CHOSEN_WEIGHT, TOOLBENCH.name): 124,
    (CHOSEN_WEIGHT, ALFWORLD.name): 42,
    (GAMMA, TOOLBENCH.name): 374,
    (GAMMA, ALFWORLD.name): 75,
}


@dataclass(frozen=True, slots=True)
class Case:
    """Logs of one world, scheme and view, each long enough to reach the last level nearly always."""

    world: str
    scheme: str
    view: str
    steps: int
    logs: int
    quick_logs: int


CASES = (
    Case(TOOLBENCH.name, "F", FULL_LIST, 260, 2000, 12),
    Case(ALFWORLD.name, "F", FULL_LIST, 110, 2000, 12),
    Case(TOOLBENCH.name, "R", FULL_LIST, 140, 2000, 3),
    Case(ALFWORLD.name, "R", FULL_LIST, 50, 2000, 3),
    Case(TOOLBENCH.name, "R", CHOSEN_WEIGHT, 400, 1000, 2),
    Case(ALFWORLD.name, "R", CHOSEN_WEIGHT, 120, 1000, 2),
    Case(TOOLBENCH.name, "R", ACTION_ONLY, 1200, 200, 1),
    Case(ALFWORLD.name, "R", ACTION_ONLY, 260, 400, 1),
    Case(TOOLBENCH.name, "R", GAMMA, 1100, 1000, 10),
    Case(ALFWORLD.name, "R", GAMMA, 220, 2000, 10),
)


def run(options: Options, progress: Progress) -> Findings:
    chunks = []
    for case in CASES:
        count = case.quick_logs if options.quick else case.logs
        size = max(1, count // 20)
        chunks += [Chunk(case, min(size, count - start), options.seed, start) for start in range(0, count, size)]
    parts = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="marked logs")
    powers: list[Power] = []
    for case in CASES:
        logs = [log for chunk, part in zip(chunks, parts, strict=True) if chunk.case == case for log in part]
        powers += _gamma_powers(case, logs) if case.view == GAMMA else _crossing_powers(case, logs)
    return _findings(powers)


# Logs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    case: Case
    logs: int
    seed: int
    number: int


def run_chunk(chunk: Chunk) -> list[list[float]]:
    """For each log: the e-value of each step for the identity it carries; for the Gamma test -ln(1 - u) instead."""
    case = chunk.case
    rng = generator(chunk.seed, NAME, case.world, case.scheme, case.view, chunk.number)
    return [_log(case, rng) for _ in range(chunk.logs)]


def _log(case: Case, rng: Random) -> list[float]:
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    session = rng.randbytes(16).hex()
    world = WORLDS[case.world]
    read = READERS[case.view]
    values: list[float] = []
    certain = Evidence()
    for i in range(case.steps):
        distribution = world.draw(rng)
        step_key = key.step_key(fresh_context(session, i), PAYLOAD_LEN)
        value = read(case.scheme, distribution, step_key, payload)
        values.append(value)
        if case.view != GAMMA:
            certain.update(value)
            # Beyond the last level nothing is asked.
            if certain.bits > LENGTHS[-1] - log2(THRESHOLD) + 2:
                break
    return values


def _read_full(scheme: str, distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    if scheme == "F":
        embedding = scheme_f.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN)
        equations = scheme_f.decode(distribution, step_key, embedding.behavior, payload_len=PAYLOAD_LEN)
        return SymbolSet.of_equations(equations or []).e_value(payload)
    behavior = _chosen(distribution, step_key, payload)
    reading = scheme_r.decode(distribution, step_key, behavior, payload_len=PAYLOAD_LEN)
    return 1.0 if reading is None else reading.e_value(payload)


def _read_chosen(scheme: str, distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    behavior = _chosen(distribution, step_key, payload)
    weights = {behavior: distribution.weight(behavior)}
    return scheme_r.decode_partial(weights, step_key, behavior, payload_len=PAYLOAD_LEN).e_value(payload)


def _read_action(scheme: str, distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    behavior = _chosen(distribution, step_key, payload)
    return scheme_r.decode_partial({}, step_key, behavior, payload_len=PAYLOAD_LEN).e_value(payload)


def _read_uniform(scheme: str, distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    """-ln(1 - u_b) of the chosen behavior under the payload's symbol: standard exponential for any other payload."""
    behavior = _chosen(distribution, step_key, payload)
    symbol = scheme_r.coded_symbol(step_key, payload=payload, payload_len=PAYLOAD_LEN)
    # A list of the one behavior has a single clock, -ln(u) over the total weight.
    [clock] = scheme_r.race_clocks(BehaviorDistribution((behavior,), (TOTAL_WEIGHT,)), step_key, symbol)
    # 1 - u without loss where u is near 1.
    return -log(-expm1(-clock * TOTAL_WEIGHT))


def _chosen(distribution: BehaviorDistribution, step_key: bytes, payload: int) -> str:
    behavior = scheme_r.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN)
    return distribution.behaviors[0] if behavior is None else behavior


READERS: dict[str, Callable[[str, BehaviorDistribution, bytes, int], float]] = {
    FULL_LIST: _read_full,
    CHOSEN_WEIGHT: _read_chosen,
    ACTION_ONLY: _read_action,
    GAMMA: _read_uniform,
}


# Steps for 95 % power ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Power:
    case: Case
    noise: str
    payload_len: int
    logs: int
    steps: float
    interval: Interval
    bits_per_step: float


def _crossing_powers(case: Case, logs: list[list[float]]) -> list[Power]:
    """One path of evidence for each log; the lengths differ only in the level that it has to cross."""
    powers = []
    for noise, rates in ((MIXTURE, NOISE_RATES), (CLEAN, (0.0,))):
        crossings = [_crossings(log, rates) for log in logs]
        steps = sum(len(log) for log in logs)
        rate = sum([log2(e) for log in logs for e in log if e > 0]) / steps
        for i, length in enumerate(LENGTHS):
            times = [crossing[i] for crossing in crossings]
            interval = quantile_interval(times, POWER, confidence=CONFIDENCE)
            powers.append(Power(case, noise, length, len(logs), quantile(times, POWER), interval, rate))
    return powers


def _crossings(e_values: Sequence[float], rates: Sequence[float]) -> list[float]:
    """After how many steps each level is first reached."""
    evidence = Evidence(rates)
    times = [inf] * len(LENGTHS)
    reached = 0
    for t, e_value in enumerate(e_values, start=1):
        evidence.update(e_value)
        bits = evidence.bits
        while reached < len(LENGTHS) and bits >= LENGTHS[reached] - log2(THRESHOLD):
            times[reached] = t
            reached += 1
    return times


def _gamma_powers(case: Case, logs: list[list[float]]) -> list[Power]:
    """The test of a length fixed beforehand: the smallest at which so many logs pass."""
    sums = []
    for values in logs:
        total = 0.0
        sums.append([total := total + value for value in values])
    mean = sum([running[-1] for running in sums]) / len(sums) / case.steps
    powers = []
    for length in LENGTHS:
        level = length - log2(THRESHOLD)
        test = FixedLengthTest(sums, level)
        point, interval = test.steps_for_power(case.steps), test.interval(case.steps)
        powers.append(Power(case, "none needed", length, len(logs), point, interval, mean))
    return powers


@dataclass(frozen=True, slots=True)
class FixedLengthTest:
    """How many logs pass, for each length; `sums` holds the running sums of every log."""

    sums: list[list[float]]
    level: float
    counts: dict[int, int] = field(default_factory=dict)

    def passing(self, steps: int) -> int:
        if steps not in self.counts:
            self.counts[steps] = _passing(self.sums, steps, self.level)
        return self.counts[steps]

    def limits(self, steps: int) -> Interval:
        return wilson_interval(self.passing(steps), len(self.sums), confidence=CONFIDENCE)

    def steps_for_power(self, last: int) -> float:
        return _first(lambda steps: self.passing(steps) >= POWER * len(self.sums), last)

    def interval(self, last: int) -> Interval:
        return Interval(
            _first(lambda steps: self.limits(steps).high >= POWER, last),
            _first(lambda steps: self.limits(steps).low >= POWER, last),
        )


def _first(reached: Callable[[int], bool], last: int) -> float:
    """The smallest number of steps, by halving: power rises with them."""
    if not reached(last):
        return inf
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle
    return high


def _passing(sums: list[list[float]], steps: int, level: float) -> int:
    """How many logs pass. The tail falls with the sum, so one critical value serves all of them."""
    low, high = 0.0, 4.0 * steps + 100
    for _ in range(30):
        middle = (low + high) / 2
        if gamma_tail_bits(steps, middle) >= level:
            high = middle
        else:
            low = middle
    return sum(log[steps - 1] >= high for log in sums)


# The report ----------------------------------------------------------------------------------------------------------


def _findings(powers: list[Power]) -> Findings:
    claims = []
    aims = {}
    for (view, world), aim in AIMS.items():
        for power in powers:
            if (power.case.view, power.case.world, power.case.scheme, power.payload_len) != (view, world, "R", 8):
                continue
            aims[f"{world}, {view}, {power.noise} ({_steps(power)}; aim {aim})"] = power.steps <= aim
            claims.append(
                Claim(
                    f"R, {world}, {view}, noise: {power.noise}: {_steps(power)} steps name an 8-bit identity at 1e-6 "
                    f"in 95 % of {power.logs:,} logs (aim: {aim}).",
                    power.steps <= aim,
                    aim=True,
                )
            )
    claims.append(_ordering_claim(powers))
    rows: list[list[Cell]] = []
    for case in CASES:
        for noise in dict.fromkeys([p.noise for p in powers if p.case == case]):
            mine = [p for p in powers if p.case == case and p.noise == noise]
            rows.append([case.world, case.scheme, case.view, noise, mine[0].logs, *[_steps(p) for p in mine]])
    columns = ["world", "scheme", "what was logged", "noise", "logs", *[f"L = {length}" for length in LENGTHS]]
    note = (
        "Steps until the evidence for the identity that the log carries pays for L bits and a threshold of 1e-6, in "
        "95 % of the logs; in brackets order-statistic 95 % intervals (for the test of fixed length: where Wilson's "
        "limits cross 95 %). One path of each log serves every L: only the level changes. ToolBench-like: "
        "10 behaviors, Dirichlet 0.055; ALFWorld-like: 20, Dirichlet 0.10. The test of fixed length takes the sum of "
        "-ln(1 - u), which is Gamma(steps, 1) for every identity but the log's own; its length must be fixed "
        "beforehand. Aims are for R at L = 8."
    )
    data = {
        "powers": [
            {
                "world": p.case.world,
                "scheme": p.case.scheme,
                "view": p.case.view,
                "noise": p.noise,
                "payload_len": p.payload_len,
                "logs": p.logs,
                "steps": _finite(p.steps),
                "low": _finite(p.interval.low),
                "high": _finite(p.interval.high),
                "per_step": p.bits_per_step,
            }
            for p in powers
        ]
    }
    return Findings(claims, [Table("Steps for 95 % power", columns, rows, note + aims_in_words(aims))], data)


def _ordering_claim(powers: list[Power]) -> Claim:
    """The more is logged, the fewer steps; R needs fewer than F."""
    at = {(p.case.world, p.case.scheme, p.case.view): p for p in powers if p.payload_len == 8 and p.noise == MIXTURE}
    holds = True
    for world in WORLDS:
        order = [at[world, "R", FULL_LIST], at[world, "R", CHOSEN_WEIGHT], at[world, "R", ACTION_ONLY]]
        holds &= all(a.interval.low <= b.interval.high for a, b in pairwise(order))
        holds &= at[world, "R", FULL_LIST].interval.low <= at[world, "F", FULL_LIST].interval.high
    return Claim(
        "At L = 8 no weaker view needs fewer steps than a stronger one, and R no more than F, beyond their intervals.",
        holds,
    )


def _steps(power: Power) -> str:
    if power.steps == inf:
        return f"over {power.case.steps}"
    # Few logs have no order statistic that bounds so high a quantile from above.
    upper = "no upper limit" if power.interval.high == inf else f"{power.interval.high:.0f}"
    return f"{power.steps:.0f} ({power.interval.low:.0f} to {upper})"


def _finite(steps: float) -> float | None:
    return None if steps == inf else steps
