"""Pictures of several results at once, drawn from their tables."""

import re
from collections.abc import Sequence

from agentmark.lab.agent_loop import RED_GREEN, F, R
from agentmark.lab.experiment import Curve, Figure, Result
from agentmark.lab.utility import AGAINST

SHOWN = (F, R, RED_GREEN)
_WITH_INTERVAL = re.compile(r"([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\)")


def overviews(results: Sequence[Result]) -> list[Figure]:
    """What the mark costs an agent, in every environment that has a result; none if there is no such result."""
    places: list[str] = []
    points: dict[str, list[tuple[float, float, float, float]]] = {policy: [] for policy in SHOWN}
    for result in results:
        for table in result.tables:
            if AGAINST not in table.columns or "epsilon" not in table.columns:
                continue
            for row in table.rows:
                cells = dict(zip(table.columns, row, strict=True))
                found = _WITH_INTERVAL.fullmatch(str(cells[AGAINST]))
                if found is None or cells["policy"] not in points:
                    continue
                place = f"{_short(table.title)}\nε {cells['epsilon']}"
                if place not in places:
                    places.append(place)
                difference, low, high = map(float, found.groups())
                points[str(cells["policy"])].append((places.index(place), difference, low, high))
    curves = [Curve(policy, *map(list, zip(*values, strict=True))) for policy, values in points.items() if values]
    if not curves:
        return []
    title = "What a mark costs the agent: success against the unmarked agent (softened expert)"
    return [Figure("utility", title, "", "points of success, 95 % interval", curves, x_names=places)]


def _short(title: str) -> str:
    """ALFWorld ID, by policy: ALFWorld ID, one word below the other."""
    return "\n".join(re.split(r",| \(", title)[0].split()[:2])
