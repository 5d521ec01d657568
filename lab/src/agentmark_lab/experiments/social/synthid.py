"""Two marks in the same ToolBench episodes: AgentMark in what the agent does, SynthID-Text in its answers (Table 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from agentmark.core.statistics import wilson_interval
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import of_each_group, open_environment
from agentmark_lab.experiments.social.answer_writer import MODEL, load_model, tokenise, write_answers
from agentmark_lab.experiments.social.passing_off import as_marked
from agentmark_lab.experiments.social.text_utility import (
    ABOVE,
    LIKELY,
    MEASURES,
    JudgedTexts,
    Text,
    TextPlan,
    judge_texts,
    text_power_table,
    text_table,
    with_interval,
)
from agentmark_lab.experiments.social.two_marks import (
    BIASED,
    BOTH,
    CONFIGURATIONS,
    ENVIRONMENT,
    FOUR_LEAVES,
    LAYERS,
    NEITHER,
    PAYLOAD_LEN,
    TEXTS,
    Configuration,
    Log,
    Operator,
    PlayedTrial,
    Trial,
    operator,
    play_trial,
)
from agentmark_lab.kit.agent_loop import F
from agentmark_lab.kit.campaign import playing_code
from agentmark_lab.kit.code_digest import code_digest
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.equivalence import Comparison, clustered, length, points, span
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.naming import named_after
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.plan import Level, Plan
from agentmark_lab.kit.stats import exact_interval, share_text
from agentmark_lab.kit.utility_tests import Judged, judge, judged_table, power_table
from agentmark_lab.peers.synthid_text import NGRAM_LEN, TOP_K, Reader, TextReading, read_text, sampling_table

NAME = "synthid"
TITLE = "Table 3: AgentMark in the behaviors and SynthID-Text in the answers of the same ToolBench episodes"

# Answers of so many groups of tasks are written at once.
GROUPS_A_BATCH = 2
QUICK_TRIALS, QUICK_TASKS, QUICK_TOKENS, QUICK_STRANGERS = 1, 2, 40, 3
QUICK_CONFIGURATIONS = (NEITHER, BOTH)
# The detector of the toolkit that the paper used, as its configuration stands: the mean g-value, above this.
TOOLKIT_THRESHOLD = 0.52
PAPER_DETECTION = "96.64 ± 0.06 %"
PROXY = (
    "Success is an offline proxy, not a pass rate: every gold API was called, and then Finish, within ten decisions. "
    "It does not read the answer, so a mark in the answers can move it by chance only; what such a mark can spoil is "
    "tested on the texts."
)
SOURCE = "P_t is a softened expert, not a language model: 1 - epsilon on what it would do, the rest evenly on all else."


@dataclass(frozen=True, slots=True)
class Setting:
    """What is played: the plan, or for a quick look a little of it."""

    plan: Plan
    texts: TextPlan
    configurations: tuple[Configuration, ...]
    quick: bool

    @property
    def level(self) -> Level:
        return self.plan.levels[0]


def setting(*, quick: bool) -> Setting:
    plan, texts = Plan.of(NAME), TextPlan.of(NAME)
    if not quick:
        return Setting(plan, texts, CONFIGURATIONS, quick)
    first = next(iter(plan.sets))
    level = replace(plan.levels[0], trials=QUICK_TRIALS, read=QUICK_TRIALS)
    texts = replace(texts, tasks_a_group=QUICK_TASKS, tokens=QUICK_TOKENS, strangers=QUICK_STRANGERS)
    return Setting(replace(plan, sets={first: plan.sets[first]}, levels=(level,)), texts, QUICK_CONFIGURATIONS, quick)


def run(options: Options, progress: Progress) -> Findings:
    """Answers are written on one thread, whatever the workers: two collapse on a busy machine."""
    load_model(options.work)
    what = setting(quick=options.quick)
    who = operator(options.seed, strangers=what.texts.strangers, wrong_text_keys=what.texts.wrong_keys)
    outcomes = _outcomes(what, options, progress)
    reader = Reader(sampling_table())
    read: list[ReadConfiguration] = []
    for configuration in what.configurations:
        logs = _read_trial(what, configuration, options).logs
        texts = _texts(what, configuration, who, logs, options)
        readings = [read_text(reader, text.tokens, who.text_keys, who.wrong_text_keys) for text in texts]
        read.append(ReadConfiguration(configuration, read_logs(logs, configuration, who), texts, readings))
        progress(f"{configuration.name}: {len(texts)} answers, {read[-1].detected(what.texts.level)} detected")
    return _findings(what, outcomes, read)


def _outcomes(what: Setting, options: Options, progress: Progress) -> dict[str, list[Outcome]]:
    """Of every task in every trial, by the set of trials."""
    tasks = open_environment(ENVIRONMENT, options.work).tasks()
    tasks = tuple(of_each_group(tasks, QUICK_TASKS) if what.quick else tasks)
    found = {}
    for label in what.plan.sets:
        trials = [
            Trial(configuration, tasks, what.level.epsilon, seed, options.seed, options.work, is_read=False)
            for seed in what.plan.seeds(label, what.level, seed=options.seed)
            for configuration in what.configurations
        ]
        played = map_chunks(
            play_trial, trials, workers=options.workers, progress=progress, label=f"{label} trials", code=_playing()
        )
        found[label] = [outcome for trial in played for outcome in trial.outcomes]
    return found


def _playing() -> str:
    """The digest of the code that an episode depends on."""
    return code_digest([play_trial.__module__]) + playing_code(ENVIRONMENT)


def _read_trial(what: Setting, configuration: Configuration, options: Options) -> PlayedTrial:
    """The first trial of the first set again, in the tasks whose answers are written: the same draws, the same log."""
    tasks = of_each_group(open_environment(ENVIRONMENT, options.work).tasks(), what.texts.tasks_a_group)
    seed = what.plan.seeds(next(iter(what.plan.sets)), what.level, seed=options.seed)[0]
    return play_trial(
        Trial(configuration, tuple(tasks), what.level.epsilon, seed, options.seed, options.work, is_read=True)
    )


def _texts(
    what: Setting, configuration: Configuration, who: Operator, logs: Sequence[Log], options: Options
) -> list[Text]:
    """The answers of all episodes that came to an end."""
    texts = []
    groups = list(dict.fromkeys([log.group for log in logs]))
    for start in range(0, len(groups), GROUPS_A_BATCH):
        ended = [(log, log.brief) for log in logs if log.group in groups[start : start + GROUPS_A_BATCH] and log.brief]
        answers = write_answers(
            [brief for _, brief in ended],
            mark=who.text_mark(configuration),
            tokens=what.texts.tokens,
            seed=generator(options.seed, NAME, configuration.name, start).getrandbits(32),
            work=options.work,
        )
        for (log, _), answer in zip(ended, answers, strict=True):
            texts.append(Text(log.task, tuple(tokenise(answer.text, options.work)), answer))
    return texts


# What the logs and the texts say --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """What the behaviors of a configuration say under the operator's key and under strangers'."""

    episodes: int
    steps: int
    # Anybody; and the identity that the log carries, if it carries one.
    accepted: bool
    named: bool
    named_after: float
    evidence_bits: float
    bits: float
    # Steps whose choice is what the identity's coded bits lead to.
    agreeing: int
    # Logs of the tasks of one group alone, and how many of them name the identity.
    groups: int
    groups_named: int
    strangers: int
    strangers_naming: int


def read_logs(logs: Sequence[Log], configuration: Configuration, who: Operator) -> ReadLogs:
    """Behaviors without AgentMark are passed off as marked."""

    def passed_off(records: Sequence[StepRecord]) -> list[StepRecord]:
        marked = configuration.policy == F
        return list(records) if marked else as_marked(records, F, who.key, payload_len=PAYLOAD_LEN)

    records = passed_off([record for log in logs for record in log.records])
    ours = Verifier(who.key, payload_len=PAYLOAD_LEN, any_key_id=True)
    verdict = ours.verify(records)
    readings = ours.take_in(records).readings
    groups = list(dict.fromkeys([log.group for log in logs]))
    alone = [
        ours.verify(passed_off([record for log in logs if log.group == group for record in log.records]))
        for group in groups
    ]
    strange = [Verifier(key, payload_len=PAYLOAD_LEN, any_key_id=True).verify(records) for key in who.strangers]
    return ReadLogs(
        episodes=len(logs),
        steps=len(records),
        accepted=verdict.accepted,
        named=verdict.accepted and verdict.payload == who.payload,
        named_after=named_after(records, who.key, who.payload, payload_len=PAYLOAD_LEN),
        evidence_bits=ours.verify(records, claim=who.payload).evidence_bits,
        bits=sum([reading.evidence_bits for reading in readings]),
        agreeing=sum([reading.e_value(who.payload) > 0 for reading in readings]),
        groups=len(groups),
        groups_named=sum([one.accepted and one.payload == who.payload for one in alone]),
        strangers=len(strange),
        strangers_naming=sum([one.accepted for one in strange]),
    )


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """A configuration with what was read of it."""

    configuration: Configuration
    logs: ReadLogs
    texts: list[Text]
    readings: list[TextReading]

    @property
    def name(self) -> str:
        return self.configuration.name

    @property
    def carries_text_mark(self) -> bool:
        return self.configuration.leaves is not None

    @property
    def means(self) -> list[float]:
        return [reading.right.mean for reading in self.readings]

    @property
    def wrong(self) -> list[float]:
        return [mean for reading in self.readings for mean in reading.wrong]

    def detected(self, level: float) -> int:
        return sum([reading.p_value <= level for reading in self.readings])


# Findings ------------------------------------------------------------------------------------------------------------


def _findings(what: Setting, outcomes: dict[str, list[Outcome]], read: Sequence[ReadConfiguration]) -> Findings:
    judged = [
        judge(outcomes[label], one.label, what.level, label)
        for one in what.configurations
        if one != NEITHER
        for label in outcomes
    ]
    unmarked = read[0].texts
    texts = [judge_texts(one.name, one.texts, unmarked, what.texts) for one in read]
    claims = [
        *_behavior_claims(what, read),
        *_detection_claims(what, read),
        *_utility_claims(what, judged),
        *_text_claims(what, read, texts),
    ]
    everything = [outcome for part in outcomes.values() for outcome in part]
    marked = [one for one in judged if one.policy in [c.label for c in what.configurations if c.is_mark]]
    tasks = len({outcome.task for outcome in everything})
    note = f"{PROXY} {SOURCE} {what.plan.sentence}"
    tables = [
        _detection_table(what, read),
        _behavior_table(what, read),
        _success_table(what, everything, f"{note} Intervals: 95 %, tasks as clusters."),
        judged_table(judged, f"Against behaviors and answers without any mark (neither). {note}"),
        text_table(texts, _text_note(what)),
        power_table(marked, tasks),
        text_power_table([one for one in texts if _of(what, one.name).is_mark], what.texts, len(unmarked)),
        _comparison(what, read, judged, texts),
    ]
    return Findings(claims, tables, _data(what, outcomes, read))


def _of(what: Setting, name: str) -> Configuration:
    return next(one for one in what.configurations if one.name == name)


def _behavior_claims(what: Setting, read: Sequence[ReadConfiguration]) -> list[Claim]:
    made = []
    for one in read:
        logs = one.logs
        strangers = f"{logs.strangers_naming} of {logs.strangers} strangers' keys name anybody"
        if one.configuration.policy == F:
            made.append(
                Claim(
                    f"{one.name}: the {PAYLOAD_LEN}-bit identity is read at 1e-6 from the behaviors alone "
                    f"({logs.episodes} episodes, {logs.steps} steps, {logs.evidence_bits:.0f} bits of evidence, enough "
                    f"after {logs.named_after:g} steps); {logs.agreeing:,} of {logs.steps:,} steps agree with it, and "
                    f"{strangers}.",
                    logs.named and logs.agreeing == logs.steps and not logs.strangers_naming,
                    # A dozen episodes may be too few.
                    aim=what.quick,
                )
            )
        else:
            made.append(
                Claim(
                    f"{one.name}: nobody is named from behaviors without AgentMark, passed off as marked "
                    f"({logs.steps} steps); {strangers}.",
                    not logs.accepted and not logs.strangers_naming,
                )
            )
    return made


def _detection_claims(what: Setting, read: Sequence[ReadConfiguration]) -> list[Claim]:
    made, level = [], what.texts.level
    for one in [one for one in read if one.carries_text_mark]:
        found, count = one.detected(level), len(one.readings)
        made.append(
            Claim(
                f"{one.name}: SynthID-Text is detected in {found} of {count} texts at a level of {level:g}: "
                f"{share_text(found, count, digits=3)}, Wilson 95 %; planned: the lower end at least "
                f"{what.texts.least_detected:g}.",
                wilson_interval(found, count).low >= what.texts.least_detected,
                aim=what.quick,
            )
        )
    null = [reading for one in read if not one.carries_text_mark for reading in one.readings]
    false = sum([reading.p_value <= level for reading in null])
    made.append(
        Claim(
            f"SynthID-Text is reported in {false} of {len(null)} texts that do not carry it, at a level of {level:g}: "
            f"no more than chance allows (exact 99.8 % interval).",
            exact_interval(false, len(null), confidence=0.998).low <= level,
        )
    )
    wrong = [mean for one in read for mean in one.wrong]
    made.append(
        Claim(
            f"Under {what.texts.wrong_keys} wrong keys the mean g-value of all texts is {fmean(wrong):.4f}: one half "
            "within 0.005.",
            abs(fmean(wrong) - 0.5) < 0.005,
        )
    )
    if not what.quick:
        found_signal = signal_difference(*[next(one for one in read if one.configuration == c) for c in (BOTH, TEXTS)])
        margin = what.texts.signal.margin
        made.append(
            Claim(
                f"AgentMark-F in the behaviors takes nothing from SynthID-Text in the answers: mean g-value of both "
                f"against SynthID-Text only {with_interval(found_signal)}, within {margin:g} (TOST, tasks paired).",
                found_signal.equivalent(margin),
                aim=True,
            )
        )
    return made


def signal_difference(one: ReadConfiguration, other: ReadConfiguration) -> Comparison:
    """How much stronger a text's mark is in one configuration than in the other, task by task."""
    without = {text.task: mean for text, mean in zip(other.texts, other.means, strict=True)}
    pairs = zip(one.texts, one.means, strict=True)
    differences = tuple([mean - without[text.task] for text, mean in pairs if text.task in without])
    return Comparison(one.name, len(differences), len(differences), differences, is_share=False)


