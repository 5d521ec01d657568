"""A real language model on tasks that it can do: its lists, its own replies, and both with the mark (Tables 1, 4, 5).

A model on two cores reads some tens of tokens a second, so it is asked once in each situation: for a list, and for a
pool of replies in which it names what it does, without a list. Tasks with few situations repeat them, and any number of
episodes can be played on what it said. Tasks, trials and margins were planned before (`plans/model_utility.toml`), in
sets for which the model is asked anew; whether a difference would show is seen on policies that bend what the model
says, under the same tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark_lab.envs.base import Task, module_of, open_environment
from agentmark_lab.experiments.models.asked_once import told_of
from agentmark_lab.experiments.models.model_judging import (
    Log,
    OfTheseTasks,
    PlayedPlace,
    PlayedSet,
    compared,
    judge,
    read_back,
)
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
from agentmark_lab.kit.equivalence import points, span
from agentmark_lab.kit.experiment import Claim, Findings
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT, Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.presets import GGUF_VARIABLE
from agentmark_lab.kit.utility_claims import by_set, control_claims, mark_claims
from agentmark_lab.kit.utility_tests import Judged

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
    progress(f"{model.label}: reading the marks back, and judging")
    logs = {(one.place.environment, policy): read_back(one, policy) for one in played for policy in MARKED}
    judged = [(one, {policy: judge(one, policy) for policy in REFERENCES}) for one in played]
    tables = [
        success_table(played, logs, plan),
        judged_table(judged, plan),
        table_4(played),
        table_5(played, plan),
        task_table(played),
        cost_table(played),
    ]
    code = {one.place.environment: playing_code(one.place) for one in played}
    outcomes = {
        one.where: {each.label: [_plain(found) for found in each.outcomes] for each in one.sets} for one in played
    }
    data = {"plan": plan.data, "playing_code": code, "outcomes": outcomes}
    claims = [claim for place, found in judged for claim in _claims(place, found, logs)]
    return Findings(claims, tables, data)


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
    tasks = [Task(one.id, groups[one.id]) for one in place.tasks]
    code = playing_code(place)
    sets = []
    for label in plan.sets:
        seed = plan.first_seed(label, seed=options.seed)
        chunks = [Chunk(model, plan, place, task, seed, options.work) for task in tasks]
        name = f"{model.label}, {place.title}, {label} set"
        with told_of(chunks[0].said, progress, name):
            outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=name, code=code)
        sets.append(PlayedSet(label, chunks, outcomes))
    return PlayedPlace(model, place, sets)


def playing_code(place: PlannedPlace) -> str:
    """The digest of the code that plays there, and asks."""
    return code_digest([run_chunk.__module__, module_of(place.environment)])


# What is claimed -----------------------------------------------------------------------------------------------------


def _claims(
    played: PlayedPlace, judged: Mapping[str, Sequence[Judged]], logs: Mapping[tuple[str, str], list[Log]]
) -> list[Claim]:
    """What must hold holds in a quick look too; what takes trials to show is an aim. Either holds if every set of
    trials says so."""
    claims = []
    for policy in MARKED:
        reference = REFERENCES[policy]
        named = f"the {reference}" if reference == BASELINE else reference
        claims += mark_claims(judged[policy], played.where, named)
    for policy in BENT:
        claims += control_claims(judged[policy], played.where, aim=True)
    claims += [_uniform_claim(played, policy) for policy in (NO_INDUCTION, BASELINE)]
    claims += [_induction_claim(played)]
    for policy in MARKED:
        claims += _log_claims(played, policy, logs[played.place.environment, policy])
    return claims


def _uniform_claim(played: PlayedPlace, policy: str) -> Claim:
    """That there is something to lose."""
    found = _of_each_set(played, policy, UNIFORM)
    rates = by_set([f"{_rate(one, policy)} against {_rate(one, UNIFORM)} %" for one in played.sets])
    differences = by_set([f"{points(one.difference)} points (95 % {span(one.interval)})" for one in found])
    return Claim(
        f"{played.where}: {policy} succeeds more often than a uniform agent: {rates}, {differences}.",
        all(one.interval.low > 0 for one in found),
        aim=True,
    )


def _rate(played: PlayedSet, policy: str) -> str:
    return f"{100 * fmean([fmean(tally.won) for tally in played.tallies(policy)]):.1f}"


def _induction_claim(played: PlayedPlace) -> Claim:
    """What asking for a list changes, before any mark. Nothing says that it is nothing: it is an aim."""
    found = _of_each_set(played, BASELINE, NO_INDUCTION)
    margin = played.place.success.margin
    differences = by_set([f"{points(one.difference)} points (90 % {span(one.tost_interval)})" for one in found])
    return Claim(
        f"{played.where}: asking for a list changes success by at most {100 * margin:g} points (TOST): elicited "
        f"baseline against no induction {differences}.",
        all(one.equivalent(margin) for one in found),
        aim=True,
    )


def _of_each_set(played: PlayedPlace, policy: str, reference: str) -> list[OfTheseTasks]:
    return [compared(policy, one.tallies(policy), one.tallies(reference)) for one in played.sets]


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
