"""Small SVG charts for self-contained pages: no script, no network, colours from the page's own variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 40


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


def line_chart(series: Sequence[Series], *, x_label: str, y_label: str, threshold: tuple[float, str]) -> str:
    """Lines over a dashed threshold, with labels at their ends."""
    level, level_label = threshold
    x_max = max(x for line in series for x, _ in line.points)
    y_max = 1.08 * max(level, *[y for line in series for _, y in line.points])
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + inner_width * x / x_max, TOP + inner_height * (1 - y / y_max)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} by {escape(x_label)}">']
    for y in ticks(y_max):
        _, py = at(0, y)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{py + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in ticks(x_max):
        px, _ = at(x, 0)
        parts.append(f'<text class="tick" x="{px:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    _, py = at(0, level)
    parts.append(f'<line class="threshold" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py:.1f}" y2="{py:.1f}"/>')
    place = f'x="{WIDTH - RIGHT}" y="{py + 16:.1f}" text-anchor="end"'
    parts.append(f'<text class="note" {place}>{escape(level_label)}</text>')
    for line in series:
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in [at(x, y) for x, y in line.points])
        parts.append(f'<polyline class="line {line.css_class}" points="{path}"/>')
        px, py = at(*line.points[-1])
        if line.ends_with_cross:
            parts.append(f'<text class="cross {line.css_class}" x="{px:.1f}" y="{py + 6:.1f}">✕</text>')
    parts.append(
        f'<text class="axis" x="{LEFT + inner_width / 2}" y="{HEIGHT - 4}" text-anchor="middle">{x_label}</text>'
    )
    middle = TOP + inner_height / 2
    turned = f'transform="rotate(-90 14 {middle})" x="14" y="{middle}"'
    parts.append(f'<text class="axis" {turned} text-anchor="middle">{y_label}</text>')
    parts.append("</svg>")
    legend = "".join(f'<span class="key {line.css_class}">{escape(line.label)}</span>' for line in series)
    return "".join(parts) + f'<p class="legend">{legend}</p>'


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


def ticks(top: float, count: int = 6) -> list[float]:
    """Round numbers from 0 to `top`, about `count` of them."""
    raw = top / count
    magnitude = 10 ** floor(log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw)
    return [i * step for i in range(ceil(top / step)) if i * step <= top]
