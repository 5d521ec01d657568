"""Pictures drawn from the tables of results, where an experiment brings none of its own, and of several at once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark_lab.kit.agent_loop import RED_GREEN, F, R
from agentmark_lab.kit.equivalence import AGAINST
from agentmark_lab.kit.experiment import Cell, Curve, Figure, Result, Table

SHOWN = (F, R, RED_GREEN)
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_CELL = re.compile(rf"({_NUMBER})(?:\s?%)?(?: \(({_NUMBER}) to ({_NUMBER})\))?(?: ± .*)?")


@dataclass(frozen=True, slots=True)
class Picture:
    """Which columns of which table: `names` stand below the axis, `series` (a column) or `values` tell curves apart.
    Where several rows have the same name and series, the first is shown.

    With `along`, a column of numbers, curves run along these, and `names` tell them apart too.
    """

    table: int
    names: tuple[str, ...]
    values: tuple[str, ...]
    series: str = ""
    y_log: bool = False
    along: str = ""
    # Where the lists come from, if not from a model or a stated distribution.
    source: str = ""


_SUCCESS = Picture(0, ("epsilon",), ("success %",), "policy", source="softened expert")
PICTURES = {
    "marginals": Picture(0, ("distribution", "n"), ("p-value",), "scheme"),
    "false_positives": Picture(0, ("overhead k",), ("closed form", "unmarked log", "wrong key"), y_log=True),
    "capacity": Picture(0, ("alpha",), ("F, measured", "R, measured"), along="n"),
    "capacity_entropy": Picture(0, ("environment", "task"), ("F, expected", "R, expected", "entropy")),
    "speed": Picture(0, ("",), ("n = 5", "n = 20", "n = 100", "n = 1000"), y_log=True),
    "validity": Picture(0, ("view", "how the log was made", "looks"), ("accepted at 0.01",), "scheme", y_log=True),
    "evidence_power": Picture(0, ("world", "what was logged"), ("L = 8",), "scheme", y_log=True),
    "single_episode": Picture(0, ("steps",), ("uniquely recovered",), "scheme"),
    "rewriting": Picture(1, ("L", "steps"), ("most likely is right",), "scheme"),
    "rewording": Picture(1, ("scheme", "steps"), ("accepted at 1e-6",), "what was changed"),
    "splices": Picture(0, ("log", "L"), ("right within 5 steps",), "scheme"),
    "weaker_views": Picture(
        0, ("world", "what the verifier has"), ("steps for 95 % power, L = 8",), "scheme", y_log=True
    ),
    "language_model": Picture(0, ("policy",), ("success, %",), "model"),
    "model_utility": Picture(0, ("policy",), ("success, %",), "place"),
    "toolbench": _SUCCESS,
    "bfcl": _SUCCESS,
    "agentdojo": _SUCCESS,
    "scienceworld": _SUCCESS,
    "oasis": Picture(0, ("platform",), ("only one of 256 explains it",), "policy", source="persona policy"),
    "synthid": Picture(0, ("configuration",), ("mean g-value",)),
    "elicitation": Picture(1, ("elicitor",), ("likeliest is relevant",), "model"),
    "calibration": Picture(0, ("elicitor",), ("above the floor",), "model"),
}


def figures_of(result: Result) -> list[Figure]:
    """Its own, else the one that its table gives."""
    # A model that plays elsewhere has a result of its own: language_model-bfcl.
    picture = PICTURES.get(result.name.partition("-")[0])
    if result.figures or picture is None or len(result.tables) <= picture.table:
        return result.figures
    table = result.tables[picture.table]
    # A result of another version may have other columns.
    if not {*picture.names, *picture.values, *([picture.series] if picture.series else [])} <= set(table.columns):
        return []
    figure = _along(result.name, table, picture) if picture.along else _drawn(result.name, table, picture)
    return [figure] if figure.curves else []


def _drawn(name: str, table: Table, picture: Picture) -> Figure:
    places: dict[str, int] = {}
    points: dict[str, dict[int, tuple[float, float, float]]] = {}
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        place = "\n".join([_short(str(cells[column])) for column in picture.names])
        for value in picture.values:
            point = _point(cells[value])
            if point is not None:
                series = str(cells[picture.series]) if picture.series else value
                x = places.setdefault(place, len(places))
                points.setdefault(series, {}).setdefault(x, point)
    label = picture.values[0] if picture.series else ""
    title = f"{table.title} ({picture.source})" if picture.source else table.title
    below = ", ".join([column for column in picture.names if column])
    return Figure(name, title, below, label, _curves(points), picture.y_log, x_names=list(places))


def _along(name: str, table: Table, picture: Picture) -> Figure:
    points: dict[str, dict[float, tuple[float, float, float]]] = {}
    for value in picture.values:
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            at, point = _point(cells[picture.along]), _point(cells[value])
            if at is not None and point is not None:
                own = ", ".join([f"{column} {cells[column]}" for column in picture.names])
                points.setdefault(f"{value.partition(',')[0]}, {own}", {})[at[0]] = point
    return Figure(name, table.title, picture.along, "%", _curves(points), picture.y_log, x_log=True)


def _curves(points: Mapping[str, Mapping[Any, tuple[float, float, float]]]) -> list[Curve]:
    return [
        Curve(
            series,
            [float(x) for x in found],
            *[[point[i] for point in found.values()] for i in range(3)],
        )
        for series, found in points.items()
    ]


def _point(cell: Cell) -> tuple[float, float, float] | None:
    """Value and interval of a cell like 0.97 (0.93 to 0.98); without an interval, the value three times."""
    found = _CELL.match(str(cell))
    if found is None:
        return None
    value, low, high = [float(text.replace(",", "")) if text else None for text in found.groups()]
    assert value is not None
    return value, value if low is None else low, value if high is None else high


def overviews(results: Sequence[Result]) -> list[Figure]:
    """What the mark costs an agent, in every environment that has a result; none if there is no such result."""
    places: dict[str, int] = {}
    points: dict[str, dict[int, tuple[float, float, float]]] = {policy: {} for policy in SHOWN}
    for table in [table for result in results for table in result.tables if AGAINST in table.columns]:
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            place, point = _agent(table, cells), _point(cells[AGAINST])
            if place and point is not None and cells["policy"] in points:
                points[str(cells["policy"])][places.setdefault(place, len(places))] = point
    if not places:
        return []
    curves = _curves({policy: found for policy, found in points.items() if found})
    title = "What a mark costs the agent: success against the unmarked one (ε: softened expert, else a language model)"
    return [Figure("utility", title, "", "points of success, 95 % interval", curves, x_names=list(places))]


# How far the first panel of the glance goes: by then both schemes have named everybody.
_GLANCE_STEPS = 100


def glance(results: Sequence[Result]) -> list[Figure]:
    """Two pictures for whoever reads nothing else: is the identity found, and does the agent still succeed?

    The first is that of the experiment on identification, without the weaker views. The second is the overview of
    utility, each environment at its largest epsilon. Nothing if one of them has no result.
    """
    found = [figure for result in results if result.name == "identification" for figure in result.figures]
    cost = overviews(results)
    if not found or not cost:
        return []
    named = [
        Curve(curve.label, curve.x[: _GLANCE_STEPS + 1], [100 * y for y in curve.y[: _GLANCE_STEPS + 1]])
        for curve in found[0].curves
        if curve.label in SHOWN
    ]
    return [
        Figure("named", "Is the identity found?", "steps in the log", "% of logs that name it at 1e-6", named),
        _at_largest(cost[0]),
    ]


def _at_largest(overview: Figure) -> Figure:
    """The overview with one place for each environment: of several epsilons the last, which is the largest."""
    names = overview.x_names or []
    environments = {name.partition("\nε")[0]: x for x, name in enumerate(names)}
    kept = {x: place for place, x in enumerate(environments.values())}
    curves = []
    for curve in overview.curves:
        points = zip(curve.x, curve.y, curve.low or curve.y, curve.high or curve.y, strict=True)
        shown = [(float(kept[int(x)]), *rest) for x, *rest in points if int(x) in kept]
        if shown:
            curves.append(Curve(curve.label, *[list(column) for column in zip(*shown, strict=True)]))
    title = "Does the agent still succeed as often as without a mark?"
    return Figure("success", title, "", "points of success, 95 % interval", curves, x_names=[names[x] for x in kept])


def _agent(table: Table, cells: Mapping[str, Cell]) -> str:
    """Who plays, and where; nothing where too few episodes were played to compare."""
    if "epsilon" in cells:
        return f"{_place(table.title)}\nε {cells['epsilon']}"
    if "TOST interval" in cells:
        model = re.split(r"(?i)-instruct", str(cells["model"]))[0].split("-", 1)
        return "\n".join([_place(str(cells["place"])), *model])
    return ""


def _place(title: str) -> str:
    """ALFWorld ID, by policy: ALFWorld ID, one word below the other."""
    return "\n".join(re.split(r",| \(", title)[0].split()[:2])


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"
