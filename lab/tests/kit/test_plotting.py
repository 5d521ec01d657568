"""Figures are drawn from results, the same bytes each time; without matplotlib the message says what to install."""

import sys
from pathlib import Path

import pytest
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.experiment import Curve, Figure
from agentmark_lab.kit.plotting import draw

FIGURE = Figure(
    "f", "A title", "x", "y", [Curve("one", [0, 1], [0, 1], [0, 0.9], [0.1, 1]), Curve("two", [0, 1], [1, 0])]
)


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first = [path.read_bytes() for path in draw(FIGURE, tmp_path / "a")]
    second = [path.read_bytes() for path in draw(FIGURE, tmp_path / "b")]
    assert first == second
    assert first[0].startswith(b"\x89PNG")
    assert b"A title" in first[1]


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingError, match=r"pip install './lab\[figures\]'"):
        draw(FIGURE, tmp_path)
