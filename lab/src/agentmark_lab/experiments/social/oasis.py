"""A social platform: five marked agents among ten, on OASIS. Who is recognised, and does the mark show?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

from agentmark.core.evidence import Evidence
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.oasis import PLATFORMS, Act, Member, Trajectory, load_package, simulate
from agentmark_lab.envs.oasis_personas import LABEL, MEMORY, load_scenario
from agentmark_lab.experiments.social.passing_off import as_marked
from agentmark_lab.experiments.social.social_quality import CONTROL, MARKED, Shown, quality, scored, spoiled
from agentmark_lab.kit.agent_loop import BASELINE, F, R, chooser_for, entropy_of
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.model_judge import URL_VARIABLE
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import exact_interval, share_text

NAME = "oasis"
TITLE = "OASIS: marked agents on a social platform (persona policy, not a language model)"

# Its agents are judged where a judge is named: the command that repeats it names it.
ASKS_JUDGE = True

PAYLOAD_LEN = 8
STEPS = 10
RUNS, QUICK_RUNS = 10, 1
# A judge is asked of the agents of so many runs: a local one takes a quarter of a minute for each.
JUDGED_RUNS = 2
# So many personas of a platform, in the order in which the judge is asked, are also shown spoiled. All five were
# planned; the time was up after these, before anybody had seen a score.
SPOILED_PERSONAS = 3
PLANNED = (
    f"Planned before any of these was judged: all agents of the first {JUDGED_RUNS} of {{runs}} runs, {{pairs}} pairs "
    "a setting. A pilot with another seed (six pairs, qwen2.5-coder-1.5b) showed deviations of a pair's difference up "
    "to 0.18, which makes intervals of some 0.23 to either side; and that some personas get lower scores whatever is "
    "done under them, which is why an agent under another's persona is compared with that other. Spoiled agents were "
    f"planned for all personas, and judged of the first {SPOILED_PERSONAS} of each platform for want of time, before "
    "any score was looked at."
)
PERMUTATIONS, QUICK_PERMUTATIONS = 10_000, 500
THRESHOLDS = (1e-2, 1e-3, 1e-6)
# A true hypothesis fails less often than this, over all settings together.
LEVEL = 0.001
# Of permutation tests. So few permutations as a quick run has can still fall below it, divided by the settings.
TEST_LEVEL = 0.01


def run(options: Options, progress: Progress) -> Findings:
    load_package(options.work)
    runs = QUICK_RUNS if options.quick else RUNS
    settings = [Setting(platform, policy, options.seed) for platform in PLATFORMS for policy in (F, R)]
    chunks = [Chunk(setting, number, options.work) for setting in settings for number in range(runs)]
    played = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="simulations")
    rounds = QUICK_PERMUTATIONS if options.quick else PERMUTATIONS
    logs = [
        Logs(
            setting,
            [one for chunk, part in zip(chunks, played, strict=True) if chunk.setting == setting for one in part],
        )
        for setting in settings
    ]
    analyses = map_chunks(
        partial(analyse, rounds=rounds),
        logs,
        workers=options.workers,
        progress=progress,
        label="analyses",
    )
    findings = _findings(analyses, quick=options.quick, judged=options.judge is not None)
    if options.judge is None:
        return findings
    found = scored(_shown(logs), options.judge, options.work / NAME, progress)
    pairs = min(runs, JUDGED_RUNS) * len(load_scenario(settings[0].platform).personas)
    planned = PLANNED.format(runs=runs, pairs=pairs)
    claims, tables = quality(found, options.judge, f"P_t: {LABEL}; the texts are templates.", planned)
    judged = [
        {"setting": one.shown.label, "group": one.shown.group, "pair": one.shown.pair, "scores": one.scores}
        for one in found
    ]
    return Findings([*findings.claims, *claims], [*findings.tables, *tables], {**findings.data, "judged": judged})


# Simulations ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """A platform and a scheme: one key and one identity for each persona, the same in all runs."""

    platform: str
    policy: str
    seed: int

    @property
    def key(self) -> SharedKey:
        return random_key(generator(self.seed, NAME, self.platform, self.policy, "key"))

    @property
    def label(self) -> str:
        return f"{self.platform}, {self.policy}"

    def registry(self) -> Registry:
        names = [persona.name for persona in load_scenario(self.platform).personas]
        payloads = generator(self.seed, NAME, self.platform, self.policy, "payloads").sample(
            range(1 << PAYLOAD_LEN), len(names)
        )
        pairs = zip(names, payloads, strict=True)
        return Registry(PAYLOAD_LEN, [Identity(name, payload) for name, payload in pairs])


@dataclass(frozen=True, slots=True)
class Chunk:
    """One run; what is random in it besides the choices is the same under both schemes."""

    setting: Setting
    number: int
    work: Path


@dataclass(frozen=True, slots=True)
class Played:
    """A trajectory, with its run and its group. Each persona of a run is played by one agent of either group."""

    run: int
    marked: bool
    trajectory: Trajectory


def run_chunk(chunk: Chunk) -> list[Played]:
    setting = chunk.setting
    common = generator(setting.seed, NAME, setting.platform, chunk.number)
    key, registry = setting.key, setting.registry()
    members, groups = [], []
    for persona in load_scenario(setting.platform).personas:
        # Which of the two agents is marked is left to chance, so that swapping a pair is as likely as not.
        first = common.random() < 0.5
        for marked in (first, not first):
            rng = generator(setting.seed, NAME, setting.platform, setting.policy, chunk.number, persona.name, marked)
            chooser = chooser_for(
                setting.policy if marked else BASELINE,
                key=key,
                payload=registry.named(persona.name).payload,
                payload_len=PAYLOAD_LEN,
                rng=rng,
            )
            members.append(Member(persona, chooser))
            groups.append(marked)
    with TemporaryDirectory() as folder:
        trajectories = simulate(
            PLATFORMS[setting.platform],
            members,
            steps=STEPS,
            seed=common.getrandbits(32),
            work=chunk.work,
            database=Path(folder) / "platform.db",
        )
    return [Played(chunk.number, marked, one) for marked, one in zip(groups, trajectories, strict=True)]


# What the logs say ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """A log of one agent, as the verifier sees it. `named` maps a threshold to the identity that is named."""

    bits: float
    likeliest: float
    unique: bool
    # Evidence for the claim of each identity of the registry.
    claims: dict[str, float]
    named: dict[float, str | None]


def read_log(records: Sequence[StepRecord], key: SharedKey, registry: Registry, identity: str) -> Reading:
    # The laxest threshold decides what is looked for; what it names is then held to the stricter ones as well.
    verifier = Verifier(key, registry=registry, threshold=max(THRESHOLDS), any_key_id=True)
    verdict = verifier.verify(records)
    name = None
    if verdict.candidate is not None:
        holder = registry.holder(verdict.candidate)
        # An accepted payload outside the registry is also a name given to the log.
        name = hex(verdict.candidate) if holder is None else holder.name
    readings = verifier.take_in(records).readings
    claims = {}
    for one in registry:
        evidence = Evidence()
        for reading in readings:
            evidence.update(reading.e_value(one.payload))
        claims[one.name] = evidence.bits
    firsts = [one for one, bits in claims.items() if bits == max(claims.values())]
    payload = registry.named(identity).payload
    explaining = [m for m in range(1 << PAYLOAD_LEN) if all(reading.e_value(m) > 0 for reading in readings)]
    return Reading(
        bits=sum([reading.evidence_bits for reading in readings]),
        likeliest=(identity in firsts) / len(firsts),
        unique=explaining == [payload],
        claims=claims,
        named={threshold: name if verdict.false_positive_rate <= threshold else None for threshold in THRESHOLDS},
    )


@dataclass(frozen=True, slots=True)
class Distance:
    """How far the actions of the groups are apart, and how far chance alone puts them: pairs swapped at random."""

    variation: float
    divergence: float
    variation_by_chance: float
    p_variation: float
    p_divergence: float
    refused: tuple[int, int]
    p_refused: float


def total_variation(one: Counter[str], other: Counter[str]) -> float:
    sizes = one.total(), other.total()
    return sum([abs(one[name] / sizes[0] - other[name] / sizes[1]) for name in one | other]) / 2


def jensen_shannon(one: Counter[str], other: Counter[str]) -> float:
    """In bits."""
    total = 0.0
    for name in one | other:
        p, q = one[name] / one.total(), other[name] / other.total()
        total += sum([x * log2(2 * x / (p + q)) for x in (p, q) if x > 0]) / 2
    return max(0.0, total)


def permutation_test(pairs: Sequence[tuple[Sequence[Act], Sequence[Act]]], rounds: int, rng: Random) -> Distance:
    """Each pair is a marked and a control trajectory of one persona in one run. Without an effect of the mark, swapping
    any of them changes nothing in law."""
    counts = [(Counter([a.behavior for a in m]), Counter([a.behavior for a in c])) for m, c in pairs]
    refusals = [(sum([a.refusal is not None for a in m]), sum([a.refusal is not None for a in c])) for m, c in pairs]

    def statistics(swaps: Sequence[bool]) -> tuple[float, float, int]:
        groups: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        difference = 0
        for swap, pair, refused in zip(swaps, counts, refusals, strict=True):
            groups[swap].update(pair[0])
            groups[not swap].update(pair[1])
            difference += (refused[1] - refused[0]) if swap else (refused[0] - refused[1])
        return total_variation(*groups), jensen_shannon(*groups), abs(difference)

    seen = statistics([False] * len(pairs))
    drawn = [statistics([rng.random() < 0.5 for _ in pairs]) for _ in range(rounds)]
    # The observed arrangement is one of those that chance could have drawn.
    p_values = [(1 + sum([one[i] >= seen[i] - 1e-12 for one in drawn])) / (1 + rounds) for i in range(3)]
    return Distance(
        variation=seen[0],
        divergence=seen[1],
        variation_by_chance=fmean([one[0] for one in drawn]),
        p_variation=p_values[0],
        p_divergence=p_values[1],
        refused=(sum([pair[0] for pair in refusals]), sum([pair[1] for pair in refusals])),
        p_refused=p_values[2],
    )


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is known of a setting."""

    setting: Setting
    marked: list[tuple[str, Reading]]
    control: list[tuple[str, Reading]]
    wrong_key: list[tuple[str, Reading]]
    pooled: list[tuple[str, Reading]]
    pooled_control: list[tuple[str, Reading]]
    entropy: float
    steps: int
    distance: Distance
    shares: dict[str, tuple[int, int]]
    # Marked steps whose three most recent behaviors came up before under the same identity.
    repeated_contexts: int

    @property
    def label(self) -> str:
        return self.setting.label


