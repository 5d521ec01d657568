"""The two pictures of a report on many sessions: how many fell where, and how far each is above its bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf

from agentmark.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, ticks
from agentmark.report.numbers import count_text
from agentmark.text import JOINERS, spelled_out

# A row of the first picture: its words stand above its bar, so that they have the whole width on a phone.
ROW, BAR_TOP, BAR_HEIGHT, LABEL_LEN = 58, 27, 18, 24
# More bars than these are thinned out; one alone is no wall; and one far above the rest is cut off so that they show.
MOST_BARS, WIDEST_BAR, CUT_AT = 300, 36.0, 8.0

ROLL_CHART_STYLE = """
.bar { fill:currentColor; } .bar.together { fill-opacity:.3; stroke:currentColor; stroke-width:2; }
.ground { fill:var(--rule); fill-opacity:.55; }
.count { fill:var(--soft); font-size:13px; }
.needed { fill:none; stroke:var(--ink); stroke-width:2; stroke-dasharray:6 4; }
.key.block::before { border-top-width:.8em; width:.9em; } .key.needs::before { border-top:2px dashed var(--ink); }
.key.block.together::before { box-sizing:border-box; border:2px solid; height:.8em; opacity:.6; }
@media (max-width: 560px) { .rows .label, .rows .count { font-size:24px; } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow:
    """So many of all. `second` of them are drawn apart, in outline."""

    label: str
    said: str
    first: int
    second: int
    css_class: str


def count_rows(rows: Sequence[CountRow], total: int, *, title: str) -> str:
    """A bar for each row, all on one scale: the whole width is `total`."""
    height = ROW * len(rows) - (ROW - BAR_TOP - BAR_HEIGHT) + 4
    parts = [f"<title>{escape(title)}</title>"]
    for i, row in enumerate(rows):
        top = ROW * i
        parts.append(f'<text class="label" x="0" y="{top + 19}">{_label(row.label)}</text>')
        parts.append(f'<text class="count" x="{WIDTH}" y="{top + 19}" text-anchor="end">{escape(row.said)}</text>')
        parts.append(_box("ground", 0, WIDTH, top + BAR_TOP))
        first = WIDTH * row.first / max(total, 1)
        # What is there is seen, however few of many it is.
        first = max(first, 3.0) if row.first else 0.0
        if row.second:
            parts.append(
                _box(f"bar together {row.css_class}", first, WIDTH * row.second / max(total, 1), top + BAR_TOP)
            )
        if row.first:
            parts.append(_box(f"bar {row.css_class}", 0, first, top + BAR_TOP))
    return f'<svg class="rows" viewBox="-2 0 {WIDTH + 4} {height}" role="img">{"".join(parts)}</svg>'


def _box(css_class: str, x: float, width: float, y: float) -> str:
    return f'<rect class="{css_class}" x="{x:.1f}" y="{y}" width="{max(width, 3.0):.1f}" height="{BAR_HEIGHT}" rx="2"/>'


def _label(name: str) -> str:
    text = name if len(name) <= LABEL_LEN else f"{name[: LABEL_LEN - 9]}…{name[-8:]}"
    return escape(spelled_out(text, keep=JOINERS))


def evidence_bars(points: Sequence[tuple[float, float]], *, noun: str) -> str:
    """The evidence of each against what it needed, both in bits, the strongest first; the legend says the rest."""
    ordered = sorted(points, key=lambda point: (point[1] - point[0], -point[0]))
    shown = _thinned(ordered)
    needs = [level for _, level in ordered]
    top = min(max([bits for bits, _ in shown], default=1.0), CUT_AT * max([*needs, 1.0]))
    y_max = 1.06 * max([top, *needs, 1.0])
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    slot = min(inner_width / max(len(shown), 1), 2 * WIDEST_BAR)

    def at(bits: float) -> float:
        return TOP + inner_height * (1 - min(max(bits, 0.0), y_max) / y_max)

    bits = [point[0] for point in ordered]
    title = f"Evidence of {count_text(len(ordered), noun)}: {_range(bits)} bits, where {_range(needs)} were needed"
    parts = [f"<title>{escape(title)}</title>"]
    for tick in ticks(y_max):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at(tick):.1f}" y2="{at(tick):.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    line = []
    for i, (height, level) in enumerate(shown):
        x, width = LEFT + slot * i, min(0.8 * slot, WIDEST_BAR)
        y = at(height)
        size = f'width="{width:.1f}" height="{at(0) - y:.1f}"'
        parts.append(f'<rect class="bar r" x="{x + (slot - width) / 2:.1f}" y="{y:.1f}" {size}/>')
        line += [f"{x:.1f},{at(level):.1f}", f"{x + slot:.1f},{at(level):.1f}"]
    parts.append(f'<polyline class="needed" points="{" ".join(line)}"/>')
    middle = LEFT + inner_width / 2
    said = f'{noun}s, strongest first<tspan class="wide"> (bits of evidence upwards)</tspan>'
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{said}</text>')
    legend = [
        '<span class="key block r">evidence</span>',
        f'<span class="key needs">what it took to be named: {_range(needs)} bits</span>',
    ]
    cut = sum(height > y_max for height, _ in shown)
    if cut:
        legend.append(f"<span>{count_text(cut, 'bar')} cut off at the top</span>")
    if len(shown) < len(ordered):
        legend.append(f"<span>{len(shown):,} of {len(ordered):,} drawn, evenly taken, the weakest among them</span>")
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    return f'<svg {box}>{"".join(parts)}</svg><p class="legend">{"".join(legend)}</p>'


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_BARS of them, evenly taken; the last, the weakest, is always there."""
    stride = -(-len(points) // MOST_BARS) or 1
    return [point for i, point in enumerate(points) if (len(points) - 1 - i) % stride == 0]


def _range(numbers: Sequence[float]) -> str:
    low, high = min(numbers, default=-inf), max(numbers, default=inf)
    return f"{low:,.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:,.1f} to {high:,.1f}"
