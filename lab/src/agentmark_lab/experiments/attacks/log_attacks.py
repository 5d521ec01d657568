"""Attacks by whoever can write to a log, or add to it: each a treatment of a genuine log, judged by the verifier."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from agentmark.core.distribution import BehaviorDistribution
from agentmark.embed.embedder import Embedder
from agentmark.record import StepRecord
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.attacks.attack_scene import PAYLOAD_LEN, STEPS, Job, Outcome, Scene, new_scene
from agentmark_lab.kit.worlds import distribution_of, perturbed, shuffled

# What must come of an attack: the identity all the same, or nothing. Never another one.
NAMED = "named"
NOTHING = "not named"
EITHER = "either"


@dataclass(frozen=True, slots=True)
class Attack:
    """What is done, by whom, and what must come of it under F and R."""

    name: str
    needs: str
    make: Callable[[Scene], list[StepRecord]]
    outcome_f: str = NAMED
    outcome_r: str = NAMED
    judge: Callable[[Scene, list[StepRecord]], Verdict] | None = None


WRITE = "write access to the log"


def _reworded(scene: Scene) -> list[StepRecord]:
    """Observations were bound into the contexts and kept; the text that is kept is then edited."""
    embedder = Embedder(
        scene.agent.key,
        scene.agent.payload,
        payload_len=PAYLOAD_LEN,
        scheme=scene.agent.scheme,
        keep_context=True,
    )
    session = embedder.session(scene.rng.randbytes(16).hex())
    records = []
    for i in range(STEPS):
        weights = scene.agent.world.draw(scene.rng).as_weights()
        record = session.choose(weights, context={"observation": f"you see drawer {i}"}).record
        edited = {**(record.raw_context or {}), "observation": f"there is a drawer, number {i}"}
        records.append(replace(record, raw_context=edited))
    return records


def _without(share: float) -> Callable[[Scene], list[StepRecord]]:
    return lambda scene: scene.rng.sample(scene.records, round((1 - share) * STEPS))


def _truncated(scene: Scene) -> list[StepRecord]:
    return scene.records[: STEPS // 2]


def _renumbered(count: int) -> Callable[[Scene], list[StepRecord]]:
    def make(scene: Scene) -> list[StepRecord]:
        moved = [replace(record, step_index=record.step_index + STEPS) for record in scene.records[:count]]
        return moved + scene.records[count:]

    return make


def _diluted(share: float) -> Callable[[Scene], list[StepRecord]]:
    def make(scene: Scene) -> list[StepRecord]:
        foreign = round(STEPS * share / (1 - share))
        return shuffled(scene.rng, scene.records + scene.agent.foreign_log(scene.rng, foreign))

    return make


def _spliced(scene: Scene) -> list[StepRecord]:
    return scene.records[: STEPS // 2] + scene.other.log(scene.rng, STEPS // 2)


def _reordered(scene: Scene) -> list[StepRecord]:
    return shuffled(scene.rng, scene.records)


def _duplicated(scene: Scene) -> list[StepRecord]:
    return shuffled(scene.rng, scene.records * 5)


def _repeated_contexts(scene: Scene) -> list[StepRecord]:
    """Half of the contexts a second time, with another choice."""
    return scene.records + [_other_choice(record, scene.rng) for record in scene.records[: STEPS // 2]]


def _other_choice(record: StepRecord, rng: Random) -> StepRecord:
    rivals = [name for name in distribution_of(record).behaviors if name != record.behavior]
    return replace(record, behavior=rng.choice(rivals))


def _replayed(scene: Scene) -> list[StepRecord]:
    """Genuine records in the midst of a stranger's log, untouched."""
    return shuffled(scene.rng, scene.agent.foreign_log(scene.rng, STEPS // 2) + scene.records)


def _replayed_in_place(scene: Scene) -> list[StepRecord]:
    """Some of the stranger's steps replaced by genuine records, renamed so that they seem to belong there."""
    foreign = scene.agent.foreign_log(scene.rng, 3 * STEPS)
    places = sorted(scene.rng.sample(range(len(foreign)), STEPS))
    for place, record in zip(places, scene.records, strict=True):
        foreign[place] = replace(record, session=foreign[place].session, step_index=foreign[place].step_index)
    return foreign


def _relabelled_length(scene: Scene) -> list[StepRecord]:
    return [replace(record, payload_len=32) for record in scene.records]


def _judge_any_length(scene: Scene, records: list[StepRecord]) -> Verdict:
    return Verifier(scene.agent.key, work_limit=200_000).verify(records)


def _other_key_ids(scene: Scene) -> list[StepRecord]:
    return [replace(record, key_id="0" * 16) for record in scene.records]


def _judge_any_key_id(scene: Scene, records: list[StepRecord]) -> Verdict:
    return Verifier(scene.agent.key, payload_len=PAYLOAD_LEN, any_key_id=True).verify(records)


def _altered_weights(scene: Scene) -> list[StepRecord]:
    return [perturbed(record, scene.rng, 0.45) for record in scene.records]


def _altered_choices(scene: Scene) -> list[StepRecord]:
    return [_other_choice(record, scene.rng) if scene.rng.random() < 0.3 else record for record in scene.records]


def _altered_names(scene: Scene) -> list[StepRecord]:
    """Every behavior renamed, in the same way throughout, with the order of ties kept."""
    return [
        replace(
            record,
            behavior=f"x{record.behavior}",
            distribution=BehaviorDistribution.from_weights(
                {f"x{name}": weight for name, weight in distribution_of(record).as_weights().items()}
            ),
        )
        for record in scene.records
    ]


def _stripped(scene: Scene) -> list[StepRecord]:
    return [record.with_partial_weights({}) for record in scene.records]


ATTACKS = (
    Attack("none", "nothing", lambda scene: scene.records),
    Attack("context edits: reworded observations", WRITE, _reworded),
    Attack("deletion of 40 %", WRITE, _without(0.4)),
    Attack("truncation to the first half", WRITE, _truncated),
    Attack("renumbering of a quarter", WRITE, _renumbered(STEPS // 4)),
    Attack("renumbering of all", WRITE, _renumbered(STEPS)),
    Attack("insertion: 10 % foreign", "our key id, which logs show", _diluted(0.1)),
    Attack("dilution: 50 % foreign", "our key id, which logs show", _diluted(0.5), outcome_f=EITHER),
    Attack("dilution: 80 % foreign", "our key id, which logs show", _diluted(0.8), outcome_f=EITHER, outcome_r=EITHER),
    Attack("splice of two agents", "logs of both", _spliced, outcome_f=EITHER, outcome_r=EITHER),
    Attack("reordering", WRITE, _reordered),
    Attack("duplication, five times", WRITE, _duplicated),
    Attack("repeated contexts with other choices, half", WRITE, _repeated_contexts),
    Attack("replay into another log, as they are", "genuine records", _replayed),
    Attack("replay into another log, renamed to fit", "genuine records", _replayed_in_place, EITHER, EITHER),
    Attack("relabelled payload length", WRITE, _relabelled_length, NOTHING, NOTHING, _judge_any_length),
    Attack("rewritten key ids", WRITE, _other_key_ids, NOTHING, NOTHING),
    Attack("rewritten key ids, read with any_key_id", WRITE, _other_key_ids, NAMED, NAMED, _judge_any_key_id),
    Attack("altered weights, sigma 0.45", WRITE, _altered_weights, outcome_f=EITHER),
    Attack("altered choices, 30 %", WRITE, _altered_choices, outcome_f=EITHER),
    Attack("altered names", WRITE, _altered_names, outcome_r=NOTHING),
    Attack("weights removed", WRITE, _stripped, outcome_f=NOTHING),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}


def treat(job: Job, rng: Random) -> Outcome:
    """Carry one attack out on so many logs, and judge each."""
    attack = BY_NAME[job.kind]
    before = after = 0.0
    named_right = wrong = 0
    reported: dict[str, None] = {}
    for _ in range(job.repeats):
        scene = new_scene(job.scheme, rng)
        before += scene.verifier.verify(scene.records).evidence_bits
        records = attack.make(scene)
        judge = attack.judge or (lambda scene, records: scene.verifier.verify(records))
        verdict = judge(scene, records)
        after += verdict.evidence_bits if verdict.candidate is not None else 0.0
        named_right += verdict.payload == scene.agent.payload
        allowed = {scene.agent.payload, scene.other.payload} if attack.make is _spliced else {scene.agent.payload}
        wrong += verdict.accepted and verdict.payload not in allowed
        reported.update(dict.fromkeys(_reports(verdict)))
        if attack.make is _spliced:
            found = {segment.payload for segment in scene.verifier.segments(records)}
            reported.update(dict.fromkeys(["segments name both agents"] if found >= allowed else []))
    repeats = job.repeats
    return Outcome(named_right, wrong, repeats, before / repeats, after / repeats, tuple(reported))


def _reports(verdict: Verdict) -> list[str]:
    """What the verdict tells of the attack, in short."""
    signs = {
        "raw context": "raw context does not fit its digest",
        "renumbered": "digest does not fit session and step",
        "more than one session": "contexts under several sessions",
        "different contexts": "steps with different contexts",
        "missing": "missing steps",
    }
    found = [short for sign, short in signs.items() for text in verdict.tampering if sign in text]
    counts = verdict.counts
    found += [outcome for outcome in sorted(counts) if outcome != "used" and counts[outcome] > 0]
    if verdict.contradicting and verdict.accepted:
        found.append("steps that are not this identity's")
    return found
