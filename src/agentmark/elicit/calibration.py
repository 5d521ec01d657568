"""Is the list that a model states the one that it acts by? Stated lists against the frequencies of its free choices."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, floor, lgamma, log, log1p
from statistics import fmean
from typing import TypedDict

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.errors import DistributionError
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.elicit.chat import Chat, ChatRequest
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.logits import OPENING, name_question
from agentmark.elicit.situation import Elicitor, Situation

BINS = 10
RESAMPLES = 1000
SIMULATIONS = 200
MAX_CHOICE_TOKENS = 40

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One situation: the stated probabilities, and how often each candidate was freely chosen. `other` counts replies
    that named no candidate."""

    stated: Mapping[str, float]
    counts: Mapping[str, int]
    other: int

    @property
    def samples(self) -> int:
        return sum(self.counts.values())

    @property
    def tv(self) -> float:
        """Total variation distance between the stated list and the frequencies."""
        return sum([abs(p - self.counts.get(name, 0) / self.samples) for name, p in self.stated.items()]) / 2

    @property
    def tv_floor(self) -> float:
        """What the distance would be on average if the samples came from the stated list itself, exactly."""
        return sum([mean_deviation(self.samples, p) for p in self.stated.values()]) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over situations with its 95 % interval, from resampling the situations."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How one elicitor's lists agree with what the model does. Floors are what sampling alone would show."""

    elicitor: str
    model: str
    situations: int
    # Situations without a usable list, and those in which no free choice named a candidate.
    unusable: int
    unchosen: int
    samples: int
    other_share: float
    tv: Estimate
    tv_floor: float
    excess: Estimate
    ece: Estimate
    ece_floor: float


def mean_deviation(trials: int, p: float) -> float:
    """E|X / n - p| for X binomial: de Moivre's closed form."""
    if p <= 0 or p >= 1:
        return 0.0
    v = floor(trials * p) + 1
    # In logarithms: binomial coefficients of a thousand trials are beyond floats.
    ways = lgamma(trials + 1) - lgamma(v + 1) - lgamma(trials - v + 1)
    return 2 * v * exp(ways + v * log(p) + (trials - v + 1) * log1p(-p)) / trials


def free_choices(
    chat: Chat, situation: Situation, count: int, *, rng: random.Random, constrained: bool = False
) -> tuple[Counter[str], int]:
    """So many independent choices of the model at temperature 1, each with the options in an order of its own; and how
    many replies named none. `constrained` has a schema see to it that they do."""
    chosen, other = Counter[str](), 0
    for _ in range(count):
        shown = rng.sample(situation.candidates, len(situation.candidates))
        reply = chat.complete(
            ChatRequest(
                messages=name_question(situation, shown),
                tools=situation.tools,
                schema=_choice_schema(situation.names) if constrained else None,
                max_tokens=MAX_CHOICE_TOKENS,
                temperature=1.0,
            )
        )
        name = named(_inside(reply.text) if constrained else reply.text, situation.names)
        if name is None:
            other += 1
        else:
            chosen[name] += 1
    return chosen, other


def named(text: str, names: Sequence[str]) -> str | None:
    """The candidate that a reply's first line is, with or without the word that was asked for and quotes around it."""
    lines = text.strip().splitlines()
    said = lines[0].strip().removeprefix(OPENING).strip() if lines else ""
    for form in (said, said.strip("\"'`*.- ")):
        if form in names:
            return form
    return None


def _choice_schema(names: Sequence[str]) -> dict[str, object]:
    members = {"choice": {"type": "string", "enum": list(names)}}
    return {"type": "object", "properties": members, "required": ["choice"], "additionalProperties": False}


def _inside(text: str) -> str:
    """The choice in a reply that follows the schema; a reply that does not is left as it is."""
    try:
        content = parse_json(text)
    except StrictJsonError:
        return text
    return str(content.get("choice", "")) if isinstance(content, dict) else text


