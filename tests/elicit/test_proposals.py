"""Proposals: the list is what the model does, and what the agent is handed is a sample of the model."""

import secrets
from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from scipy.stats import chisquare

from agentmark import Embedder, SettingError, SharedKey
from agentmark.elicit.proposals import Proposals, behavior_of, canonical_arguments, grouped
from agentmark.elicit.situation import ANSWER, OTHER, Proposal, ToolCall

NAMES = frozenset({"search", "add"})
KEY = SharedKey(bytes(range(32)))


def proposal(*names: str, arguments: object = None) -> Proposal:
    return Proposal(calls=tuple([ToolCall(name, arguments) for name in names]))


@pytest.mark.parametrize(
    ("calls", "behavior"),
    [
        ((), ANSWER),
        (("search",), "search"),
        (("search", "search"), "search"),
        (("search", "add"), "add + search"),
        (("add", "search"), "add + search"),
        (("ssn 123-45",), OTHER),
    ],
)
def test_replies_that_look_alike_from_outside_are_one_group(calls: tuple[str, ...], behavior: str) -> None:
    assert behavior_of(proposal(*calls).calls, NAMES) == behavior


def test_whole_calls_are_told_apart_under_the_key_alone() -> None:
    session = Embedder(KEY, 1, payload_len=8).session("s")
    other = Embedder(SharedKey.generate(), 1, payload_len=8).session("s")
    tea = behavior_of([ToolCall("search", '{"q": "tea", "n": 1}')], NAMES, session.argument_digest)
    same = behavior_of([ToolCall("search", {"n": 1, "q": "tea"})], NAMES, session.argument_digest)
    coffee = behavior_of([ToolCall("search", {"n": 1, "q": "coffee"})], NAMES, session.argument_digest)
    assert tea == same
    assert tea != coffee
    assert tea.startswith("search#")
    assert len(tea) == len("search#") + 8
    assert tea != behavior_of([ToolCall("search", {"n": 1, "q": "tea"})], NAMES, other.argument_digest)
    elsewhere = Embedder(KEY, 1, payload_len=8).session("t")
    assert tea != behavior_of([ToolCall("search", {"n": 1, "q": "tea"})], NAMES, elsewhere.argument_digest)


@pytest.mark.parametrize("odd", [None, "", {}, "{}", b"{}"])
def test_a_call_without_arguments_is_one_call(odd: object) -> None:
    assert canonical_arguments(odd) == b"{}"


@pytest.mark.parametrize("odd", ["{", b"\xff", [1, {2: 3}], {"a": float("nan")}, "\ud800", {"x": {1, 2}}])
def test_arguments_of_any_shape_have_a_form(odd: object) -> None:
    assert isinstance(canonical_arguments(odd), bytes)


@pytest.mark.parametrize("count", [1, 0, -1, 129, 2.0, True])
def test_the_count_is_fixed_beforehand(count: object) -> None:
    with pytest.raises(SettingError):
        Proposals(count=count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"temperature": 0}, "temperature 0"),
        ({"temperature": 0.0}, "temperature 0"),
        ({"temperature": 1, "seed": 7}, "fixed seed"),
        ({"temperature": 1, "runs_hosted_tools": True}, "run at the provider"),
    ],
)
def test_what_is_not_sampled_says_why(facts: dict, reason: str) -> None:
    assert reason in str(Proposals().obstacle(**facts))
    assert Proposals(hosted_tools=True).obstacle(temperature=0.1, runs_hosted_tools=True) is None


# --- the theorem: a uniform pick among independent samples is a sample ----------------------------------------------

MODEL = {"search a": 0.5, "search b": 0.25, "add": 0.15, "answer": 0.1}


def sample(rng: Random) -> Proposal:
    [reply] = rng.choices(list(MODEL), list(MODEL.values()))
    if reply == "answer":
        return Proposal(calls=(), reply=reply)
    name, _, argument = reply.partition(" ")
    return Proposal(calls=(ToolCall(name, {"q": argument}),), reply=reply)


