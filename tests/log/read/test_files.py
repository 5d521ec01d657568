"""Folders of logs."""

import gzip
import json
from pathlib import Path

import pytest
from log_shapes import LINES, SHAPES, verdict_of

from agentmark import SettingError
from agentmark.cli import main
from agentmark.log.read.files import log_files


def test_a_folder_of_several_formats_is_pooled(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(SHAPES["native"][0](LINES[:20]))
    (folder / "2.json").write_bytes(SHAPES["otlp document"][0](LINES[20:40]))
    (folder / "3.gz").write_bytes(gzip.compress(SHAPES["langfuse array"][0](LINES[40:])))
    (folder / "run.jsonl.lock").write_bytes(b"1.0")
    assert [path.name for path in log_files([folder])] == ["1.jsonl", "2.json", "3.gz"]
    # The chain is judged file by file.
    verdict, native = json.loads(verdict_of(folder, key_file, capsys)), json.loads(native_verdict)
    assert verdict | {"chains": None} == native | {"chains": None}
    assert main(["power", "--log", str(folder), "--trials", "20", "--max-steps", "50"]) == 0
    assert "60 lists of" in capsys.readouterr().out
    (tmp_path / "none").mkdir()
    with pytest.raises(SettingError, match="without any file"):
        log_files([tmp_path / "none"])