def calibrate(
    elicitors: Sequence[Elicitor],
    chat: Chat,
    situations: Sequence[Situation],
    *,
    samples: int,
    constrained: bool = False,
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> list[Calibration]:
    """Every elicitor against the same free choices. The seed fixes orders and resampling, not what the model says."""
    rng = random.Random(seed)
    chosen = []
    for i, situation in enumerate(situations, start=1):
        chosen.append(free_choices(chat, situation, samples, rng=rng, constrained=constrained))
        progress(f"free choices: {i} of {len(situations)} situations")
    results = []
    for elicitor in elicitors:
        pairs, unusable, unchosen = list[Comparison](), 0, 0
        for i, (situation, (counts, other)) in enumerate(zip(situations, chosen, strict=True), start=1):
            stated = _stated(elicitor, situation)
            unusable += stated is None
            unchosen += not counts
            if stated is not None and counts:
                pairs.append(Comparison(stated, counts, other))
            progress(f"{elicitor.name}: {i} of {len(situations)} lists")
        results.append(
            Calibration(
                elicitor=elicitor.name,
                model=chat.model,
                situations=len(pairs),
                unusable=unusable,
                unchosen=unchosen,
                samples=samples,
                other_share=sum([other for _, other in chosen]) / (samples * len(situations)),
                **_figures(pairs, random.Random(f"{seed} {elicitor.name}")),
            )
        )
    return results


def _stated(elicitor: Elicitor, situation: Situation) -> dict[str, float] | None:
    try:
        found = elicitor.elicit(situation)
    except ElicitationError:
        return None
    if found.weights is None:
        return None
    try:
        listed = BehaviorDistribution.quantise(found.weights).as_weights()
    except DistributionError:
        return None
    return {name: weight / TOTAL_WEIGHT for name, weight in listed.items()}


class _Figures(TypedDict):
    tv: Estimate
    tv_floor: float
    excess: Estimate
    ece: Estimate
    ece_floor: float


def _figures(pairs: list[Comparison], rng: random.Random) -> _Figures:
    simulations = range(SIMULATIONS if pairs else 0)
    redrawn = [expected_calibration_error([_redrawn(one, rng) for one in pairs]) for _ in simulations]
    return {
        "tv": bootstrap(pairs, lambda some: fmean([one.tv for one in some]), rng),
        "tv_floor": fmean([one.tv_floor for one in pairs]) if pairs else float("nan"),
        "excess": bootstrap(pairs, lambda some: fmean([one.tv - one.tv_floor for one in some]), rng),
        "ece": bootstrap(pairs, expected_calibration_error, rng),
        "ece_floor": fmean(redrawn) if redrawn else float("nan"),
    }


def expected_calibration_error(pairs: Sequence[Comparison]) -> float:
    """Candidates are put into ten bins by their stated probability. In each, the mean stated probability is compared
    with the share of free choices; bins count by how many choices they saw."""
    weight, stated, happened = [0] * BINS, [0.0] * BINS, [0] * BINS
    for one in pairs:
        for name, p in one.stated.items():
            place = min(BINS - 1, int(p * BINS))
            weight[place] += one.samples
            stated[place] += p * one.samples
            happened[place] += one.counts.get(name, 0)
    total = sum(weight)
    return sum([abs(stated[i] - happened[i]) for i in range(BINS)]) / total


def bootstrap(
    pairs: Sequence[Comparison], statistic: Callable[[Sequence[Comparison]], float], rng: random.Random
) -> Estimate:
    """The statistic, and the middle 95 % of what it is on situations drawn again."""
    if not pairs:
        return Estimate(float("nan"), float("nan"), float("nan"))
    values = sorted([statistic(rng.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)])
    return Estimate(statistic(pairs), values[round(0.025 * RESAMPLES)], values[round(0.975 * RESAMPLES) - 1])


def _redrawn(one: Comparison, rng: random.Random) -> Comparison:
    """The same situation, if the model had chosen by the list it stated."""
    draws = rng.choices(list(one.stated), list(one.stated.values()), k=one.samples)
    return Comparison(one.stated, Counter(draws), one.other)


def _choose(*options: str) -> list[str]:
    return list(options)


# Short everyday decisions of an assistant, for a first look; bring your own agent's situations for a real one.
BUILT_IN = tuple(
    [
        Situation.of(candidates, message)
        for message, candidates in {
            "I need to get to the airport by six.": _choose("call_taxi", "check_trains", "ask_colleague", "rent_car"),
            "The printer shows error 49.": _choose("restart_printer", "search_manual", "open_ticket", "buy_printer"),
            "Find a time when Ana and Ben can both meet.": _choose("read_calendar", "send_mail", "book_room"),
            "Our shop's page loads slowly since this morning.": _choose("read_logs", "restart_server", "ask_user"),
            "Summarise the report for the board.": _choose("read_report", "search_web", "write_summary", "send_mail"),
            "A customer wants a refund for order 1207.": _choose("look_up_order", "refund", "ask_customer", "refuse"),
            "What will the weather be in Lisbon on Friday?": _choose("weather", "search_web", "calendar", "answer"),
            "Translate this letter into French.": _choose("translate", "detect_language", "search_web", "answer"),
            "Two tests fail after the last change.": _choose("run_tests", "read_diff", "revert_change", "ask_author"),
            "Plan a birthday dinner for eight people.": _choose("search_restaurants", "ask_budget", "send_invites"),
        }.items()
    ]
)
