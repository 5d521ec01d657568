"""docs/logs.md runs as pasted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentmark.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")


def test_the_page_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.json.file")
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "OTLP/JSON 60 0 []\n"
    assert (tmp_path / "logs" / "run-000002.jsonl.gz").exists()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    lines = re.findall(r"^\$ (agentmark .*)$", PAGE, flags=re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        if "verify" in line:
            assert done.stdout.startswith("Attributed to payload 0x002a")


def test_help_names_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name in ("SQLite", "OTLP/JSON", "Langfuse", "Phoenix", "LangSmith", "Inspect", "gzip or zstd", "docs/logs.md"):
        assert name in text
