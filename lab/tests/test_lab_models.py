"""Models in the lab: lists are kept by what was asked, presets are the paper's, and nonsense is counted."""

import argparse
import json
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.cli import run as run_command
from agentmark_lab.envs import base
from agentmark_lab.envs.base import Task
from agentmark_lab.experiments.models import language_model, model_utility
from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, F, R
from agentmark_lab.kit.experiment import perform
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, ModelAgent
from agentmark_lab.kit.models import ModelSpec, models_here, tasks_a_group
from agentmark_lab.kit.presets import ENVIRONMENT_VARIABLE, MODEL_VARIABLE, TASKS_VARIABLE
from scipy import stats as scipy_stats
from test_campaign import Corridors

from agentmark.elicit.situation import Elicitation, Situation
from agentmark.errors import SettingError
from agentmark.testing import FakeProvider, ScriptedElicitor
from agentmark.testing.provider import chat_answer


def test_a_list_is_asked_for_once_a_run(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor()
    episode = Corridors().start(Task("c", "g"), seed=1)
    for _ in range(2):
        lists = ElicitedLists(elicitor, tmp_path)
        weights = ModelAgent(lists, label="m").weights(episode)
        assert weights == dict.fromkeys(episode.behaviors, 1.0)
    assert len(elicitor.situations) == 1
    assert (lists.effort.calls, lists.effort.cached) == (1, 1)
    ModelAgent(ElicitedLists(elicitor, tmp_path, run=1), label="m").weights(episode)
    assert len(elicitor.situations) == 2


def test_the_agent_tells_the_model_what_it_did(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor()
    agent = ModelAgent(ElicitedLists(elicitor, tmp_path), label="m", history=1)
    episode = Corridors().start(Task("c", "g"), seed=1)
    agent.weights(episode)
    for behavior in ("left", "right"):
        episode.step(behavior)
        agent.acted(behavior, episode)
    agent.weights(episode)
    first, second = [[message["content"] for message in asked.messages] for asked in elicitor.situations]
    assert first == ["reach the end", "a corridor"]
    assert second == ["reach the end", "I do: right", "a corridor"]


def test_nonsense_is_counted_and_never_replaced(tmp_path: Path) -> None:
    lists = ElicitedLists(ScriptedElicitor(["no list", "no list"]), tmp_path)
    agent = ModelAgent(lists, label="m")
    assert agent.weights(Corridors().start(Task("c", "g"), seed=1)) is None
    assert lists.effort.unusable == 1


def test_the_papers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODEL_VARIABLE, "deepseek")
    (spec,) = models_here("toolbench")
    assert (spec.name, spec.elicitor, spec.temperature) == ("deepseek-chat", "verbalised/toolbench", 0.7)
    for split in ("alfworld-id", "alfworld-ood"):
        (spec,) = models_here(split)
        assert (spec.elicitor, spec.temperature) == ("verbalised/alfworld", 1.0)
    # The paper has no prompt for others.
    assert models_here("bfcl")[0].elicitor == "verbalised"
    monkeypatch.setenv(MODEL_VARIABLE, "http://127.0.0.1:1/v1 some-model")
    assert models_here("toolbench") == [ModelSpec("some-model", "http://127.0.0.1:1/v1")]
    monkeypatch.setenv(MODEL_VARIABLE, "nothing")
    with pytest.raises(SettingError, match="deepseek, gemini"):
        models_here("toolbench")


def test_a_model_behind_a_url_is_asked_as_the_paper_asks(tmp_path: Path) -> None:
    weights = {"right": 1, "left": 0, "trapdoor 1": 0, "trapdoor 2": 0, "trapdoor 3": 0}
    said = "Thought: hm.\n" + json.dumps({"action_weights": weights, "action_args": {}})
    with FakeProvider({"/v1/chat/completions": chat_answer(said)}) as provider:
        spec = ModelSpec("m", provider.base_url, "verbalised/toolbench", 0.7)
        lists = ElicitedLists(spec.open_elicitor(Random(1)), tmp_path)
        assert ModelAgent(lists, label="m").weights(Corridors().start(Task("c", "g"), seed=1)) == weights
    body = provider.requests[0][1]
    assert body["temperature"] == 0.7
    assert body["messages"][0]["content"].startswith("You are a tool-use agent.")


LIST = {"right": 0.8, "left": 0.1, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}


@pytest.fixture
def corridors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(base.ENVIRONMENTS, "corridors", "tests.test_campaign:Corridors")
    monkeypatch.setenv("AGENTMARK_WORK", str(tmp_path))


@pytest.mark.usefixtures("corridors")
def test_a_model_behind_a_url_plays_in_any_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "corridors")
    monkeypatch.setenv(TASKS_VARIABLE, "3")
    with FakeProvider({"/v1/chat/completions": chat_answer(json.dumps(LIST))}) as provider:
        monkeypatch.setenv(MODEL_VARIABLE, f"{provider.base_url} some-model")
        result = perform(language_model, quick=False, seed=1, workers=1, progress=print)
    # A result of its own, beside the usual one, and the command that repeats it.
    assert result.name == "language_model-corridors"
    assert " --environment corridors --tasks 3 --model " in result.command
    rows = {row[1]: row for row in result.tables[0].rows}
    # Two groups of three.
    assert rows[BASELINE][2] == rows[F][2] == rows[R][2] == 6
    # Without induction the reply is no name: every step of it is lost.
    assert rows[language_model.NO_INDUCTION][7] == 6 * Corridors.max_steps
    # The logs are left as an agent would leave them.
    assert (tmp_path / "language_model" / "corridors" / "some-model" / "AgentMark-R.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "environment", "tasks", "said"),
    [("alfworld", "bfcl", None, "are for language_model"), ("language_model", None, 3, "does nothing with --quick")],
)
def test_options_that_would_do_nothing_are_refused(
    name: str, environment: str | None, tasks: int | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = argparse.Namespace(
        lab_command="run", name=name, environment=environment, tasks=tasks, model=None, quick=True
    )
    assert run_command(asked) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("stated", ["none", "0", "-1"])
def test_a_number_of_tasks_is_a_number(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TASKS_VARIABLE, stated)
    with pytest.raises(SettingError, match="not a positive number"):
        tasks_a_group(2)


@pytest.mark.usefixtures("corridors")
def test_without_induction_the_model_sees_what_the_agent_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "corridors")
    monkeypatch.setenv(TASKS_VARIABLE, "1")
    with FakeProvider({"/v1/chat/completions": chat_answer("right")}) as provider:
        chunk = language_model.Chunk(
            ModelSpec("m", provider.base_url, "verbalised"), "corridors", Task("corridor-0", "C0"), seed=1, runs=1
        )
        outcome = language_model.run_chunk(chunk)
    asked = ["\n".join([message["content"] for message in body["messages"]]) for _, body in provider.requests]
    first = next(text for text in asked if text.startswith("You are an agent. Reply with the name"))
    assert "a corridor" in first
    # It does as it says; a list it never stated.
    rows = {row.policy: row for row in outcome.rows}
    assert (rows[language_model.NO_INDUCTION].success, rows[language_model.NO_INDUCTION].steps) == (True, 10)
    assert rows[BASELINE].lost == Corridors.max_steps


