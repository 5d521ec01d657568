"""How many bits a step carries, against the closed forms and against the entropy of the list."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, log2

from agentmark.core import scheme_f, scheme_r
from agentmark.core.cyclic_shift import short_len
from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS, BehaviorDistribution
from agentmark.core.recombination import bin_weights
from agentmark.core.statistics import Interval, dirichlet, named
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT
from agentmark.core.theory import bin_capacity, capacity, entropy, race_capacity
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import bernstein_margin, bonferroni, mean_interval

NAME = "capacity"
TITLE = "Bits per step, and the share of the entropy that they are"

ALPHAS = (0.05, 0.1, 0.3, 1.0)
SIZES = (2, 5, 10, 50)
SLIP_SIZES = (3, 5, 6, 7, 11)
PAYLOAD_LEN = 128
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Effort:
    """Random lists in each setting, steps of each scheme on each list, and steps for each size of the slip table."""

    lists: int
    steps_f: int
    steps_r: int
    slip_steps: int


FULL = Effort(lists=500, steps_f=400, steps_r=100, slip_steps=200_000)
QUICK = Effort(lists=10, steps_f=40, steps_r=10, slip_steps=5_000)


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    settings = [Setting(alpha, size, options.seed, effort) for alpha in ALPHAS for size in SIZES]
    label = f"{len(settings)} settings, {effort.lists} lists each"
    measured = map_chunks(measure, settings, workers=options.workers, progress=progress, label=label)
    slip_chunks = [SlipChunk(size, options.seed, effort.slip_steps) for size in SLIP_SIZES]
    slips = map_chunks(measure_slip, slip_chunks, workers=options.workers, progress=progress, label="bins of one size")
    claims = [*_capacity_claims(measured, effort), *_slip_claims(slips, effort)]
    data = {
        "settings": [
            {"alpha": m.alpha, "n": m.size, "entropy": m.entropy, **_figures("f", m.f), **_figures("r", m.r)}
            for m in measured
        ],
        "slip": [{"n": s.size, "mean": s.marked_mean, "unmarked_mean": s.unmarked_mean} for s in slips],
    }
    return Findings(claims, [_capacity_table(measured, effort), _slip_table(slips, effort)], data)


# Random lists --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    alpha: float
    size: int
    seed: int
    effort: Effort


@dataclass(frozen=True, slots=True)
class Bits:
    """Mean bits per step: by the closed form, as measured, and how far the two may differ."""

    closed: float
    measured: float
    margin: float

    @property
    def agree(self) -> bool:
        return abs(self.measured - self.closed) <= self.margin


@dataclass(frozen=True, slots=True)
class Measurement:
    alpha: float
    size: int
    entropy: float
    f: Bits
    r: Bits


def measure(setting: Setting) -> Measurement:
    rng = generator(setting.seed, NAME, setting.alpha, setting.size)
    lists = [
        BehaviorDistribution.quantise(named(dirichlet(rng, setting.alpha, setting.size)))
        for _ in range(setting.effort.lists)
    ]
    return Measurement(
        setting.alpha,
        setting.size,
        _mean([entropy(distribution) for distribution in lists]),
        _bits("F", lists, setting, setting.effort.steps_f),
        _bits("R", lists, setting, setting.effort.steps_r),
    )


def _bits(scheme: str, lists: list[BehaviorDistribution], setting: Setting, steps: int) -> Bits:
    rng = generator(setting.seed, NAME, scheme, setting.alpha, setting.size)
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    measured = [
        bits_of_step(scheme, distribution, key.step_key(fresh_context(f"{NAME} {number}", step), PAYLOAD_LEN), payload)
        for number, distribution in enumerate(lists)
        for step in range(steps)
    ]
    closed = [capacity(distribution) if scheme == "F" else race_capacity(distribution) for distribution in lists]
    variances = [
        second_moment(scheme, distribution) - mean * mean for distribution, mean in zip(lists, closed, strict=True)
    ]
    # Steps are independent given their lists, so the variance that counts is the one within a list.
    largest = short_len(setting.size) + 1 if scheme == "F" else SYMBOL_BITS
    confidence = bonferroni(CONFIDENCE, 2 * len(ALPHAS) * len(SIZES))
    margin = bernstein_margin(_mean(variances), largest, len(measured), confidence=confidence)
    return Bits(_mean(closed), _mean(measured), margin)


def bits_of_step(scheme: str, distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    """c_t of a real step of F; of a real step of R, -log2 of the share of symbols that lead to its choice."""
    if scheme == "F":
        return scheme_f.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN).capacity
    behavior = scheme_r.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN)
    if behavior is None:
        return 0.0
    constraint = scheme_r.decode(distribution, step_key, behavior, payload_len=PAYLOAD_LEN)
    if constraint is None:
        raise RuntimeError("the step that was just made is impossible")
    return constraint.evidence_bits


def second_moment(scheme: str, distribution: BehaviorDistribution) -> float:
    """The mean square of a step's bits. Its mean is the package's own closed form."""
    if scheme == "F":
        masses = enumerate(bin_weights(distribution.weights), start=1)
        return sum([mass * _squared_length(size) for size, mass in masses]) / TOTAL_WEIGHT
    return sum([race_moment(weight / TOTAL_WEIGHT, power=2) for weight in distribution.weights if weight])


def _squared_length(bin_size: int) -> float:
    """E[c^2 | n]: m of the 2^k prefixes are followed by one more bit."""
    length = short_len(bin_size)
    long_share = (bin_size - (1 << length)) / (1 << length)
    return (1 - long_share) * length**2 + long_share * (length + 1) ** 2


def race_moment(probability: float, *, power: int) -> float:
    """What a behavior of this probability adds to E[bits^power] of R: Binomial(256, p) symbols lead to it."""
    if probability == 1:
        return 0.0
    log_p, log_rest = log(probability), log1p(-probability)
    total = 0.0
    for wins, log_ways in enumerate(_LOG_BINOMIALS[1:], start=1):
        chance = exp(log_ways + wins * log_p + (SYMBOL_COUNT - wins) * log_rest)
        total += chance * wins / SYMBOL_COUNT * (SYMBOL_BITS - log2(wins)) ** power
    return total


_LOG_BINOMIALS = [
    lgamma(SYMBOL_COUNT + 1) - lgamma(wins + 1) - lgamma(SYMBOL_COUNT - wins + 1) for wins in range(SYMBOL_COUNT + 1)
]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _figures(scheme: str, bits: Bits) -> dict[str, float]:
    return {f"{scheme}_closed": bits.closed, f"{scheme}_measured": bits.measured, f"{scheme}_margin": bits.margin}


# Bins of one size: App. B's formula ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlipChunk:
    size: int
    seed: int
    steps: int


@dataclass(frozen=True, slots=True)
class SlipMeasurement:
    size: int
    marked_mean: float
    marked: Interval
    unmarked_mean: float
    unmarked: Interval


def measure_slip(chunk: SlipChunk) -> SlipMeasurement:
    """Uniform lists, so that all but a few draws in 2^32 take the whole list as their bin."""
    rng = generator(chunk.seed, NAME, "slip", chunk.size)
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    distribution = BehaviorDistribution.quantise(named([1.0] * chunk.size))
    marked: list[float] = []
    unmarked: list[float] = []
    for step in range(chunk.steps):
        step_key = key.step_key(fresh_context(f"{NAME} slip {chunk.seed} {chunk.size}", step), PAYLOAD_LEN)
        marked.append(bits_of_step("F", distribution, step_key, payload))
        behavior = distribution.at(rng.getrandbits(WEIGHT_BITS))
        equations = scheme_f.decode(distribution, step_key, behavior, payload_len=PAYLOAD_LEN)
        unmarked.append(len(equations or ()))
    confidence = bonferroni(CONFIDENCE, 2 * len(SLIP_SIZES))
    return SlipMeasurement(
        chunk.size,
        _mean(marked),
        mean_interval(marked, confidence=confidence),
        _mean(unmarked),
        mean_interval(unmarked, confidence=confidence),
    )


def paper_capacity(bin_size: int) -> float:
    """App. B: k + 2m/n, the mean length of a codeword when every index is as likely."""
    length = short_len(bin_size)
    return length + 2 * (bin_size - (1 << length)) / bin_size


# The report ----------------------------------------------------------------------------------------------------------


def _capacity_claims(measured: list[Measurement], effort: Effort) -> list[Claim]:
    claims = []
    for scheme, steps in (("F", effort.steps_f), ("R", effort.steps_r)):
        bits = [m.f if scheme == "F" else m.r for m in measured]
        agreeing = sum([b.agree for b in bits])
        ratios = [b.closed / m.entropy for b, m in zip(bits, measured, strict=True)]
        claims.append(
            Claim(
                f"AgentMark-{scheme}: the mean bits of real steps agree with the closed form in {agreeing} of "
                f"{len(bits)} settings ({effort.lists * steps:,} steps each; Bernstein margins that hold together with "
                f"95 % confidence, at most {max(b.margin for b in bits):.3f} bits). It carries {min(ratios):.1%} to "
                f"{max(ratios):.1%} of the entropy.",
                agreeing == len(bits),
            )
        )
    return claims


def _slip_claims(slips: list[SlipMeasurement], effort: Effort) -> list[Claim]:
    ours = all(bin_capacity(s.size) in s.marked and paper_capacity(s.size) not in s.marked for s in slips)
    unmarked = all(paper_capacity(s.size) in s.unmarked for s in slips)
    sizes = ", ".join(map(str, SLIP_SIZES))
    return [
        Claim(
            f"A bin of n = 2^k + m behaviors carries k + m/2^k bits, not App. B's k + 2m/n, which exceeds log2 n: for "
            f"n = {sizes} the interval of the measured mean holds the first and not the second "
            f"({effort.slip_steps:,} steps each, intervals widened to hold together with 95 % confidence).",
            ours,
        ),
        Claim(
            f"App. B's k + 2m/n is what a reader takes from a log without the mark, where every index is as likely: it "
            f"lies in the interval of the mean for n = {sizes} ({effort.slip_steps:,} steps each).",
            unmarked,
        ),
    ]


def _capacity_table(measured: list[Measurement], effort: Effort) -> Table:
    rows: list[list[Cell]] = []
    for m in measured:
        shares = [f"{bits / m.entropy:.2%}" for bits in (m.f.closed, m.f.measured, m.r.closed, m.r.measured)]
        rows.append([m.alpha, m.size, f"{m.entropy:.4f}", *shares, _difference(m.f), _difference(m.r)])
    note = (
        f"Symmetric Dirichlet lists, {effort.lists} in each setting; {effort.steps_f} real steps of F and "
        f"{effort.steps_r} of R on each. Shares are ratios of means: mean bits over mean entropy, not the mean of "
        "ratios. The last two columns are measured minus closed form, in bits per step, with margins (Bernstein, from "
        "the closed form of the variance) that hold together with 95 % confidence."
    )
    columns = ["alpha", "n", "mean H (bits)", "F, closed form", "F, measured", "R, closed form", "R, measured"]
    return Table("Share of the entropy that is carried", [*columns, "F difference", "R difference"], rows, note)


def _difference(bits: Bits) -> str:
    return f"{bits.measured - bits.closed:+.4f} ± {bits.margin:.4f}"


def _slip_table(slips: list[SlipMeasurement], effort: Effort) -> Table:
    rows: list[list[Cell]] = [
        [
            s.size,
            f"{log2(s.size):.4f}",
            f"{bin_capacity(s.size):.4f}",
            f"{s.marked_mean:.4f} ± {(s.marked.high - s.marked.low) / 2:.4f}",
            f"{paper_capacity(s.size):.4f}",
            f"{s.unmarked_mean:.4f} ± {(s.unmarked.high - s.unmarked.low) / 2:.4f}",
        ]
        for s in slips
    ]
    columns = ["n", "log2 n", "k + m/2^k", "measured, marked", "paper: k + 2m/n", "measured, read without a mark"]
    note = f"Uniform lists of n behaviors, n = 2^k + m, {effort.slip_steps:,} real steps for each n."
    return Table("Bits of a bin of n behaviors: the paper's formula and the right one", columns, rows, note)
