"""The two pictures of a report on many sessions: how many fell where, and how far each is above its bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from agentmark.report.charts import NARROW, WIDE, Frame, ticks
from agentmark.report.numbers import count_text
from agentmark.text import JOINERS, spelled_out

# A row of the first picture: its words stand above its bar, so that they have the whole width on a phone.
ROW, BAR_TOP, BAR_HEIGHT = 50, 24, 16
# More bars than these are thinned out; one alone is no wall; and one far above the rest is cut off so that they show.
MOST_BARS, WIDEST_BAR, CUT_AT = 300, 36.0, 8.0
# About so many units of a drawing a letter takes; those of wide scripts take two.
LETTER = 8

ROLL_CHART_STYLE = """
.bar { fill:currentColor; } .bar.together { fill-opacity:.3; stroke:currentColor; stroke-width:2; }
.ground { fill:var(--rule); fill-opacity:.55; } .count { fill:var(--soft); font-size:13px; }
.needed { fill:none; stroke:var(--ink); stroke-width:2; stroke-dasharray:6 4; }
.key.block::before { border-top-width:.8em; width:.9em; } .key.needs::before { border-top:2px dashed var(--ink); }
.key.block.together::before { box-sizing:border-box; border:2px solid; height:.8em; opacity:.6; }
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
    """A bar for each row, all on one scale: the whole width is `total`. Drawn twice: for a screen, and for a phone."""
    return "".join(_count_rows(rows, max(total, 1), title, name, frame) for name, frame in _FRAMES)


_FRAMES = (("on-screen", WIDE), ("on-phone", NARROW))


def _count_rows(rows: Sequence[CountRow], total: int, title: str, name: str, frame: Frame) -> str:
    width = frame.width
    height = ROW * len(rows) - (ROW - BAR_TOP - BAR_HEIGHT) + 2
    parts = [f"<title>{escape(title)}</title>"]
    for i, row in enumerate(rows):
        top = ROW * i
        room = (width - LETTER * len(row.said)) // LETTER - 2
        parts.append(f'<text class="label" x="0" y="{top + 17}">{_label(row.label, room)}</text>')
        parts.append(f'<text class="count" x="{width}" y="{top + 17}" text-anchor="end">{escape(row.said)}</text>')
        parts.append(_box("ground", 0, width, top + BAR_TOP))
        # What is there is seen, however few of many it is.
        first = max(width * row.first / total, 3.0) if row.first else 0.0
        if row.second:
            parts.append(_box(f"bar together {row.css_class}", first, width * row.second / total, top + BAR_TOP))
        if row.first:
            parts.append(_box(f"bar {row.css_class}", 0, first, top + BAR_TOP))
    return f'<svg class="{name}" viewBox="-1 0 {width + 2} {height}" role="img">{"".join(parts)}</svg>'


def _box(css_class: str, x: float, width: float, y: float) -> str:
    return f'<rect class="{css_class}" x="{x:.1f}" y="{y}" width="{max(width, 3.0):.1f}" height="{BAR_HEIGHT}" rx="2"/>'


def _label(name: str, room: int) -> str:
    """As much of a name as there is room for; of wide scripts half as much."""
    text = spelled_out(name, keep=JOINERS)
    room = max(room if text.isascii() else room // 2, 6)
    return escape(text if len(text) <= room else f"{text[: room - room // 3 - 1]}…{text[len(text) - room // 3 :]}")


def evidence_bars(points: Sequence[tuple[float, float]], *, noun: str) -> str:
    """The evidence of each against what it needed, both in bits, the strongest first; the legend says the rest.

    Drawn twice, as `count_rows` is. Where the line is, is said in the legend: a label beside it would hide the bars.
    """
    ordered = sorted(points, key=lambda point: (point[1] - point[0], -point[0]))
    shown = _thinned(ordered)
    needs = [level for _, level in ordered]
    top = min(max([bits for bits, _ in shown]), CUT_AT * max([*needs, 1.0]))
    y_max = 1.06 * max([top, *needs, 1.0])
    evidence = _range([bits for bits, _ in ordered])
    title = f"Evidence of {count_text(len(ordered), noun)}: {evidence} bits, where {_range(needs)} were needed"
    drawings = [
        f'<svg class="{name}" viewBox="0 0 {frame.width} {frame.height}" role="img"><title>{escape(title)}</title>'
        f"{_bars(shown, frame, y_max=y_max, x_label=f'{noun}s, strongest first')}</svg>"
        for name, frame in _FRAMES
    ]
    legend = [
        '<span class="key block r">bits of evidence</span>',
        f'<span class="key needs">what it took to be named: {_range(needs)} bits</span>',
    ]
    cut = sum(height > y_max for height, _ in ordered)
    if cut:
        legend.append(f"<span>{count_text(cut, noun)} higher than the picture</span>")
    if len(shown) < len(ordered):
        legend.append(f"<span>{len(shown):,} of {len(ordered):,} drawn, evenly taken, the weakest among them</span>")
    return f'{"".join(drawings)}<p class="legend">{"".join(legend)}</p>'


def _bars(shown: Sequence[tuple[float, float]], frame: Frame, *, y_max: float, x_label: str) -> str:
    inner_width, inner_height = frame.width - frame.left - frame.right, frame.height - frame.top - frame.bottom
    slot = min(inner_width / len(shown), 2 * WIDEST_BAR)

    def at(bits: float) -> float:
        return frame.top + inner_height * (1 - min(max(bits, 0.0), y_max) / y_max)

    parts = []
    right = frame.width - frame.right
    for tick in ticks(y_max):
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{at(tick):.1f}" y2="{at(tick):.1f}"/>')
        place = f'x="{frame.left - 8}" y="{at(tick) + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="tick" {place}>{tick:g}</text>')
    line = []
    width = min(0.8 * slot, WIDEST_BAR)
    for i, (bits, level) in enumerate(shown):
        x = frame.left + slot * i
        size = f'width="{width:.1f}" height="{at(0) - at(bits):.1f}"'
        parts.append(f'<rect class="bar r" x="{x + (slot - width) / 2:.1f}" y="{at(bits):.1f}" {size}/>')
        line += [f"{x:.1f},{at(level):.1f}", f"{x + slot:.1f},{at(level):.1f}"]
    parts.append(f'<polyline class="needed" points="{" ".join(line)}"/>')
    place = f'x="{frame.left + inner_width / 2}" y="{frame.height - 8}" text-anchor="middle"'
    parts.append(f'<text class="axis" {place}>{escape(x_label)}</text>')
    return "".join(parts)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_BARS of them, evenly taken; the last, the weakest, is always there."""
    stride = -(-len(points) // MOST_BARS) or 1
    return [point for i, point in enumerate(points) if (len(points) - 1 - i) % stride == 0]


def _range(numbers: Sequence[float]) -> str:
    low, high = f"{min(numbers):,.1f}", f"{max(numbers):,.1f}"
    return low if low == high else f"{low} to {high}"