def _utility_claims(what: Setting, judged: Sequence[Judged]) -> list[Claim]:
    made = []
    for configuration in what.configurations:
        mine = [one for one in judged if one.policy == configuration.label]
        if not mine:
            continue
        pairs = f"{mine[0].success.episodes:,} pairs of episodes" + (" in each of two sets" if len(mine) == 2 else "")
        successes = " and ".join(
            [f"{points(one.success.difference)} (90 % {span(one.success.tost_interval)})" for one in mine]
        )
        if not configuration.is_mark:
            made.append(
                Claim(
                    f"{configuration.name} fails the same tests of success and length: {successes} points, {pairs}.",
                    not any(one.passes for one in mine),
                    aim=what.quick,
                )
            )
            continue
        made.append(
            Claim(
                f"{configuration.name}: the agent succeeds as often as with neither mark within "
                f"{100 * what.level.success.margin:g} points, and takes as many steps within "
                f"{what.level.steps.margin:g} (TOST): {successes} points, {pairs}.",
                all(one.same_success and one.same_steps for one in mine),
                aim=True,
            )
        )
        made.append(
            Claim(
                f"{configuration.name}: no task is seen to change, neither in success nor in length: p = "
                f"{' and '.join([f'{one.p_value:.2g}' for one in mine])}.",
                not any(one.is_seen for one in mine),
            )
        )
    return made


