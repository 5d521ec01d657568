"""Proposals: does a marked agent do what the unmarked one does, what does it carry, and what does it cost? Beside it,
lists that the model states."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.statistics import wilson_interval
from agentmark.core.theory import race_capacity
from agentmark.elicit.calibration import mean_deviation
from agentmark.elicit.proposals import GRANULARITIES, Granularity
from agentmark.elicit.situation import Proposal, ToolCall
from agentmark_lab.experiments.models.reply_pools import (
    LEVEL_OF,
    LEVELS,
    Decided,
    Drawing,
    Pool,
    against_pools,
    against_unmarked,
    counted,
    decide,
    early_stopping,
    fixed,
    pool_entropy,
)
from agentmark_lab.experiments.models.stated_lists import Asking, lists_of, plain_replies, usual_asker
from agentmark_lab.experiments.models.tool_agent import Reply, ToolSituation, replies_of, tool_situations
from agentmark_lab.experiments.models.ways_of_asking import Outcome, is_small, model_files
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.stats import ChiSquare, student_interval, total_variation

NAME = "proposals"
TITLE = "Proposals: the agent's own replies as the list, against stated lists"
# Its result depends on which models there are: the command that repeats it names them.
ASKS_MODELS = True

# Replies kept in each situation: a model that takes seconds for one is asked less often.
REPLIES_OF_SMALL, REPLIES_OF_LARGE, QUICK_REPLIES = 64, 32, 8
QUICK_SITUATIONS = 2
COUNT = 4
COUNTS = (2, 4, 8)
DECISIONS, QUICK_DECISIONS = 1000, 100
SIGNIFICANCE = 0.01
# What the bent version must fall below, so that it cannot be called chance.
REFUTED = 0.001
TWO_POINT = 0.9
OFTEN_ENOUGH = 0.5

STATED = {
    "logits-names": "logits of names",
    "labels": "labels",
    "verbalised+schema": "words, schema",
    "verbalised": "words",
}
QUICK_STATED = ("logits-names", "labels")


@dataclass(frozen=True, slots=True)
class ModelRun:
    """All that one model said."""

    model: str
    situations: list[ToolSituation]
    replies: dict[str, list[Reply]]
    plain: dict[str, Reply]
    lists: dict[str, list[Outcome]]

    @property
    def pools(self) -> list[Pool]:
        return [Pool.of(one, self.replies[one.name]) for one in self.situations]


def run(options: Options, progress: Progress) -> Findings:
    """One model at a time, on one thread: workers are of no use here."""
    runs = [_collected(file, options, progress) for file in model_files(options)]
    times = QUICK_DECISIONS if options.quick else DECISIONS
    checks = [check for one in runs for check in exactness(one, times, options.seed, progress)]
    bent = [bent_test(one.model, one.pools, times, options.seed) for one in runs]
    points = bent_test("two behaviors, 0.9 and 0.1", [two_point_pool()], times * len(runs[0].situations), options.seed)
    rows = [row for one in runs for row in comparison(one, times, options.seed, progress)]
    claims = [*exactness_claims(checks), *[_bent_claim(one, quick=options.quick) for one in [*bent, points]]]
    claims += [claim for one in runs for claim in _distance_claims(one.model, rows)]
    tables = [_exactness_table(checks), _bent_table([*bent, points]), _comparison_table(rows, runs), _pool_table(runs)]
    return Findings(claims, tables, {"pools": [_plain(one) for one in runs], "lists": _plain_lists(runs)})


def _collected(file: Path, options: Options, progress: Progress) -> ModelRun:
    situations = tool_situations()[: QUICK_SITUATIONS if options.quick else None]
    count = REPLIES_OF_SMALL if is_small(file) else REPLIES_OF_LARGE
    replies = replies_of(file, situations, QUICK_REPLIES if options.quick else count, options, progress)
    plain = plain_replies(file, situations, options, progress)
    lists = {
        way: [some[0] for some in lists_of(file, situations, Asking(way, usual_asker(way)), options, progress).values()]
        for way in (QUICK_STATED if options.quick else STATED)
    }
    return ModelRun(next(iter(lists.values()))[0].model, situations, replies, plain, lists)


# Exactness -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """One test over all situations of a model. `reference`: the known frequencies, or as many unmarked draws."""

    model: str
    granularity: str
    scheme: str
    level: str
    reference: str
    decisions: int
    test: ChiSquare


def exactness(one: ModelRun, times: int, seed: int, progress: Progress) -> list[Check]:
    checks = []
    for granularity in GRANULARITIES:
        for scheme in ("F", "R"):
            labels = (NAME, "exact", one.model, granularity, scheme)
            decided = [
                decide(
                    pool, fixed(COUNT), granularity, scheme=scheme, times=times, rng=generator(seed, *labels, pool.name)
                )
                for pool in one.pools
            ]
            total = times * len(decided)
            for name, level in LEVELS.items():
                rng = generator(seed, *labels, name, "unmarked")
                known = against_pools(one.pools, decided, level)
                drawn = against_unmarked(one.pools, decided, level, rng)
                checks.append(Check(one.model, granularity, scheme, name, "known frequencies", total, known))
                checks.append(Check(one.model, granularity, scheme, name, "unmarked draws", total, drawn))
            progress(f"{one.model}: {total:,} decisions with proposals by {granularity}, scheme {scheme}")
    return checks


def exactness_claims(checks: Sequence[Check]) -> list[Claim]:
    tested = [one for one in checks if one.test.p_value is not None]
    claims = []
    for model in dict.fromkeys(one.model for one in tested):
        of_model = [one for one in tested if one.model == model]
        smallest = min(of_model, key=lambda one: one.test.p_value or 0.0)
        adjusted = min(1.0, (smallest.test.p_value or 0.0) * len(of_model))
        claims.append(
            Claim(
                f"{model}, n = {COUNT}: what the marked agent is handed differs in no test from what the unmarked one "
                f"does: behaviors, calls and whole replies, {len(of_model)} chi-square tests of "
                f"{of_model[0].decisions:,} decisions each, the smallest p-value {smallest.test.p_value:.2g}, after "
                f"Bonferroni {adjusted:.2g} (needed: {SIGNIFICANCE}).",
                adjusted >= SIGNIFICANCE,
            )
        )
    return claims


def _exactness_table(checks: Sequence[Check]) -> Table:
    rows: list[list[Cell]] = [
        [
            one.model,
            one.granularity,
            one.scheme,
            one.level,
            one.reference,
            one.decisions,
            f"{one.test.statistic:.1f}",
            one.test.degrees,
            "none" if one.test.p_value is None else f"{one.test.p_value:.3f}",
        ]
        for one in checks
    ]
    columns = ["model", "told apart by", "scheme", "compared", "with", "decisions"]
    note = (
        f"Each decision draws {COUNT} replies from the situation's pool with replacement, groups them, chooses a group "
        "with a real mark and hands over one reply of it at random. Statistics and degrees of freedom are summed over "
        "the situations; cells that expect fewer than 5 are pooled. `call`: the tool with its arguments; `whole "
        "reply`: the text as well. That a mark could also sit in which of several equal replies is handed over is not "
        "used: nobody sees that in what the agent did, so that only the operator's word would carry it."
    )
    return Table(
        "What the marked agent is handed", [*columns, "chi-square", "degrees of freedom", "p-value"], rows, note
    )


# What the test would notice ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bent:
    """Early stopping under the same test: `share` is that of each situation's likeliest behavior, `handed` how often it
    was handed over."""

    model: str
    decisions: int
    share: float
    handed: int
    test: ChiSquare


def two_point_pool() -> Pool:
    """A model that calls one tool nine times in ten, and else answers."""
    calls = [(ToolCall("search", "{}"),)] * round(10 * TWO_POINT) + [()] * round(10 * (1 - TWO_POINT))
    return Pool("two-point", frozenset({"search"}), tuple([Proposal(calls=c, reply=i) for i, c in enumerate(calls)]))


def bent_test(model: str, pools: Sequence[Pool], times: int, seed: int) -> Bent:
    level = LEVELS["behavior"]
    decided = _decided(pools, early_stopping, "tool", times, seed, NAME, "bent", model)
    handed, share = 0, []
    for pool, one in zip(pools, decided, strict=True):
        shares = pool.shares(level)
        likeliest = max(shares, key=shares.__getitem__)
        handed += counted(pool, one.handed, level)[likeliest]
        share.append(shares[likeliest])
    return Bent(model, times * len(pools), fmean(share), handed, against_pools(pools, decided, level))


def _decided(
    pools: Sequence[Pool], drawing: Drawing, granularity: Granularity, times: int, seed: int, *labels: object
) -> list[Decided]:
    """With R; the labels name the draws."""
    return [
        decide(pool, drawing, granularity, scheme="R", times=times, rng=generator(seed, *labels, pool.name))
        for pool in pools
    ]


def _bent_claim(one: Bent, *, quick: bool) -> Claim:
    return Claim(
        f"{one.model}: the same test refutes early stopping (stop at two alike, else a third) with as many decisions: "
        f"p = {one.test.p_value:.2g} (needed: below {REFUTED}).",
        one.test.p_value is not None and one.test.p_value < REFUTED,
        # A handful of decisions need not show it.
        aim=quick,
    )


def _bent_table(found: Sequence[Bent]) -> Table:
    rows: list[list[Cell]] = []
    for one in found:
        interval = wilson_interval(one.handed, one.decisions)
        share = f"{one.handed / one.decisions:.3f} ({interval.low:.3f} to {interval.high:.3f})"
        p_value = "none" if one.test.p_value is None else f"{one.test.p_value:.2g}"
        rows.append(
            [
                one.model,
                one.decisions,
                f"{one.share:.3f}",
                share,
                f"{one.test.statistic:.1f}",
                one.test.degrees,
                p_value,
            ]
        )
    columns = ["model", "decisions", "likeliest, unmarked", "likeliest, handed over", "chi-square"]
    note = (
        "Bent on purpose: the third sample is saved when the first two agree. A list then depends on what its samples "
        "say, and the likeliest behavior is chosen too often: 0.9 becomes 0.924. Shares of the likeliest behavior of "
        "each situation, with Wilson intervals of 95 %; the test is that of the first table."
    )
    return Table("What the test would notice: early stopping", [*columns, "degrees of freedom", "p-value"], rows, note)


# One table -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One way of one model. Distances and floors are by situation; a step without a list is an unmarked one, which
    differs in nothing and carries nothing."""

    model: str
    way: str
    marked: float
    distances: list[float]
    floors: list[float]
    entropy: float
    evidence: float
    tokens_read: float
    tokens_written: float
    seconds: float
    plain_seconds: float
    changed: bool

    @property
    def excess(self) -> list[float]:
        return [distance - floor for distance, floor in zip(self.distances, self.floors, strict=True)]


