"""Many episodes on lists that a model stated once."""

from pathlib import Path

import pytest
from agentmark_lab.envs.base import Task
from agentmark_lab.experiments.models import model_utility
from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, F, R
from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.models import ModelSpec
from corridors import Corridors
from scipy import stats as scipy_stats

from agentmark.elicit.situation import Elicitation, Situation

LIST = {"right": 0.8, "left": 0.1, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}


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
def test_many_episodes_ask_once_in_a_situation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stated = _Stated()
    monkeypatch.setattr(ModelSpec, "open_elicitor", lambda *_: stated)
    monkeypatch.setattr(model_utility, "ENVIRONMENT", "corridors")
    model = ModelSpec("m", "http://127.0.0.1:1")
    chunk = model_utility.Chunk(model, Task("corridor-0", "C0"), seed=1, trials=50, work=tmp_path)
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
def test_the_logs_of_many_episodes_name_their_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ModelSpec, "open_elicitor", lambda *_: _Stated())
    monkeypatch.setattr(model_utility, "ENVIRONMENT", "corridors")
    model = ModelSpec("m", "http://127.0.0.1:1")
    tasks = Corridors(tmp_path).tasks()
    outcomes = [model_utility.run_chunk(model_utility.Chunk(model, task, 1, trials=3, work=tmp_path)) for task in tasks]
    logs = {policy: model_utility.read_back(model, outcomes, policy, seed=1) for policy in (F, R)}
    assert [len(logs[policy]) for policy in (F, R)] == [3, 3]
    assert not any(log.wrong for log in [*logs[F], *logs[R]])
    # Some ninety decisions: enough for R, and for F in most logs.
    assert all(log.named and log.named_after <= log.decisions for log in logs[R])
    assert sum([log.named for log in logs[F]]) >= 1
