"""Small SVG charts for self-contained pages: no script, no network, colours from the page's own variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 40
LEGEND_ROW, LEGEND_COLUMNS = 20, 4


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a drawing, and what its axes take of it."""

    width: int
    height: int
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP
    bottom: int = BOTTOM
    # About so many numbers stand at the axis below.
    ticks: int = 6


WIDE = Frame(WIDTH, HEIGHT)
# For a phone: drawn for its width, so that the text is not shrunk with the picture.
NARROW = Frame(300, 240, left=46, right=10, ticks=4)

# Colours and lines of these charts, light and dark; a phone gets the narrow drawing, paper the wide one.
CHART_STYLE = """
:root { --ink:#1c2430; --soft:#5c6675; --paper:#fff; --panel:#f5f7fa; --rule:#dde3ea;
        --f:#2563a8; --r:#1a7a50; --base:#7a8594; --bad:#b3413a; --warn:#946200; --alt:#7a4fb0;
        color-scheme:light dark; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6eaf0; --soft:#9aa5b4; --paper:#12161c; --panel:#1b2129;
        --rule:#303844; --f:#6aa9ee; --r:#58c795; --base:#98a2b0; --bad:#ea8078; --warn:#e0b050; --alt:#b794ea; } }
svg { width:100%; height:auto; display:block; }
svg text { font-family:system-ui, sans-serif; }
.grid { stroke:var(--rule); } .zero { stroke:var(--soft); } .tick { fill:var(--soft); font-size:12px; }
.axis { fill:var(--soft); font-size:13px; } .label { fill:var(--ink); font-size:13px; }
.threshold { stroke:var(--ink); stroke-dasharray:6 5; } .level { color:var(--ink); }
.line { fill:none; stroke:currentColor; stroke-width:2.4; } .line.dash { stroke-dasharray:7 4; }
.cross { font-size:18px; text-anchor:middle; fill:currentColor; }
.f, .c0 { color:var(--f); } .r, .c1 { color:var(--r); } .bad, .c2 { color:var(--bad); } .c3 { color:var(--alt); }
.c4 { color:var(--warn); } .c5 { color:var(--base); }
.legend { display:flex; gap:.2rem 1.2rem; flex-wrap:wrap; font-size:.88rem; margin:.5rem 0 0; }
.key::before { content:""; display:inline-block; width:1.4em; border-top:3px solid; margin-right:.5em;
               vertical-align:middle; } .key.dash::before { border-top-style:dashed; }
svg.on-phone { display:none; }
@media screen and (max-width: 560px) { svg.on-phone { display:block; } svg.on-screen { display:none; } }
"""


