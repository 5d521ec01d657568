"""Episodes on what a model said once in each situation: by the lists that it states, by its own replies, by neither.

The plain agent (no induction) does what a reply at temperature 1 names, and is asked for no list. Proposals draw
several such replies, and mark the choice among them. The elicited baseline draws from the stated list, as the paper's
does, and AgentMark-F and -R mark that draw. Red-green and early stopping bend either law on purpose.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Protocol

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution, Rational
from agentmark.core.theory import entropy
from agentmark.elicit.situation import Elicitation, Proposal, Situation
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Session
from agentmark.keys.shared import SharedKey
from agentmark.policies import RedGreenSession
from agentmark.policies.chooser import Chooser
from agentmark.record import StepRecord
from agentmark_lab.envs.base import Environment, Episode, Task, open_environment
from agentmark_lab.envs.handed_over import HandedOver
from agentmark_lab.experiments.models.asked_once import AskedOnce, Step, told_of_calls, told_of_latest
from agentmark_lab.experiments.models.model_plan import ModelPlan, PlannedPlace
from agentmark_lab.experiments.models.reply_pools import LEVELS, Pool, early_stopping, fixed, hand_over
from agentmark_lab.kit.agent_loop import BASELINE, EARLY_STOPPING, RED_GREEN, F, R, chooser_for
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT
from agentmark_lab.kit.stats import divergence

LABEL = "model_utility"
PAYLOAD_LEN = 8
NO_INDUCTION = "no induction"
PROPOSALS_F, PROPOSALS_R = "AgentMark-F by proposals", "AgentMark-R by proposals"
PROPOSALS_RED_GREEN, PROPOSALS_EARLY = "red-green of replies", "early stopping by proposals"
# Takes what is offered, each as likely: what a task gives to whoever knows nothing.
UNIFORM = "uniform choice"
BY_REPLY = (NO_INDUCTION, PROPOSALS_F, PROPOSALS_R, PROPOSALS_RED_GREEN, PROPOSALS_EARLY)
BY_LIST = (BASELINE, F, R, RED_GREEN, EARLY_STOPPING)
POLICIES = (*BY_REPLY, *BY_LIST, UNIFORM)
# Whom each must not be told apart from.
REFERENCES = {**dict.fromkeys(BY_REPLY[1:], NO_INDUCTION), **dict.fromkeys(BY_LIST[1:], BASELINE)}
MARKED = (PROPOSALS_F, PROPOSALS_R, F, R)
BENT = (PROPOSALS_RED_GREEN, PROPOSALS_EARLY, RED_GREEN, EARLY_STOPPING)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One task with one model, in the set of trials that has this seed: the model is asked anew in each set."""

    model: ModelSpec
    plan: ModelPlan
    place: PlannedPlace
    task: Task
    seed: int
    work: Path

    @property
    def said(self) -> Path:
        """Where what the model says is kept."""
        model = self.model.label.replace("/", "-")
        return self.work / LABEL / f"{model}-seed{self.seed}" / self.place.environment


@dataclass(frozen=True, slots=True)
class Tally:
    """The episodes of a task under one policy, trial by trial: a byte for each, of which there are many thousands.
    `logs` holds those that are to be read. Steps are decisions, also those at which the model said nothing that could
    be used; `entropy` is that of the lists."""

    won: bytes
    steps: bytes
    lost: int
    entropy: float
    logs: list[list[StepRecord]]


@dataclass(frozen=True, slots=True)
class Outcome:
    task: Task
    by_policy: dict[str, Tally]
    # In how many situations the model was asked, and what that took.
    situations: int
    lists: Effort
    replies: Effort
    missing_mass: list[float]
    # Of pairs of episodes of different runs: divergences of their lists, step by step.
    divergences: list[list[float]]


# What the model says where the agent is ------------------------------------------------------------------------------


@dataclass
class Said:
    """Asked for when it is needed, and once."""

    situation: Situation
    asked: AskedOnce

    @cached_property
    def elicited(self) -> Elicitation:
        return self.asked.list_in(self.situation)

    @cached_property
    def pool(self) -> Pool:
        return self.asked.pool_in(self.situation)


# What is remembered of an agent's steps, and the situation that it is told.
Remembered = Callable[[Sequence[Step]], object]
Told = Callable[[Episode, Sequence[Step]], Situation]


