"""The demonstration with few deliveries. `tests/cli/test_cli.py` runs it as it is, among the slow tests."""

from dataclasses import replace
from pathlib import Path

import pytest
from pages import check_inert
from support import marked_log

from agentmark import Embedder, SharedKey, Verifier
from agentmark.demo import run
from agentmark.demo.assistant import Episode
from agentmark.demo.model_page import render_model_page
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.page import render_page
from agentmark.demo.recovery import Recovery
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
    assert page.count("<svg") == 4, "two charts, each for a screen and for a phone"
    check_inert(page)


HOSTILE = "</td><script>alert(1)</script>\u202e\u2066\x1b[2J\x9b\n<img src=//x onerror=y>"


def test_hostile_names_are_inert_on_both_pages() -> None:
    records = marked_log(SharedKey.generate(), steps=3)
    session = Embedder(SharedKey.generate(), 5, payload_len=8).session(HOSTILE)
    records.append(session.choose({HOSTILE: 1, "b" + HOSTILE: 1}).record)
    verdict = replace(Verifier(SharedKey.generate()).verify(records), tampering=(HOSTILE,))
    recovery = Recovery("F", 9, tuple(records), 1, Path("log"), verdict, verdict, verdict, (0.0, 1.0), (0.0, 1.0))
    policies = tuple(run.PolicyOutcome(label, 1, 2, 3.0) for label in ("a", "b", "c", "d"))
    result = run.DemoResult(Path(HOSTILE), 5, policies, (recovery, recovery), (records[-1], *records))
    assert "\\u202e" in check_inert(render_page(result)).text
    episode = Episode(request=HOSTILE, steps=((HOSTILE, HOSTILE),), success=True, input_tokens=1, output_tokens=1)
    model = ModelDemoResult(Path(HOSTILE), HOSTILE, False, 5, (episode,), tuple(records), recovery, 1.0, 1.0)
    assert "\\u202e" in check_inert(render_model_page(model)).text