def _text_claims(what: Setting, read: Sequence[ReadConfiguration], judged: Sequence[JudgedTexts]) -> list[Claim]:
    made = []
    for one, texts in zip(read, judged, strict=True):
        measured = (
            f"{with_interval(texts.found[ABOVE])} nats a token above expectation (90 %), "
            f"{with_interval(texts.found[LIKELY])} in log-probability against neither, {texts.texts} texts"
        )
        if one.configuration in (TEXTS, BOTH):
            made.append(
                Claim(
                    f"{one.name}: the texts are as likely under the model, and as rich in bigrams, as without a mark "
                    f"within the planned margins (TOST): {measured}.",
                    all(texts.same(measure) for measure in MEASURES),
                    aim=True,
                )
            )
            made.append(
                Claim(f"{one.name}: no difference in the texts is seen: p = {texts.p_value:.2g}.", not texts.is_seen)
            )
        if one.configuration in (FOUR_LEAVES, BIASED):
            made.append(
                Claim(
                    f"{one.name}: the texts fail the same tests (by {texts.reasons}): {measured}, "
                    f"p = {texts.p_value:.2g}.",
                    texts.is_seen,
                )
            )
    return made


# Tables --------------------------------------------------------------------------------------------------------------


def _detection_table(what: Setting, read: Sequence[ReadConfiguration]) -> Table:
    level = what.texts.level
    rows: list[list[Cell]] = []
    for one in read:
        count = len(one.readings)
        found, toolkit = one.detected(level), sum([mean > TOOLKIT_THRESHOLD for mean in one.means])
        rows.append(
            [
                one.name,
                "yes" if one.carries_text_mark else "no",
                count,
                f"{fmean([reading.tokens for reading in one.readings]):.0f}",
                _mean(one.means),
                f"{min(one.means):.3f} to {max(one.means):.3f}",
                f"{found} of {count}: {share_text(found, count, digits=3)}",
                f"{max([reading.p_value for reading in one.readings]):.3f}",
                f"{toolkit} of {count}: {share_text(toolkit, count, digits=3)}",
                f"{fmean(one.wrong):.4f}",
                f"{100 * fmean([mean > TOOLKIT_THRESHOLD for mean in one.wrong]):.2f} %",
            ]
        )
    columns = [
        "configuration",
        "carries SynthID-Text",
        "texts",
        "tokens/text",
        "mean g-value",
        "range over texts",
        f"detected at {level:g}",
        "largest p",
        f"mean above {TOOLKIT_THRESHOLD}",
        "wrong keys: mean",
        f"wrong keys above {TOOLKIT_THRESHOLD}",
    ]
    note = (
        f"Texts: {MODEL}, through transformers, temperature 1, the {TOP_K} likeliest tokens, {what.texts.tokens} tokens "
        f"without an end. SynthID-Text: n-grams of {NGRAM_LEN}, {LAYERS} keys, 2 leaves (as transformers has it, and as "
        f"what preserves the distribution) and 4 (the paper's appendix); repeated contexts and the first "
        f"{NGRAM_LEN - 1} tokens are not marked. The detector is not trained: the mean of the g-values of the text, "
        f"tokenised anew, each context once. Detected: at most {level:g} of the right key and "
        f"{what.texts.wrong_keys} wrong ones, all drawn alike, do as well as the right one; that is the level, whatever "
        f"the text is. Beside it the toolkit's own threshold, {TOOLKIT_THRESHOLD}, whose level is not stated: what wrong "
        "keys make of it stands in the last column. Intervals: 95 %."
    )
    return Table("SynthID-Text in the answers", columns, rows, note)


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3f}"
    interval = Comparison("", len(values), len(values), tuple(values), is_share=False).interval
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _behavior_table(what: Setting, read: Sequence[ReadConfiguration]) -> Table:
    rows: list[list[Cell]] = []
    for one in read:
        logs, marked = one.logs, one.configuration.policy == F
        rows.append(
            [
                one.name,
                logs.episodes,
                logs.steps,
                "read" if logs.named else ("somebody is named" if logs.accepted else "nobody is named"),
                f"{logs.evidence_bits:.0f}",
                f"{logs.bits / logs.steps:.2f}" if marked else "",
                f"{logs.named_after:g}" if marked else "",
                f"{logs.agreeing:,} of {logs.steps:,}",
                f"{logs.groups_named} of {logs.groups}",
                f"{logs.strangers_naming} of {logs.strangers}",
            ]
        )
    columns = [
        "configuration",
        "episodes",
        "steps",
        f"{PAYLOAD_LEN}-bit identity, 1e-6",
        "evidence bits",
        "bits/step",
        "named after steps",
        "steps that agree",
        "subsets that name it alone",
        "strangers' keys that name anybody",
    ]
    note = (
        f"{SOURCE} Epsilon {what.level.epsilon}. One operator, one key and one identity; each episode is a session. The "
        "logs are those of the episodes whose answers were written, and hold nothing of the answers. Behaviors without "
        "AgentMark are passed off as marked; about as many of their steps agree with the identity as chance has it. A "
        "single episode is too short to name anybody at 1e-6, and one subset alone may be."
    )
    return Table("AgentMark-F in the behaviors", columns, rows, note)


