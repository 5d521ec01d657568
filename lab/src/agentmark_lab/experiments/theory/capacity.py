"""How many bits a step carries, against the closed forms and against the entropy of the list."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from agentmark.core import scheme_f
from agentmark.core.cyclic_shift import short_len
from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS, BehaviorDistribution
from agentmark.core.recombination import bin_weights
from agentmark.core.statistics import Interval, dirichlet, named
from agentmark.core.symbols import SYMBOL_BITS
from agentmark.core.theory import bin_capacity, capacity, entropy, race_capacity
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.races import bits_of_race
from agentmark_lab.kit.stats import bernstein_margin, bonferroni, empirical_bernstein_margin, mean_interval

NAME = "capacity"
TITLE = "Bits per step, and the share of the entropy that they are"

ALPHAS = (0.05, 0.1, 0.3, 1.0)
SIZES = (2, 5, 10, 50)
SLIP_SIZES = (3, 5, 6, 7, 11)
PAYLOAD_LEN = 128
CONFIDENCE = 0.95
_CONFIDENCE_EACH = bonferroni(CONFIDENCE, 2 * len(ALPHAS) * len(SIZES))


@dataclass(frozen=True, slots=True)
class Effort:
    """Random lists in each setting, steps of each scheme on each list, and steps for each size of the slip table."""

    lists: int
    steps_f: int
    steps_r: int
    slip_steps: int


FULL = Effort(lists=500, steps_f=400, steps_r=40, slip_steps=200_000)
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

    def lie_between(self, entropy: float) -> bool:
        """Not surely below the closed form, nor surely above the entropy."""
        return self.closed - self.margin <= self.measured <= entropy + self.margin


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
        _f_bits(lists, setting),
        _r_bits(lists, setting),
    )


def _f_bits(lists: list[BehaviorDistribution], setting: Setting) -> Bits:
    rng = generator(setting.seed, NAME, "F", setting.alpha, setting.size)
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    measured = [
        bits_of_step(distribution, key.step_key(fresh_context(f"{NAME} {number}", step), PAYLOAD_LEN), payload)
        for number, distribution in enumerate(lists)
        for step in range(setting.effort.steps_f)
    ]
    closed = [capacity(distribution) for distribution in lists]
    variances = [second_moment(distribution) - mean * mean for distribution, mean in zip(lists, closed, strict=True)]
    # Steps are independent given their lists, so the variance that counts is the one within a list.
    largest = short_len(setting.size) + 1
    margin = bernstein_margin(_mean(variances), largest, len(measured), confidence=_CONFIDENCE_EACH)
    return Bits(_mean(closed), _mean(measured), margin)


def _r_bits(lists: list[BehaviorDistribution], setting: Setting) -> Bits:
    """Of each step what it carries in the mean over its symbols, which is what it carries under a random payload."""
    key = random_key(generator(setting.seed, NAME, "R", setting.alpha, setting.size))
    closed = [race_capacity(distribution) for distribution in lists]
    above = [
        bits_of_race(distribution, key.step_key(fresh_context(f"{NAME} {number}", step), PAYLOAD_LEN)) - expected
        for number, (distribution, expected) in enumerate(zip(lists, closed, strict=True))
        for step in range(setting.effort.steps_r)
    ]
    margin = empirical_bernstein_margin(above, SYMBOL_BITS, confidence=_CONFIDENCE_EACH)
    return Bits(_mean(closed), _mean(closed) + _mean(above), margin)


def bits_of_step(distribution: BehaviorDistribution, step_key: bytes, payload: int) -> float:
    """c_t of a real step of F."""
    return scheme_f.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN).capacity


def second_moment(distribution: BehaviorDistribution) -> float:
    """The mean square of a step's bits, for F. Its mean is the package's own closed form."""
    masses = enumerate(bin_weights(distribution.weights), start=1)
    return sum([mass * _squared_length(size) for size, mass in masses]) / TOTAL_WEIGHT


def _squared_length(bin_size: int) -> float:
    """E[c^2 | n]: m of the 2^k prefixes are followed by one more bit."""
    length = short_len(bin_size)
    long_share = (bin_size - (1 << length)) / (1 << length)
    return (1 - long_share) * length**2 + long_share * (length + 1) ** 2


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
        marked.append(bits_of_step(distribution, step_key, payload))
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
    f, r = [m.f for m in measured], [m.r for m in measured]
    agreeing = sum([bits.agree for bits in f])
    between = sum([m.r.lie_between(m.entropy) for m in measured])
    f_shares = [m.f.closed / m.entropy for m in measured]
    r_shares = [m.r.measured / m.entropy for m in measured]
    return [
        Claim(
            f"AgentMark-F: the mean bits of real steps agree with the closed form in {agreeing} of {len(f)} settings "
            f"({_effort(effort.lists * effort.steps_f, f)}). It carries {min(f_shares):.1%} to {max(f_shares):.1%} of "
            "the entropy.",
            agreeing == len(f),
        ),
        Claim(
            "AgentMark-R: the mean bits of real steps lie between the closed form of independent clocks and the "
            f"entropy in {between} of {len(r)} settings ({_effort(effort.lists * effort.steps_r, r)}). It carries "
            f"{min(r_shares):.1%} to {max(r_shares):.1%} of the entropy.",
            between == len(r),
        ),
    ]


def _effort(steps: int, bits: list[Bits]) -> str:
    margin = max([b.margin for b in bits])
    return f"{steps:,} steps each; Bernstein margins that hold together with 95 % confidence, at most {margin:.3f} bits"


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
        f"{effort.steps_r} of R on each, the latter with their mean over all symbols. Shares are ratios of means: mean "
        "bits over mean entropy, not the mean of ratios. R's closed form is that of independent clocks, which carry a "
        "little less. The last two columns are measured minus closed form, in bits per step, with margins (Bernstein; "
        "F from the closed form of the variance, R from the measured one) that hold together with 95 % confidence."
    )
    columns = ["alpha", "n", "mean H (bits)", "F, closed form", "F, measured", "R, independent clocks", "R, measured"]
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
