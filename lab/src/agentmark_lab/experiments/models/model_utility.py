"""A real language model on tasks that it can do: its lists, its own replies, and both with the mark (Tables 1, 4, 5).

A model on two cores reads some tens of tokens a second, so it is asked once in each situation: for a list, and for a
pool of replies in which it names what it does, without a list. Tasks with few situations repeat them, and any number of
episodes can be played on what it said. Tasks, trials and margins were planned before (`plans/model_utility.toml`);
whether a difference would show is seen on policies that bend what the model says, under the same tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark_lab.envs.base import Task, module_of, open_environment
from agentmark_lab.experiments.models.model_judging import Log, PlayedPlace, compared, judge, read_back
from agentmark_lab.experiments.models.model_plan import ModelPlan, PlannedPlace
from agentmark_lab.experiments.models.model_tables import (
    cost_table,
    judged_table,
    success_table,
    table_4,
    table_5,
    task_table,
)
from agentmark_lab.experiments.models.model_trials import (
    BENT,
    MARKED,
    NO_INDUCTION,
    REFERENCES,
    UNIFORM,
    Chunk,
    Outcome,
    run_chunk,
)
from agentmark_lab.kit.agent_loop import BASELINE
from agentmark_lab.kit.code_digest import code_digest
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.equivalence import Comparison, points, span
from agentmark_lab.kit.experiment import Claim, Findings
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT, Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.presets import GGUF_VARIABLE
from agentmark_lab.kit.utility_tests import CUT, Judged, steps_text

NAME = "model_utility"
TITLE = "A real language model on tasks that it can do: lists, its own replies, and the mark (Tables 1, 4, 5)"
ASKS_MODELS = True

QUICK_TASKS, QUICK_TRIALS, QUICK_REPLIES = 2, 2, 4


def run(options: Options, progress: Progress) -> Findings:
    plan = ModelPlan.of(NAME)
    model = _model(plan, options)
    if options.quick:
        plan = plan.quick(tasks=QUICK_TASKS, trials=QUICK_TRIALS, replies=QUICK_REPLIES)
    played = [_played(plan, place, model, options, progress) for place in _places(plan, options)]
    logs = {(one.place.environment, policy): read_back(one, policy) for one in played for policy in MARKED}
    judged = [(one, judge(one, policy)) for one in played for policy in REFERENCES]
    tables = [
        success_table(played, logs, plan),
        judged_table(judged, plan),
        table_4(played),
        table_5(played, plan),
        task_table(played),
        cost_table(played),
    ]
    code = {one.place.environment: playing_code(one.place) for one in played}
    data = {
        "plan": plan.data,
        "playing_code": code,
        "outcomes": {one.where: [_plain(outcome) for outcome in one.outcomes] for one in played},
    }
    return Findings(_claims(played, judged, logs), tables, data)


def _model(plan: ModelPlan, options: Options) -> ModelSpec:
    """The one that the tasks were chosen for; one that was asked for; for a quick look any."""
    models = models_here(options, DEFAULT_ENVIRONMENT)
    if options.quick or options.model is not None:
        return models[0]
    for model in models:
        if model.label == plan.model:
            return model
    raise MissingError(f"the model {plan.model}, for which the tasks were chosen", f"set {GGUF_VARIABLE} to its file")


def _places(plan: ModelPlan, options: Options) -> list[PlannedPlace]:
    """For a quick look those that are installed."""
    found = []
    for place in plan.places:
        try:
            open_environment(place.environment, options.work)
        except MissingError:
            if not options.quick:
                raise
        else:
            found.append(place)
    if not found:
        raise MissingError("an environment", "run `make lab` and use .venvs/lab/bin/agentmark")
    return found


def _played(
    plan: ModelPlan, place: PlannedPlace, model: ModelSpec, options: Options, progress: Progress
) -> PlayedPlace:
    groups = {task.id: task.group for task in open_environment(place.environment, options.work).tasks()}
    chunks = [
        Chunk(model, plan, place, Task(one.id, groups[one.id]), options.seed, options.work) for one in place.tasks
    ]
    label = f"{model.label}, {place.title}"
    code = playing_code(place)
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=label, code=code)
    return PlayedPlace(model, place, chunks, outcomes)


def playing_code(place: PlannedPlace) -> str:
    """The digest of the code that plays there, and asks."""
    return code_digest([run_chunk.__module__, module_of(place.environment)])


# What is claimed -----------------------------------------------------------------------------------------------------


def _claims(
    played: Sequence[PlayedPlace],
    judged: Sequence[tuple[PlayedPlace, Judged]],
    logs: Mapping[tuple[str, str], list[Log]],
) -> list[Claim]:
    """What must hold holds in a quick look too; what takes trials to show is an aim."""
    claims = []
    for one in played:
        of_place = [found for place, found in judged if place is one]
        claims += [claim for found in of_place if found.policy in MARKED for claim in _mark_claims(one, found)]
        claims += [_bent_claim(one, found) for found in of_place if found.policy in BENT]
        claims += [_uniform_claim(one, policy) for policy in (NO_INDUCTION, BASELINE)]
        claims += [_induction_claim(one)]
        for policy in MARKED:
            claims += _log_claims(one, policy, logs[one.place.environment, policy])
    return claims


def _mark_claims(played: PlayedPlace, found: Judged) -> list[Claim]:
    reference = REFERENCES[found.policy]
    level = found.level
    return [
        Claim(
            f"{played.where}: {found.policy} succeeds as often as {reference} within {100 * level.success.margin:g} "
            f"points (TOST): {_difference(found.success)}, {found.success.episodes:,} pairs of episodes in "
            f"{found.success.tasks} tasks.",
            found.same_success,
            aim=True,
        ),
        Claim(
            f"{played.where}: {found.policy} takes as many steps as {reference} within {level.steps.margin:g} (TOST): "
            f"{steps_text(found.steps)}.",
            found.same_steps,
            aim=True,
        ),
        Claim(
            f"{played.where}: no task is seen to change under {found.policy} against {reference}, neither in success "
            f"nor in length: p = {found.p_value:.2g} (a difference is seen below {CUT:g}).",
            not found.is_seen,
        ),
    ]


def _difference(found: Comparison) -> str:
    return f"{points(found.difference)} points (90 % {span(found.tost_interval)})"


def _bent_claim(played: PlayedPlace, found: Judged) -> Claim:
    return Claim(
        f"{played.where}: {found.policy} does not pass the same tests against {REFERENCES[found.policy]}: "
        f"{_difference(found.success)}, {steps_text(found.steps)} steps, p = {found.p_value:.2g}.",
        not found.passes,
        aim=True,
    )


def _uniform_claim(played: PlayedPlace, policy: str) -> Claim:
    """That there is something to lose."""
    found = compared(policy, played.tallies(policy), played.tallies(UNIFORM))
    return Claim(
        f"{played.where}: {policy} succeeds more often than a uniform agent: {_rate(played, policy)} against "
        f"{_rate(played, UNIFORM)} %, {points(found.difference)} points (95 % {span(found.interval)}).",
        found.interval.low > 0,
        aim=True,
    )


def _rate(played: PlayedPlace, policy: str) -> str:
    return f"{100 * fmean([fmean(tally.won) for tally in played.tallies(policy)]):.1f}"


def _induction_claim(played: PlayedPlace) -> Claim:
    """What asking for a list changes, before any mark. Nothing says that it is nothing: it is an aim."""
    found = compared(BASELINE, played.tallies(BASELINE), played.tallies(NO_INDUCTION))
    return Claim(
        f"{played.where}: asking for a list changes success by at most {100 * played.place.success.margin:g} points "
        f"(TOST): elicited baseline against no induction {_difference(found)}.",
        found.equivalent(played.place.success.margin),
        aim=True,
    )


def _log_claims(played: PlayedPlace, policy: str, logs: Sequence[Log]) -> list[Claim]:
    named, wrong = sum([log.named for log in logs]), sum([log.wrong for log in logs])
    return [
        Claim(
            f"{played.where}, {policy}: {named} of {len(logs)} identities are named at {DEFAULT_THRESHOLD:g} from the "
            f"{fmean([log.decisions for log in logs]):.0f} decisions of {played.place.each} episodes of each task.",
            named == len(logs),
            aim=True,
        ),
        Claim(f"{played.where}, {policy}: {wrong} of {len(logs)} logs name anyone else.", wrong == 0),
    ]


def _plain(outcome: Outcome) -> dict[str, object]:
    """What the result keeps: successes and steps, not logs."""
    cells = {policy: f"{sum(t.won)}/{len(t.won)} {sum(t.steps)}" for policy, t in outcome.by_policy.items()}
    efforts = {"lists": asdict(outcome.lists), "replies": asdict(outcome.replies)}
    return {"task": outcome.task.id, "group": outcome.task.group, "outcomes": cells, **efforts}