def comparison(one: ModelRun, times: int, seed: int, progress: Progress) -> list[Row]:
    rows = [_proposal_row(one, count, granularity, times, seed) for granularity in GRANULARITIES for count in COUNTS]
    progress(f"{one.model}: proposals of {', '.join(map(str, COUNTS))} replies are compared")
    return [*rows, *[_stated_row(one, way, lists) for way, lists in one.lists.items()]]


def _proposal_row(one: ModelRun, count: int, granularity: Granularity, times: int, seed: int) -> Row:
    pools = one.pools
    level = LEVELS[LEVEL_OF[granularity]]
    decided = _decided(pools, fixed(count), granularity, times, seed, NAME, "table", one.model, granularity, count)
    distances, floors = [], []
    for pool, done in zip(pools, decided, strict=True):
        shares = pool.shares(level)
        counts = counted(pool, done.handed, level)
        distances.append(total_variation({name: count / times for name, count in counts.items()}, shares))
        floors.append(sum([mean_deviation(times, share) for share in shares.values()]) / 2)
    plain = list(one.plain.values())
    read, written = _reading_s(one), _writing_s(one)
    return Row(
        model=one.model,
        way=f"proposals by {granularity}, n = {count}",
        marked=1.0,
        distances=distances,
        floors=floors,
        entropy=fmean([done.entropy for done in decided]),
        evidence=fmean([done.evidence for done in decided]),
        tokens_read=count * fmean([reply.input_tokens for reply in plain]),
        tokens_written=count * _written(one),
        seconds=read + count * written,
        plain_seconds=read + written,
        changed=False,
    )


