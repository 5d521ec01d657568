"""What every attack of the lab has in common: a genuine log, a job, and what came of it."""

from dataclasses import dataclass, replace
from random import Random

from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.worlds import ALFWORLD, Agent

PAYLOAD_LEN = 8
STEPS = 80


@dataclass(frozen=True, slots=True)
class Scene:
    """A genuine log, and who else is about."""

    agent: Agent
    other: Agent
    records: list[StepRecord]
    rng: Random

    @property
    def verifier(self) -> Verifier:
        return Verifier(self.agent.key, payload_len=PAYLOAD_LEN)


def new_scene(scheme: str, rng: Random) -> Scene:
    key = random_key(rng)
    payload, second = rng.sample(range(1 << PAYLOAD_LEN), 2)
    agent = Agent(ALFWORLD, key, payload, PAYLOAD_LEN, scheme)
    return Scene(agent, replace(agent, payload=second), agent.log(rng, STEPS), rng)


@dataclass(frozen=True, slots=True)
class Job:
    """An attack by its name, `repeats` times."""

    kind: str
    scheme: str
    repeats: int
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    named: int = 0
    wrong: int = 0
    trials: int = 0
    before_bits: float = 0.0
    after_bits: float = 0.0
    reported: tuple[str, ...] = ()
    # Of the oracle: questions asked and records forged, for each forgery.
    queries: tuple[int, ...] = ()
    forged: tuple[int, ...] = ()
