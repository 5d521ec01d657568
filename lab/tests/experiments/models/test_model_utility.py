"""Many episodes on what a model said once: its lists, its replies, and who can be told apart."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.envs import base
from agentmark_lab.envs.base import Task, open_environment
from agentmark_lab.experiments.models import asked_once, model_utility
from agentmark_lab.experiments.models.asked_once import (
    AskedOnce,
    name_in,
    request,
    told_of,
    told_of_calls,
    told_of_latest,
)
from agentmark_lab.experiments.models.model_judging import (
    OfTheseTasks,
    PlayedPlace,
    PlayedSet,
    compared,
    judge,
    read_back,
)
from agentmark_lab.experiments.models.model_plan import ModelPlan, PlannedPlace, PlannedTask
from agentmark_lab.experiments.models.model_trials import (
    BENT,
    BY_LIST,
    MARKED,
    NO_INDUCTION,
    POLICIES,
    PROPOSALS_RED_GREEN,
    REFERENCES,
    UNIFORM,
    Chunk,
    Outcome,
    Tally,
    run_chunk,
)
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.experiment import Result, perform
from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.options import ModelChoice, Options
from agentmark_lab.kit.plan import FOLDER, Measure, PlanError
from agentmark_lab.kit.utility_claims import control_claims, mark_claims
from agentmark_lab.kit.utility_tests import CUT
from corridors import Corridor, Corridors
from lab_support import silent
from scipy import stats as scipy_stats

from agentmark.elicit.chat import ChatReply
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.situation import Elicitation, Situation

LIST = {"right": 0.8, "left": 0.1, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}
# Of ten replies one names nothing.
REPLIES = [*["right"] * 7, "I go left, I think.", "trapdoor 1", "hm"]
PLACE = PlannedPlace(
    environment="corridors",
    title="Corridors",
    tasks=tuple([PlannedTask(f"corridor-{i}", 0.5, 0.0) for i in range(3)]),
    trials=120,
    each=4,
    read=20,
    success=Measure(0.1, 0.7),
    steps=Measure(1.0, 8.0),
    bent=0.1,
    left=0,
    spare=0,
)
PLAN = ModelPlan(
    name="model_utility",
    digest="abc",
    sets={"first": 101, "second": 201},
    stopping="All are played.",
    pilot="none.",
    model="m",
    replies=20,
    samples=4,
    runs=2,
    pairs=10,
    places=(PLACE,),
    choice="all there are.",
)
MODEL = ModelSpec("m", "http://127.0.0.1:1")


class Talking:
    """A model that states one list in every situation, and replies in several ways; it counts what it is asked."""

    name = "stated"

    def __init__(self) -> None:
        self.situations: list[Situation] = []
        self.asked: list[str] = []
        # After so many more replies it is out of order.
        self.left: int | None = None

    def elicit(self, situation: Situation) -> Elicitation:
        self.situations.append(situation)
        return Elicitation(method=self.name, model="m", weights=LIST, missing_mass=0.25)

    def sampled(self, messages, *, seed: int, max_tokens: int) -> ChatReply:
        if self.left is not None:
            if not self.left:
                raise UpstreamError("m", "out of order")
            self.left -= 1
        self.asked.append(messages[-1]["content"])
        return ChatReply(text=Random(seed).choice(REPLIES), input_tokens=10, output_tokens=2)


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> Talking:
    model = Talking()
    monkeypatch.setitem(base.ENVIRONMENTS, "corridors", "corridors:Corridors")
    monkeypatch.setattr(ModelSpec, "open_elicitor", lambda *_, **__: model)
    monkeypatch.setattr(ModelSpec, "sampled", lambda _, messages, **given: model.sampled(messages, **given))
    return model


@pytest.fixture
def talking(monkeypatch: pytest.MonkeyPatch) -> Talking:
    return put_in_place(monkeypatch)


def chunk(work: Path, task: str = "corridor-0", seed: int = 1) -> Chunk:
    return Chunk(MODEL, PLAN, PLACE, Task(task, "C0"), seed=seed, work=work)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> PlayedPlace:
    """Every policy in every task, played once for several tests."""
    work = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as monkeypatch:
        put_in_place(monkeypatch)
        chunks = [chunk(work, one.id) for one in PLACE.tasks]
        return PlayedPlace(MODEL, PLACE, [PlayedSet("first", chunks, [run_chunk(one) for one in chunks])])


def test_a_situation_is_asked_once_and_never_again(talking: Talking, tmp_path: Path) -> None:
    outcome = run_chunk(chunk(tmp_path))
    # At the beginning, and after either of the steps that do not end it; each list once more in the other run.
    assert outcome.situations == 3
    assert len(talking.situations) == outcome.situations * PLAN.runs
    assert len(talking.asked) == outcome.situations * PLAN.replies == outcome.replies.calls
    assert outcome.missing_mass == [0.25] * 3
    assert {len(outcome.by_policy[policy].won) for policy in POLICIES} == {PLACE.trials}
    # Another run takes up what was kept.
    again = run_chunk(chunk(tmp_path))
    assert len(talking.situations) == outcome.situations * PLAN.runs
    assert len(talking.asked) == outcome.situations * PLAN.replies
    assert [again.by_policy[policy].won for policy in POLICIES] == [outcome.by_policy[p].won for p in POLICIES]
    # Both runs state the same list.
    assert len(outcome.divergences) == PLAN.pairs
    assert {step for pair in outcome.divergences for step in pair} == {0.0}


def test_each_set_of_trials_asks_anew_in_orders_of_its_own(
    monkeypatch: pytest.MonkeyPatch, talking: Talking, tmp_path: Path
) -> None:
    seeds: list[str] = []
    in_fixed_order = asked_once.InFixedOrder

    def noted(open_elicitor, seed: str):
        seeds.append(seed)
        return in_fixed_order(open_elicitor, seed)

    monkeypatch.setattr(asked_once, "InFixedOrder", noted)
    monkeypatch.setattr(ModelPlan, "of", staticmethod(lambda _: replace(PLAN, places=(replace(PLACE, trials=20),))))
    options = Options(seed=3, work=tmp_path, model=ModelChoice("m", "http://127.0.0.1:1/v1"))
    result = perform(model_utility, options, silent)
    # Both runs of both sets, by the set's own seed, which the seed of the run moves.
    assert {*seeds} == {f"{seed} list {run}" for seed in (103, 203) for run in (0, 1)}
    orders = {text.partition("Options:")[2] for text in talking.asked}
    corridor = told_of_latest(Corridor(), [])
    assert orders == {request(corridor, seed)[-1]["content"].partition("Options:")[2] for seed in (103, 203)}
    assert len(orders) == 2
    # Each set has every task; what is shown of both together counts both.
    [sets] = result.data["outcomes"].values()
    assert {label: len(found) for label, found in sets.items()} == {"first": 3, "second": 3}
    assert [row[3] for row in result.tables[0].rows] == [20 * 3 * 2] * len(POLICIES)
    [verdicts] = [table for table in result.tables if "verdict" in table.columns]
    assert len(verdicts.rows) == 2 * len(REFERENCES)
    assert {row[verdicts.columns.index("trials")] for row in verdicts.rows} == {"first", "second"}


def test_a_result_does_not_grow_with_the_trials(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = []
    for trials in (8, 80):
        small = replace(PLACE, trials=trials, read=4)
        monkeypatch.setattr(ModelPlan, "of", staticmethod(lambda _, small=small: replace(PLAN, places=(small,))))
        options = Options(work=tmp_path, model=ModelChoice("m", "http://127.0.0.1:1/v1"))
        sizes.append(perform(model_utility, options, silent).save(tmp_path / "out").stat().st_size)
    # More digits, and no more.
    assert sizes[1] < 1.1 * sizes[0]


def test_it_is_told_how_far_the_asking_is_while_it_goes_on(tmp_path: Path) -> None:
    folder, told = tmp_path / "said", []
    both = threading.Event()

    def heard(message: str) -> None:
        told.append(message)
        if "1 lists and given 2 pools" in message:
            both.set()

    with told_of(folder, heard, "m, ToolBench", every_s=0.01):
        for place in ("a.json", "replies/b.json", "replies/c.json"):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).touch()
        assert both.wait(timeout=30)
    assert all(message.startswith("m, ToolBench: ") for message in told)
    # And no more once it has ended.
    until_then = len(told)
    both.clear()
    assert not both.wait(timeout=0.05)
    assert len(told) == until_then


def test_a_run_that_is_interrupted_goes_on_from_what_was_said(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever the model has said is not asked again: a run that breaks off in the middle asks as much in all as one
    that does not."""
    monkeypatch.setattr(ModelPlan, "of", staticmethod(lambda _: replace(PLAN, places=(replace(PLACE, trials=20),))))

    def run(work: Path) -> Result:
        options = Options(work=work, model=ModelChoice("m", "http://127.0.0.1:1/v1"))
        return perform(model_utility, options, silent)

    whole = run(tmp_path / "whole")
    asked, listed = len(talking.asked), len(talking.situations)
    talking.left = asked // 2
    with pytest.raises(UpstreamError):
        run(tmp_path / "broken")
    talking.left = None
    again = run(tmp_path / "broken")
    assert again.data["outcomes"].keys() == whole.data["outcomes"].keys()
    assert played_outcomes(again) == played_outcomes(whole)
    # The pool in which it broke off is asked for once more.
    assert asked <= len(talking.asked) - asked <= asked + PLAN.replies
    assert len(talking.situations) == 2 * listed