def _written(one: ModelRun) -> float:
    """Tokens of a reply, over all that were kept."""
    return fmean([reply.output_tokens for some in one.replies.values() for reply in some])


def _reading_s(one: ModelRun) -> float:
    """CPU seconds to read the agent's prompt, in the run in which lists were stated."""
    return fmean([reply.cpu_s * reply.read_ms / (reply.read_ms + reply.written_ms) for reply in one.plain.values()])


def _writing_s(one: ModelRun) -> float:
    """CPU seconds to write a reply of the usual length, in that run."""
    writing = fmean([reply.cpu_s for reply in one.plain.values()]) - _reading_s(one)
    return _written(one) * writing / fmean([reply.output_tokens for reply in one.plain.values()])


def _stated_row(one: ModelRun, way: str, lists: Sequence[Outcome]) -> Row:
    level = LEVELS["behavior"]
    distances, floors, entropies, evidence = [], [], [], []
    for pool, stated in zip(one.pools, lists, strict=True):
        if stated.weights is None:
            distances.append(0.0)
            floors.append(0.0)
            continue
        probabilities, shares = stated.probabilities, pool.shares(level)
        distances.append(total_variation(probabilities, shares))
        floors.append(sum([mean_deviation(len(pool.proposals), p) for p in probabilities.values()]) / 2)
        entropies.append(stated.entropy)
        evidence.append(race_capacity(BehaviorDistribution.quantise(probabilities)))
    plain = list(one.plain.values())
    plain_seconds = _reading_s(one) + _writing_s(one)
    return Row(
        model=one.model,
        way=STATED[way],
        marked=len(entropies) / len(lists),
        distances=distances,
        floors=floors,
        entropy=sum(entropies) / len(lists),
        evidence=sum(evidence) / len(lists),
        # The list first; then the reply itself, with the chosen tool.
        tokens_read=fmean([(said.input_tokens or 0) for said in lists])
        + fmean([reply.input_tokens for reply in plain]),
        tokens_written=fmean([(said.output_tokens or 0) for said in lists]) + _written(one),
        seconds=fmean([said.cpu_s for said in lists]) + plain_seconds,
        plain_seconds=plain_seconds,
        changed=True,
    )


