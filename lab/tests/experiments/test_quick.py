"""Every experiment in its quick version."""

from pathlib import Path

import pytest
from agentmark_lab.catalogue import EXPERIMENTS, load
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.experiment import (
    Result,
    perform,
)
from agentmark_lab.kit.options import Options
from lab_support import silent

# Quick as they are, these take ten seconds and more; their parts have tests of their own.
SLOW = {"attacks", "marginals", "rewriting"}
EACH = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in EXPERIMENTS]


@pytest.mark.parametrize("name", EACH)
def test_quick_version_passes_and_is_kept(name: str, quick: Options, tmp_path: Path) -> None:
    try:
        result = perform(load(name), quick, silent)
    except MissingError as missing:
        pytest.skip(str(missing))
    assert result.passed, result.claims
    assert result.name == name
    assert result.command == f"agentmark lab run {name} --quick"
    assert result.claims
    assert all(len(row) == len(table.columns) for table in result.tables for row in table.rows)
    path = result.save(tmp_path / "new")
    assert path.name == f"{name}.json"
    assert Result.load(path) == result