def played_outcomes(result: Result) -> list[dict[str, str]]:
    return [found["outcomes"] for sets in result.data["outcomes"].values() for one in sets.values() for found in one]


def test_the_marks_are_not_told_apart_and_what_bends_is(played: PlayedPlace) -> None:
    """H0 of each mark: its episodes are those of its reference. 360 pairs; a false alarm once in a thousand, and the
    seed is fixed. So few pairs do not show the bias of early stopping, which is small."""
    judged = {policy: judge(played, policy)[0] for policy in REFERENCES}
    assert {*MARKED, *BENT} == {*REFERENCES}
    assert not any(judged[policy].is_seen for policy in MARKED)
    assert all(judged[policy].is_seen for policy in (RED_GREEN, PROPOSALS_RED_GREEN))
    # A reply that names nothing is a lost step, as often under the mark.
    lost = {policy: sum([tally.lost for tally in played.tallies(policy)]) for policy in POLICIES}
    steps = {policy: sum([sum(tally.steps) for tally in played.tallies(policy)]) for policy in POLICIES}
    shares = [lost[policy] / steps[policy] for policy in (NO_INDUCTION, *MARKED[:2])]
    assert all(0.03 < share < 0.2 for share in shares)
    assert max(shares) - min(shares) < 0.03
    assert [lost[policy] for policy in (*BY_LIST, UNIFORM)] == [0] * 6


