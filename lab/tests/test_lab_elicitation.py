"""The experiment on elicitation, fed with outcomes that are made up; and the real situations, where the data is."""

import random
from pathlib import Path

import pytest
from agentmark_lab.experiments.models import elicitation
from agentmark_lab.experiments.models.ways_of_asking import WAYS, Outcome, collect, model_files
from agentmark_lab.kit.authors_runs import real_situations
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.presets import GGUF_VARIABLE

NAMES = ["search", "book", "pay", "Finish"]


def outcome(way: str, number: int, *, fault: str | None = None) -> Outcome:
    rng = random.Random(f"{way} {number}")
    return Outcome(
        model="made-up",
        way=way,
        situation=f"situation {number}",
        source="none",
        candidates=NAMES,
        relevant=["search"],
        weights=None if fault else {name: rng.random() for name in NAMES},
        fault=fault,
        missing_mass=0.1 if way.startswith("logits") else None,
        attempts=1,
        input_tokens=100,
        output_tokens=5,
        seconds=1.0,
        cpu_s=0.5,
        replies=["{}"],
    )


def test_tables_and_claims_from_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [
        outcome(way, i, fault="no" if way == "verbalised" and i < 10 else None) for way in WAYS for i in range(30)
    ]
    monkeypatch.setattr(elicitation, "model_files", lambda: [Path("made-up.gguf")])
    monkeypatch.setattr(elicitation, "real_situations", list)
    monkeypatch.setattr(elicitation, "collect", lambda *_, **__: outcomes)
    monkeypatch.setattr(elicitation, "KEYS", 10)
    findings = elicitation.run(quick=False, seed=1, workers=1, progress=lambda _: None)
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


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every outcome kept, no model is opened at all."""
    import json
    from dataclasses import asdict

    monkeypatch.setenv("AGENTMARK_WORK", str(tmp_path))
    kept = [outcome("labels", 1)]
    (tmp_path / "elicitation-made-up-seed1.jsonl").write_text(json.dumps(asdict(kept[0])) + "\n")

    class Named:
        name = "situation 1"

    found = collect(tmp_path / "made-up.gguf", [Named()], ["labels"], seed=1, progress=print)  # type: ignore[list-item]
    assert found == kept


def test_without_a_model_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark_lab.experiments.models.ways_of_asking.small_model", lambda: None)
    monkeypatch.delenv(GGUF_VARIABLE, raising=False)
    with pytest.raises(MissingError, match=GGUF_VARIABLE):
        model_files()


def test_the_real_situations_are_thirty_from_three_sources() -> None:
    try:
        situations = real_situations()
    except MissingError as missing:
        pytest.skip(str(missing))
    assert len(situations) == len({one.name for one in situations}) == 30
    assert {one.source for one in situations} == {"ToolBench queries", "ToolBench steps", "ALFWorld steps"}
    assert sum(bool(one.relevant) for one in situations) == 18
    for one in situations:
        assert 2 <= len(one.situation.candidates) <= 25
        assert one.relevant <= set(one.situation.names)
