"""How many bits a step carries, against the closed forms and against the entropy of the list."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
from agentmark_lab.kit.races import bits_of_race, race_bits
from agentmark_lab.kit.stats import bernstein_margin, bonferroni, empirical_bernstein_margin, mean_interval

NAME = "capacity"
TITLE = "Bits per step, and the share of the entropy that they are"

ALPHAS = (0.05, 0.1, 0.3, 1.0)
SIZES = (2, 5, 10, 50)
# A step of R tells at most eight bits, and has little left of longer lists.
LARGE_SIZES = (100, 500, 1000)
SETTINGS = [(alpha, size) for alpha in ALPHAS for size in (*SIZES, *LARGE_SIZES)]
# Lists of a nearly certain agent: one option has all but so much, the others share it.
REMAINDERS = (0.05, 0.01, 0.001, 0.0001)
CERTAIN_SIZES = (2, 10, 50)
SLIP_SIZES = (3, 5, 6, 7, 11)
PAYLOAD_LEN = 128
CONFIDENCE = 0.95
_CONFIDENCE_EACH = bonferroni(CONFIDENCE, 2 * len(SETTINGS))


@dataclass(frozen=True, slots=True)
class Effort:
    """Random lists in each setting, fewer of the long ones, steps of each scheme on each list, steps for each size of
    the slip table, and races on each nearly certain list."""

    lists: int
    large_lists: int
    steps_f: int
    steps_r: int
    slip_steps: int
    certain_races: int

    def lists_of(self, size: int) -> int:
        return self.large_lists if size in LARGE_SIZES else self.lists


FULL = Effort(lists=500, large_lists=100, steps_f=400, steps_r=20, slip_steps=200_000, certain_races=20_000)
QUICK = Effort(lists=10, large_lists=3, steps_f=40, steps_r=10, slip_steps=5_000, certain_races=4_000)


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    settings = [Setting(alpha, size, options.seed, effort) for alpha, size in SETTINGS]
    label = f"{len(settings)} settings, {effort.large_lists} to {effort.lists} lists each"
    measured = map_chunks(measure, settings, workers=options.workers, progress=progress, label=label)
    slip_chunks = [SlipChunk(size, options.seed, effort.slip_steps) for size in SLIP_SIZES]
    slips = map_chunks(measure_slip, slip_chunks, workers=options.workers, progress=progress, label="bins of one size")
    certain_chunks = [
        CertainChunk(size, rest, options.seed, effort.certain_races) for size in CERTAIN_SIZES for rest in REMAINDERS
    ]
    certain = map_chunks(
        measure_certain, certain_chunks, workers=options.workers, progress=progress, label="nearly certain lists"
    )
    claims = [*_capacity_claims(measured, effort), _more_claim(measured), _certain_claim(certain)]
    claims += _slip_claims(slips, effort)
    data = {
        "settings": [
            {"alpha": m.alpha, "n": m.size, "entropy": m.entropy, **_figures("f", m.f), **_figures("r", m.r)}
            for m in measured
        ],
        "certain": [asdict(one) for one in certain],
        "slip": [{"n": s.size, "mean": s.marked_mean, "unmarked_mean": s.unmarked_mean} for s in slips],
    }
    tables = [_capacity_table(measured, effort), _certain_table(certain, effort), _slip_table(slips, effort)]
    return Findings(claims, tables, data)


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
        for _ in range(setting.effort.lists_of(setting.size))
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


# Nearly certain lists ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CertainChunk:
    size: int
    remainder: float
    seed: int
    races: int


@dataclass(frozen=True, slots=True)
class CertainMeasurement:
    """Bits of a step on one list: F in closed form, R measured, with an interval of 95 %."""

    size: int
    remainder: float
    entropy: float
    f: float
    r: float
    r_low: float
    r_high: float


def measure_certain(chunk: CertainChunk) -> CertainMeasurement:
    others = [chunk.remainder / (chunk.size - 1)] * (chunk.size - 1)
    distribution = BehaviorDistribution.quantise(named([1 - chunk.remainder, *others]))
    rng = generator(chunk.seed, NAME, "certain", chunk.size, chunk.remainder)
    races = [race_bits(distribution, rng) for _ in range(chunk.races)]
    interval = mean_interval(races)
    return CertainMeasurement(
        chunk.size,
        chunk.remainder,
        entropy(distribution),
        capacity(distribution),
        _mean(races),
        interval.low,
        interval.high,
    )


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
    return [
        Claim(
            f"AgentMark-F: the mean bits of real steps agree with the closed form in {agreeing} of {len(f)} settings "
            f"({_effort(effort, effort.steps_f, f)}). Of the entropy of lists of up to {SIZES[-1]} options it carries "
            f"{_by_size(measured, f_share)}.",
            agreeing == len(f),
        ),
        Claim(
            "AgentMark-R: the mean bits of real steps lie between the closed form of independent clocks and the "
            f"entropy in {between} of {len(r)} settings ({_effort(effort, effort.steps_r, r)}). Of the entropy of "
            f"lists of up to {SIZES[-1]} options it carries {_by_size(measured, r_share)}.",
            between == len(r),
        ),
    ]


def f_share(m: Measurement) -> float:
    return m.f.closed / m.entropy


def r_share(m: Measurement) -> float:
    return m.r.measured / m.entropy


def _by_size(measured: list[Measurement], share: Callable[[Measurement], float]) -> str:
    """The least and the most over the kinds of lists: for short lists together, then for each long size."""
    groups = [SIZES, *[(size,) for size in LARGE_SIZES]]
    spans = [[share(m) for m in measured if m.size in group] for group in groups]
    texts = [f"{min(span):.1%} to {max(span):.1%}" for span in spans]
    return ", ".join([texts[0], *[f"of {size:,} {text}" for size, text in zip(LARGE_SIZES, texts[1:], strict=True)]])


def _more_claim(measured: list[Measurement]) -> Claim:
    behind = [m for m in measured if r_share(m) < f_share(m)]
    listed = "; ".join(
        [f"n = {m.size:,}, Dirichlet {m.alpha:g} ({f_share(m):.1%} against {r_share(m):.1%})" for m in behind]
    )
    largest = LARGE_SIZES[0]
    return Claim(
        f"R carries more than F in every setting of up to {largest} options. F carries more than R in {len(behind)} of "
        f"{len(measured)} settings, for eight bits are the most that a step of R can tell: {listed or 'none'}.",
        all(m.size > largest for m in behind),
    )


def _certain_claim(certain: list[CertainMeasurement]) -> Claim:
    """In the order of REMAINDERS for each size."""
    rows = [[one for one in certain if one.size == size] for size in CERTAIN_SIZES]
    falling = all(
        _falls([one.f / one.entropy for one in row]) and _falls([one.r / one.entropy for one in row]) for row in rows
    )
    least_f, least_r = min([one.f / one.entropy for one in certain]), min([one.r / one.entropy for one in certain])
    return Claim(
        "No share is the least: the surer the agent, the smaller the share of its lists' entropy that is carried. "
        f"With {REMAINDERS[-1]:.2%} left to chance it is down to {least_f:.0%} (F) and {least_r:.0%} (R).",
        falling,
    )


def _falls(shares: list[float]) -> bool:
    return shares == sorted(shares, reverse=True)


def _effort(effort: Effort, steps: int, bits: list[Bits]) -> str:
    margin = max([b.margin for b in bits])
    return (
        f"{effort.large_lists * steps:,} to {effort.lists * steps:,} steps each; Bernstein margins that hold together "
        f"with 95 % confidence, at most {margin:.3f} bits"
    )


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
        f"Symmetric Dirichlet lists, {effort.lists} in each setting ({effort.large_lists} from n = {LARGE_SIZES[0]} "
        f"on); {effort.steps_f} real steps of F and "
        f"{effort.steps_r} of R on each, the latter with their mean over all symbols. Shares are ratios of means: mean "
        "bits over mean entropy, not the mean of ratios. R's closed form is that of independent clocks, which carry a "
        "little less. The last two columns are measured minus closed form, in bits per step, with margins (Bernstein; "
        "F from the closed form of the variance, R from the measured one) that hold together with 95 % confidence."
    )
    columns = ["alpha", "n", "mean H (bits)", "F, closed form", "F, measured", "R, independent clocks", "R, measured"]
    return Table("Share of the entropy that is carried", [*columns, "F difference", "R difference"], rows, note)


def _certain_table(certain: list[CertainMeasurement], effort: Effort) -> Table:
    rows: list[list[Cell]] = [
        [
            one.size,
            f"{one.remainder:.2%}",
            f"{one.entropy:.4f}",
            f"{one.f / one.entropy:.1%}",
            f"{one.r / one.entropy:.1%} ({one.r_low / one.entropy:.1%} to {one.r_high / one.entropy:.1%})",
        ]
        for one in certain
    ]
    note = (
        "One option has all but what is left to chance, the others share that evenly. F in closed form, R measured "
        f"over {effort.certain_races:,} step keys a list, each with its mean over all symbols (95 %)."
    )
    return Table("Nearly certain lists", ["n", "left to chance", "H (bits)", "F", "R"], rows, note)


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
