"""Pictures from the tables of results."""

from dataclasses import replace
from pathlib import Path

import pytest
from agentmark_lab.kit.equivalence import AGAINST
from agentmark_lab.kit.experiment import (
    Curve,
    Figure,
    Result,
    Table,
)
from agentmark_lab.kit.plotting import draw, draw_beside
from agentmark_lab.kit.table_figures import PICTURES, figures_of, glance, overviews
from agentmark_lab.report import render_front
from lab_support import some_result


def test_the_overview_is_drawn_from_the_tables_on_utility(tmp_path):
    rows = [
        ["0.05", "baseline", ""],
        ["0.05", "red-green", "-8.9 (-11.8 to -6.0)"],
        ["0.05", "AgentMark-F", "+0.5 (-0.6 to +1.7)"],
        ["0.15", "AgentMark-F", "+1.4 (+0.4 to +2.4)"],
    ]
    table = Table("BFCL multi-turn base", ["epsilon", "policy", AGAINST], rows)
    [figure] = overviews([some_result(), some_result(tables=[table])])
    assert figure.x_names == ["BFCL\nmulti-turn\nε 0.05", "BFCL\nmulti-turn\nε 0.15"]
    assert figure.curves == [
        Curve("AgentMark-F", [0, 1], [0.5, 1.4], [-0.6, 0.4], [1.7, 2.4]),
        Curve("red-green", [0], [-8.9], [-11.8], [-6.0]),
    ]
    # A language model stands beside them where enough episodes were played to compare.
    model = ["Some-1B-Instruct.Q4", "AgentMark-F", "+0.2 (-0.8 to +1.1)", "-0.6 to +1.0", "ToolBench"]
    played = Table("t", ["model", "policy", AGAINST, "TOST interval", "place"], [model])
    few = Table("t", ["model", "policy", AGAINST], [model[:3]])
    assert overviews([some_result(tables=[few])]) == []
    [with_model] = overviews([some_result(tables=[table, few, played])])
    assert with_model.x_names == [*figure.x_names, "ToolBench\nSome\n1B"]
    first = [path.read_bytes() for path in draw(figure, tmp_path)]
    assert [path.read_bytes() for path in draw(figure, tmp_path)] == first
    assert overviews([some_result()]) == []
    assert "![What a mark costs the agent" in render_front([some_result(tables=[table])])


def test_a_glance_shows_both_schemes_and_each_environment_at_its_largest_epsilon(tmp_path):
    rows = [
        ["0.05", "red-green", "-8.9 (-11.8 to -6.0)"],
        ["0.05", "AgentMark-F", "+0.5 (-0.6 to +1.7)"],
        ["0.15", "AgentMark-F", "+1.4 (+0.4 to +2.4)"],
    ]
    cost = some_result(tables=[Table("BFCL multi-turn base", ["epsilon", "policy", AGAINST], rows)])
    steps = [float(step) for step in range(240)]
    curves = [Curve(label, steps, [0.5] * 240) for label in ("AgentMark-F", "AgentMark-R, action only")]
    found = some_result(name="identification", figures=[Figure("identification", "t", "x", "y", curves)])
    named, success = glance([found, cost])
    assert [(curve.label, curve.x[-1], curve.y[-1]) for curve in named.curves] == [("AgentMark-F", 100, 50)]
    assert success.x_names == ["BFCL\nmulti-turn\nε 0.15"]
    assert success.curves == [Curve("AgentMark-F", [0], [1.4], [0.4], [2.4])]
    assert glance([found]) == glance([cost]) == []
    first = [path.read_bytes() for path in draw_beside("glance", [named, success], tmp_path)]
    assert [path.read_bytes() for path in draw_beside("glance", [named, success], tmp_path)] == first


def test_a_table_is_drawn_where_an_experiment_brings_no_figure():
    rows = [
        ["F", 10, "0.069 (0.062 to 0.078)"],
        ["F", 20, "over 900"],
        ["R", 20, "1,234"],
        ["R", 20, "7 (6 to no upper limit)"],
        ["R", 30, "2.3e-04 (1.7e-04 to 3.1e-04)"],
    ]
    table = Table("Episodes", ["scheme", "steps", "uniquely recovered"], rows)
    [figure] = figures_of(some_result(name="single_episode", tables=[table]))
    assert (figure.name, figure.x_names) == ("single_episode", ["10", "20", "30"])
    assert figure.curves == [
        Curve("F", [0], [0.069], [0.062], [0.078]),
        Curve("R", [1, 2], [1234, 2.3e-4], [1234, 1.7e-4], [1234, 3.1e-4]),
    ]
    drawn = figures_of(some_result(name="single_episode", tables=[table], figures=[figure, figure]))
    assert drawn == [figure, figure]
    assert figures_of(some_result(name="roundtrip")) == []


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_name_columns_that_the_results_have(name):
    path = Path(__file__).parents[3] / "results" / f"{name}.json"
    [figure] = figures_of(replace(Result.load(path), figures=[]))
    assert all(curve.y for curve in figure.curves)
