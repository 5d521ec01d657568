"""Many episodes: every task, seed, source and policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from random import Random

from agentmark.keys.shared import SharedKey
from agentmark.policies.red_green import green_test
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Task, of_each_group, open_environment
from agentmark_lab.kit.agent_loop import F, R, Timed, chooser_for, entropy_of, play
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.expert_agent import SoftenedExpert
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks

PAYLOAD_LEN = 8
TASKS_A_CHUNK = 4


@dataclass(frozen=True, slots=True)
class Campaign:
    """What to run: `seeds` trials of every task of an environment, under each policy and epsilon."""

    environment: str
    epsilons: tuple[float, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    # None: all. Else so many of every group, for a quick look.
    tasks_a_group: int | None = None
    # Whether the marks are read back. That is most of the cost of R, and says nothing on how the agent fares.
    read: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """One episode, in numbers."""

    task: str
    group: str
    seed: int
    epsilon: float
    policy: str
    success: bool
    steps: int
    lost: int
    # Sums over the steps: entropy of P_t, candidates, bits that the mark carries (F: coded bits, R: -log2 q_t).
    entropy: float
    candidates: int
    bits: float
    active_steps: int
    # Whether the episode alone names its 8-bit identity: as the only one that explains it; and at 1e-6.
    unique: bool
    accepted: bool
    wrong: bool
    green_hits: int
    green_expected: float
    choose_us: float
    # Whether the mark was read back; else all that comes of reading it is blank.
    read: bool = True


@dataclass(frozen=True, slots=True)
class LoggedEpisode:
    """The log of an episode, with what it takes to read it."""

    task: str
    group: str
    seed: int
    epsilon: float
    policy: str
    key: SharedKey
    payload: int
    records: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True)
class _Chunk:
    campaign: Campaign
    tasks: tuple[Task, ...]
    seed: int
    epsilon: float
    work: Path

    @property
    def episodes(self) -> list[tuple[Task, str]]:
        """Every task under every policy."""
        return [(task, policy) for task in self.tasks for policy in self.campaign.policies]


def run_campaign(campaign: Campaign, options: Options, progress: Progress) -> list[Outcome]:
    """All outcomes, in a fixed order."""
    chunks = _chunks(campaign, options)
    parts = map_chunks(_outcomes, chunks, workers=options.workers, progress=progress, label=campaign.environment)
    return [outcome for part in parts for outcome in part]


def logged_episodes(campaign: Campaign, options: Options, progress: Progress) -> list[LoggedEpisode]:
    """The same episodes in the same order, by their logs."""
    chunks = _chunks(campaign, options)
    parts = map_chunks(_logs, chunks, workers=options.workers, progress=progress, label=campaign.environment)
    return [
        _logged(chunk, task, policy, records)
        for chunk, part in zip(chunks, parts, strict=True)
        for (task, policy), records in zip(chunk.episodes, part, strict=True)
    ]


def _chunks(campaign: Campaign, options: Options) -> list[_Chunk]:
    tasks: Sequence[Task] = open_environment(campaign.environment, options.work).tasks()
    if campaign.tasks_a_group is not None:
        tasks = of_each_group(tasks, campaign.tasks_a_group)
    return [
        _Chunk(campaign, tuple(tasks[start : start + TASKS_A_CHUNK]), seed, epsilon, options.work)
        for epsilon in campaign.epsilons
        for seed in campaign.seeds
        for start in range(0, len(tasks), TASKS_A_CHUNK)
    ]


def _outcomes(chunk: _Chunk) -> list[Outcome]:
    return [_episode(chunk, task, policy)[0] for task, policy in chunk.episodes]


def _logs(chunk: _Chunk) -> list[tuple[StepRecord, ...]]:
    return [_episode(chunk, task, policy)[1] for task, policy in chunk.episodes]


def _logged(chunk: _Chunk, task: Task, policy: str, records: tuple[StepRecord, ...]) -> LoggedEpisode:
    """Key and payload are drawn again, as they were for the episode: a key leaves no process."""
    _, key, payload = _identity(chunk, task, policy)
    return LoggedEpisode(task.id, task.group, chunk.seed, chunk.epsilon, policy, key, payload, records)


def _identity(chunk: _Chunk, task: Task, policy: str) -> tuple[Random, SharedKey, int]:
    rng = generator(chunk.seed, chunk.campaign.environment, task.id, chunk.epsilon, policy)
    return rng, random_key(rng), rng.getrandbits(PAYLOAD_LEN)


def _episode(chunk: _Chunk, task: Task, policy: str) -> tuple[Outcome, tuple[StepRecord, ...]]:
    environment = open_environment(chunk.campaign.environment, chunk.work)
    rng, key, payload = _identity(chunk, task, policy)
    chooser = Timed(chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng))
    episode = environment.start(task, seed=chunk.seed)
    played = play(episode, SoftenedExpert(chunk.epsilon), chooser, max_steps=environment.max_steps)
    bits, active, unique, accepted, wrong = 0.0, 0, False, False, False
    if policy in (F, R) and chunk.campaign.read:
        verifier = Verifier(key, payload_len=PAYLOAD_LEN)
        readings = verifier.take_in(played.records).readings
        bits = sum([reading.evidence_bits for reading in readings])
        active = sum([reading.evidence_bits > 0 for reading in readings])
        explaining = list(range(1 << PAYLOAD_LEN))
        for reading in readings:
            explaining = [m for m in explaining if reading.e_value(m) > 0]
        unique = explaining == [payload]
        # No payload has more evidence than the readings hold, so that most short episodes need no verdict.
        if bits >= -log2(verifier.threshold):
            verdict = verifier.verify(played.records)
            accepted, wrong = verdict.accepted, verdict.accepted and verdict.payload != payload
    green = green_test(played.records, key)
    outcome = Outcome(
        task=task.id,
        group=task.group,
        seed=chunk.seed,
        epsilon=chunk.epsilon,
        policy=policy,
        success=played.success,
        steps=played.steps,
        lost=played.lost,
        entropy=sum([entropy_of(record) for record in played.records]),
        candidates=sum([len(record.distribution or ()) for record in played.records]),
        bits=bits,
        active_steps=active,
        unique=unique,
        accepted=accepted,
        wrong=wrong,
        green_hits=green.hits,
        green_expected=green.expected,
        choose_us=chooser.microseconds,
        read=chunk.campaign.read,
    )
    return outcome, played.records