def handed_over(count: int, granularity: str, decisions: int, rng: Random) -> Counter[str]:
    """What agents are handed, one marked decision after the other."""
    session = Embedder(SharedKey.generate(), 42, payload_len=8, scheme="R").session()
    digest = session.argument_digest if granularity == "call" else None
    handed: Counter[str] = Counter()
    for _ in range(decisions):
        groups = grouped([sample(rng) for _ in range(count)], NAMES, digest)
        chosen = session.choose({behavior: len(group) for behavior, group in groups.items()}).behavior
        handed[secrets.choice(groups[chosen]).reply] += 1
    return handed


@pytest.mark.parametrize("granularity", ["tool", "call"])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_whole_reply_is_distributed_as_the_models(count: int, granularity: str) -> None:
    """Hypothesis: replies are handed over as often as the model gives them. 4,000 decisions, level 1e-6."""
    decisions = 4000
    handed = handed_over(count, granularity, decisions, Random(count))
    expected = [decisions * share for share in MODEL.values()]
    assert chisquare([handed[reply] for reply in MODEL], expected).pvalue > 1e-6


def two_replies(rng: Random, *, share: float, stops_early: bool) -> list[Proposal]:
    """Samples of a model that answers with this chance, else searches: three, or two if they agree."""
    samples = [proposal() if rng.random() < share else proposal("search") for _ in range(3)]
    return samples[:2] if stops_early and samples[0] == samples[1] else samples


@pytest.mark.parametrize("stops_early", [False, True])
def test_the_count_must_not_depend_on_the_samples(stops_early: bool) -> None:
    """The same test of the same 20,000 decisions: a fixed count passes, stopping at two alike is seen (.924 for .9)."""
    rng, decisions, share = Random(1), 20_000, 0.9
    session = Embedder(KEY, 42, payload_len=8, scheme="R").session("s")
    answers = 0
    for _ in range(decisions):
        groups = grouped(two_replies(rng, share=share, stops_early=stops_early), NAMES)
        weights = {behavior: len(group) for behavior, group in groups.items()}
        answers += session.choose(weights).behavior == ANSWER
    expected = [decisions * share, decisions * (1 - share)]
    is_bent = chisquare([answers, decisions - answers], expected).pvalue < 1e-6
    assert is_bent == stops_early


def chance_of_pick(share: Fraction, *, stops_early: bool) -> Fraction:
    """The chance that a uniform pick is the likelier reply, in closed form, over every outcome of three samples."""
    total = Fraction(0)
    for outcome in product([True, False], repeat=3):
        chance = Fraction(1)
        for likelier in outcome:
            chance *= share if likelier else 1 - share
        seen = outcome[:2] if stops_early and outcome[0] == outcome[1] else outcome
        total += chance * Fraction(sum(seen), len(seen))
    return total


def test_a_fixed_count_is_exact_and_early_stopping_is_not() -> None:
    share = Fraction(9, 10)
    assert chance_of_pick(share, stops_early=False) == share
    assert round(float(chance_of_pick(share, stops_early=True)), 3) == 0.924


@pytest.mark.parametrize("depth", [10, 600, 5000])
def test_arguments_of_any_depth_have_bytes(depth: int) -> None:
    assert canonical_arguments("[" * depth + "]" * depth)


def test_a_number_is_the_same_however_it_is_written() -> None:
    """A conversation that was stored and read again has 1 where the model wrote 1.0: nobody edited it."""
    assert canonical_arguments('{"n": 1.0, "m": [1e3]}') == canonical_arguments({"m": [1000], "n": 1})
    assert canonical_arguments('{"n": 1.5}') != canonical_arguments('{"n": 1}')
    assert canonical_arguments({"n": True}) != canonical_arguments({"n": 1})
