"""`agentmark inspect`."""

from pathlib import Path

import pytest
from log_shapes import LINES, SHAPES

from agentmark.cli import main


def test_inspect_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(SHAPES["otlp lines"][0](LINES))
    assert main(["inspect", str(path)]) == 0
    assert "  format: OTLP/JSON, 2 entries without a record\n" in capsys.readouterr().out
