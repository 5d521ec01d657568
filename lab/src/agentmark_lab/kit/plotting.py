"""Figures from results, as PNG and SVG: the one place that needs matplotlib."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.experiment import Figure

_COLOURS = ("#2563a8", "#1f8a5b", "#b3413a", "#7a4fb0", "#946200", "#7a8594")
# The same in every picture.
_OWN_COLOURS = {"AgentMark-F": 0, "F": 0, "AgentMark-R": 1, "R": 1, "red-green": 2, "baseline": 5}
# Beyond so many points a curve is drawn as a line alone.
_MARKED_POINTS = 40
_CURVES_WITH_A_CORNER = 6
# Of curves of one colour.
_STYLES = ("-", "--", "-.", ":")
_INCHES_A_NAME, _INCHES_A_LETTER = 0.85, 0.065


def draw(figure: Figure, folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg; the same figure gives the same bytes."""
    pyplot = _pyplot(figure.name)
    names = figure.x_names or []
    a_name, height = (_INCHES_A_NAME, 3.8) if _upright(names) else (0.35, 5.0)
    # Points and many curves leave no corner free: their legend stands beside them, and takes nothing from their room.
    is_beside = figure.x_names is not None or len(figure.curves) > _CURVES_WITH_A_CORNER
    longest = max([len(curve.label) for curve in figure.curves], default=0)
    beside = 0.4 + _INCHES_A_LETTER * longest if is_beside else 0.0
    width = max(7.2, 1.3 + a_name * len(names)) + beside
    canvas, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    _plot(figure, axes)
    place: dict[str, Any] = {} if not is_beside else {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axes.legend(frameon=False, fontsize=9, **place)
    return _written(figure.name, canvas, pyplot, folder)


def draw_beside(name: str, figures: Sequence[Figure], folder: Path) -> list[Path]:
    """The same with several figures side by side, and one legend for all."""
    pyplot = _pyplot(name)
    widths = [1.6 if figure.x_names is None else len(figure.x_names) * 0.36 for figure in figures]
    canvas, row = pyplot.subplots(
        1, len(figures), figsize=(11, 3.9), layout="constrained", width_ratios=widths, squeeze=False
    )
    canvas.get_layout_engine().set(wspace=0.06)
    for figure, axes in zip(figures, row[0], strict=True):
        _plot(figure, axes, title_at="left")
    labels = {text: handle for axes in row[0] for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    row[0][-1].legend(list(labels.values()), list(labels), frameon=False, fontsize=9, loc="lower left")
    return _written(name, canvas, pyplot, folder)


def _pyplot(name: str) -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingError("matplotlib", "pip install './lab[figures]' in a clone of AgentMark") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    # Without a date and with fixed ids, a figure that did not change leaves no diff.
    mpl.rcParams["svg.hashsalt"] = name
    mpl.rcParams["svg.fonttype"] = "none"
    return pyplot


def _written(name: str, canvas: Any, pyplot: Any, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    canvas.savefig(paths[0], dpi=130, metadata={"Software": None})
    canvas.savefig(paths[1], metadata={"Date": None})
    pyplot.close(canvas)
    return paths


def _plot(figure: Figure, axes: Any, title_at: str = "center") -> None:
    if figure.x_names is None:
        _plot_lines(figure, axes)
    else:
        _plot_points(figure, figure.x_names, axes)
    axes.set_title(figure.title, fontsize=11, loc=title_at)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if figure.y_log:
        axes.set_yscale("log")
    if figure.x_log:
        axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _colour(label: str, number: int) -> str:
    """The first word of a label tells what it is of."""
    return _COLOURS[_OWN_COLOURS.get(label.partition(",")[0], number % len(_COLOURS))]


def _upright(names: list[str]) -> bool:
    """Whether the names find room side by side."""
    widest = max([len(line) for name in names for line in name.split("\n")], default=0)
    return _INCHES_A_LETTER * (widest + 1) <= max(_INCHES_A_NAME, 6 / max(1, len(names)))


def _plot_lines(figure: Figure, axes: Any) -> None:
    drawn: Counter[str] = Counter()
    for i, curve in enumerate(figure.curves):
        colour = _colour(curve.label, i)
        style = _STYLES[drawn[colour] % len(_STYLES)]
        drawn[colour] += 1
        marker = "o" if len(curve.x) <= _MARKED_POINTS else None
        axes.plot(curve.x, curve.y, style, color=colour, label=curve.label, linewidth=1.8, marker=marker, markersize=3)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)


def _plot_points(figure: Figure, names: list[str], axes: Any) -> None:
    """Beside each other at every name, with their intervals."""
    for i, curve in enumerate(figure.curves):
        shift = 0.18 * (i - (len(figure.curves) - 1) / 2)
        bars = [
            [y - low for y, low in zip(curve.y, curve.low or curve.y, strict=True)],
            [high - y for y, high in zip(curve.y, curve.high or curve.y, strict=True)],
        ]
        places = [x + shift for x in curve.x]
        colour = _colour(curve.label, i)
        axes.errorbar(places, curve.y, bars, fmt="o", color=colour, label=curve.label, markersize=4)
    if not figure.y_log:
        axes.axhline(0, color="#7a8594", linewidth=0.8)
    turned = {} if _upright(names) else {"rotation": 90}
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xticks(range(len(names)), names, fontsize=8 if not turned else 7, **turned)
