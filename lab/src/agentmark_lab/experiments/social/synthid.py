"""Two marks in the same ToolBench episodes: AgentMark in what the agent does, SynthID-Text in its answers (Table 3)."""

from collections.abc import Sequence
from typing import Any

from agentmark_lab.envs.base import of_each_group, open_environment
from agentmark_lab.experiments.social.answer_writer import MODEL, load_model, tokenise, write_answers
from agentmark_lab.experiments.social.text_utility import Text, judge_texts, text_power_table, text_table
from agentmark_lab.experiments.social.two_marks import (
    ENVIRONMENT,
    NEITHER,
    Configuration,
    Log,
    Operator,
    PlayedTrial,
    Trial,
    operator,
    play_trial,
)
from agentmark_lab.experiments.social.two_marks_claims import (
    behavior_claims,
    detection_claims,
    text_claims,
    utility_claims,
)
from agentmark_lab.experiments.social.two_marks_plan import QUICK_TASKS, Setting, setting
from agentmark_lab.experiments.social.two_marks_read import ReadConfiguration, read_logs
from agentmark_lab.experiments.social.two_marks_tables import (
    behavior_table,
    comparison,
    detection_table,
    success_table,
    text_note,
    utility_note,
)
from agentmark_lab.kit.campaign import playing_code
from agentmark_lab.kit.code_digest import code_digest
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.utility_tests import judge, judged_table, power_table
from agentmark_lab.peers.synthid_text import Reader, read_text, sampling_table

NAME = "synthid"
TITLE = "Table 3: AgentMark in the behaviors and SynthID-Text in the answers of the same ToolBench episodes"

# Answers of so many groups of tasks are written at once.
GROUPS_A_BATCH = 2


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
        *behavior_claims(what, read),
        *detection_claims(what, read),
        *utility_claims(what, judged),
        *text_claims(what, read, texts),
    ]
    everything = [outcome for part in outcomes.values() for outcome in part]
    marked = [one for one in judged if one.policy in [c.label for c in what.configurations if c.is_mark]]
    tasks = len({outcome.task for outcome in everything})
    note = utility_note(what)
    tables = [
        detection_table(what, read),
        behavior_table(what, read),
        success_table(what, everything, f"{note} Intervals: 95 %, tasks as clusters."),
        judged_table(judged, f"Against behaviors and answers without any mark (neither). {note}"),
        text_table(texts, text_note(what)),
        power_table(marked, tasks),
        text_power_table([one for one in texts if _of(what, one.name).is_mark], what.texts, len(unmarked)),
        comparison(what, read, judged, texts),
    ]
    return Findings(claims, tables, _data(what, outcomes, read))


def _of(what: Setting, name: str) -> Configuration:
    return next(one for one in what.configurations if one.name == name)


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