def _success_table(what: Setting, outcomes: Sequence[Outcome], note: str) -> Table:
    rows: list[list[Cell]] = []
    for one in what.configurations:
        mine = [outcome for outcome in outcomes if outcome.policy == one.label]
        steps = fmean([length(outcome) for outcome in mine])
        rows.append([one.name, len(mine), clustered(mine, lambda outcome: outcome.success, scale=100), f"{steps:.2f}"])
    return Table("Success by configuration", ["configuration", "episodes", "success %", "steps"], rows, note)


def _text_note(what: Setting) -> str:
    return (
        "Above expectation: the mean log-probability of the tokens in the model's own distribution (nats a token), less "
        "what it expects there (minus its entropy). Without a mark, and with one that preserves the distribution, this "
        "is zero on average, whatever the text is about. Log-probability, and the share of neighbours that are a new "
        "pair: against the answers of neither in the same tasks. Same: both one-sided tests at 5 % within the margin "
        "(TOST), answers of a task as one; p: the smallest of three tests that the mean is zero, times three. "
        f"A green list of half of all tokens, likelier by 2 nats, and a tournament of 4 leaves are under the same tests. "
        f"{what.plan.sentence}"
    )


def _comparison(
    what: Setting, read: Sequence[ReadConfiguration], judged: Sequence[Judged], texts: Sequence[JudgedTexts]
) -> Table:
    """The paper's table, with what it leaves open: whether utility is preserved."""
    rows: list[list[Cell]] = []
    for one, text in zip(read, texts, strict=True):
        mine = [j for j in judged if j.policy == one.configuration.label]
        found, count = one.detected(what.texts.level), len(one.readings)
        rows.append(
            [
                one.name,
                "yes" if one.configuration.policy == F else "no",
                "-" if one.configuration.policy != F else ("yes" if one.logs.named else "no"),
                f"{100 * found / count:.1f} %" if one.carries_text_mark else "-",
                "" if not mine else ("passes" if all(j.passes for j in mine) else _worst(mine)),
                "" if one.configuration == NEITHER else text.verdict,
            ]
        )
    rows.append(["both, the paper's figures (not ours)", "yes", "100 %", PAPER_DETECTION, "preserved", "not told"])
    note = (
        "The paper: ToolBench, 149 trajectories, Llama-3.2-3B-Instruct, MarkLLM's detector. Its figures stand here for "
        "orientation; the model is another one. Its section 5 calls SynthID-Text distribution-preserving, its appendix "
        "the mode distortionary, with 4 leaves: the row of 4 leaves says what that costs."
    )
    columns = [
        "configuration",
        "multi-bit",
        "behaviors decoded",
        "content detected",
        "tests of success and length",
        "tests of texts",
    ]
    return Table("Beside the paper's Table 3", columns, rows, note)


