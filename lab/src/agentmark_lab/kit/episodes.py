"""One episode of an agent that follows an expert: what is drawn for it, how it is played, and what came of it.

Whatever an episode depends on stands here or is imported from here: the digest of the playing code begins with this
module and with the environment's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from random import Random

from agentmark.keys.shared import SharedKey
from agentmark.policies.red_green import GreenTest, green_test
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Task, open_environment
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN, F, Played, R, Timed, chooser_for, entropy_of, play
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.expert_agent import SoftenedExpert

PAYLOAD_LEN = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where an episode is played: the environment, with what somebody brought to it, a trial and an epsilon."""

    environment: str
    own: Path | None
    work: Path
    seed: int
    epsilon: float
    # Whether the mark is read back, and the bias measured. That is most of the cost of R, and says nothing on how the
    # agent fares.
    read: bool


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
class MarkRead:
    """What the log of an episode says by itself; nothing, where it was not read."""

    bits: float = 0.0
    active_steps: int = 0
    unique: bool = False
    accepted: bool = False
    wrong: bool = False


def identity(place: Place, task: Task, policy: str) -> tuple[Random, SharedKey, int]:
    """The generator of an episode, and the key and payload that were drawn from it first."""
    rng = generator(place.seed, place.environment, task.id, place.epsilon, policy)
    return rng, random_key(rng), rng.getrandbits(PAYLOAD_LEN)


def play_one(place: Place, task: Task, policy: str) -> tuple[Outcome, tuple[StepRecord, ...]]:
    """Play it, and read its log."""
    environment = open_environment(place.environment, place.work, place.own)
    rng, key, payload = identity(place, task, policy)
    chooser = Timed(chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng))
    episode = environment.start(task, seed=place.seed)
    played = play(episode, SoftenedExpert(place.epsilon), chooser, max_steps=environment.max_steps)
    mark, green = MarkRead(), None
    if place.read and policy in (F, R):
        mark = _mark_read(played.records, key, payload)
    if place.read and policy in (BASELINE, RED_GREEN):
        green = green_test(played.records, key)
    outcome = _outcome(place, task, policy, played=played, mark=mark, green=green, choose_us=chooser.microseconds)
    return outcome, played.records


def _mark_read(records: Sequence[StepRecord], key: SharedKey, payload: int) -> MarkRead:
    verifier = Verifier(key, payload_len=PAYLOAD_LEN)
    readings = verifier.take_in(records).readings
    bits = sum([reading.evidence_bits for reading in readings])
    explaining = list(range(1 << PAYLOAD_LEN))
    for reading in readings:
        explaining = [m for m in explaining if reading.e_value(m) > 0]
    accepted = wrong = False
    # No payload has more evidence than the readings hold, so that most short episodes need no verdict.
    if bits >= -log2(verifier.threshold):
        verdict = verifier.verify(records)
        accepted, wrong = verdict.accepted, verdict.accepted and verdict.payload != payload
    active = sum([reading.evidence_bits > 0 for reading in readings])
    return MarkRead(bits, active, explaining == [payload], accepted, wrong)


def _outcome(
    place: Place,
    task: Task,
    policy: str,
    *,
    played: Played,
    mark: MarkRead,
    green: GreenTest | None,
    choose_us: float,
) -> Outcome:
    return Outcome(
        task=task.id,
        group=task.group,
        seed=place.seed,
        epsilon=place.epsilon,
        policy=policy,
        success=played.success,
        steps=played.steps,
        lost=played.lost,
        entropy=sum([entropy_of(record) for record in played.records]),
        candidates=sum([len(record.distribution or ()) for record in played.records]),
        bits=mark.bits,
        active_steps=mark.active_steps,
        unique=mark.unique,
        accepted=mark.accepted,
        wrong=mark.wrong,
        green_hits=0 if green is None else green.hits,
        green_expected=0.0 if green is None else green.expected,
        choose_us=choose_us,
        read=place.read,
    )
