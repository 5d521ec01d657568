"""The demonstration with few deliveries. `tests/cli/test_cli.py` runs it as it is, among the slow tests."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pages import check_inert
from support import marked_log

from agentmark import Embedder, Registry, SharedKey, Verifier, open_log
from agentmark.core.distribution import BehaviorDistribution
from agentmark.demo import courier, run, third_party
from agentmark.demo.assistant import Ending, Episode
from agentmark.demo.courier import Planner, State, Town, options, run_episode
from agentmark.demo.model_page import render_model_page
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.page import one_in, render_page
from agentmark.demo.recovery import Recovery
from agentmark.demo.tenants import SESSIONS_PER_TENANT, SHORT_PER_TENANT, SHORT_STEPS, write_sessions
from agentmark.demo.text import render_text
from agentmark.errors import SettingError
from agentmark.policies import BaselineSession
from agentmark.verify.intake import Outcome


class Watched:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.counted: list[tuple[int, int | None, str]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def count(self, done: int, total: int | None, what: str) -> None:
        self.counted.append((done, total, what))


def test_a_small_demo_marks_damages_and_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TOWNS", 8)
    monkeypatch.setattr(run, "RUNS_PER_TOWN", 2)
    watched = Watched()
    result = run.run_demo(tmp_path / "demo", seed=1, progress=watched)
    assert "AgentMark-F: 16 deliveries" in watched.said
    assert watched.counted == 4 * [(done, 16, "deliveries") for done in range(1, 17)]
    assert [policy.label for policy in result.policies] == [
        "unmarked",
        "AgentMark-F",
        "AgentMark-R",
        "red-green, bias 2",
    ]
    for recovery in result.recoveries:
        assert recovery.verdict.identity == run.TENANT
        assert not recovery.wrong_key.accepted
    assert "\n".join(render_text(result, "agentmark")).count(f"Attributed to '{run.TENANT}'") == 2
    page = render_page(result, "agentmark")
    assert page.count("<svg") == 4, "two charts, each for a screen and for a phone"
    check_inert(page)


def test_the_last_act_reads_without_the_secret_and_catches_the_forger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    monkeypatch.setattr(run, "TOWNS", 8)
    monkeypatch.setattr(run, "RUNS_PER_TOWN", 1)
    result = run.run_demo(tmp_path / "demo", seed=3, progress=Watched())
    act = result.third_party
    assert act is not None
    assert act.held
    assert act.verdict.payload == result.payload, "the identity, with no registry and no secret"
    assert act.by_secret.identity == run.FRAMED, "the forgery is perfect: the secret itself believes it"
    assert act.by_disclosure.found == ()
    assert act.by_disclosure.counts[Outcome.ALTERED] == act.changed > 20
    words = "\n".join(render_text(result, "agentmark"))
    assert f"{act.changed} records are not those that were disclosed" in " ".join(words.split())
    page = render_page(result, "agentmark")
    assert "it is caught" in check_inert(page).text
    # Again in the same folder, with keys of its own.
    again = run.run_demo(tmp_path / "demo", seed=3, progress=Watched())
    assert again.third_party is not None
    assert again.third_party.held


def test_without_the_extra_the_last_act_is_left_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(third_party, "find_spec", lambda name: None)
    monkeypatch.setattr(run, "TOWNS", 8)
    monkeypatch.setattr(run, "RUNS_PER_TOWN", 1)
    result = run.run_demo(tmp_path / "demo", seed=3, progress=Watched())
    assert result.third_party is None
    assert not (tmp_path / "demo" / third_party.MARKING_KEY).exists()
    said = "\n".join(render_text(result, "agentmark"))
    assert "Left out: a third party" in said
    assert third_party.REMEDY in said
    assert "--disclosure" not in said, "nor is it advised to try it"
    assert "the package for them is not installed" in check_inert(render_page(result, "agentmark")).text


HOSTILE = "</td><script>alert(1)</script>\u202e\u2066\x1b[2J\x9b\n<img src=//x onerror=y>"


def test_hostile_names_are_inert_on_both_pages() -> None:
    records = marked_log(SharedKey.generate(), steps=3)
    session = Embedder(SharedKey.generate(), 5, payload_len=8).session(HOSTILE)
    records.append(session.choose({HOSTILE: 1, "b" + HOSTILE: 1}).record)
    verdict = replace(Verifier(SharedKey.generate()).verify(records), tampering=(HOSTILE,))
    recovery = Recovery(
        scheme="F",
        logged=9,
        damaged=tuple(records),
        foreign=1,
        full=Path(HOSTILE),
        path=Path(HOSTILE),
        verdict=verdict,
        wrong_key=verdict,
        short=verdict,
        growth=(0.0, 1.0),
        wrong_key_growth=(0.0, 1.0),
    )
    policies = tuple(run.PolicyOutcome(label, 1, 2, 3.0) for label in ("a", "b", "c", "d"))
    result = run.DemoResult(Path(HOSTILE), 5, policies, (recovery, recovery), (records[-1], *records), 24)
    assert "\\u202e" in check_inert(render_page(result, HOSTILE)).text
    episode = Episode(HOSTILE, Ending.NOT_DONE, ((HOSTILE, HOSTILE),), input_tokens=1, output_tokens=1)
    model = ModelDemoResult(
        folder=Path(HOSTILE),
        model=HOSTILE,
        near_chance=False,
        payload=5,
        task_count=1,
        minutes=5,
        episodes=(episode,),
        records=tuple(records),
        recovery=recovery,
        seconds=1.0,
        cpu_s=1.0,
    )
    assert "\\u202e" in check_inert(render_model_page(model, HOSTILE)).text


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    for name in run.OWN_NAMES:
        folder = tmp_path / name / "folder"
        folder.mkdir(parents=True)
        (folder / name).write_text("precious", encoding="utf-8")
        with pytest.raises(SettingError, match=f"holds a {name} that is not the demonstration's"):
            run.issue(folder)
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_text(encoding="utf-8") == "precious"


def test_a_town_is_planned_once_and_each_state_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner.random(random.Random(3), temperature=0.8)
    looked_up = Counter[State]()

    def counted(town: Town, state: State) -> dict[str, State]:
        looked_up[state] += 1
        return options(town, state)

    monkeypatch.setattr(courier, "options", counted)
    first = [run_episode(planner, BaselineSession(random.Random(i)), slack=1.8) for i in range(20)]
    assert set(looked_up.values()) == {1}
    assert sum(episode.steps for episode in first) > 3 * len(looked_up)


def test_the_weights_that_are_handed_on_are_those_that_are_logged() -> None:
    planner = Planner.random(random.Random(3), temperature=0.8)
    episode = run_episode(planner, BaselineSession(random.Random(1)), slack=1.8)
    start = planner.outlook(planner.town.start)
    assert episode.records[0].distribution == BehaviorDistribution.from_weights(start.weights)


def test_the_tenants_folder_holds_sessions_of_all_and_some_too_short(tmp_path: Path) -> None:
    key = SharedKey.generate()
    registry = Registry(32)
    for tenant in run.TENANTS:
        registry.issue(tenant)
    planners = [Planner.random(random.Random(i), temperature=0.8) for i in range(3)]
    markers = {tenant: Embedder(key, tenant, registry=registry, scheme="R") for tenant in run.TENANTS}
    for _ in range(2):  # A second time in the same folder: nothing is left of the first.
        count = write_sessions(tmp_path / "tenants", markers, planners, slack=1.8, rng=random.Random(1))
    files = sorted((tmp_path / "tenants").iterdir())
    assert len(files) == count == 24
    verifier = Verifier(key, registry=registry)
    logs = [list(open_log(path)) for path in files]
    assert len({records[0].session for records in logs}) == 24
    named = Counter(verifier.verify(records).identity for records in logs if len(records) > SHORT_STEPS)
    assert {**named} == dict.fromkeys(run.TENANTS, SESSIONS_PER_TENANT - SHORT_PER_TENANT)
    assert sum(len(records) == SHORT_STEPS for records in logs) == SHORT_PER_TENANT * len(run.TENANTS)


@pytest.mark.parametrize(("rate", "words"), [(6.7e-21, "1 in 10²⁰"), (1e-6, "1 in 10⁶"), (0.0, "1 in 10³⁰⁰")])
def test_a_bound_in_words_is_rounded_to_the_safe_side(rate: float, words: str) -> None:
    assert one_in(rate) == words