def _distance_claims(model: str, rows: Sequence[Row]) -> list[Claim]:
    of_model = [row for row in rows if row.model == model]
    offered = [row for row in of_model if not row.changed]
    # A way that hardly ever yields a list leaves the agent unmarked, and differs in nothing for that.
    stated = [row for row in of_model if row.changed and row.marked >= OFTEN_ENOUGH]
    if not stated:
        return []
    most = max(offered, key=lambda row: fmean(row.excess))
    least = min(stated, key=lambda row: fmean(row.excess))
    return [
        Claim(
            f"{model}: what the agent does with proposals lies at most {fmean(most.excess):.3f} above the sampling "
            f"floor ({most.way}; total variation, mean of {len(most.excess)} situations); with stated lists at least "
            f"{fmean(least.excess):.2f} ({least.way}; of the ways that yield a list in half of the situations).",
            fmean(most.excess) < fmean(least.excess),
            aim=True,
        )
    ]


def _comparison_table(rows: Sequence[Row], runs: Sequence[ModelRun]) -> Table:
    columns = ["model", "way", "marked", "TV", "its floor", "above the floor", "entropy (bits)", "evidence (bits)"]
    cells: list[list[Cell]] = [
        [
            row.model,
            row.way,
            f"{row.marked:.2f}",
            f"{fmean(row.distances):.3f}",
            f"{fmean(row.floors):.3f}",
            _mean(row.excess),
            f"{row.entropy:.2f}",
            f"{row.evidence:.2f}",
            f"{row.tokens_read:.0f}",
            f"{row.tokens_written:.0f}",
            f"{row.seconds:.1f}",
            f"{row.seconds / row.plain_seconds:.1f}",
            "yes" if row.changed else "no",
        ]
        for row in rows
    ]
    replies = ", ".join([f"{one.model} {len(next(iter(one.replies.values())))}" for one in runs])
    note = (
        f"{len(runs[0].situations)} ToolBench queries with two to five tools; the unmarked agent is the pool of its "
        f"own kept replies (a situation: {replies}), drawn at temperature 1. Few situations and small models: read the "
        "differences between rows, not the figures. TV: total variation distance between what the agent does marked "
        "and unmarked, at the row's own granularity. Its floor is what sampling alone shows: for proposals, of the "
        "marked decisions that were drawn; for a stated list, of the pool, if it came from that list. Above the floor: "
        "mean over situations with an interval of 95 % (Student). A situation without a usable list is an unmarked "
        "step: distance 0, no bits. Entropy is that of the list which carries the mark; evidence is what a verifier "
        "expects of a step under R. Tokens and seconds are those of a whole step: for proposals n replies one after "
        "the other, the prompt read once (its tokens are counted each time); for a stated list the side call and one "
        "plain reply. Seconds are those of the CPU, one thread; `plain replies` divides them by what a plain "
        "reply took in the same run. Request changed: whether a side call is made and a tool forced, or the agent's "
        "request is sent as it was."
    )
    heads = [*columns, "tokens read", "written", "CPU s", "plain replies", "request changed"]
    return Table("What the agent does, carries and costs", heads, cells, note)