def _calls(steps: Sequence[Step]) -> object:
    return frozenset(behavior for behavior, _ in steps)


def _latest(steps: Sequence[Step]) -> object:
    return steps[-1:]


@dataclass
class Mind:
    """One model in one task. Agents that remember the same, and can do the same, are in the same situation."""

    asked: AskedOnce
    remembers: Remembered
    told: Told
    known: dict[object, Said] = field(default_factory=dict)

    def in_situation(self, episode: Episode, steps: tuple[Step, ...]) -> Said:
        key = (self.remembers(steps), tuple(episode.behaviors))
        if key not in self.known:
            self.known[key] = Said(self.told(episode, steps), self.asked)
        return self.known[key]


def mind_of(chunk: Chunk, run: int) -> Mind:
    asked = AskedOnce(chunk.model, chunk.said, chunk.seed, chunk.plan.replies, run)
    if chunk.place.environment == DEFAULT_ENVIRONMENT:
        return Mind(asked, _calls, told_of_calls)
    return Mind(asked, _latest, told_of_latest)


# How each policy decides ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """None: the model said nothing that can be done. A policy that is given no list leaves no record."""

    behavior: str | None
    record: StepRecord | None = None


class Decider(Protocol):
    """A policy in one episode."""

    def decide(self, said: Said, episode: Episode) -> Decision: ...


@dataclass(frozen=True, slots=True)
class _ByList:
    chooser: Chooser

    def decide(self, said: Said, episode: Episode) -> Decision:
        weights = said.elicited.weights
        if weights is None:
            return Decision(None)
        choice = self.chooser.choose(weights)
        return Decision(choice.behavior, choice.record)


@dataclass(frozen=True, slots=True)
class _Plain:
    rng: Random

    def decide(self, said: Said, episode: Episode) -> Decision:
        return Decision(_named(said.pool.draw(self.rng)))


@dataclass(frozen=True, slots=True)
class _Proposed:
    session: Session
    rng: Random
    samples: int
    # Stops early, and is bent by it.
    early: bool = False

    def decide(self, said: Said, episode: Episode) -> Decision:
        drawing = early_stopping if self.early else fixed(self.samples)
        proposal, record = hand_over(said.pool, drawing, "tool", session=self.session, rng=self.rng)
        return Decision(_named(proposal), record)


@dataclass(frozen=True, slots=True)
class _RedGreenReplies:
    """Bends the frequencies of the replies, and hands on one of those it chose."""

    session: RedGreenSession
    rng: Random

    def decide(self, said: Said, episode: Episode) -> Decision:
        level = LEVELS["behavior"]
        choice = self.session.choose(said.pool.shares(level))
        group = [one for one in said.pool.proposals if level(said.pool, one) == choice.behavior]
        return Decision(_named(self.rng.choice(group)), choice.record)


@dataclass(frozen=True, slots=True)
class _Uniform:
    rng: Random

    def decide(self, said: Said, episode: Episode) -> Decision:
        return Decision(self.rng.choice(list(episode.behaviors)))


def _named(proposal: Proposal) -> str | None:
    return proposal.calls[0].name if proposal.calls else None


def decider(policy: str, *, key: SharedKey, payload: int, samples: int, rng: Random) -> Decider:
    """A fresh one for each episode. All its randomness comes from `rng` and the key, so that a run repeats."""
    if policy in BY_LIST:
        return _ByList(chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng))
    if policy == NO_INDUCTION:
        return _Plain(rng)
    if policy == UNIFORM:
        return _Uniform(rng)
    if policy == PROPOSALS_RED_GREEN:
        return _RedGreenReplies(RedGreenSession(key, rng=rng), rng)
    scheme = "F" if policy == PROPOSALS_F else "R"
    session = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme=scheme).session(rng.randbytes(16).hex())
    return _Proposed(session, rng, samples, early=policy == PROPOSALS_EARLY)


# Episodes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Played:
    """`weights`: the list of each step, for a policy that draws from lists."""

    success: bool
    steps: int
    lost: int
    records: list[StepRecord]
    weights: list[Mapping[str, Rational] | None]