@dataclass(frozen=True, slots=True)
class Series:
    """One line. `ends_with_cross` marks the place where it stops being true."""

    label: str
    points: Sequence[tuple[float, float]]
    css_class: str
    ends_with_cross: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A share between 0 and 1 with its interval."""

    label: str
    value: float
    low: float
    high: float
    css_class: str


def line_chart(
    series: Sequence[Series], *, x_label: str, y_label: str, threshold: tuple[float, str], x_max: float = 0
) -> str:
    """Lines over a dashed threshold, with a legend below them: drawn twice, for a screen or paper and for a phone."""
    legend = "".join(f'<span class="key {line.css_class}">{escape(line.label)}</span>' for line in series)
    legend += f'<span class="key level dash">{escape(threshold[1])}</span>'
    drawings = []
    for name, frame in (("on-screen", WIDE), ("on-phone", NARROW)):
        parts = "".join(_line_parts(series, frame, x_label=x_label, y_label=y_label, level=threshold[0], x_max=x_max))
        box = f'viewBox="0 0 {frame.width} {frame.height}"'
        label = f'role="img" aria-label="{escape(y_label)} by {escape(x_label)}"'
        drawings.append(f'<svg class="{name}" {box} {label}>{parts}</svg>')
    return f'{"".join(drawings)}<p class="legend">{legend}</p>'


def line_chart_file(
    series: Sequence[Series], *, x_label: str, y_label: str, threshold: tuple[float, str], x_max: float = 0
) -> str:
    """The same as an SVG file that stands alone, with its colours and its legend inside."""
    parts = _line_parts(series, WIDE, x_label=x_label, y_label=y_label, level=threshold[0], x_max=x_max)
    top = WIDE.height + 20
    keys = [*[(f"line {line.css_class}", line.label) for line in series], ("line level dash", threshold[1])]
    for i, (css_class, label) in enumerate(keys):
        row, column = divmod(i, LEGEND_COLUMNS)
        x, y = WIDE.left + column * (WIDE.width - WIDE.left) // LEGEND_COLUMNS, top + LEGEND_ROW * row
        parts.append(f'<line class="{css_class}" x1="{x}" x2="{x + 30}" y1="{y - 4}" y2="{y - 4}"/>')
        parts.append(f'<text class="label" x="{x + 38}" y="{y}">{escape(label)}</text>')
    height = top + LEGEND_ROW * -(-len(keys) // LEGEND_COLUMNS)
    size = f'viewBox="0 0 {WIDE.width} {height}" width="{WIDE.width}" height="{height}"'
    style = f"<style>{CHART_STYLE}svg {{ background:var(--paper); }}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{"".join(parts)}</svg>\n'


def _line_parts(
    series: Sequence[Series], frame: Frame, *, x_label: str, y_label: str, level: float, x_max: float
) -> list[str]:
    x_max = max([x_max, *[x for line in series for x, _ in line.points]]) or 1.0
    heights = [y for line in series for _, y in line.points]
    y_max = 1.08 * max([level, *heights]) or 1.0
    y_min = 1.08 * min([0.0, *heights])
    inner_width = frame.width - frame.left - frame.right
    inner_height = frame.height - frame.top - frame.bottom

    def at(x: float, y: float) -> tuple[float, float]:
        return frame.left + inner_width * x / x_max, frame.top + inner_height * (y_max - y) / (y_max - y_min)

    def across(y: float, css_class: str) -> str:
        return (
            f'<line class="{css_class}" x1="{frame.left}" x2="{frame.width - frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )

    parts = []
    for y in ticks(y_max, low=y_min):
        _, py = at(0, y)
        parts.append(across(py, "zero" if y == 0 and y_min < 0 else "grid"))
        parts.append(f'<text class="tick" x="{frame.left - 8}" y="{py + 4:.1f}" text-anchor="end">{y:g}</text>')
    below = frame.height - frame.bottom + 18
    for x in ticks(x_max, frame.ticks):
        px, _ = at(x, 0)
        parts.append(f'<text class="tick" x="{px:.1f}" y="{below}" text-anchor="middle">{x:g}</text>')
    # The threshold is named in the legend: a label beside it would stand where the lines cross it.
    parts.append(across(at(0, level)[1], "threshold"))
    for line in series:
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in [at(x, y) for x, y in line.points])
        parts.append(f'<polyline class="line {line.css_class}" points="{path}"/>')
        if line.ends_with_cross:
            px, py = at(*line.points[-1])
            parts.append(f'<text class="cross {line.css_class}" x="{px:.1f}" y="{py + 6:.1f}">✕</text>')
    middle = frame.left + inner_width / 2
    below = frame.height - 4
    parts.append(f'<text class="axis" x="{middle}" y="{below}" text-anchor="middle">{escape(x_label)}</text>')
    middle = frame.top + inner_height / 2
    turned = f'transform="rotate(-90 14 {middle})" x="14" y="{middle}"'
    parts.append(f'<text class="axis up" {turned} text-anchor="middle">{escape(y_label)}</text>')
    return parts


def bar_chart(bars: Sequence[Bar]) -> str:
    """Horizontal bars from 0 to 100 % with their intervals: drawn twice, as lines are."""
    return "".join([_bars(bars, "on-screen", WIDE.width, 190), _bars(bars, "on-phone", NARROW.width, 0)])


def _bars(bars: Sequence[Bar], name: str, width: int, left: int) -> str:
    """With no room on the left, a label stands above its bar."""
    above = 0 if left else 20
    row = 34 + above
    height = row * len(bars) + 26
    inner = width - left - 70
    parts = [f'<svg class="{name}" viewBox="0 0 {width} {height}" role="img" aria-label="success rates">']
    for percent in range(0, 101, 25):
        x = left + inner * percent / 100
        anchor = "middle" if x else "start"
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{percent} %</text>')
    for i, bar in enumerate(bars):
        y = row * i + 6 + above
        low, high = left + inner * bar.low, left + inner * bar.high
        place = f'x="{left - 10}" y="{y + 15}" text-anchor="end"' if left else f'x="0" y="{y - 6}"'
        parts.append(f'<text class="label" {place}>{escape(bar.label)}</text>')
        box = f'x="{left}" y="{y}" width="{inner * bar.value:.1f}" height="20" rx="3"'
        parts.append(f'<rect class="bar {bar.css_class}" {box}/>')
        middle = y + 10
        parts.append(f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>')
        parts.append(f'<text class="label" x="{high + 8:.1f}" y="{y + 15}">{100 * bar.value:.1f} %</text>')
    parts.append("</svg>")
    return "".join(parts)


def ticks(top: float, count: int = 6, *, low: float = 0.0) -> list[float]:
    """Round numbers from `low` (at most 0) to `top`, about `count` of them."""
    raw = (top - low) / count
    magnitude = 10 ** floor(log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw)
    return [i * step for i in range(ceil(low / step), ceil(top / step)) if i * step <= top]
