"""What other samplers would carry: Meteor and Discop beside AgentMark, on the same lists."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import fmean

from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.statistics import Interval, dirichlet, named
from agentmark.core.theory import capacity, entropy
from agentmark_lab.kit.authors_runs import elicited_lists
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Curve, Figure, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.races import race_bits
from agentmark_lab.kit.stats import chi_square_test, mean_interval
from agentmark_lab.peers.samplers import Drawn, discop, discop_huffman, discop_huffman_capacity, meteor, meteor_capacity

NAME = "samplers"
TITLE = "Capacity of the samplers of the literature"

SIZES = (2, 5, 10, 20, 50)
LARGE_SIZES = (100, 500, 1000)
ALPHAS = (0.055, 0.1, 0.3, 1.0)
LISTS, QUICK_LISTS = 300, 20
LARGE_LISTS, QUICK_LARGE_LISTS = 50, 2
DRAWS, QUICK_DRAWS = 100_000, 3_000

Sampler = Callable[[BehaviorDistribution, Random], Drawn]

SAMPLERS: dict[str, Sampler] = {
    "Meteor": lambda lst, rng: meteor(lst, rng.getrandbits(WEIGHT_BITS), rng.getrandbits(WEIGHT_BITS)),
    "Discop": lambda lst, rng: discop(lst, rng.getrandbits(WEIGHT_BITS), rng.getrandbits(WEIGHT_BITS)),
    "Discop, Huffman": lambda lst, rng: discop_huffman(
        lst, rng.getrandbits(WEIGHT_BITS), [rng.getrandbits(WEIGHT_BITS) for _ in range(len(lst))]
    ),
}
# Discop's rotations have no closed form that is shorter than the sampler: it is averaged over these many draws a list.
ROTATION_DRAWS = 200
# Nor has the race: so many step keys a list, each with its mean over all symbols.
RACES = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """A kind of lists; alpha None: the lists that were elicited from a model for ToolBench."""

    size: int
    alpha: float | None
    lists: int
    seed: int

    @property
    def label(self) -> str:
        if self.alpha is None:
            return "elicited (ToolBench, DeepSeek)"
        return f"n = {self.size}, Dirichlet {self.alpha:g}"


@dataclass(frozen=True, slots=True)
class Shares:
    """Mean entropy, and for each scheme its mean capacity over it, with the interval over lists."""

    entropy: float
    shares: dict[str, tuple[float, float, float]]


def run(options: Options, progress: Progress) -> Findings:
    count, large = (QUICK_LISTS, QUICK_LARGE_LISTS) if options.quick else (LISTS, LARGE_LISTS)
    settings = [
        Setting(size, alpha, count if size in SIZES else large, options.seed)
        for alpha in ALPHAS
        for size in (*SIZES, *LARGE_SIZES)
    ]
    try:
        elicited_lists()
        settings.append(Setting(0, None, 0, options.seed))
    except MissingError as error:
        progress(f"WITHOUT the elicited lists, and the result says so: {error}")
    measured = map_chunks(measure, settings, workers=options.workers, progress=progress, label="lists")
    p_values = map_chunks(
        _marginal_p_value,
        [(name, size, QUICK_DRAWS if options.quick else DRAWS, options.seed) for name in SAMPLERS for size in (3, 10)],
        workers=options.workers,
        progress=progress,
        label="marginals",
    )
    return _findings(settings, measured, p_values)


def measure(setting: Setting) -> Shares:
    rng = generator(setting.seed, NAME, setting.size, setting.alpha)
    if setting.alpha is None:
        lists = elicited_lists()
    else:
        alpha = setting.alpha
        lists = [_list(rng, alpha, setting.size) for _ in range(setting.lists)]
    entropies = [entropy(one) for one in lists]
    mean = fmean(entropies)
    bits = {
        "AgentMark-F": [capacity(one) for one in lists],
        "AgentMark-R": [race_bits(one, rng, races=RACES) for one in lists],
        "Meteor": [meteor_capacity(one) for one in lists],
        "Discop": [_rotation_capacity(one, rng) for one in lists],
        "Discop, Huffman": [discop_huffman_capacity(one) for one in lists],
    }
    return Shares(mean, {name: _ratio(values, entropies) for name, values in bits.items()})


def _list(rng: Random, alpha: float, size: int) -> BehaviorDistribution:
    return BehaviorDistribution.quantise(named(dirichlet(rng, alpha, size)))


def _rotation_capacity(distribution: BehaviorDistribution, rng: Random) -> float:
    return fmean([SAMPLERS["Discop"](distribution, rng).bits for _ in range(ROTATION_DRAWS)])


def _ratio(bits: list[float], entropies: list[float]) -> tuple[float, float, float]:
    """Mean capacity over mean entropy, with the delta method's interval."""
    mean = fmean(entropies)
    ratio = fmean(bits) / mean
    residuals = [(b - ratio * h) / mean for b, h in zip(bits, entropies, strict=True)]
    interval: Interval = mean_interval(residuals)
    return ratio, ratio + interval.low, ratio + interval.high


