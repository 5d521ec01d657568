"""Small SVG charts for self-contained pages: no script, no network, colours from the page's own variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 40
LEGEND_ROW, LEGEND_COLUMNS = 20, 4

# Colours and lines of these charts, light and dark; text grows where a phone shrinks the drawing.
CHART_STYLE = """
:root { --ink:#1c2430; --soft:#5c6675; --paper:#fff; --panel:#f5f7fa; --rule:#dde3ea;
        --f:#2563a8; --r:#1f8a5b; --base:#7a8594; --bad:#b3413a; --warn:#946200; --alt:#7a4fb0;
        color-scheme:light dark; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6eaf0; --soft:#9aa5b4; --paper:#12161c; --panel:#1b2129;
        --rule:#303844; --f:#6aa9ee; --r:#58c795; --base:#98a2b0; --bad:#ea8078; --warn:#e0b050; --alt:#b794ea; } }
svg { width:100%; height:auto; display:block; }
svg text { font-family:system-ui, sans-serif; }
.grid { stroke:var(--rule); } .zero { stroke:var(--soft); } .tick { fill:var(--soft); font-size:12px; }
.axis { fill:var(--soft); font-size:13px; } .label { fill:var(--ink); font-size:13px; }
.note { fill:var(--soft); font-size:12px; }
.threshold { stroke:var(--soft); stroke-dasharray:6 5; }
.line { fill:none; stroke:currentColor; stroke-width:2.4; } .line.dash { stroke-dasharray:7 4; }
.cross { font-size:18px; text-anchor:middle; fill:currentColor; }
.f, .c0 { color:var(--f); } .r, .c1 { color:var(--r); } .bad, .c2 { color:var(--bad); } .c3 { color:var(--alt); }
.c4 { color:var(--warn); } .c5 { color:var(--base); }
.legend { display:flex; gap:.2rem 1.2rem; flex-wrap:wrap; font-size:.88rem; margin:.5rem 0 0; }
.key::before { content:""; display:inline-block; width:1.4em; border-top:3px solid; margin-right:.5em;
               vertical-align:middle; } .key.dash::before { border-top-style:dashed; }
@media (max-width: 560px) { .tick, .note { font-size:20px; } .axis { font-size:21px; } .axis.up { display:none; } }
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
    """Lines over a dashed threshold, with a legend below them."""
    legend = "".join(f'<span class="key {line.css_class}">{escape(line.label)}</span>' for line in series)
    drawing = "".join(_line_parts(series, x_label, y_label, threshold, x_max))
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} by {escape(x_label)}"'
    return f'<svg {box}>{drawing}</svg><p class="legend">{legend}</p>'


def line_chart_file(
    series: Sequence[Series], *, x_label: str, y_label: str, threshold: tuple[float, str], x_max: float = 0
) -> str:
    """The same as an SVG file that stands alone, with its colours and its legend inside."""
    parts = _line_parts(series, x_label, y_label, threshold, x_max)
    top = HEIGHT + 20
    for i, line in enumerate(series):
        row, column = divmod(i, LEGEND_COLUMNS)
        x, y = LEFT + column * (WIDTH - LEFT) // LEGEND_COLUMNS, top + LEGEND_ROW * row
        parts.append(f'<line class="line {line.css_class}" x1="{x}" x2="{x + 30}" y1="{y - 4}" y2="{y - 4}"/>')
        parts.append(f'<text class="label" x="{x + 38}" y="{y}">{escape(line.label)}</text>')
    height = top + LEGEND_ROW * -(-len(series) // LEGEND_COLUMNS)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    style = f"<style>{CHART_STYLE}svg {{ background:var(--paper); }}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{"".join(parts)}</svg>\n'


def _line_parts(
    series: Sequence[Series], x_label: str, y_label: str, threshold: tuple[float, str], x_max: float
) -> list[str]:
    level, level_label = threshold
    x_max = max([x_max, *[x for line in series for x, _ in line.points]]) or 1.0
    heights = [y for line in series for _, y in line.points]
    y_max = 1.08 * max([level, *heights]) or 1.0
    y_min = 1.08 * min([0.0, *heights])
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + inner_width * x / x_max, TOP + inner_height * (y_max - y) / (y_max - y_min)

    def across(y: float, css_class: str) -> str:
        return f'<line class="{css_class}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'

    parts = []
    for y in ticks(y_max, low=y_min):
        _, py = at(0, y)
        parts.append(across(py, "zero" if y == 0 and y_min < 0 else "grid"))
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{py + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in ticks(x_max):
        px, _ = at(x, 0)
        parts.append(f'<text class="tick" x="{px:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    _, level_y = at(0, level)
    parts.append(across(level_y, "threshold"))
    for line in series:
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in [at(x, y) for x, y in line.points])
        parts.append(f'<polyline class="line {line.css_class}" points="{path}"/>')
        if line.ends_with_cross:
            px, py = at(*line.points[-1])
            parts.append(f'<text class="cross {line.css_class}" x="{px:.1f}" y="{py + 6:.1f}">✕</text>')
    # Lines start low, so that the left is free above the threshold; where they all end far above it, the right is.
    right = all(line.points[-1][1] > 2 * level for line in series)
    side = f'x="{WIDTH - RIGHT}" text-anchor="end"' if right else f'x="{LEFT + 4}"'
    place = f'{side} y="{level_y - 6:.1f}" style="paint-order:stroke;stroke:var(--panel);stroke-width:5px"'
    parts.append(f'<text class="note" {place}>{escape(level_label)}</text>')
    middle = LEFT + inner_width / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
    middle = TOP + inner_height / 2
    turned = f'transform="rotate(-90 14 {middle})" x="14" y="{middle}"'
    parts.append(f'<text class="axis up" {turned} text-anchor="middle">{escape(y_label)}</text>')
    return parts


def bar_chart(bars: Sequence[Bar]) -> str:
    """Horizontal bars from 0 to 100 % with their intervals."""
    row, left = 34, 190
    height = row * len(bars) + 26
    inner = WIDTH - left - 70
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="success rates">']
    for percent in range(0, 101, 25):
        x = left + inner * percent / 100
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{percent} %</text>')
    for i, bar in enumerate(bars):
        y = row * i + 6
        low, high = left + inner * bar.low, left + inner * bar.high
        parts.append(f'<text class="label" x="{left - 10}" y="{y + 15}" text-anchor="end">{escape(bar.label)}</text>')
        box = f'x="{left}" y="{y}" width="{inner * bar.value:.1f}" height="{row - 14}" rx="3"'
        parts.append(f'<rect class="bar {bar.css_class}" {box}/>')
        middle = y + (row - 14) / 2
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
