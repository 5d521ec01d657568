"""The experiment on elicitation, fed with outcomes that are made up."""

from pathlib import Path

import pytest
from agentmark_lab.experiments.models import elicitation
from agentmark_lab.experiments.models.ways_of_asking import WAYS
from agentmark_lab.kit.options import Options
from lab_support import silent
from made_up import outcome


def test_tables_and_claims_from_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [
        outcome(way, i, fault="no" if way == "verbalised" and i < 10 else None) for way in WAYS for i in range(30)
    ]
    monkeypatch.setattr(elicitation, "model_files", lambda _: [Path("made-up.gguf")])
    monkeypatch.setattr(elicitation, "real_situations", list)
    monkeypatch.setattr(elicitation, "collect", lambda *_, **__: outcomes)
    monkeypatch.setattr(elicitation, "KEYS", 10)
    findings = elicitation.run(Options(), silent)
    assert findings.passed, [claim.sentence for claim in findings.claims]
    success, choices, distances, steps = findings.tables
    assert len(success.rows) == len(choices.rows) == len(steps.rows) == len(WAYS)
    assert str(success.rows[3][3]).startswith("0.67 (0.49 to 0.81)")
    assert len(distances.rows) == 10
    assert distances.rows[2][3] == 20  # Both ways have a list in twenty situations.
    assert all(10 < int(row[4]) < 60 for row in steps.rows)
    assert all("replies" not in one for one in findings.data["outcomes"])


def test_too_few_decisions_name_nobody() -> None:
    assert elicitation.marked_run([outcome("labels", i) for i in range(4)], 1) is None
    steps = elicitation.marked_run([outcome("labels", i) for i in range(60)], 1)
    assert steps is not None
    assert 10 < steps < 60
