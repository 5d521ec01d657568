"""The experiment on the monitor notices a watcher who takes records back, and its parts do what they say."""

import random

import pytest
from agentmark_lab.experiments.verification import monitor, watching
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.stats import exact_interval

from agentmark.record import StepRecord
from agentmark.verify.arrivals import RETRACTIONS, Arrival
from agentmark.verify.intake import Step
from agentmark.verify.monitor import Monitor

LOGS = 30


def accepted_when_withdrawn(watcher: str) -> int:
    chunk = monitor.Chunk(watcher, "F", (watching.CLAIM,), LOGS, 0, 1)
    return monitor.attack_chunk(chunk)[watcher, "F", watching.CLAIM, watching.RETRACTING]


def test_the_experiment_notices_a_watcher_who_takes_records_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 logs each at a level of 1e-2."""
    monkeypatch.setattr(monitor, "WATCHERS", {monitor.MONITOR: watching.VerifierWatches})
    assert exact_interval(accepted_when_withdrawn(monitor.MONITOR), LOGS).low > monitor.LEVEL


def test_the_monitor_passes_the_same_test() -> None:
    assert exact_interval(accepted_when_withdrawn(monitor.MONITOR), LOGS).low <= monitor.LEVEL


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_whoever_gives_a_log_up_would_not_have_been_accepted(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells of 40 logs, at a level at which many are accepted."""
    monkeypatch.setattr(monitor, "LEVEL", 0.1)
    chunk = monitor.Chunk(monitor.MONITOR, scheme, watching.QUESTIONS, 40, 0, 1)
    with_giving_up = monitor.attack_chunk(chunk)
    monkeypatch.setitem(watching.MOST_PER_BIT, scheme, float("inf"))
    assert monitor.attack_chunk(chunk) == with_giving_up
    assert with_giving_up.total() > 0


def test_every_length_is_the_one_that_verify_takes_once() -> None:
    taken: list[int] = []

    class Notes(watching.VerifierWatches):
        def show(self, shown: Step | StepRecord) -> float:
            surplus = super().show(shown)
            taken.append(self._state.intake(None).payload_len)
            return surplus

    rng = random.Random(4)
    key = random_key(rng)
    watching.ATTACKS[watching.MOVING](
        watching.NullLog("F", key, "s", rng), Notes(key, watching.CLAIM, 1e-3), watching.CLAIM, rng
    )
    assert list(dict.fromkeys(taken)) == list(watching.LENGTHS[watching.CLAIM])


def shown_to_a_monitor(attack: str, question: str, seed: int = 3) -> Monitor:
    rng = random.Random(seed)
    key = random_key(rng)
    watcher = watching.MonitorWatches(key, question, 1e-3)
    watching.ATTACKS[attack](watching.NullLog("F", key, "s", rng), watcher, question, rng)
    return watcher._monitor


def test_an_adversary_who_withdraws_writes_every_kind_of_copy() -> None:
    kinds: set[Arrival] = set()
    for seed in range(20):
        kinds |= set(shown_to_a_monitor(watching.RETRACTING, watching.CLAIM, seed).status().arrivals)
    assert kinds >= set(RETRACTIONS) - {Arrival.OTHER_KEY_COPY}


def test_an_adversary_who_moves_lets_every_length_be_the_majority_once() -> None:
    lengths = shown_to_a_monitor(watching.MOVING, watching.CLAIM).status().lengths
    assert [length.payload_len for length in lengths] == list(watching.LENGTHS[watching.CLAIM])


def test_an_adversary_who_replays_shows_lucky_steps_again_and_nothing_counts_twice() -> None:
    status = shown_to_a_monitor(watching.REPLAYING, watching.CLAIM).status()
    assert status.records > status.steps
    assert status.steps <= watching.FRESH_STEPS
