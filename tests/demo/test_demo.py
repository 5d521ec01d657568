"""The demonstration with few deliveries. `tests/cli/test_cli.py` runs it as it is, among the slow tests."""

from pathlib import Path

import pytest

from agentmark.demo import run
from agentmark.demo.page import render_page
from agentmark.demo.text import render_text


def test_a_small_demo_marks_damages_and_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TOWNS", 8)
    monkeypatch.setattr(run, "RUNS_PER_TOWN", 2)
    said: list[str] = []
    result = run.run_demo(tmp_path / "demo", seed=1, progress=said.append)
    assert "AgentMark-F: 16 deliveries" in said
    assert [policy.label for policy in result.policies] == [
        "unmarked",
        "AgentMark-F",
        "AgentMark-R",
        "red-green, bias 2",
    ]
    for recovery in result.recoveries:
        assert recovery.verdict.identity == run.TENANT
        assert not recovery.wrong_key.accepted
    assert "\n".join(render_text(result)).count(f"Attributed to '{run.TENANT}'") == 2
    page = render_page(result)
    assert page.count("<svg") == 2
    assert "https://" not in page