@dataclass(frozen=True, slots=True)
class Logs:
    """All trajectories of a setting."""

    setting: Setting
    played: list[Played]


def analyse(logs: Logs, *, rounds: int) -> Analysis:
    setting, played = logs.setting, logs.played
    key, registry = setting.key, setting.registry()
    stranger = random_key(generator(setting.seed, NAME, setting.platform, setting.policy, "stranger"))
    disguised = partial(as_marked, policy=setting.policy, key=key, payload_len=PAYLOAD_LEN)
    marked = [one for one in played if one.marked]
    control = [one for one in played if not one.marked]

    def readings(chosen: Sequence[Played], key: SharedKey) -> list[tuple[str, Reading]]:
        found = []
        for one in chosen:
            records = one.trajectory.records if one.marked else disguised(one.trajectory.records)
            found.append((one.trajectory.persona, read_log(records, key, registry, one.trajectory.persona)))
        return found

    def pooled(chosen: Sequence[Played]) -> list[tuple[str, Reading]]:
        found = []
        for identity in registry:
            records = [r for one in chosen if one.trajectory.persona == identity.name for r in one.trajectory.records]
            records = records if chosen[0].marked else disguised(records)
            found.append((identity.name, read_log(records, key, registry, identity.name)))
        return found

    place = {(one.run, one.trajectory.persona): one.trajectory for one in control}
    pairs = [(one.trajectory.acts, place[one.run, one.trajectory.persona].acts) for one in marked]
    acts = [Counter([act.behavior for one in group for act in one.trajectory.acts]) for group in (marked, control)]
    records = [record for one in played for record in one.trajectory.records]
    return Analysis(
        setting=setting,
        marked=readings(marked, key),
        control=readings(control, key),
        wrong_key=readings(marked, stranger),
        pooled=pooled(marked),
        pooled_control=pooled(control),
        entropy=fmean([entropy_of(record) for record in records]),
        steps=sum([len(one.trajectory.records) for one in marked]),
        distance=permutation_test(
            pairs, rounds, generator(setting.seed, NAME, setting.platform, setting.policy, "permutations")
        ),
        shares={name: (acts[0][name], acts[1][name]) for name in PLATFORMS[setting.platform].actions},
        repeated_contexts=_repeated_contexts(marked),
    )