def test_logs_of_proposals_and_of_lists_name_their_identity(played: PlayedPlace) -> None:
    logs = {policy: read_back(played, policy) for policy in MARKED}
    # Four episodes of each of three tasks by each of five.
    assert [len(found) for found in logs.values()] == [5] * 4
    assert not any(log.wrong for found in logs.values() for log in found)
    named = {policy: sum([log.named for log in found]) for policy, found in logs.items()}
    assert named["AgentMark-R"] == named["AgentMark-R by proposals"] == 5
    assert all(log.named_after <= log.decisions for log in logs["AgentMark-R"])
    assert named["AgentMark-F"] >= 1
    assert named["AgentMark-F by proposals"] >= 1


def tallied(won: int, count: int = 200) -> Tally:
    return Tally(bytes([i < won for i in range(count)]), bytes([2] * count), 0, 0.0, [])


def of_sets(*sets: Sequence[tuple[int, int]], place: PlannedPlace = PLACE) -> PlayedPlace:
    """Made up: of each task how many of 200 trials are won without what is judged, and with it."""

    def outcome(reference: int, mine: int) -> Outcome:
        tallies = {policy: tallied(reference if policy in (BASELINE, NO_INDUCTION) else mine) for policy in POLICIES}
        return Outcome(Task("t", "g"), tallies, 1, Effort(), Effort(), [], [])

    labels = ("first", "second")
    played = [
        PlayedSet(label, [], [outcome(*task) for task in tasks]) for label, tasks in zip(labels, sets, strict=False)
    ]
    return PlayedPlace(MODEL, place, played)