def play_one(environment: Environment, task: Task, mind: Mind, policy: Decider) -> Played:
    """A step at which the model said nothing that can be done is lost: it costs a step, and changes nothing."""
    episode = environment.start(task, seed=0)
    steps: tuple[Step, ...] = getattr(episode, "before", ())
    taken = lost = 0
    records, lists = [], []
    while not episode.done and taken < environment.max_steps:
        said = mind.in_situation(episode, steps)
        decision = policy.decide(said, episode)
        taken += 1
        if decision.record is not None:
            records.append(decision.record)
        if isinstance(policy, _ByList):
            lists.append(said.elicited.weights)
        if decision.behavior is None:
            lost += 1
            continue
        episode.step(decision.behavior)
        steps = (*steps, (decision.behavior, episode.observation))
    return Played(episode.success, taken, lost, records, lists)


@cache
def environment_of(place: PlannedPlace, work: Path) -> Environment:
    """Opened once for each process, so that the sets of trials share what it remembers."""
    environment = open_environment(place.environment, work)
    # The expert's part is always the same.
    return HandedOver(environment, place.left, place.spare, seed=1) if place.left else environment


def identity(chunk: Chunk, number: int) -> tuple[SharedKey, int]:
    """Whoever works on every task of a place, in as many trials as the plan gives each."""
    rng = generator(chunk.seed, LABEL, "identity", chunk.model.label, chunk.place.environment, number)
    return random_key(rng), rng.getrandbits(PAYLOAD_LEN)


def run_chunk(chunk: Chunk) -> Outcome:
    """Replies before lists: what they share of a prompt is read once."""
    environment = environment_of(chunk.place, chunk.work)
    mind = mind_of(chunk, 0)
    by_policy = {policy: _tally(chunk, environment, mind, policy) for policy in POLICIES}
    lists = [said.elicited for said in mind.known.values() if "elicited" in vars(said)]
    return Outcome(
        chunk.task,
        by_policy,
        len(mind.known),
        mind.asked.effort_of_lists,
        mind.asked.effort_of_replies,
        [said.missing_mass for said in lists if said.missing_mass is not None],
        _divergences(chunk, environment, mind),
    )


def _tally(chunk: Chunk, environment: Environment, mind: Mind, policy: str) -> Tally:
    won, steps, lost, bits = bytearray(), bytearray(), 0, 0.0
    logs: list[list[StepRecord]] = []
    for trial in range(chunk.place.trials):
        number, begun = divmod(trial, chunk.place.each)
        if not begun:
            key, payload = identity(chunk, number)
        rng = generator(chunk.seed, LABEL, chunk.model.label, chunk.task.id, policy, trial)
        policy_now = decider(policy, key=key, payload=payload, samples=chunk.plan.samples, rng=rng)
        played = play_one(environment, chunk.task, mind, policy_now)
        won.append(played.success)
        steps.append(played.steps)
        lost += played.lost
        bits += sum([entropy(record.distribution) for record in played.records if record.distribution is not None])
        if policy in MARKED and trial < chunk.place.read:
            logs.append(played.records)
    return Tally(bytes(won), bytes(steps), lost, bits, logs)


def _divergences(chunk: Chunk, environment: Environment, mind: Mind) -> list[list[float]]:
    """Table 5: pairs of unmarked episodes, each on the lists of a run of its own, step by step until one ends. At the
    first step the situation is the same, and only the order of the options differs; later the two have branched."""
    minds = [mind, *[mind_of(chunk, run) for run in range(1, chunk.plan.runs)]]
    found = []
    for pair in range(chunk.plan.pairs if len(minds) > 1 else 0):
        rng = generator(chunk.seed, LABEL, "pairs", chunk.model.label, chunk.task.id, pair)
        one, other = [_lists_of(chunk, environment, mind, rng) for mind in rng.sample(minds, 2)]
        both = zip(one, other, strict=False)
        found.append([divergence(_shares(a), _shares(b)) for a, b in both if a is not None and b is not None])
    return found


def _shares(weights: Mapping[str, Rational]) -> dict[str, float]:
    quantised = BehaviorDistribution.quantise(weights).as_weights()
    return {name: weight / TOTAL_WEIGHT for name, weight in quantised.items()}


def _lists_of(chunk: Chunk, environment: Environment, mind: Mind, rng: Random) -> list[Mapping[str, Rational] | None]:
    unmarked = decider(BASELINE, key=random_key(rng), payload=0, samples=chunk.plan.samples, rng=rng)
    return play_one(environment, chunk.task, mind, unmarked).weights
