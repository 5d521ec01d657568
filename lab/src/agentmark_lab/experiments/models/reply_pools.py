"""Decisions by proposals over kept replies. A situation's pool of replies is the model: its replies are independent
draws from the pool, with replacement, so that the unmarked agent's frequencies are known exactly."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.theory import entropy, race_capacity
from agentmark.elicit.proposals import Granularity, behavior_of, grouped
from agentmark.elicit.situation import Proposal, ToolCall
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Session
from agentmark.record import StepRecord
from agentmark_lab.experiments.models.tool_agent import Reply, ToolSituation
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.stats import ChiSquare, chi_square_sf, chi_square_test, two_sample_test

PAYLOAD_LEN = 32


@dataclass(frozen=True, slots=True)
class Pool:
    """The replies of one situation. The reply that a proposal carries is its place in the pool."""

    name: str
    tools: frozenset[str]
    proposals: tuple[Proposal, ...]

    @classmethod
    def of(cls, situation: ToolSituation, replies: Sequence[Reply]) -> "Pool":
        calls = [() if one.tool is None else (ToolCall(one.tool, one.arguments),) for one in replies]
        return cls(
            situation.name,
            frozenset(tool.name for tool in situation.tools),
            tuple([Proposal(calls=made, reply=place) for place, made in enumerate(calls)]),
        )

    def draw(self, rng: Random) -> Proposal:
        return rng.choice(self.proposals)

    def shares(self, level: "Level") -> dict[str, float]:
        """What the unmarked agent does: the probability of each thing that is told apart at this level."""
        counts = Counter([level(self, one) for one in self.proposals])
        return {name: count / len(self.proposals) for name, count in counts.items()}


# What of a reply is compared: the behavior, the whole call, or the reply itself, text included.
Level = Callable[[Pool, Proposal], str]


def _behavior(pool: Pool, one: Proposal) -> str:
    return behavior_of(one.calls, pool.tools)


def _call(pool: Pool, one: Proposal) -> str:
    return behavior_of(one.calls, pool.tools, lambda arguments: sha256(arguments).hexdigest())


def _reply(pool: Pool, one: Proposal) -> str:
    return str(one.reply)


LEVELS: dict[str, Level] = {"behavior": _behavior, "call": _call, "whole reply": _reply}
LEVEL_OF: dict[Granularity, str] = {"tool": "behavior", "call": "call"}

# How the samples of one decision are drawn.
Drawing = Callable[[Pool, Random], list[Proposal]]


def fixed(count: int) -> Drawing:
    return lambda pool, rng: [pool.draw(rng) for _ in range(count)]


def early_stopping(pool: Pool, rng: Random) -> list[Proposal]:
    """Bent on purpose: it saves the third sample when the first two agree. Then what the samples say decides how many
    there are, and the likeliest behavior is chosen too often: 0.9 becomes 0.924."""
    drawn = [pool.draw(rng), pool.draw(rng)]
    if _behavior(pool, drawn[0]) != _behavior(pool, drawn[1]):
        drawn.append(pool.draw(rng))
    return drawn


@dataclass(frozen=True, slots=True)
class Decided:
    """What the agent was handed in one pool, and what the lists carried: their entropy, and the evidence that is to be
    expected of them under R."""

    handed: tuple[Proposal, ...]
    entropy: float
    evidence: float


def decide(pool: Pool, drawing: Drawing, granularity: Granularity, *, scheme: str, times: int, rng: Random) -> Decided:
    """Marked decisions under one key and identity: counts, a choice with the mark, one reply of the chosen group."""
    embedder = Embedder(random_key(rng), rng.getrandbits(PAYLOAD_LEN), payload_len=PAYLOAD_LEN, scheme=scheme)
    session = embedder.session(f"{rng.getrandbits(64):x}")
    handed, entropies, evidence = [], 0.0, 0.0
    for _ in range(times):
        proposal, record = hand_over(pool, drawing, granularity, session=session, rng=rng)
        handed.append(proposal)
        distribution = record.distribution
        assert distribution is not None
        entropies += entropy(distribution)
        evidence += race_capacity(distribution)
    return Decided(tuple(handed), entropies / times, evidence / times)


def hand_over(
    pool: Pool, drawing: Drawing, granularity: Granularity, *, session: Session, rng: Random
) -> tuple[Proposal, StepRecord]:
    """One decision: samples, their counts as the list, a choice with the mark, one reply of the chosen group."""
    groups = grouped(drawing(pool, rng), pool.tools, _digest(session, granularity))
    choice = session.choose({name: len(some) for name, some in groups.items()})
    return rng.choice(groups[choice.behavior]), choice.record


def _digest(session: Session, granularity: Granularity) -> Callable[[bytes], str] | None:
    return session.argument_digest if granularity == "call" else None


def pool_entropy(pool: Pool, granularity: Granularity) -> float:
    """Of the unmarked agent: what a list with its whole distribution would carry at most."""
    return entropy(BehaviorDistribution.quantise(pool.shares(LEVELS[LEVEL_OF[granularity]])))


def against_pools(pools: Sequence[Pool], decided: Sequence[Decided], level: Level) -> ChiSquare:
    """What was handed over against the known frequencies, over all pools: statistics and degrees of freedom add up."""
    return _summed(
        [_against(pool, counted(pool, one.handed, level), level) for pool, one in zip(pools, decided, strict=True)]
    )


def against_unmarked(pools: Sequence[Pool], decided: Sequence[Decided], level: Level, rng: Random) -> ChiSquare:
    """What was handed over against as many unmarked replies, drawn for this."""
    tests = []
    for pool, one in zip(pools, decided, strict=True):
        unmarked = counted(pool, [pool.draw(rng) for _ in one.handed], level)
        tests.append(two_sample_test(counted(pool, one.handed, level), unmarked))
    return _summed(tests)


def counted(pool: Pool, handed: Sequence[Proposal], level: Level) -> Counter[str]:
    return Counter([level(pool, one) for one in handed])


def _against(pool: Pool, counts: Counter[str], level: Level) -> ChiSquare:
    shares = pool.shares(level)
    draws = counts.total()
    return chi_square_test([counts[name] for name in shares], [draws * share for share in shares.values()])


def _summed(tests: Sequence[ChiSquare]) -> ChiSquare:
    statistic, degrees = sum([one.statistic for one in tests]), sum([one.degrees for one in tests])
    return ChiSquare(statistic, degrees, chi_square_sf(statistic, degrees) if degrees else None)