def _repeated_contexts(marked: Sequence[Played]) -> int:
    seen: set[tuple[str, ...]] = set()
    repeated = 0
    for one in marked:
        behaviors = [act.behavior for act in one.trajectory.acts]
        for step in range(len(behaviors)):
            context = (one.trajectory.persona, *behaviors[max(0, step - MEMORY) : step])
            repeated += context in seen
            seen.add(context)
    return repeated


def _shown(logs: Sequence[Logs]) -> list[Shown]:
    """Of the first runs of each setting all agents; of those of one scheme also the control agents spoiled, which is
    about the judge and the same under both."""
    found = []
    for one in logs:
        personas = load_scenario(one.setting.platform).personas
        profiles = {persona.name: persona.profile for persona in personas}
        after = {
            persona.name: other.name for persona, other in zip(personas, [*personas[1:], personas[0]], strict=True)
        }
        shown = [
            Shown(
                label=one.setting.label,
                group=MARKED if played.marked else CONTROL,
                pair=f"{played.trajectory.persona}, run {played.run}",
                profile=profiles[played.trajectory.persona],
                trajectory=played.trajectory,
            )
            for played in one.played
            if played.run < JUDGED_RUNS
        ]
        found += shown
        if one.setting.policy == F:
            control = {one.pair: one for one in shown if one.group == CONTROL}
            asked_first = sorted(profiles.values())[:SPOILED_PERSONAS]
            for pair, agent in control.items():
                _, _, run = pair.partition(", ")
                other = control[f"{after[agent.trajectory.persona]}, {run}"]
                found += [one for one in spoiled(agent, other) if one.profile in asked_first]
    return found


