"""Figures from results, as PNG and SVG: the one place that needs matplotlib."""

from pathlib import Path
from typing import Any

from agentmark.core.errors import MissingExtraError
from agentmark.lab.experiment import Figure

_COLOURS = ("#2563a8", "#1f8a5b", "#b3413a", "#7a4fb0", "#946200", "#7a8594")


def draw(figure: Figure, folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg; the same figure gives the same bytes."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "lab") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    # Without a date and with fixed ids, a figure that did not change leaves no diff.
    mpl.rcParams["svg.hashsalt"] = figure.name
    mpl.rcParams["svg.fonttype"] = "none"
    canvas, axes = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")
    _plot(figure, axes)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{figure.name}.png", folder / f"{figure.name}.svg"]
    canvas.savefig(paths[0], dpi=130, metadata={"Software": None})
    canvas.savefig(paths[1], metadata={"Date": None})
    pyplot.close(canvas)
    return paths


def _plot(figure: Figure, axes: Any) -> None:
    for i, curve in enumerate(figure.curves):
        colour = _COLOURS[i % len(_COLOURS)]
        style = "-" if i < len(_COLOURS) else "--"
        axes.plot(curve.x, curve.y, style, color=colour, label=curve.label, linewidth=1.8, marker="o", markersize=3)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    axes.set_title(figure.title, fontsize=11)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if figure.y_log:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