def _marginal_p_value(chunk: tuple[str, int, int, int]) -> float:
    """Chi-square of the sampler's choices against the list."""
    name, size, draws, seed = chunk
    rng = generator(seed, NAME, "marginal", name, size)
    distribution = _list(rng, 1.0, size)
    counts = dict.fromkeys(distribution.behaviors, 0)
    for _ in range(draws):
        counts[SAMPLERS[name](distribution, rng).behavior] += 1
    expected = [draws * weight / (1 << WEIGHT_BITS) for weight in distribution.weights]
    return chi_square_test(list(counts.values()), expected).p_value or 0.0


def _findings(settings: list[Setting], measured: list[Shares], p_values: list[float]) -> Findings:
    names = list(measured[0].shares)
    claims = [
        _most_claim(settings, measured),
        Claim(
            f"The samplers preserve the distribution: {len(p_values)} chi-square tests, smallest p "
            f"{min(p_values):.3f} (Bonferroni {min(1.0, len(p_values) * min(p_values)):.2f}).",
            len(p_values) * min(p_values) > 0.001,
        ),
    ]
    rows: list[list[Cell]] = [
        [setting.label, f"{one.entropy:.3f}", *[_text(one.shares[name]) for name in names]]
        for setting, one in zip(settings, measured, strict=True)
    ]
    note = (
        "Expected bits of one step over the entropy of its list, with a 95 % interval over lists. Meteor and Discop "
        "are written from their papers (Kaptchuk et al. 2021, Ding et al. 2023), without Meteor's reordering; Discop "
        "with rotations alone and with the Huffman recursion. They carry a message bit by bit and must not lose a "
        "step; AgentMark's steps stand alone. R's figure is the information that a logged step gives a verifier, "
        f"measured over {RACES} step keys a list. {LISTS} lists of a kind, {LARGE_LISTS} from n = {LARGE_SIZES[0]} on."
    )
    if not _with_elicited(settings):
        note += " The lists that were elicited from a model are not here."
    curves = []
    for name in names:
        at = [(s, one) for s, one in zip(settings, measured, strict=True) if s.alpha == 1.0]
        spans = [one.shares[name] for _, one in at]
        curves.append(
            Curve(name, [float(s.size) for s, _ in at], [x for x, _, _ in spans], [x for _, x, _ in spans],
                  [x for _, _, x in spans])
        )  # fmt: skip
    figure = Figure("samplers", "Share of the entropy carried, Dirichlet 1", "candidates", "bits / entropy", curves)
    table = Table("Share of the entropy carried", ["lists", "entropy, bits", *names], rows, note)
    data = {
        "settings": [
            {
                "label": s.label,
                "entropy": one.entropy,
                "shares": {name: list(share) for name, share in one.shares.items()},
            }
            for s, one in zip(settings, measured, strict=True)
        ]
    }
    return Findings(claims, [table], data, [figure])


def _most_claim(settings: list[Setting], measured: list[Shares]) -> Claim:
    """Where another carries more, it is named; and whether lists of a model were there at all."""
    exceptions = []
    for setting, one in zip(settings, measured, strict=True):
        best = max(one.shares, key=lambda name: one.shares[name][0])
        if best != "AgentMark-R":
            exceptions.append(f"{setting.label} ({best}, {one.shares[best][0]:.3f})")
    where = f"; another carries more at {'; '.join(exceptions)}" if exceptions else ""
    missing = "" if _with_elicited(settings) else " The lists elicited from a model are missing here, and not counted."
    most = len(settings) - len(exceptions)
    return Claim(
        f"AgentMark-R carries the most in {most} of {len(settings)} kinds of lists of up to {LARGE_SIZES[-1]:,} "
        f"candidates{where}.{missing}",
        not exceptions,
        aim=True,
    )


def _with_elicited(settings: list[Setting]) -> bool:
    return any(setting.alpha is None for setting in settings)


def _text(share: tuple[float, float, float]) -> str:
    return f"{share[0]:.3f} ({share[1]:.3f} to {share[2]:.3f})"
