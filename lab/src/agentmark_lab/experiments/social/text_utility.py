"""Does a watermark spoil the texts? Tests that a mark must pass and a bias towards some tokens must fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from agentmark_lab.experiments.social.answer_writer import Answer
from agentmark_lab.experiments.social.two_marks_plan import ABOVE, DISTINCT, LIKELY, MEASURES, TextPlan
from agentmark_lab.kit.equivalence import Comparison
from agentmark_lab.kit.experiment import Cell, Table
from agentmark_lab.kit.task_test import mean_p_value
from agentmark_lab.kit.utility_tests import CUT, FAILS, PASSES


def distinct_bigrams(tokens: Sequence[int]) -> float:
    """The share of pairs of neighbours that are none of the earlier ones."""
    pairs = list(pairwise(tokens))
    return len({*pairs}) / len(pairs)


@dataclass(frozen=True, slots=True)
class Text:
    """An answer with its measures."""

    task: str
    tokens: tuple[int, ...]
    answer: Answer

    @property
    def values(self) -> dict[str, float]:
        return {
            ABOVE: self.answer.log_probability - self.answer.expected,
            LIKELY: self.answer.log_probability,
            DISTINCT: distinct_bigrams(self.tokens),
        }


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """The texts of a configuration. What they are above expectation is held against zero, which it is without a mark;
    the other measures against the texts that were written without a mark in the same tasks."""

    name: str
    texts: int
    means: dict[str, float]
    found: dict[str, Comparison]
    plan: TextPlan

    def same(self, measure: str) -> bool:
        return self.found[measure].equivalent(self.plan.measures[measure].margin)

    @property
    def p_value(self) -> float:
        """Of H0 that no measure has another mean: the smallest of three, paid for (Bonferroni)."""
        return min(1.0, len(self.found) * min([mean_p_value(found.means) for found in self.found.values()]))

    @property
    def is_seen(self) -> bool:
        return self.p_value < CUT

    @property
    def passes(self) -> bool:
        return all(self.same(measure) for measure in self.found) and not self.is_seen

    @property
    def verdict(self) -> str:
        """Equivalence that is not shown is no difference; one that shows is."""
        if self.passes:
            return PASSES
        return FAILS if self.is_seen else "not shown"

    @property
    def reasons(self) -> str:
        """What keeps it from passing."""
        failed = [measure for measure in self.found if not self.same(measure)]
        return ", ".join([*failed, *(["difference"] if self.is_seen else [])]) or "none"


def judge_texts(name: str, texts: Sequence[Text], unmarked: Sequence[Text], plan: TextPlan) -> JudgedTexts:
    """Each task is one text of either kind; a task in which only one was written is left out where two are needed."""
    without = {text.task: text.values for text in unmarked}
    found = {}
    for measure in MEASURES:
        if measure == ABOVE:
            means = [text.values[measure] for text in texts]
        else:
            pairs = [(text.values[measure], without[text.task][measure]) for text in texts if text.task in without]
            means = [mine - other for mine, other in pairs]
        found[measure] = Comparison(name, len(means), len(means), tuple(means), is_share=False)
    values = {measure: fmean([text.values[measure] for text in texts]) for measure in MEASURES}
    return JudgedTexts(name, len(texts), values, found, plan)


def text_table(judged: Sequence[JudgedTexts], note: str) -> Table:
    columns = ["configuration", "texts"]
    for measure in MEASURES:
        against = "" if measure == ABOVE else ", against neither"
        columns += [] if measure == ABOVE else [measure]
        columns += [f"{measure}{against} (90 % interval)", f"same {measure}"]
    rows: list[list[Cell]] = []
    for one in judged:
        row: list[Cell] = [one.name, one.texts]
        for measure in MEASURES:
            row += [] if measure == ABOVE else [f"{one.means[measure]:.3f}"]
            row += [with_interval(one.found[measure]), shown(one, measure)]
        rows.append([*row, f"{one.p_value:.2g}", one.verdict])
    return Table(
        "What the texts must pass and a green list must fail", [*columns, "p, nothing changes", "verdict"], rows, note
    )


def with_interval(found: Comparison) -> str:
    interval = found.tost_interval
    return f"{found.difference:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"


def shown(one: JudgedTexts, measure: str) -> str:
    margin = one.plan.measures[measure].margin
    return f"within {margin:g}" if one.same(measure) else f"not shown within {margin:g}"


def text_power_table(judged: Sequence[JudgedTexts], plan: TextPlan, planned: int) -> Table:
    """How well so many texts can show what they are to show: as planned, and with the spread that they had."""
    rows: list[list[Cell]] = []
    for one in judged:
        for measure, stated in plan.measures.items():
            found = one.found[measure]
            rows.append(
                [
                    one.name,
                    measure,
                    f"{stated.margin:g}",
                    f"{stated.power(planned, planned):.2f}",
                    f"{found.standard_error:.4f}",
                    f"{found.power(stated.margin):.2f}",
                ]
            )
    columns = ["configuration", "measure", "margin", "planned chance", "standard error", "chance"]
    note = (
        "The chance of showing equivalence if there is no difference at all, by two one-sided tests at 5 %: as the "
        "plan had it from its pilot, and from the standard error of these texts."
    )
    return Table("Power of the tests of texts", columns, rows, note)
