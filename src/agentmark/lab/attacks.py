"""Every attack that a verifier must survive, carried out on real logs and judged by the real verifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log2
from random import Random

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import BehaviorDistribution
from agentmark.embed import Embedder
from agentmark.keys import SharedKey
from agentmark.lab.experiment import Cell, Claim, Findings, Progress, Table
from agentmark.lab.parallel import map_chunks
from agentmark.lab.samples import generator, named, random_key
from agentmark.lab.stats import exact_interval
from agentmark.lab.worlds import ALFWORLD, Agent, distribution_of, perturbed, shuffled
from agentmark.record import StepRecord
from agentmark.registry import Identity, Registry
from agentmark.verdict import Verdict
from agentmark.verify import Verifier

NAME = "attacks"
TITLE = "Attacks on a log, one by one"

PAYLOAD_LEN = 8
STEPS = 80
# What must come of an attack: the identity all the same, or nothing. Never another one.
NAMED = "named"
NOTHING = "not named"
EITHER = "either"


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each attack is made, forged logs tried, keys tried, and forgeries through the oracle of each scheme."""

    repeats: int
    forged_logs: int
    keys: int
    oracle: dict[str, int]


FULL = Effort(repeats=3, forged_logs=1000, keys=300, oracle={"F": 20, "R": 2})
QUICK = Effort(repeats=1, forged_logs=10, keys=10, oracle={"F": 1})


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


# The attacks -------------------------------------------------------------------------------------------------------


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
    return Verifier(scene.agent.key, search_limit=1 << 16).verify(records)


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


# Carrying them out ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """An attack, or one of the three that are counted; `repeats` times."""

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


FORGERY = "forgery from known pairs"
MANY_KEYS = "many keys tried on one log"
MANY_IDENTITIES = "many identities tried on one log"
ORACLE = "the verifier as an oracle"
BLIND_ORACLE = "the verifier as an oracle, no genuine log"