def _worst(judged: Sequence[Judged]) -> str:
    return "**fails**" if any(one.is_seen for one in judged) else "not shown"


def _data(what: Setting, outcomes: dict[str, list[Outcome]], read: Sequence[ReadConfiguration]) -> dict[str, Any]:
    return {
        "model": MODEL,
        "plan": what.plan.data,
        "playing_code": _playing(),
        "configurations": [
            {
                "name": one.name,
                "texts": [
                    {
                        "task": text.task,
                        "tokens": reading.tokens,
                        "flips": reading.right.flips,
                        "mean_g": reading.right.mean,
                        "p": reading.p_value,
                        **{measure: round(value, 5) for measure, value in text.values.items()},
                    }
                    for text, reading in zip(one.texts, one.readings, strict=True)
                ],
            }
            for one in read
        ],
        "outcomes": {label: _by_task(part, what.configurations) for label, part in outcomes.items()},
    }


def _by_task(outcomes: Sequence[Outcome], configurations: Sequence[Configuration]) -> dict[str, str]:
    """For each configuration successes and steps of all trials of a task, as `17 93`."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.task, {}).setdefault(outcome.policy, []).append(outcome)
    return {
        task: ", ".join(
            [
                f"{sum([o.success for o in mine[one.label]])} {sum([o.steps for o in mine[one.label]])}"
                for one in configurations
            ]
        )
        for task, mine in found.items()
    }
