"""What a judge model says of marked and of control agents, on the paper's five dimensions (Fig. 3).

A judge that sees nothing finds no difference either. So it is also shown what it ought to mark down: a control agent's
steps under somebody else's persona, and its first step over and over.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from agentmark_lab.envs.oasis import Trajectory
from agentmark_lab.kit.experiment import Cell, Claim, Table
from agentmark_lab.kit.files import made_once
from agentmark_lab.kit.model_judge import DIMENSIONS, HIGHEST, LOWEST, SCORING, Judge, open_judge
from agentmark_lab.kit.options import JudgeChoice, Progress
from agentmark_lab.kit.stats import student_interval

MARKED, CONTROL = "marked", "control"
MISCAST, STUCK = "under another's persona", "its first step over and over"
# Which dimension a judge that sees anything marks down most.
TELLING = {MISCAST: "character stability", STUCK: "language diversity"}
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Shown:
    """A trajectory that is put before the judge, in a group that the judge is not told. The scores of a pair, the same
    agent in the same run, are compared."""

    label: str
    group: str
    pair: str
    profile: str
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class Scored:
    """What the judge said of it; None where that was of no use."""

    shown: Shown
    scores: dict[str, float] | None


def spoiled(shown: Shown, other: Shown) -> list[Shown]:
    """The same trajectory, spoiled in both ways: as if the other had done this, which is compared with what that one
    did, for a judge scores some personas lower whatever they do; and without an end of its first step."""
    acts = shown.trajectory.acts
    stuck = replace(shown.trajectory, acts=acts[:1] * len(acts))
    return [
        replace(shown, group=MISCAST, profile=other.profile, pair=other.pair),
        replace(shown, group=STUCK, trajectory=stuck),
    ]


def scored(shown: Sequence[Shown], choice: JudgeChoice, work: Path, progress: Progress) -> list[Scored]:
    """One after the other, those of one persona together, so that a server need not read it anew; what the judge has
    said is kept by what it was asked."""
    judge = open_judge(choice)
    assert judge is not None
    folder = work / "judge" / choice.name.replace("/", "-")
    found: dict[int, Scored] = {}
    for place in sorted(range(len(shown)), key=lambda place: shown[place].profile):
        found[place] = Scored(shown[place], _kept(judge, shown[place], folder))
        progress(f"judged: {len(found)} of {len(shown)} trajectories")
    return [found[place] for place in range(len(shown))]


def _kept(judge: Judge, shown: Shown, folder: Path) -> dict[str, float] | None:
    asked = transcript(shown.trajectory)
    name = sha256(json.dumps([SCORING, shown.profile, asked]).encode()).hexdigest()[:32]
    scores: dict[str, float] | None = made_once(folder / f"{name}.json", lambda: judge.scores(shown.profile, asked))
    return scores


def transcript(trajectory: Trajectory) -> str:
    lines = []
    for number, act in enumerate(trajectory.acts, start=1):
        arguments = ", ".join([f"{name}={value!r}" for name, value in act.arguments.items()])
        refused = f" (refused: {act.refusal})" if act.refusal else ""
        lines.append(f"{number}. {act.behavior}({arguments}){refused}")
    return "\n".join(lines)


# The report ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """Two groups on one dimension: means, and the mean difference of the pairs in which both were scored."""

    label: str
    dimension: str
    group: str
    mean: float
    base: float
    difference: float
    low: float
    high: float
    pairs: int

    @property
    def row(self) -> list[Cell]:
        span = f"{self.difference:+.2f} ({self.low:+.2f} to {self.high:+.2f})"
        return [self.label, self.group, self.dimension, f"{self.mean:.2f}", f"{self.base:.2f}", span, self.pairs]


def compared(found: Sequence[Scored], groups: Sequence[str], *, confidence: float) -> list[Compared]:
    """Each of these groups with the control agents, on every dimension; nothing where too few pairs were scored."""
    by_place: dict[tuple[str, str], dict[str, Mapping[str, float]]] = {}
    for one in found:
        if one.scores is not None:
            by_place.setdefault((one.shown.label, one.shown.group), {})[one.shown.pair] = one.scores
    made = []
    for label in dict.fromkeys([one.shown.label for one in found]):
        base = by_place.get((label, CONTROL), {})
        for group in groups:
            mine = by_place.get((label, group), {})
            pairs = sorted(mine.keys() & base.keys())
            if len(pairs) < 2:
                continue
            for dimension in DIMENSIONS:
                scores = [(mine[pair][dimension], base[pair][dimension]) for pair in pairs]
                differences = [one - other for one, other in scores]
                interval = student_interval(differences, confidence=confidence)
                made.append(
                    Compared(
                        label=label,
                        dimension=dimension,
                        group=group,
                        mean=fmean([one for one, _ in scores]),
                        base=fmean([other for _, other in scores]),
                        difference=fmean(differences),
                        low=interval.low,
                        high=interval.high,
                        pairs=len(pairs),
                    )
                )
    return made


def quality(
    found: Sequence[Scored], choice: JudgeChoice, note: str, planned: str = ""
) -> tuple[list[Claim], list[Table]]:
    """Marked against control agents; and whether this judge notices anything at all. `planned` says how many were to be
    judged, and why so many."""
    settings = len({one.shown.label for one in found}) * len(DIMENSIONS)
    marked = compared(found, [MARKED], confidence=1 - LEVEL / settings)
    checks = compared(found, [MISCAST, STUCK], confidence=1 - LEVEL)
    useless = sum([one.scores is None for one in found])
    claims = []
    if marked:
        apart = [one for one in marked if one.low > 0 or one.high < 0]
        claims.append(
            Claim(
                f"{choice.name} as judge scores marked and control agents differently on {len(apart)} of {len(marked)} "
                f"counts ({LEVEL:g} over all).",
                not apart,
                aim=True,
            )
        )
    claims += [
        Claim(
            f"{choice.name} as judge notices a control agent {one.group} ({one.label}): {one.dimension} "
            f"{one.difference:+.2f} ({one.low:+.2f} to {one.high:+.2f}).",
            one.high < 0,
            aim=True,
        )
        for one in checks
        if one.dimension == TELLING[one.group]
    ]
    columns = ["setting", "group", "dimension", "its mean", "control's mean", "difference of pairs", "pairs"]
    said = (
        f"{note} Judge: {choice.name}, shown what an agent did and not what it saw, asked for each dimension by itself "
        f"and not told the group; scores from {LOWEST} to {HIGHEST}, each the mean of the digits under the judge's own "
        f"probabilities where its server reports them. {useless} of {len(found)} trajectories got no score that can be "
        "used. "
    )
    tables = [
        Table(
            "The judge's five dimensions (Fig. 3)",
            columns,
            [one.row for one in marked],
            f"{said}Intervals hold together at {100 * (1 - LEVEL):g} %. {planned}",
        ),
        Table(
            "What this judge notices",
            columns,
            [one.row for one in checks],
            f"{said}Control agents' steps, spoiled in two ways: shown under another's persona, against that one's own; "
            "and the first step over and over, against the same as they were. Each interval 95 %. Where a judge does "
            "not mark these down, that it finds marked and control agents alike says nothing.",
        ),
    ]
    return claims, [table for table in tables if table.rows]