# Findings ------------------------------------------------------------------------------------------------------------


def _findings(results: Sequence[Analysis], *, quick: bool, judged: bool) -> Findings:
    claims = []
    for one in results:
        right = sum([reading.named[1e-6] == name for name, reading in one.pooled])
        claims.append(
            Claim(
                f"{one.label}: {right} of {len(one.pooled)} identities are named at 1e-6 from their pooled "
                f"trajectories ({one.steps // len(one.pooled)} steps each).",
                right == len(one.pooled),
                # One run is seldom enough.
                aim=quick,
            )
        )
        distance = one.distance
        claims.append(
            Claim(
                f"{one.label}: the actions of the marked and the control agents differ no more than chance has it: "
                f"total variation {distance.variation:.3f} ({distance.variation_by_chance:.3f} by chance, "
                f"p = {distance.p_variation:.3f}, {len(one.marked)} pairs of trajectories).",
                distance.p_variation > TEST_LEVEL / len(results),
            )
        )
    p_values = [
        p for one in results for p in (one.distance.p_variation, one.distance.p_divergence, one.distance.p_refused)
    ]
    corrected = min(1.0, len(p_values) * min(p_values))
    claims.append(
        Claim(
            f"Of {len(p_values)} permutation tests (actions by two distances, and refusals) the smallest p is "
            f"{min(p_values):.3f}, which is {corrected:.2f} when corrected for their number.",
            corrected > TEST_LEVEL,
        )
    )
    claims += _false_name_claims(results)
    tables = [
        _detection_table(results),
        _pooled_table(results),
        _false_table(results),
        _distance_table(results, judged=judged),
        *[_share_table(results, platform) for platform in PLATFORMS],
    ]
    return Findings(claims, tables, {"policy": LABEL, "settings": [_data(one) for one in results]})


