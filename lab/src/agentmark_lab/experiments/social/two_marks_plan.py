"""What is played and written, by the plan; or for a quick look a little of it."""

import tomllib
from dataclasses import dataclass, replace
from typing import Any, Self

from agentmark_lab.experiments.social.two_marks import BOTH, CONFIGURATIONS, NEITHER, Configuration
from agentmark_lab.kit.plan import FOLDER, Level, Measure, Plan, measure_of

PLAN = "synthid"
QUICK_TRIALS, QUICK_TASKS, QUICK_TOKENS, QUICK_STRANGERS = 1, 2, 40, 3
QUICK_CONFIGURATIONS = (NEITHER, BOTH)
# What is measured of a text.
ABOVE, LIKELY, DISTINCT = "above expectation", "log-probability", "distinct bigrams"
MEASURES = (ABOVE, LIKELY, DISTINCT)


@dataclass(frozen=True, slots=True)
class TextPlan:
    """What the plan says of texts: how many of which length, when one counts as detected, and within which margins two
    ways of writing are the same."""

    tasks_a_group: int
    tokens: int
    level: float
    wrong_keys: int
    strangers: int
    least_detected: float
    measures: dict[str, Measure]
    signal: Measure

    @classmethod
    def of(cls, name: str) -> Self:
        """From the plan of that name, whose digest covers this part as well."""
        stated: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["texts"]
        return cls(
            tasks_a_group=int(stated["tasks_a_group"]),
            tokens=int(stated["tokens"]),
            level=float(stated["level"]),
            wrong_keys=int(stated["wrong_keys"]),
            strangers=int(stated["strangers"]),
            least_detected=float(stated["least_detected"]),
            measures={measure: measure_of(stated[measure]) for measure in MEASURES},
            signal=measure_of(stated["mean g-value"]),
        )


@dataclass(frozen=True, slots=True)
class Setting:
    """What is played: the plan, or for a quick look a little of it."""

    plan: Plan
    texts: TextPlan
    configurations: tuple[Configuration, ...]
    quick: bool

    @property
    def level(self) -> Level:
        return self.plan.levels[0]


def setting(*, quick: bool) -> Setting:
    plan, texts = Plan.of(PLAN), TextPlan.of(PLAN)
    if not quick:
        return Setting(plan, texts, CONFIGURATIONS, quick)
    first = next(iter(plan.sets))
    level = replace(plan.levels[0], trials=QUICK_TRIALS, read=QUICK_TRIALS)
    texts = replace(texts, tasks_a_group=QUICK_TASKS, tokens=QUICK_TOKENS, strangers=QUICK_STRANGERS)
    return Setting(replace(plan, sets={first: plan.sets[first]}, levels=(level,)), texts, QUICK_CONFIGURATIONS, quick)