def run(*, quick: bool, seed: int, workers: int, progress: Progress) -> Findings:
    effort = QUICK if quick else FULL
    jobs = []
    for scheme in ("F", "R"):
        if scheme in effort.oracle:
            jobs.append(Job(ORACLE, scheme, effort.oracle[scheme], seed))
        jobs += [Job(attack.name, scheme, effort.repeats, seed) for attack in ATTACKS]
        jobs += [Job(FORGERY, scheme, effort.forged_logs // (5 if scheme == "R" else 1), seed)]
    jobs += [Job(kind, "F", effort.keys, seed) for kind in (MANY_KEYS, MANY_IDENTITIES, BLIND_ORACLE)]
    outcomes = map_chunks(carry_out, jobs, workers=workers, progress=progress, label="attacks")
    return _findings(dict(zip([(job.kind, job.scheme) for job in jobs], outcomes, strict=True)))


def carry_out(job: Job) -> Outcome:
    rng = generator(job.seed, NAME, job.kind, job.scheme)
    if job.kind == FORGERY:
        return forge(job, rng)
    if job.kind == MANY_KEYS:
        return try_keys(job, rng)
    if job.kind == MANY_IDENTITIES:
        return try_identities(job, rng)
    if job.kind == BLIND_ORACLE:
        return ask_blindly(job, rng)
    if job.kind == ORACLE:
        return ask_oracle(job, rng)
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
        verdict = Verifier(key, registry=registry, search_limit=1 << 12).verify(records)
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


# The report ----------------------------------------------------------------------------------------------------------


def _findings(outcomes: dict[tuple[str, str], Outcome]) -> Findings:
    rows: list[list[Cell]] = []
    surprises = []
    wrong = 0
    for attack in ATTACKS:
        for scheme in ("F", "R"):
            outcome = outcomes[attack.name, scheme]
            wanted = attack.outcome_f if scheme == "F" else attack.outcome_r
            wrong += outcome.wrong
            if (wanted == NAMED and outcome.named < outcome.trials) or (wanted == NOTHING and outcome.named):
                surprises.append(f"{attack.name} ({scheme})")
            rows.append(
                [
                    attack.name,
                    attack.needs,
                    scheme,
                    f"{outcome.named} of {outcome.trials} named",
                    f"{outcome.before_bits:.0f}",
                    f"{outcome.after_bits:.0f}" if abs(outcome.after_bits) < 1e6 else "ruled out",
                    "; ".join(outcome.reported) or "no",
                ]
            )
    claims = [
        Claim(
            f"Each of {len(ATTACKS)} treatments of a log ends as it should under both schemes: the identity is named, "
            f"or not, as the table says ({outcomes[ATTACKS[0].name, 'F'].trials} logs each); exceptions: "
            f"{', '.join(surprises) or 'none'}.",
            not surprises,
        ),
        Claim(
            f"No attack makes the verifier name an identity that did not make the log's steps: {wrong} cases.",
            not wrong,
        ),
        *[_never_claim(kind, scheme, outcomes) for kind, scheme in NEVER],
        *[_oracle_claim(scheme, outcomes[ORACLE, scheme]) for scheme in ("F", "R") if (ORACLE, scheme) in outcomes],
    ]
    counted: list[list[Cell]] = []
    for kind, scheme in NEVER:
        outcome = outcomes[kind, scheme]
        upper = exact_interval(outcome.named, outcome.trials).high
        best = f"{outcome.after_bits:.1f}" if outcome.after_bits else ""
        counted.append(
            [kind, NEEDS[kind], scheme, f"{outcome.named} of {outcome.trials} (below {upper:.1e})", best, ANSWERS[kind]]
        )
    for scheme in [scheme for scheme in ("F", "R") if (ORACLE, scheme) in outcomes]:
        outcome = outcomes[ORACLE, scheme]
        shown = f"{outcome.named} of {outcome.trials} forged; {_spread(outcome.queries)} questions"
        counted.append([ORACLE, NEEDS[ORACLE], scheme, shown, "", ANSWERS[ORACLE]])
    note = (
        f"ALFWorld-like logs of {STEPS} steps, {PAYLOAD_LEN}-bit identities, open decoding at 1e-6. Evidence: mean "
        "bits for the best candidate, before and after. Reported: what the verdict says of it, in any of the logs. A "
        "log that was cut at its end, or put in another order, cannot be told from a whole one without a chain or "
        "signature over it. Genuine records are evidence wherever they are shown: in another log they still name "
        "their own agent."
    )
    tables = [
        Table(
            "What becomes of a log",
            ["attack", "what it takes", "scheme", "outcome", "evidence before", "after", "reported"],
            rows,
            note,
        ),
        Table(
            "Forgery, tries and questions",
            ["attack", "what it takes", "scheme", "outcome", "best evidence (bits)", "what to do about it"],
            counted,
            "Exact 95 % limits. Forgers put genuine lists and choices under fresh contexts, and the identity is "
            f"claimed, so that no tries are paid for. Through the oracle, records with {FORGED_SIZE} equal behaviors "
            "are guessed.",
        ),
    ]
    data = {
        "attacks": [
            {
                "attack": kind,
                "scheme": scheme,
                "trials": outcome.trials,
                "named": outcome.named,
                "wrong": outcome.wrong,
                "before_bits": outcome.before_bits,
                "after_bits": outcome.after_bits if abs(outcome.after_bits) < 1e6 else None,
                "reported": list(outcome.reported),
                "queries": list(outcome.queries),
                "forged": list(outcome.forged),
            }
            for (kind, scheme), outcome in outcomes.items()
        ]
    }
    return Findings(claims, tables, data)


NEVER = ((FORGERY, "F"), (FORGERY, "R"), (MANY_KEYS, "F"), (MANY_IDENTITIES, "F"), (BLIND_ORACLE, "F"))
NEEDS = {
    FORGERY: "1,000 genuine records, no key",
    MANY_KEYS: "many keys",
    MANY_IDENTITIES: "a registry of 1,000",
    BLIND_ORACLE: "a verifier that answers",
    ORACLE: "one genuine log, a verifier that answers",
}
ANSWERS = {
    FORGERY: "nothing: fresh contexts have fresh draws",
    MANY_KEYS: "divide the threshold by the keys tried",
    MANY_IDENTITIES: "the verdict pays for the tries itself",
    BLIND_ORACLE: "limit questions: one in a million is lucky",
    ORACLE: "authenticate, limit and log those who ask (spec, section 10)",
}


def _never_claim(kind: str, scheme: str, outcomes: dict[tuple[str, str], Outcome]) -> Claim:
    outcome = outcomes[kind, scheme]
    upper = exact_interval(outcome.named, outcome.trials).high
    return Claim(
        f"{kind.capitalize()} ({scheme}): {outcome.named} of {outcome.trials:,} accepted (exact 95 % limit "
        f"{upper:.1e}).",
        outcome.named == 0,
    )


def _oracle_claim(scheme: str, outcome: Outcome) -> Claim:
    return Claim(
        f"A verifier that answers anyone can be made to help: with one genuine log of {scheme}, {outcome.named} of "
        f"{outcome.trials} attempts end in an accepted log without a genuine record, after {_spread(outcome.queries)} "
        "questions answered yes or no. Those who ask must be known, limited and logged.",
        outcome.named > 0,
    )


def _spread(counts: Sequence[int]) -> str:
    ordered = sorted(counts)
    return f"{ordered[0]} to {ordered[-1]} (median {ordered[len(ordered) // 2]})" if ordered else "no"
