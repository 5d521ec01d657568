"""A key file, and the verdict of the run in AgentMark's own lines."""

import json
from pathlib import Path

import pytest
from log_run import KEY
from log_shapes import RUN, verdict_of

from agentmark import LogWriter


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.json"
    KEY.save(path)
    return path


@pytest.fixture
def native_verdict(tmp_path: Path, key_file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "native.jsonl"
    with LogWriter(path) as log:
        for record in RUN:
            log.write(record)
    verdict = verdict_of(path, key_file, capsys)
    outcomes = json.loads(verdict)["outcomes"]
    assert outcomes["unmarked"] == 1
    assert outcomes["not enforced"] == 1
    return verdict
