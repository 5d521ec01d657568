"""Elicitation with real models: how often it works, what it costs, how far the ways differ, and what it carries."""

from collections.abc import Sequence
from itertools import combinations
from math import log2
from statistics import fmean
from typing import Any

from agentmark.core.evidence import Evidence
from agentmark.core.statistics import wilson_interval
from agentmark.embed.embedder import Embedder
from agentmark.identity.registry import Identity, Registry
from agentmark.verify.intake import read_step
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.models.ways_of_asking import WAYS, Outcome, collect, model_files
from agentmark_lab.kit.authors_runs import real_situations
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.stats import mean_interval, quantile

NAME = "elicitation"
TITLE = "Elicitation: real models in real situations, asked in five ways"
# Its result depends on which models there are: the command that repeats it names them.
ASKS_MODELS = True

QUICK_SITUATIONS = 2
QUICK_WAYS = ("logits-names", "logits-labels", "labels")
TENANTS, PAYLOAD_LEN, THRESHOLD = 100, 32, 1e-6
KEYS, QUICK_KEYS = 200, 20
MAX_STEPS = 2000


def run(options: Options, progress: Progress) -> Findings:
    """One model at a time, on one thread: workers are of no use here."""
    files = model_files(options)
    situations = real_situations()[: QUICK_SITUATIONS if options.quick else None]
    ways = QUICK_WAYS if options.quick else tuple(WAYS)
    claims, models = [], {}
    for file in files:
        outcomes = collect(file, situations, ways, options, progress)
        models[outcomes[0].model] = outcomes
        claims += _claims(outcomes, options.seed, quick=options.quick)
    tables = [
        _success(models),
        _choices(models),
        _distances(models),
        _steps(models, options.seed, QUICK_KEYS if options.quick else KEYS),
    ]
    return Findings(claims, tables, {"outcomes": [_plain(one) for some in models.values() for one in some]})


Models = dict[str, list[Outcome]]


def _of(outcomes: Sequence[Outcome], way: str) -> list[Outcome]:
    return [one for one in outcomes if one.way == way]


def _usable(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.weights is not None]


def _groups(models: Models) -> list[tuple[str, str, list[Outcome]]]:
    return [(model, way, _of(some, way)) for model, some in models.items() for way in WAYS if _of(some, way)]


def _claims(outcomes: list[Outcome], seed: int, *, quick: bool) -> list[Claim]:
    model = outcomes[0].model
    logits = [one for one in outcomes if one.way.startswith("logits")]
    usable = _usable(logits)
    claims = [
        Claim(
            f"{model}: reading logits always yields a usable list: {len(usable)} of {len(logits)}.",
            len(usable) == len(logits),
        )
    ]
    steps = marked_run(usable, seed)
    text = f"{model}: a log of {len(usable)} decisions from these lists"
    if steps is None:
        # A handful of decisions, as in a quick run, need not be enough.
        return [*claims, Claim(f"{text} does not name its identity.", False, aim=quick)]
    return [*claims, Claim(f"{text} names its identity among {TENANTS} at 1e-6, from decision {steps} on.", True)]


def marked_run(outcomes: Sequence[Outcome], seed: int) -> int | None:
    """Mark each list once, in the order in which they were elicited; after how many the identity is named for good."""
    rng = generator(seed, NAME, "run", outcomes[0].model)
    key, payloads = random_key(rng), rng.sample(range(1 << PAYLOAD_LEN), TENANTS)
    registry = Registry(PAYLOAD_LEN, [Identity(f"tenant-{i}", payload) for i, payload in enumerate(payloads)])
    session = Embedder(key, "tenant-7", registry=registry, scheme="R").session("one run")
    records = [session.choose(one.probabilities).record for one in outcomes]
    verifier = Verifier(key, registry=registry, threshold=THRESHOLD)
    for count in range(len(records), 0, -1):
        verdict = verifier.verify(records[:count])
        if not verdict.accepted or verdict.identity != "tenant-7":
            return None if count == len(records) else count + 1
    return 1


def _success(models: Models) -> Table:
    rows: list[list[Cell]] = []
    for model, way, some in _groups(models):
        usable = _usable(some)
        interval = wilson_interval(len(usable), len(some))
        rows.append(
            [
                model,
                way,
                len(some),
                f"{len(usable) / len(some):.2f} ({interval.low:.2f} to {interval.high:.2f})",
                _mean([one.entropy for one in usable]),
                _mean([one.missing_mass for one in some if one.missing_mass is not None]),
                _mean([one.cpu_s for one in some]),
                _mean([float(one.input_tokens or 0) for one in some], digits=0),
                _mean([float(one.output_tokens or 0) for one in some], digits=0),
                _mean([float(one.attempts) for one in some]),
            ]
        )
    columns = ["model", "elicitor", "situations", "usable", "entropy (bits)", "missing mass", "CPU s"]
    note = (
        "Usable: a list that can be marked (Wilson 95 %). Missing mass: the share of the model's probability that goes "
        "to no candidate. CPU seconds of one thread, for the wall clock depends on what else the machine does; tokens "
        "and seconds include the retry. `labels` refuses a list with less than half of the probability. Verbalised "
        "replies are sampled, so these figures do not repeat exactly. Outcomes that an earlier run kept are not asked "
        "for again: how long a run took is not how long they took."
    )
    return Table("What each way yields", [*columns, "tokens read", "written", "tries"], rows, note)


