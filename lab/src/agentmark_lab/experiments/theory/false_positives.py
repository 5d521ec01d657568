"""How often a log that is not ours agrees with itself: the paper's Table 8 through the real reader."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from agentmark.core import scheme_f
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.statistics import Interval, dirichlet, named, wilson_interval
from agentmark.core.theory import consistency_probability
from agentmark.embed.embedder import Embedder
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Curve, Figure, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import bonferroni, exact_interval

NAME = "false_positives"
TITLE = "False positives: logs without the mark, and the wrong key (Table 8)"

TRIALS = 20_000
QUICK_TRIALS = 100
CHUNK_TRIALS = 200
PAYLOAD_LEN = 128
OVERHEADS = range(17)
CONFIDENCE = 0.95

UNMARKED = "unmarked log"
WRONG_KEY = "wrong key"
SETTINGS = (UNMARKED, WRONG_KEY)

# Table 8 of the paper, in percent, from 1000 trials each.
PAPER = {0: (60.60, 60.60), 2: (22.70, 23.30), 4: (7.00, 5.90), 6: (1.10, 1.20), 8: (0.40, 0.50), 14: (0.00, 0.00)}
PAPER_TRIALS = 1000


def run(options: Options, progress: Progress) -> Findings:
    trials = QUICK_TRIALS if options.quick else TRIALS
    consistent = {setting: _count(setting, trials, options.seed, options.workers, progress) for setting in SETTINGS}
    return _findings(consistent, trials)


# One trial -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialChunk:
    setting: str
    trials: int
    seed: int
    number: int


def _count(setting: str, trials: int, seed: int, workers: int, progress: Progress) -> list[int]:
    """How many trials are consistent, for each overhead."""
    sizes = [min(CHUNK_TRIALS, trials - start) for start in range(0, trials, CHUNK_TRIALS)]
    chunks = [TrialChunk(setting, size, seed, number) for number, size in enumerate(sizes)]
    label = f"{setting}: {trials:,} trials"
    counts = map_chunks(run_chunk, chunks, workers=workers, progress=progress, label=label)
    return [sum(column) for column in zip(*counts, strict=True)]


def run_chunk(chunk: TrialChunk) -> list[int]:
    rng = generator(chunk.seed, NAME, chunk.setting, chunk.number)
    totals = [0] * len(OVERHEADS)
    for _ in range(chunk.trials):
        for overhead, consistent in enumerate(trial(chunk.setting, rng)):
            totals[overhead] += consistent
    return totals


def trial(setting: str, rng: Random) -> list[bool]:
    """One log grows until it has L + 16 equations; on the way, whether it agrees with itself at L, L + 1, ..."""
    key = random_key(rng)
    records = _marked_log(rng) if setting == WRONG_KEY else _unmarked_log(rng)
    system = LinearSystem(PAYLOAD_LEN)
    verdicts: list[bool] = []
    for equation in _equations(records, key):
        system.update(equation)
        if system.equation_count >= PAYLOAD_LEN:
            verdicts.append(system.consistent)
        # The last step may have more equations than are wanted: the surplus is left out.
        if len(verdicts) == len(OVERHEADS):
            break
    return verdicts


def _equations(records: Iterator[StepRecord], key: SharedKey) -> Iterator[Equation]:
    """What the reader takes from the log. Steps that are impossible under the key are erasures (spec, section 9)."""
    for record in records:
        if record.distribution is None:
            raise ValueError(f"{record.where} has no weights")
        step_key = key.step_key(record.context, PAYLOAD_LEN)
        equations = scheme_f.decode(record.distribution, step_key, record.behavior, payload_len=PAYLOAD_LEN)
        yield from equations or ()


def _marked_log(rng: Random) -> Iterator[StepRecord]:
    """A real log, made under a key that the reader does not have."""
    embedder = Embedder(random_key(rng), rng.getrandbits(PAYLOAD_LEN), payload_len=PAYLOAD_LEN)
    session = embedder.session(rng.randbytes(16).hex())
    while True:
        yield session.choose(random_distribution(rng).as_weights()).record


def _unmarked_log(rng: Random) -> Iterator[StepRecord]:
    """Behaviors sampled without any key. These records say so; a forger's would not, and the reader is not told."""
    session = Embedder(random_key(rng), payload_len=PAYLOAD_LEN, payload=0).session(rng.randbytes(16).hex())
    while True:
        distribution = random_distribution(rng)
        behavior = distribution.at(rng.getrandbits(WEIGHT_BITS))
        yield session.unmarked(behavior, reason="no key", weights=distribution.as_weights()).record