def test_the_interval_is_that_of_trials_within_tasks() -> None:
    found = compared("x", [tallied(100), tallied(150)], [tallied(80), tallied(160)])
    assert isinstance(found, OfTheseTasks)
    assert found.difference == pytest.approx((20 - 10) / 200 / 2)
    shares = [(100, 80), (150, 160)]
    variance = sum([share / 200 * (1 - share / 200) / 200 for pair in shares for share in pair]) / 4
    assert found.error == pytest.approx(variance**0.5)
    reach = scipy_stats.norm.ppf(0.95) * found.error
    assert found.tost_interval.low == pytest.approx(found.difference - reach)
    assert found.p_value == pytest.approx(2 * scipy_stats.norm.sf(found.difference / found.error))
    # Where nothing varies nothing differs.
    assert compared("x", [tallied(0)], [tallied(0)]).p_value == 1


def test_a_task_that_changes_is_seen_though_the_mean_is_not() -> None:
    [found] = judge(of_sets([(100, 150), (100, 50)]), MARKED[0])
    assert found.success.difference == pytest.approx(0)
    assert found.p_values["success"] == 1
    assert found.is_seen


def test_each_set_is_judged_by_its_own_trials() -> None:
    first, second = judge(of_sets([(100, 100)], [(100, 160)]), MARKED[0])
    assert (first.label, first.success.difference, first.is_seen) == ("first", 0, False)
    assert (second.label, second.success.difference, second.is_seen) == ("second", pytest.approx(0.3), True)


SAME, OTHER = [(100, 100)] * 3, [(100, 160)] * 3


@pytest.mark.parametrize(
    ("sets", "marks_hold", "bent_fail"),
    [((SAME, SAME), True, False), ((SAME, OTHER), False, False), ((OTHER, OTHER), False, True)],
)
def test_a_claim_holds_if_every_set_says_so(
    sets: tuple[list[tuple[int, int]], ...], marks_hold: bool, bent_fail: bool
) -> None:
    """Of a mark that it passes, and of what bends that it does not: one set that says otherwise is enough."""
    played = of_sets(*sets, place=replace(PLACE, success=Measure(0.15, 0.7)))
    for policy in MARKED:
        success, length, change = mark_claims(judge(played, policy), played.where, "the reference")
        assert (success.holds, length.holds, change.holds) == (marks_hold, True, marks_hold)
        assert success.text.count("in each of two sets") == 1
    for policy in BENT:
        for claim in control_claims(judge(played, policy), played.where, aim=True):
            assert claim.holds == bent_fail


def test_intervals_say_how_likely_they_were_to_show_equality() -> None:
    found = compared("x", [tallied(100)], [tallied(100)])
    reach = scipy_stats.norm.cdf(0.15 / found.error - scipy_stats.norm.ppf(0.95))
    assert found.power(0.15) == pytest.approx(2 * reach - 1)
    assert compared("x", [tallied(0)], [tallied(0)]).power(0.01) == 1


# What is asked -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ("send", "send"),
        (" `Send_all`.\n", "send_all"),
        ("I would send_all of them", "send_all"),
        ("send or list", None),
        ("_finish", "Finish"),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_reply_names_one_option_or_none(reply: str, named: str | None) -> None:
    assert name_in(reply, ["send", "send_all", "list", "Finish"]) == named


def test_the_plain_agent_is_shown_its_options_in_one_order_and_asked_for_no_list() -> None:
    situation = told_of_latest(Corridor(), [("left", "a wall")])
    said = request(situation, 1)[-1]["content"]
    assert "You did: left\na wall" in said
    assert "list" not in said
    assert "probab" not in said
    later = request(told_of_latest(Corridor(), [("right", "a corridor")]), 1)[-1]["content"]
    assert said.partition("Options:")[2] == later.partition("Options:")[2]
    assert said.partition("Options:")[2] != request(situation, 2)[-1]["content"].partition("Options:")[2]