def _mean(values: Sequence[float]) -> str:
    interval = student_interval(values)
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _pool_table(runs: Sequence[ModelRun]) -> Table:
    rows: list[list[Cell]] = []
    for one in runs:
        replies = [reply for some in one.replies.values() for reply in some]
        by_tool = [pool_entropy(pool, "tool") for pool in one.pools]
        by_call = [pool_entropy(pool, "call") for pool in one.pools]
        answers = sum([reply.tool is None for reply in replies]) / len(replies)
        rows.append(
            [
                one.model,
                len(one.pools),
                len(one.pools[0].proposals),
                f"{answers:.2f}",
                f"{fmean(by_tool):.2f}",
                f"{fmean(by_call):.2f}",
                f"{log2(len(one.pools[0].proposals)):.2f}",
                f"{_written(one):.0f}",
            ]
        )
    columns = ["model", "situations", "replies", "answers", "entropy by tool", "by call", "at most", "tokens written"]
    note = (
        "The kept replies: each is whole, drawn at temperature 1 with the prompt cached, one line of the agent's "
        "convention held by a grammar (`CALL name {arguments}` or `ANSWER text`; neither model emits native tool calls "
        "reliably). Answers: their share. Entropy in bits, mean over situations; a pool of so many replies cannot show "
        "more than the column says, which matters by call."
    )
    return Table("The pools", columns, rows, note)


def _plain(one: ModelRun) -> dict[str, Any]:
    """The replies without the text of answers."""
    return {
        "model": one.model,
        "situations": {
            name: [f"{reply.tool} {reply.arguments}" if reply.tool else "(answer)" for reply in some]
            for name, some in one.replies.items()
        },
    }


def _plain_lists(runs: Sequence[ModelRun]) -> list[dict[str, Any]]:
    return [
        {
            "model": said.model,
            "way": said.way,
            "situation": said.situation,
            "weights": None if said.weights is None else {name: float(f"{w:.6g}") for name, w in said.weights.items()},
            "fault": said.fault,
            "cpu_s": said.cpu_s,
        }
        for one in runs
        for lists in one.lists.values()
        for said in lists
    ]
