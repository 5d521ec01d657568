"""Many episodes: every task, seed, source and policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark_lab.envs.base import Task, module_of, of_each_group, open_environment
from agentmark_lab.kit.code_digest import code_digest
from agentmark_lab.kit.episodes import PAYLOAD_LEN, Outcome, Place, identity, play_one
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks

__all__ = [
    "PAYLOAD_LEN",
    "Campaign",
    "LoggedEpisode",
    "Outcome",
    "logged_episodes",
    "playing_code",
    "run_campaign",
]

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
    # Whether the marks are read back, and the bias measured (`Place`).
    read: bool = True
    # The file or folder of tasks that somebody brings, for an environment that plays such.
    own: Path | None = None
    # The digest of the plan, if there is one: what an interrupted run has kept counts for that plan alone, so that no
    # margin is set after a look at it.
    plan: str = ""


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
    def place(self) -> Place:
        campaign = self.campaign
        return Place(campaign.environment, campaign.own, self.work, self.seed, self.epsilon, campaign.read)

    @property
    def episodes(self) -> list[tuple[Task, str]]:
        """Every task under every policy."""
        return [(task, policy) for task in self.tasks for policy in self.campaign.policies]


def run_campaign(campaign: Campaign, options: Options, progress: Progress) -> list[Outcome]:
    """All outcomes, in a fixed order."""
    chunks = _chunks(campaign, options)
    parts = map_chunks(
        _outcomes,
        chunks,
        workers=options.workers,
        progress=progress,
        label=campaign.environment,
        code=playing_code(campaign.environment, campaign.own),
    )
    return [outcome for part in parts for outcome in part]


def logged_episodes(campaign: Campaign, options: Options, progress: Progress) -> list[LoggedEpisode]:
    """The same episodes in the same order, by their logs."""
    chunks = _chunks(campaign, options)
    parts = map_chunks(
        _logs,
        chunks,
        workers=options.workers,
        progress=progress,
        label=f"{campaign.environment}, logs",
        code=playing_code(campaign.environment, campaign.own),
    )
    return [
        _logged(chunk, task, policy, records)
        for chunk, part in zip(chunks, parts, strict=True)
        for (task, policy), records in zip(chunk.episodes, part, strict=True)
    ]


def playing_code(environment: str, own: Path | None = None) -> str:
    """The digest of the code that plays there, and of the tasks that were brought: what an outcome depends on."""
    code = code_digest([identity.__module__, module_of(environment)])
    if own is None:
        return code
    digest = sha256(code.encode())
    for file in _files_of(own):
        digest.update(f"{file.relative_to(own)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _files_of(own: Path) -> list[Path]:
    """What tasks are made of; a folder may hold anything else besides."""
    return sorted([*own.rglob("*.json"), *own.rglob("*.tw-pddl")]) if own.is_dir() else [own]


def _chunks(campaign: Campaign, options: Options) -> list[_Chunk]:
    tasks: Sequence[Task] = open_environment(campaign.environment, options.work, campaign.own).tasks()
    if campaign.tasks_a_group is not None:
        tasks = of_each_group(tasks, campaign.tasks_a_group)
    return [
        _Chunk(campaign, tuple(tasks[start : start + TASKS_A_CHUNK]), seed, epsilon, options.work)
        for epsilon in campaign.epsilons
        for seed in campaign.seeds
        for start in range(0, len(tasks), TASKS_A_CHUNK)
    ]


def _outcomes(chunk: _Chunk) -> list[Outcome]:
    return [play_one(chunk.place, task, policy)[0] for task, policy in chunk.episodes]


def _logs(chunk: _Chunk) -> list[tuple[StepRecord, ...]]:
    return [play_one(chunk.place, task, policy)[1] for task, policy in chunk.episodes]


def _logged(chunk: _Chunk, task: Task, policy: str, records: tuple[StepRecord, ...]) -> LoggedEpisode:
    """Key and payload are drawn again, as they were for the episode: a key leaves no process."""
    _, key, payload = identity(chunk.place, task, policy)
    return LoggedEpisode(task.id, task.group, chunk.seed, chunk.epsilon, policy, key, payload, records)
