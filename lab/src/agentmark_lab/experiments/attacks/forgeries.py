"""Attacks without the key that try to have something named: forgery, many tries, and the verifier as an oracle."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from random import Random

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.statistics import named
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.attacks.attack_scene import PAYLOAD_LEN, STEPS, Job, Outcome, Scene, new_scene
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.worlds import ALFWORLD, Agent, distribution_of

FORGERY = "forgery from known pairs"
MANY_KEYS = "many keys tried on one log"
MANY_IDENTITIES = "many identities tried on one log"
ORACLE = "the verifier as an oracle"
BLIND_ORACLE = "the verifier as an oracle, no genuine log"


def forge(job: Job, rng: Random) -> Outcome:
    """Someone with a thousand genuine records, lists and choices, puts them under contexts of their own."""
    scene = new_scene(job.scheme, rng)
    known = scene.records + scene.agent.log(rng, 1000 - STEPS)
    accepted = 0
    best = 0.0
    for _ in range(job.repeats):
        session = rng.randbytes(16).hex()
        forged = [
            replace(record, session=session, step_index=i, context=context_digest(context_fields(session, i)))
            for i, record in enumerate(rng.sample(known, 40))
        ]
        # The strictest question for the verifier: the identity is claimed, so that no tries are paid for.
        verdict = scene.verifier.verify(forged, claim=scene.agent.payload)
        accepted += verdict.accepted
        best = max(best, verdict.evidence_bits)
    return Outcome(accepted, accepted, job.repeats, 0.0, best)


def try_keys(job: Job, rng: Random) -> Outcome:
    """An auditor tries key after key on a log that none of them made; the threshold is shared out among them."""
    records = new_scene(job.scheme, rng).records
    verdicts = [
        Verifier(random_key(rng), any_key_id=True, threshold=1e-6 / job.repeats).verify(records)
        for _ in range(job.repeats)
    ]
    accepted = sum(verdict.accepted for verdict in verdicts)
    best = max(verdict.surplus for verdict in verdicts)
    return Outcome(accepted, accepted, job.repeats, 0.0, best + PAYLOAD_LEN)


def try_identities(job: Job, rng: Random) -> Outcome:
    """A registry of a thousand on logs of identities that are not in it."""
    accepted = 0
    best = 0.0
    for _ in range(job.repeats):
        key = random_key(rng)
        payloads = rng.sample(range(1 << 32), 1001)
        registry = Registry(32, [Identity(f"tenant {i}", payload) for i, payload in enumerate(payloads[:1000])])
        records = Agent(ALFWORLD, key, payloads[1000], 32, job.scheme).log(rng, 30)
        verdict = Verifier(key, registry=registry, work_limit=20_000).verify(records)
        accepted += verdict.identity is not None
        best = max(best, verdict.evidence_bits if verdict.candidate in payloads[:1000] else 0.0)
    return Outcome(accepted, accepted, job.repeats, 0.0, best)


# The oracle ----------------------------------------------------------------------------------------------------------

FORGED_SIZE = 8


class Oracle:
    """A verifier that answers strangers: accepted or not, and nothing else."""

    def __init__(self, key: SharedKey) -> None:
        self._verifier = Verifier(key, payload_len=PAYLOAD_LEN)
        self.queries = 0

    def accepts(self, records: Sequence[StepRecord]) -> bool:
        self.queries += 1
        return self._verifier.verify(records).accepted


def ask_oracle(job: Job, rng: Random) -> Outcome:
    """From one genuine log to a log in which no record is genuine, by asking."""
    queries, forged_counts, accepted = [], [], 0
    for _ in range(job.repeats):
        scene = new_scene(job.scheme, rng)
        oracle = Oracle(scene.agent.key)
        forged = forge_by_asking(oracle, scene, rng)
        accepted += bool(forged) and scene.verifier.verify(forged).payload == scene.agent.payload
        queries.append(oracle.queries)
        forged_counts.append(len(forged))
    return Outcome(accepted, 0, job.repeats, queries=tuple(queries), forged=tuple(forged_counts))


def forge_by_asking(oracle: Oracle, scene: Scene, rng: Random) -> list[StepRecord]:
    """Cut the genuine log down until it is just not accepted. A forged record that agrees tips it over: so each answer
    tells whether a guess was right. Collect right guesses until they are accepted by themselves."""
    # The records that say little first: then the border is reached in small steps, and the gap at it is small.
    ordered = sorted(scene.records, key=lambda record: -distribution_of(record).probability(record.behavior))
    low, high = 0, len(ordered)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if oracle.accepts(ordered[:middle]) else (middle, high)
    border = ordered[:low]
    flat = BehaviorDistribution.quantise(named([1.0] * FORGED_SIZE))
    forged: list[StepRecord] = []
    for i in range(60):
        session = rng.randbytes(16).hex()
        blank = replace(
            scene.records[0],
            session=session,
            step_index=i,
            context=context_digest(context_fields(session, i)),
            distribution=flat,
        )
        for behavior in flat.behaviors:
            guess = replace(blank, behavior=behavior)
            if oracle.accepts([*border, guess]):
                forged.append(guess)
                break
        # It takes this many bits at the least; before that there is no point in asking.
        if len(forged) * log2(FORGED_SIZE) >= PAYLOAD_LEN - log2(1e-6) and oracle.accepts(forged):
            return forged
    return []


def ask_blindly(job: Job, rng: Random) -> Outcome:
    """Without a genuine log the first accepted one is a matter of luck: at most one question in a million."""
    scene = new_scene(job.scheme, rng)
    oracle = Oracle(scene.agent.key)
    accepted = sum([oracle.accepts(scene.agent.foreign_log(rng, 30)) for _ in range(job.repeats)])
    return Outcome(accepted, accepted, job.repeats)


FORGERIES = {
    FORGERY: forge,
    MANY_KEYS: try_keys,
    MANY_IDENTITIES: try_identities,
    BLIND_ORACLE: ask_blindly,
    ORACLE: ask_oracle,
}