def _false_name_claims(results: Sequence[Analysis]) -> list[Claim]:
    claims = []
    strangers = [reading for one in results for _, reading in [*one.control, *one.wrong_key]]
    for threshold in THRESHOLDS:
        count = sum([reading.named[threshold] is not None for reading in strangers])
        low = exact_interval(count, len(strangers), confidence=1 - 2 * LEVEL).low
        claims.append(
            Claim(
                f"At {threshold:g}, {count} of {len(strangers)} logs without this key are given a name (control agents "
                f"passed off as marked, and marked agents read with a stranger's key).",
                low <= threshold,
            )
        )
    wrong = sum(
        [reading.named[1e-6] not in (name, None) for one in results for name, reading in [*one.marked, *one.pooled]]
    )
    total = sum([len(one.marked) + len(one.pooled) for one in results])
    claims.append(Claim(f"At 1e-6, {wrong} of {total} marked logs are named as another identity.", wrong == 0))
    return claims


def _detection_table(results: Sequence[Analysis]) -> Table:
    rows: list[list[Cell]] = []
    for one in results:
        trials = len(one.marked)
        rows.append(
            [
                one.setting.platform,
                one.setting.policy,
                f"{trials} + {len(one.control)}",
                f"{one.entropy:.2f}",
                f"{sum([reading.bits for _, reading in one.marked]) / one.steps:.2f}",
                f"{sum([reading.likeliest for _, reading in one.marked]) / trials:.2f}",
                share_text(sum([reading.unique for _, reading in one.marked]), trials),
                *[share_text(_claimed(one.marked, t), trials) for t in THRESHOLDS],
                *[share_text(sum([r.named[t] == name for name, r in one.marked]), trials) for t in THRESHOLDS],
            ]
        )
    columns = [
        "platform",
        "policy",
        "trajectories (marked + control)",
        "entropy/step",
        "bits/step",
        "likeliest of 5 is right",
        "only one of 256 explains it",
        *[f"claim accepted at {t:g}" for t in THRESHOLDS],
        *[f"named from registry at {t:g}" for t in THRESHOLDS],
    ]
    note = (
        f"P_t: {LABEL}. {STEPS} steps a trajectory, ten agents a run, five of them marked; follow graph 3 to 5; "
        "recommenders random (Twitter-like) and reddit. The paper's own list for these platforms, in its prompt, has "
        "1.99 bits. The paper reports a detection rate in a figure, without a number. Likeliest: ties count in part. A "
        "claim is of the true identity, made beforehand; a name from the registry pays for its five identities. Wilson "
        "95 % intervals in brackets."
    )
    return Table("One trajectory of ten steps", columns, rows, note)


def _pooled_table(results: Sequence[Analysis]) -> Table:
    rows: list[list[Cell]] = []
    for one in results:
        bits = [reading.claims[name] for name, reading in one.pooled]
        right = sum([reading.named[1e-6] == name for name, reading in one.pooled])
        rows.append(
            [
                one.setting.platform,
                one.setting.policy,
                len(one.pooled),
                one.steps // len(one.pooled),
                f"{right} of {len(one.pooled)}",
                f"{sum([reading.unique for _, reading in one.pooled])} of {len(one.pooled)}",
                f"{fmean(bits):.0f} ({min(bits):.0f} to {max(bits):.0f})",
                f"{100 * one.repeated_contexts / one.steps:.0f} %",
            ]
        )
    columns = [
        "platform",
        "policy",
        "identities",
        "steps each",
        "named at 1e-6",
        "only one of 256 explains it",
        "evidence bits, mean (range)",
        "steps whose 3 last behaviors repeat",
    ]
    note = (
        f"P_t: {LABEL}. All trajectories of an identity, judged as one log. The paper derives a step's key from the "
        "three most recent behaviors; ours from session and step, which never repeat. The last column counts the "
        "marked steps that would have used a key of theirs again."
    )
    return Table("Trajectories of one identity, pooled", columns, rows, note)


