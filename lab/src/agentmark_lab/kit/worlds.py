"""Agents like the paper's, and the logs that they leave: what the experiments on verification share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.statistics import dirichlet, named
from agentmark.embed.embedder import Embedder
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord


@dataclass(frozen=True, slots=True)
class World:
    """Where an agent works: how many behaviors it chooses from, and how peaked its lists are."""

    name: str
    size: int
    alpha: float

    def draw(self, rng: Random) -> BehaviorDistribution:
        """The list of one step: symmetric Dirichlet."""
        return BehaviorDistribution.quantise(named(dirichlet(rng, self.alpha, self.size)))


# Mean entropies of 0.83 and 1.94 bits a step, about as in the paper's environments.
TOOLBENCH = World("ToolBench-like", 10, 0.055)
ALFWORLD = World("ALFWorld-like", 20, 0.10)


@dataclass(frozen=True, slots=True)
class Agent:
    """One marked agent: its world, key, identity and scheme."""

    world: World
    key: SharedKey
    payload: int
    payload_len: int
    scheme: str

    def log(self, rng: Random, steps: int, *, keep_context: bool = False) -> list[StepRecord]:
        """One session of so many steps, each with a list of its own."""
        embedder = Embedder(
            self.key, self.payload, payload_len=self.payload_len, scheme=self.scheme, keep_context=keep_context
        )
        session = embedder.session(rng.randbytes(16).hex())
        return [session.choose(self.world.draw(rng).as_weights()).record for _ in range(steps)]

    def foreign_log(self, rng: Random, steps: int) -> list[StepRecord]:
        """What an agent without the key leaves, with this agent's key id and length pasted on."""
        session = rng.randbytes(16).hex()
        return [self.foreign_step(rng, session, step) for step in range(steps)]

    def foreign_step(self, rng: Random, session: str, step_index: int) -> StepRecord:
        distribution = self.world.draw(rng)
        return StepRecord(
            scheme=self.scheme,
            key_id=self.key.id,
            payload_len=self.payload_len,
            session=session,
            step_index=step_index,
            context=context_digest(context_fields(session, step_index)),
            distribution=distribution,
            behavior=distribution.at(rng.getrandbits(WEIGHT_BITS)),
            marked=True,
        )


def distribution_of(record: StepRecord) -> BehaviorDistribution:
    """The full list of a record that has one."""
    if record.distribution is None:
        raise ValueError(f"{record.where} has no full list")
    return record.distribution


def perturbed(record: StepRecord, rng: Random, sigma: float) -> StepRecord:
    """The record as a second elicitation would have it: weights times log-normal noise, the choice as it was."""
    distribution = perturbed_list(distribution_of(record), rng, sigma)
    return replace(record, distribution=distribution)


def perturbed_list(distribution: BehaviorDistribution, rng: Random, sigma: float) -> BehaviorDistribution:
    masses = {name: weight * rng.lognormvariate(0, sigma) for name, weight in distribution.as_weights().items()}
    return BehaviorDistribution.quantise(masses)


def another_payload(rng: Random, payload: int, payload_len: int) -> int:
    """A payload that differs."""
    return payload ^ rng.randrange(1, 1 << payload_len)


def shuffled(rng: Random, records: Sequence[StepRecord]) -> list[StepRecord]:
    return rng.sample(list(records), len(records))
