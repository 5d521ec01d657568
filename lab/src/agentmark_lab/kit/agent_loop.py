"""The agent loop of the paper: elicit, choose, act; under any policy."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from time import perf_counter

from agentmark.core.distribution import Probabilities
from agentmark.core.theory import entropy
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Choice, Session
from agentmark.keys.shared import SharedKey
from agentmark.policies import BaselineSession, EarlyStoppingSession, RedGreenSession
from agentmark.policies.chooser import Chooser
from agentmark.record import StepRecord
from agentmark_lab.envs.base import Episode
from agentmark_lab.kit.expert_agent import Source

BASELINE, RED_GREEN, F, R = "baseline", "red-green", "AgentMark-F", "AgentMark-R"
POLICIES = (BASELINE, RED_GREEN, F, R)
# Proposals that stop early, under R: what the tests of utility must notice beside red-green.
EARLY_STOPPING = "early stopping"
CONTROLS = (RED_GREEN, EARLY_STOPPING)
MARKED = {F: "F", R: "R"}


@dataclass(frozen=True, slots=True)
class Played:
    """An episode from beginning to end. `lost`: steps at which the agent said nothing that could be used."""

    success: bool
    lost: int
    records: tuple[StepRecord, ...]

    @property
    def steps(self) -> int:
        return len(self.records) + self.lost


def play(episode: Episode, source: Source, chooser: Chooser, *, max_steps: int) -> Played:
    """Let the agent work until it is done or out of steps. A list that cannot be used costs a step, and changes
    nothing: it is never replaced by another."""
    records: list[StepRecord] = []
    lost = 0
    while not episode.done and len(records) + lost < max_steps:
        weights = source.weights(episode)
        if weights is None:
            lost += 1
            continue
        choice = chooser.choose(weights)
        records.append(choice.record)
        episode.step(choice.behavior)
        source.acted(choice.behavior, episode)
    return Played(episode.success, lost, tuple(records))


def chooser_for(policy: str, *, key: SharedKey, payload: int, payload_len: int, rng: Random) -> Chooser:
    """A fresh chooser for one episode. All its randomness comes from `rng` and the key, so that a run repeats."""
    makers: dict[str, Callable[[], Chooser]] = {
        BASELINE: lambda: BaselineSession(rng),
        RED_GREEN: lambda: RedGreenSession(key, rng=rng),
        F: lambda: _marked("F", key, payload, payload_len, rng),
        R: lambda: _marked("R", key, payload, payload_len, rng),
        EARLY_STOPPING: lambda: EarlyStoppingSession(_marked("R", key, payload, payload_len, rng), rng=rng),
    }
    return makers[policy]()


def _marked(scheme: str, key: SharedKey, payload: int, payload_len: int, rng: Random) -> Session:
    return Embedder(key, payload, payload_len=payload_len, scheme=scheme).session(rng.randbytes(16).hex())


def entropy_of(record: StepRecord) -> float:
    """Of a step's list, in bits; none where there was no list."""
    return 0.0 if record.distribution is None else entropy(record.distribution)


class Timed:
    """Adds up what choosing costs."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self.microseconds = 0.0

    def choose(self, weights: Probabilities) -> Choice:
        start = perf_counter()
        choice = self._chooser.choose(weights)
        self.microseconds += (perf_counter() - start) * 1e6
        return choice