def _false_table(results: Sequence[Analysis]) -> Table:
    rows: list[list[Cell]] = []
    for one in results:
        others = [
            (name, replace(reading, claims={k: v for k, v in reading.claims.items() if k != name}))
            for name, reading in one.marked
        ]
        groups: list[tuple[str, list[tuple[str, Reading]], bool]] = [
            ("control agents, passed off as marked", one.control, True),
            ("the same, pooled by persona", one.pooled_control, True),
            ("marked agents, a stranger's key", one.wrong_key, True),
            ("marked agents, claims of the other four", others, False),
        ]
        for label, logs, registry in groups:
            claims = [bits for _, reading in logs for bits in reading.claims.values()]
            rows.append(
                [
                    one.setting.platform,
                    one.setting.policy,
                    label,
                    len(logs),
                    *[_named(logs, t) if registry else "" for t in THRESHOLDS],
                    len(claims),
                    *[sum([bits >= -log2(t) for bits in claims]) for t in THRESHOLDS],
                ]
            )
    columns = [
        "platform",
        "policy",
        "logs",
        "number",
        *[f"named at {t:g}" for t in THRESHOLDS],
        "false claims",
        *[f"accepted at {t:g}" for t in THRESHOLDS],
    ]
    note = f"P_t: {LABEL}. Every name and every accepted claim in this table is false."
    return Table("False acceptance", columns, rows, note)


def _distance_table(results: Sequence[Analysis], *, judged: bool) -> Table:
    rows: list[list[Cell]] = []
    for one in results:
        distance = one.distance
        rows.append(
            [
                one.setting.platform,
                one.setting.policy,
                f"{distance.variation:.3f}",
                f"{distance.variation_by_chance:.3f}",
                f"{distance.p_variation:.3f}",
                f"{distance.divergence:.4f}",
                f"{distance.p_divergence:.3f}",
                share_text(distance.refused[0], one.steps),
                share_text(distance.refused[1], one.steps),
                f"{distance.p_refused:.3f}",
            ]
        )
    columns = [
        "platform",
        "policy",
        "total variation",
        "by chance",
        "p",
        "Jensen-Shannon, bits",
        "p",
        "refused, marked",
        "refused, control",
        "p",
    ]
    note = (
        f"P_t: {LABEL}. Actions of the marked against the control agents, the same personas in the same runs; p by "
        "swapping pairs of trajectories at random. Refused: the platform's own answer (liked before, followed before, "
        "nothing found)."
    )
    if not judged:
        note += (
            " The paper's five judge dimensions were not scored: no judge model was given "
            f"({URL_VARIABLE} and the like)."
        )
    return Table("Marked and control agents compared", columns, rows, note)


def _share_table(results: Sequence[Analysis], platform: str) -> Table:
    mine = [one for one in results if one.setting.platform == platform]
    rows: list[list[Cell]] = []
    for name in PLATFORMS[platform].actions:
        row: list[Cell] = [name]
        for one in mine:
            row += [f"{100 * count / one.steps:.1f}" for count in one.shares[name]]
        rows.append(row)
    groups = [f"{one.setting.policy}, {group}" for one in mine for group in ("marked", "control")]
    return Table(
        f"Actions on the {platform.capitalize()}-like platform, %", ["action", *groups], rows, f"P_t: {LABEL}."
    )


def _claimed(readings: Sequence[tuple[str, Reading]], threshold: float) -> int:
    return sum([reading.claims[name] >= -log2(threshold) for name, reading in readings])


def _named(readings: Sequence[tuple[str, Reading]], threshold: float) -> int:
    return sum([reading.named[threshold] is not None for _, reading in readings])


def _true_claims(readings: Sequence[tuple[str, Reading]]) -> list[float]:
    return [round(reading.claims[name], 3) for name, reading in readings]


def _data(one: Analysis) -> dict[str, object]:
    distance = one.distance
    return {
        "platform": one.setting.platform,
        "policy": one.setting.policy,
        "steps": one.steps,
        "entropy": one.entropy,
        "claim_bits": _true_claims(one.marked),
        "claim_bits_pooled": _true_claims(one.pooled),
        "claim_bits_control": _true_claims(one.control),
        "unique": sum([reading.unique for _, reading in one.marked]),
        "total_variation": distance.variation,
        "total_variation_by_chance": distance.variation_by_chance,
        "p_variation": distance.p_variation,
        "jensen_shannon": distance.divergence,
        "p_divergence": distance.p_divergence,
        "refused": list(distance.refused),
        "actions": {name: list(counts) for name, counts in one.shares.items()},
    }