def test_calls_are_told_once_and_in_one_order() -> None:
    class Tools(Corridor):
        behaviors = ("a", "b", "Finish")

        @property
        def descriptions(self) -> dict[str, str]:
            return {"a": "does a", "b": "does b", "Finish": "ends"}

    one = told_of_calls(Tools(), [("b", "2"), ("a", "1")])
    other = told_of_calls(Tools(), [("a", "1"), ("b", "2"), ("a", "1")])
    assert one == other
    assert "a was called, and replied: 1\nb was called, and replied: 2" in one.messages[-1]["content"]
    assert [option.description[:15] for option in told_of_calls(Tools(), [("b", "2")]).candidates] == [
        "(not called yet",
        "(called already",
        "nothing is left",
    ]


def test_a_pool_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = iter(["right", None, "right", "hm"])

    def sampled(*_, **__) -> ChatReply:
        text = next(replies)
        if text is None:
            raise UpstreamError("m", "out of order")
        return ChatReply(text=text)

    monkeypatch.setattr(ModelSpec, "sampled", sampled)
    asked = AskedOnce(MODEL, tmp_path, seed=1, pool_size=2)
    situation = told_of_latest(Corridor(), [])
    with pytest.raises(UpstreamError):
        asked.pool_in(situation)
    pool = asked.pool_in(situation)
    assert [[call.name for call in one.calls] for one in pool.proposals] == [["right"], []]
    assert asked.pool_in(situation) == pool


# The plan ------------------------------------------------------------------------------------------------------------


def test_the_plan_is_complete_and_its_trials_can_show_what_they_are_to_show() -> None:
    """If there is no difference, equality; and of what bends as little as early stopping did in the pilot, that it is
    neither equal nor unseen."""
    plan = ModelPlan.of("model_utility")
    assert plan.note.count(plan.digest) == 1
    assert len(plan.sets) == 2
    for place in plan.places:
        assert all(task.pilot > task.uniform for task in place.tasks)
        assert place.read % place.each == 0
        pairs = place.trials * len(place.tasks)
        assert min([one.power(pairs, len(place.tasks)) for one in (place.success, place.steps)]) >= 0.95
        # The smallest of four p-values is paid for.
        assert place.success.sight(place.bent, pairs, p_value=CUT / 4) >= 0.95
        error = place.success.pilot_sd / pairs**0.5
        taken_for_equal = scipy_stats.norm.cdf((place.success.margin - place.bent) / error - 1.645)
        assert taken_for_equal <= 0.05


def test_sets_of_trials_share_no_seed(tmp_path: Path) -> None:
    text = (FOLDER / "model_utility.toml").read_text(encoding="utf-8")
    (tmp_path / "same.toml").write_text(text.replace("second = 3001", "second = 2001"), encoding="utf-8")
    with pytest.raises(PlanError, match="share seeds"):
        ModelPlan.of("same", tmp_path)


def test_a_plan_that_is_not_complete_says_so(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        ModelPlan.of("none", tmp_path)
    (tmp_path / "short.toml").write_text('model = "m"', encoding="utf-8")
    with pytest.raises(PlanError, match="is not complete"):
        ModelPlan.of("short", tmp_path)


def test_a_full_run_plays_the_model_that_the_tasks_were_chosen_for(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = replace(PLACE, trials=4, read=4)
    plan = replace(PLAN, places=(small,))
    monkeypatch.setattr(ModelPlan, "of", staticmethod(lambda _: plan))
    monkeypatch.setattr(model_utility, "models_here", lambda *_: [replace(MODEL, name="another")])
    with pytest.raises(MissingError, match="the model m"):
        perform(model_utility, Options(work=tmp_path), silent)
    # One that is asked for by name plays as well.
    options = Options(work=tmp_path, model=ModelChoice("another", "http://127.0.0.1:1/v1"))
    result = perform(model_utility, options, silent)
    assert [len(row) for table in result.tables for row in table.rows] == [
        len(table.columns) for table in result.tables for _ in table.rows
    ]
    assert result.data["plan"]["sha256"] == plan.digest
    assert [row[2] for row in result.tables[0].rows] == list(POLICIES)
    assert open_environment("corridors", tmp_path).max_steps == Corridors.max_steps
