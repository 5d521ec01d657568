"""Many episodes: every task, seed, source and policy. What is done is kept, so that a long run can be resumed."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import log2
from pathlib import Path
from random import Random
from typing import Any

from agentmark.keys.shared import SharedKey
from agentmark.policies.red_green import green_test
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.agent_loop import F, R, Timed, chooser_for, entropy, play
from agentmark_lab.data import work_folder
from agentmark_lab.envs.base import Task, of_each_group, open_environment
from agentmark_lab.experiment import Progress
from agentmark_lab.parallel import map_chunks
from agentmark_lab.samples import generator, random_key
from agentmark_lab.sources import SoftenedExpert

PAYLOAD_LEN = 8
# Raised whenever outcomes would differ, so that no run mixes two versions.
CAMPAIGN_VERSION = 1
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
    keep_logs: bool = False
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
class _Chunk:
    campaign: Campaign
    tasks: tuple[Task, ...]
    seed: int
    epsilon: float

    @property
    def place(self) -> Path:
        """Where its outcomes are kept once it is done."""
        content = json.dumps([CAMPAIGN_VERSION, asdict(self)], sort_keys=True)
        name = sha256(content.encode("utf-8")).hexdigest()[:24]
        return work_folder() / self.campaign.environment / f"{name}.json"

    @property
    def log_place(self) -> Path:
        return self.place.with_suffix(".jsonl.gz")


def run_campaign(campaign: Campaign, *, workers: int, progress: Progress) -> list[Outcome]:
    """Play what has not been played yet, and return all outcomes, in a fixed order."""
    tasks = _selected(open_environment(campaign.environment).tasks(), campaign.tasks_a_group)
    chunks = [
        _Chunk(campaign, tuple(tasks[start : start + TASKS_A_CHUNK]), seed, epsilon)
        for epsilon in campaign.epsilons
        for seed in campaign.seeds
        for start in range(0, len(tasks), TASKS_A_CHUNK)
    ]
    left = [chunk for chunk in chunks if not chunk.place.exists()]
    if len(left) < len(chunks):
        progress(f"{campaign.environment}: {len(chunks) - len(left)} of {len(chunks)} chunks are done already")
    map_chunks(_run_chunk, left, workers=workers, progress=progress, label=campaign.environment, keep=False)
    rows = [row for chunk in chunks for row in json.loads(chunk.place.read_text(encoding="utf-8"))]
    return [Outcome(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class KeptEpisode:
    """An episode whose log was kept, with what it takes to read it."""

    task: str
    group: str
    seed: int
    epsilon: float
    policy: str
    key: SharedKey
    payload: int
    records: tuple[StepRecord, ...]


def kept_episodes(campaign: Campaign, *, policy: str | None = None) -> list[KeptEpisode]:
    """The logs of a finished campaign that kept them, in a fixed order."""
    tasks = _selected(open_environment(campaign.environment).tasks(), campaign.tasks_a_group)
    episodes = []
    for epsilon in campaign.epsilons:
        for seed in campaign.seeds:
            for start in range(0, len(tasks), TASKS_A_CHUNK):
                chunk = _Chunk(campaign, tuple(tasks[start : start + TASKS_A_CHUNK]), seed, epsilon)
                with gzip.open(chunk.log_place, "rt", encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                episodes += [_kept(chunk, line) for line in lines if policy in (None, line["policy"])]
    return episodes


def _kept(chunk: _Chunk, line: dict[str, Any]) -> KeptEpisode:
    """Key and payload are drawn again, as they were for the episode: a log does not hold them."""
    task, policy = Task(*line["task"]), line["policy"]
    _, key, payload = _identity(chunk, task, policy)
    records = tuple([StepRecord.from_dict(record) for record in line["records"]])
    return KeptEpisode(task.id, task.group, chunk.seed, chunk.epsilon, policy, key, payload, records)


def _identity(chunk: _Chunk, task: Task, policy: str) -> tuple[Random, SharedKey, int]:
    rng = generator(chunk.seed, chunk.campaign.environment, task.id, chunk.epsilon, policy)
    return rng, random_key(rng), rng.getrandbits(PAYLOAD_LEN)


def _selected(tasks: Sequence[Task], a_group: int | None) -> list[Task]:
    return list(tasks) if a_group is None else of_each_group(tasks, a_group)


def _run_chunk(chunk: _Chunk) -> None:
    """Play every task of the chunk under every policy; the file appears only when all of it is done."""
    rows, logs = [], []
    for task in chunk.tasks:
        for policy in chunk.campaign.policies:
            outcome, records = _episode(chunk, task, policy)
            rows.append(asdict(outcome))
            logs.append(
                {"task": [task.id, task.group], "policy": policy, "records": [record.as_dict() for record in records]}
            )
    chunk.place.parent.mkdir(parents=True, exist_ok=True)
    if chunk.campaign.keep_logs:
        with gzip.open(chunk.log_place, "wt", encoding="utf-8") as file:
            file.writelines([json.dumps(log, ensure_ascii=False) + "\n" for log in logs])
    partial = chunk.place.with_suffix(".partial")
    partial.write_text(json.dumps(rows), encoding="utf-8")
    partial.replace(chunk.place)


def _episode(chunk: _Chunk, task: Task, policy: str) -> tuple[Outcome, tuple[StepRecord, ...]]:
    environment = open_environment(chunk.campaign.environment)
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
        entropy=sum([entropy(record.distribution) for record in played.records]),
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