def _choices(models: Models) -> Table:
    rows: list[list[Cell]] = []
    for model, way, some in _groups(models):
        usable = [one for one in _usable(some) if one.relevant]
        if not usable:
            continue
        right = sum([max(one.probabilities, key=one.probabilities.__getitem__) in one.relevant for one in usable])
        chance = fmean([len(one.relevant) / len(one.candidates) for one in usable])
        mass = fmean([sum([one.probabilities[name] for name in one.relevant]) for one in usable])
        interval = wilson_interval(right, len(usable))
        share = f"{right / len(usable):.2f} ({interval.low:.2f} to {interval.high:.2f})"
        rows.append([model, way, len(usable), share, f"{mass:.2f}", f"{chance:.2f}"])
    columns = ["model", "elicitor", "lists", "likeliest is relevant", "mass on relevant", "by chance"]
    note = "ToolBench queries, whose authors say which APIs are relevant. By chance: their share of the candidates."
    return Table("Is the likeliest candidate a relevant one?", columns, rows, note)


def _distances(models: Models) -> Table:
    rows: list[list[Cell]] = []
    for model, some in models.items():
        by_way = {way: {one.situation: one for one in _usable(_of(some, way))} for way in WAYS}
        for first, second in combinations(WAYS, 2):
            shared = [(by_way[first][name], by_way[second][name]) for name in by_way[first] if name in by_way[second]]
            if len(shared) >= 2:
                values = [tv(one.probabilities, other.probabilities) for one, other in shared]
                interval = mean_interval(values)
                rows.append(
                    [
                        model,
                        first,
                        second,
                        len(values),
                        f"{fmean(values):.2f} ({interval.low:.2f} to {interval.high:.2f})",
                    ]
                )
    note = "Total variation distance, options in the same order for both; mean over situations with a 95 % interval."
    return Table("How far the ways differ", ["model", "one", "other", "situations", "distance"], rows, note)


def tv(one: dict[str, float], other: dict[str, float]) -> float:
    return sum([abs(one[name] - other[name]) for name in one]) / 2


def _steps(models: Models, seed: int, keys: int) -> Table:
    needed = log2(2 * TENANTS) - log2(THRESHOLD)
    rows: list[list[Cell]] = []
    for model, way, some in _groups(models):
        lists = [one.probabilities for one in _usable(some)]
        if len(lists) < 2:
            continue
        rng = generator(seed, NAME, "steps", model, way)
        counts = [steps_needed(lists, needed, rng) for _ in range(keys)]
        rows.append([model, way, keys, *[_count(quantile(counts, share)) for share in (0.05, 0.5, 0.95)]])
    columns = ["model", "elicitor", "keys", "5 %", "median", "95 %"]
    note = (
        f"R, {TENANTS} tenants, bound 1e-6: {needed:.1f} bits. Decisions until the evidence suffices, each from one of "
        "the model's real lists, drawn again and again in random order under a fresh key."
    )
    return Table("Decisions until the identity is named", columns, rows, note)


def steps_needed(lists: Sequence[dict[str, float]], needed: float, rng: Any) -> float:
    key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
    session = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme="R").session(f"{rng.getrandbits(64):x}")
    evidence = Evidence()
    for count in range(1, MAX_STEPS + 1):
        reading = read_step(session.choose(rng.choice(lists)).record, key, PAYLOAD_LEN).reading
        if reading is not None:
            evidence.update(reading.e_value(payload))
        if evidence.bits >= needed:
            return count
    return float("inf")


def _count(steps: float) -> Cell:
    return f"over {MAX_STEPS:,}" if steps == float("inf") else int(steps)


def _mean(values: Sequence[float], digits: int = 2) -> str:
    return f"{fmean(values):.{digits}f}" if values else "none"


def _plain(one: Outcome) -> dict[str, Any]:
    """An outcome without its text."""
    return {
        "model": one.model,
        "way": one.way,
        "situation": one.situation,
        "weights": None if one.weights is None else {name: float(f"{w:.6g}") for name, w in one.weights.items()},
        "fault": one.fault,
        "missing_mass": one.missing_mass,
        "attempts": one.attempts,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "seconds": one.seconds,
        "cpu_s": one.cpu_s,
    }
