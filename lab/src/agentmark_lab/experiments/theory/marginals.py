"""The mark does not bend the distribution: choices against P_t for a fixed key and payload, by chi-square."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.statistics import dirichlet, named
from agentmark.embed.embedder import Embedder
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import ChiSquare, chi_square_test, ks_uniform

NAME = "marginals"
TITLE = "Choices are as likely as the agent said"

DRAWS = 200_000
QUICK_DRAWS = 2_000
CHUNK_DRAWS = 10_000
PAYLOAD_LEN = 128
SIGNIFICANCE = 0.01

# A sampler takes weights and a fresh context. It is made from the scheme and the seed inside the process that draws.
Sampler = Callable[[BehaviorDistribution, bytes], str]
SamplerFactory = Callable[[str, int], Sampler]


def run(options: Options, progress: Progress) -> Findings:
    return check(marked_sampler, options, progress)


def marked_sampler(scheme: str, seed: int) -> Sampler:
    """One key and one payload for all draws of a run; only the contexts differ."""
    rng = generator(seed, NAME, "key and payload")
    key = random_key(rng)
    embedder = Embedder(key, rng.getrandbits(PAYLOAD_LEN), payload_len=PAYLOAD_LEN, scheme=scheme)

    def sample(distribution: BehaviorDistribution, context: bytes) -> str:
        behavior = embedder.choose_in_context(distribution, context)
        if behavior is None:
            raise RuntimeError("a near tie, once in 2^40 draws: run again with another seed")
        return behavior

    return sample


# The distributions ---------------------------------------------------------------------------------------------------


def distributions(seed: int) -> dict[str, BehaviorDistribution]:
    """Twenty lists: the plain, the tied, the peaked, the long, and those at the edge of 2^-32."""
    rng = generator(seed, NAME, "distributions")
    edge = TOTAL_WEIGHT // 2
    zipf = [1 / (i + 1) for i in range(100)]
    masses: dict[str, list[float]] = {
        "one behavior": [1],
        "fair coin": [1, 1],
        "0.9 and 0.1": [0.9, 0.1],
        "three alike": [1, 1, 1],
        "paper's App. C": [0.40, 0.25, 0.15, 0.12, 0.08],
        "tied pairs": [0.3, 0.3, 0.15, 0.15, 0.1],
        "with zeros": [0.5, 0, 0.3, 0, 0.2],
        "ten alike": [1] * 10,
        "peaked: 0.91 and nine of 0.01": [0.91, *[0.01] * 9],
        "Dirichlet 0.1": dirichlet(rng, 0.1, 10),
        "Dirichlet 0.3": dirichlet(rng, 0.3, 20),
        "geometric": [0.5**i for i in range(20)],
        "Dirichlet 1": dirichlet(rng, 1.0, 50),
        "Dirichlet 0.05": dirichlet(rng, 0.05, 50),
        "Zipf": zipf,
        "Dirichlet 0.3, long": dirichlet(rng, 0.3, 100),
        "nearly deterministic": [0.999, 0.0005, 0.0005],
        "two weights of 2^-32": [edge, edge - 2, 1, 1],
        "900 zeros, 100 Zipf": [*[0] * 900, *zipf],
        "Dirichlet 1, a thousand": dirichlet(rng, 1.0, 1000),
    }
    return {name: BehaviorDistribution.quantise(named(list(shares))) for name, shares in masses.items()}


# Drawing and testing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawChunk:
    case: str
    distribution: BehaviorDistribution
    scheme: str
    seed: int
    first: int
    last: int
    make_sampler: SamplerFactory


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: str
    scheme: str
    size: int
    draws: int
    test: ChiSquare


def check(make_sampler: SamplerFactory, options: Options, progress: Progress) -> Findings:
    """Draw, count, test: any sampler can be put in, also one that ought to fail."""
    draws = QUICK_DRAWS if options.quick else DRAWS
    cases = distributions(options.seed)
    chunks = [
        DrawChunk(case, distribution, scheme, options.seed, first, min(first + CHUNK_DRAWS, draws), make_sampler)
        for case, distribution in cases.items()
        for scheme in ("F", "R")
        for first in range(0, draws, CHUNK_DRAWS)
    ]
    counts: dict[tuple[str, str], Counter[str]] = {}
    label = f"{len(cases)} distributions, {draws:,} draws each"
    for chunk, counted in zip(
        chunks, map_chunks(count_choices, chunks, workers=options.workers, progress=progress, label=label), strict=True
    ):
        counts.setdefault((chunk.case, chunk.scheme), Counter()).update(counted)
    results = [
        CaseResult(case, scheme, len(cases[case]), draws, fit(cases[case], counted))
        for (case, scheme), counted in counts.items()
    ]
    return _findings(results, draws)


def count_choices(chunk: DrawChunk) -> Counter[str]:
    sample = chunk.make_sampler(chunk.scheme, chunk.seed)
    # A session for each distribution, so that no context serves two of them.
    session = f"{NAME} {chunk.seed} {chunk.case}"
    return Counter(
        [sample(chunk.distribution, fresh_context(session, step)) for step in range(chunk.first, chunk.last)]
    )


def fit(distribution: BehaviorDistribution, counts: Counter[str]) -> ChiSquare:
    """Chi-square of the counts against the recorded weights; a choice outside the list refutes them outright."""
    draws = counts.total()
    if not counts.keys() <= set(distribution.behaviors):
        return ChiSquare(float("inf"), 0, 0.0)
    observed = [counts[behavior] for behavior in distribution.behaviors]
    expected = [draws * weight / TOTAL_WEIGHT for weight in distribution.weights]
    return chi_square_test(observed, expected)


# The report ----------------------------------------------------------------------------------------------------------


def _findings(results: list[CaseResult], draws: int) -> Findings:
    p_values = [result.test.p_value for result in results if result.test.p_value is not None]
    lone = [result for result in results if result.size == 1]
    adjusted = min(1.0, min(p_values) * len(p_values))
    uniform = ks_uniform(p_values)
    claims = [
        Claim(
            f"No choice frequency differs from P_t: of {len(p_values)} chi-square tests with {draws:,} draws each "
            f"the smallest p-value is {min(p_values):.2g}, after Bonferroni {adjusted:.2g} (needed: {SIGNIFICANCE}).",
            adjusted >= SIGNIFICANCE,
        ),
        Claim(
            f"The {len(p_values)} p-values are uniform, as they are when the hypothesis is true and the tests are "
            f"sound: Kolmogorov-Smirnov p = {uniform:.2g} (needed: {SIGNIFICANCE}).",
            uniform >= SIGNIFICANCE,
        ),
        Claim(
            f"A list of one behavior has no p-value: it was chosen in all of {draws:,} draws, under both schemes.",
            all(result.test.p_value is None for result in lone),
        ),
    ]
    rows = [_row(result) for result in results]
    note = (
        "One key and one payload; every draw has a fresh context. Cells that expect fewer than 5 are pooled into one, "
        "which takes in the smallest other cell if it is still below 5; where a single cell is left there is no "
        "p-value. A behavior of weight zero must never be chosen."
    )
    columns = ["distribution", "n", "scheme", "draws", "chi-square", "degrees of freedom", "p-value"]
    data = {
        "p_values": [[result.case, result.scheme, result.test.p_value] for result in results],
        "bonferroni": adjusted,
        "ks_p_value": uniform,
    }
    return Findings(claims, [Table("Chi-square of choices against P_t", columns, rows, note)], data)


def _row(result: CaseResult) -> list[Cell]:
    test = result.test
    p_value = "none" if test.p_value is None else f"{test.p_value:.3f}"
    return [result.case, result.size, result.scheme, result.draws, f"{test.statistic:.1f}", test.degrees, p_value]