def test_a_task_that_changes_is_seen_though_the_mean_is_not() -> None:
    def outcome(base: int, mine: int) -> model_utility.Outcome:
        tallies = {
            policy: model_utility.Tally([i < won for i in range(200)], 0, 0, 0.0, 0.0, [])
            for policy, won in ((BASELINE, base), (F, mine))
        }
        return model_utility.Outcome(Task("t", "g"), tallies, Effort(), [])

    # Up in one, down in the other; and in a third nothing can be seen.
    outcomes = [outcome(100, 140), outcome(100, 60), outcome(200, 200)]
    assert model_utility.compare(outcomes, F).difference == pytest.approx(0)
    statistic, degrees, p_value = model_utility.differs_by_task(outcomes, F)
    reference = scipy_stats.chi2_contingency([[100, 100], [140, 60]], correction=False)
    assert (statistic, degrees) == (pytest.approx(2 * reference.statistic), 2)
    assert p_value == pytest.approx(scipy_stats.chi2.sf(statistic, 2))
    assert model_utility.differs_by_task([outcome(100, 100)], F)[2] == 1


class _Stated:
    """Says the same list in every situation, and counts."""

    name = "stated"

    def __init__(self) -> None:
        self.situations: list[Situation] = []

    def elicit(self, situation: Situation) -> Elicitation:
        self.situations.append(situation)
        return Elicitation(method=self.name, model="m", weights=LIST)


@pytest.mark.usefixtures("corridors")
def test_many_episodes_ask_once_in_a_situation(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = _Stated()
    monkeypatch.setattr(ModelSpec, "open_elicitor", lambda *_: stated)
    monkeypatch.setattr(model_utility, "ENVIRONMENT", "corridors")
    chunk = model_utility.Chunk(ModelSpec("m", "http://127.0.0.1:1"), Task("corridor-0", "C0"), seed=1, trials=50)
    outcome = model_utility.run_chunk(chunk)
    asked = [repr(situation) for situation in stated.situations]
    assert len(asked) == len(set(asked)) == outcome.asking.calls
    # The goal alone, and the latest one or two of the steps that do not end it.
    assert len(asked) == 1 + 2 + 4
    assert {len(outcome.by_policy[policy].won) for policy in model_utility.ROWS} == {50}
    # Once more from what was kept: the same episodes, and nobody is asked.
    again = model_utility.run_chunk(chunk)
    assert len(stated.situations) == len(asked)
    assert [again.by_policy[policy].won for policy in POLICIES] == [outcome.by_policy[p].won for p in POLICIES]
    found = model_utility.compare([outcome], F)
    won = [sum(outcome.by_policy[policy].won) for policy in (F, BASELINE)]
    assert (found.episodes, found.difference) == (50, pytest.approx((won[0] - won[1]) / 50))


@pytest.mark.usefixtures("corridors")
def test_the_logs_of_many_episodes_name_their_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelSpec, "open_elicitor", lambda *_: _Stated())
    monkeypatch.setattr(model_utility, "ENVIRONMENT", "corridors")
    model = ModelSpec("m", "http://127.0.0.1:1")
    tasks = Corridors().tasks()
    outcomes = [model_utility.run_chunk(model_utility.Chunk(model, task, seed=1, trials=3)) for task in tasks]
    logs = {policy: model_utility.read_back(model, outcomes, policy, seed=1) for policy in (F, R)}
    assert [len(logs[policy]) for policy in (F, R)] == [3, 3]
    assert not any(log.wrong for log in [*logs[F], *logs[R]])
    # Some ninety decisions: enough for R, and for F in most logs.
    assert all(log.named and log.named_after <= log.decisions for log in logs[R])
    assert sum([log.named for log in logs[F]]) >= 1