def random_distribution(rng: Random) -> BehaviorDistribution:
    """Lists of 4 to 12 behaviors, from peaked to flat."""
    return BehaviorDistribution.quantise(named(dirichlet(rng, rng.choice((0.3, 1.0, 3.0)), rng.randint(4, 12))))


# The report ----------------------------------------------------------------------------------------------------------


def _findings(consistent: dict[str, list[int]], trials: int) -> Findings:
    expected = [consistency_probability(PAYLOAD_LEN + overhead, PAYLOAD_LEN) for overhead in OVERHEADS]
    confidence = bonferroni(CONFIDENCE, len(OVERHEADS) * len(SETTINGS))
    claims = [
        Claim(_agreement(setting, counts, expected, trials), not _misses(counts, expected, trials, confidence))
        for setting, counts in consistent.items()
    ]
    claims.append(_paper_claim(expected))
    rows = [_row(overhead, expected[overhead], consistent, trials) for overhead in OVERHEADS]
    columns = ["overhead k", "closed form", *SETTINGS, "paper, unmarked", "paper, wrong key"]
    note = (
        f"Per cent of {trials:,} logs whose {PAYLOAD_LEN} + k equations are consistent, with 95 % Wilson intervals. "
        "One log serves all k. The closed form is the mean of 2^-(equations - rank) over uniform matrices. The claims "
        "use exact (Clopper-Pearson) intervals, since Wilson's cover too rarely near zero. The paper's figures are its "
        f"own, from {PAPER_TRIALS} trials with matrices in place of logs; its last row is for k >= 14."
    )
    data = {"trials": trials, "closed_form": expected, "consistent": consistent}
    table = Table("Consistent by chance", columns, rows, note)
    return Findings(claims, [table], data, [_figure(expected, consistent, trials)])


def _figure(expected: list[float], consistent: dict[str, list[int]], trials: int) -> Figure:
    """Figure 4. Overheads at which nothing was consistent have no place on a logarithmic axis."""
    curves = [Curve("closed form", [float(k) for k in OVERHEADS], expected)]
    for setting, counts in consistent.items():
        seen = [k for k in OVERHEADS if counts[k]]
        spans = [wilson_interval(counts[k], trials) for k in seen]
        curves.append(
            Curve(
                setting,
                [float(k) for k in seen],
                [counts[k] / trials for k in seen],
                [span.low for span in spans],
                [span.high for span in spans],
            )
        )
    paper = [k for k, (unmarked, _) in PAPER.items() if unmarked]
    curves.append(Curve("the paper, unmarked", [float(k) for k in paper], [PAPER[k][0] / 100 for k in paper]))
    return Figure(
        "false_positives", "Logs that agree by chance (Fig. 4)", "overhead k", "share consistent", curves, y_log=True
    )


def _misses(counts: list[int], expected: list[float], trials: int, confidence: float) -> list[int]:
    return [
        overhead
        for overhead, count in enumerate(counts)
        if expected[overhead] not in exact_interval(count, trials, confidence=confidence)
    ]


def _agreement(setting: str, counts: list[int], expected: list[float], trials: int) -> str:
    confidence = bonferroni(CONFIDENCE, len(OVERHEADS) * len(SETTINGS))
    misses = _misses(counts, expected, trials, confidence)
    return (
        f"{setting.capitalize()}: the closed form lies within the exact interval of the measured rate at "
        f"{len(OVERHEADS) - len(misses)} of {len(OVERHEADS)} overheads ({trials:,} logs; intervals widened to hold "
        f"together with 95 % confidence)."
    )


def _paper_claim(expected: list[float]) -> Claim:
    tests = 2 * len(PAPER)
    confidence = bonferroni(CONFIDENCE, tests)
    misses = 0
    for overhead, percents in PAPER.items():
        for percent in percents:
            interval = exact_interval(round(percent * PAPER_TRIALS / 100), PAPER_TRIALS, confidence=confidence)
            misses += expected[overhead] not in interval
    return Claim(
        f"The closed form explains the paper's table: it lies within the exact interval of {tests - misses} of its "
        f"{tests} figures ({PAPER_TRIALS} trials each, intervals widened to hold together with 95 % confidence).",
        misses == 0,
    )


def _row(overhead: int, expected: float, consistent: dict[str, list[int]], trials: int) -> list[Cell]:
    measured = [_percent_with_interval(counts[overhead], trials) for counts in consistent.values()]
    paper = [f"{percent:.2f}" for percent in PAPER[overhead]] if overhead in PAPER else ["", ""]
    return [overhead, f"{100 * expected:.4f}", *measured, *paper]


def _percent_with_interval(count: int, trials: int) -> str:
    interval: Interval = wilson_interval(count, trials)
    return f"{100 * count / trials:.3f} ({100 * interval.low:.3f} to {100 * interval.high:.3f})"
