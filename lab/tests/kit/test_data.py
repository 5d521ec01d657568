"""Data that is missing is named."""

from pathlib import Path

import pytest
from agentmark_lab.kit import data


def test_missing_data_names_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTMARK_DATA", str(tmp_path))
    with pytest.raises(data.MissingError, match=r"nothing/here \(looked in .*\) is missing: run make x, or set"):
        data.find_data("nothing/here", remedy="run make x")
    (tmp_path / "here").mkdir()
    assert data.find_data("here", remedy="") == tmp_path / "here"
