"""Stated lists against free choices: the closed forms, and models whose calibration is known."""

import json
import random
from collections import Counter
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.cli import main
from agentmark.elicit.calibration import (
    BUILT_IN,
    Comparison,
    calibrate,
    expected_calibration_error,
    free_choices,
    mean_deviation,
    named,
)
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.situation import Situation
from agentmark.testing import FakeProvider, ScriptedChat, ScriptedElicitor
from agentmark.testing.provider import chat_answer

TRUTH = {"walk": 0.7, "bus": 0.25, "taxi": 0.05}
SITUATIONS = [Situation.of(TRUTH.keys(), f"Day {i}: how to get to work?") for i in range(40)]


def truthful(seed: int) -> ScriptedChat:
    """A model that chooses by TRUTH."""
    rng = random.Random(seed)

    def choose(_: ChatRequest) -> str:
        return f"Choice: {rng.choices(list(TRUTH), list(TRUTH.values()))[0]}"

    return ScriptedChat(choose)


@given(st.integers(1, 60), st.floats(0.001, 0.999))
def test_the_mean_deviation_is_de_moivres(trials: int, p: float) -> None:
    by_sum = sum([comb(trials, x) * p**x * (1 - p) ** (trials - x) * abs(x / trials - p) for x in range(trials + 1)])
    assert mean_deviation(trials, p) == pytest.approx(by_sum, rel=1e-6, abs=1e-12)


def test_a_list_that_is_true_lies_at_the_floor() -> None:
    """40 situations of 20 choices by the stated list: the excess is zero within its interval."""
    [result] = calibrate([ScriptedElicitor(TRUTH)], truthful(1), SITUATIONS, samples=20, seed=2)
    assert result.situations == 40
    assert result.tv_floor == pytest.approx(sum([mean_deviation(20, p) for p in TRUTH.values()]) / 2, rel=1e-6)
    assert result.tv_floor > 0.05
    assert result.excess.low < 0 < result.excess.high
    assert result.ece.value < 0.05
    assert result.tv.low <= result.tv.value <= result.tv.high


def test_a_list_that_is_false_lies_above_it() -> None:
    """TV(uniform, TRUTH) is 0.37. The calibration error does not see it: on average a uniform list is right."""
    turned = ScriptedElicitor({"walk": 0.05, "bus": 0.25, "taxi": 0.7})
    even, wrong = calibrate([ScriptedElicitor(), turned], truthful(1), SITUATIONS, samples=20)
    assert even.excess.low > 0.2
    assert even.tv.value == pytest.approx(0.7 - 1 / 3, abs=0.05)
    assert even.ece.value == 0
    assert wrong.excess.low > 0.5
    assert wrong.ece.value > 0.4 > wrong.ece_floor


def test_what_cannot_be_used_is_counted() -> None:
    lists: list[dict[str, float] | str] = [TRUTH, "gibberish", TRUTH]
    replies = iter(["walk", "walk", "bus", "I do not know", "nothing", "at all"])
    chat = ScriptedChat(lambda _: next(replies))
    [result] = calibrate([ScriptedElicitor(lists)], chat, SITUATIONS[:3], samples=2)
    assert (result.situations, result.unusable, result.unchosen) == (1, 1, 1)
    assert result.other_share == 0.5
    [nothing] = calibrate([ScriptedElicitor(["no"])], ScriptedChat(["?", "?"]), SITUATIONS[:1], samples=2)
    assert nothing.situations == 0


def test_a_schema_can_see_to_it_that_an_option_is_named() -> None:
    replies = iter(['{"choice": "walk"}', '{"choice": "plane"}', "{", '["bus"]', "Choice: bus"])
    chat = ScriptedChat(lambda _: next(replies))
    counts, other = free_choices(chat, SITUATIONS[0], 5, rng=random.Random(1), constrained=True)
    assert (counts, other) == ({"walk": 1, "bus": 1}, 3)
    schema = chat.requests[0].schema
    assert schema is not None
    assert sorted(schema["properties"]["choice"]["enum"]) == sorted(TRUTH)


def test_calibration_error_by_hand() -> None:
    pair = Comparison({"a": 0.75, "b": 0.25}, Counter(a=2, b=2), 0)
    assert expected_calibration_error([pair]) == pytest.approx(0.25)
    assert pair.tv == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("walk", "walk"),
        (" Choice: bus\nbecause", "bus"),
        ('"taxi".', "taxi"),
        ("**walk**", "walk"),
        ("walking", None),
        ("walk or bus", None),
        ("Walk", None),
        ("", None),
    ],
)
def test_which_option_a_reply_names(text: str, name: str | None) -> None:
    assert named(text, list(TRUTH)) == name


def test_the_command_on_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Situations from a file, lists from logprobs, choices as text; then the same as JSON."""
    lines = [
        {"candidates": ["walk", "bus"], "messages": "Rain. How to get to work?"},
        {"candidates": {"walk": "on foot", "bus": "line 4"}, "messages": [{"role": "user", "content": "Sun."}]},
        {"candidates": [{"name": "walk", "description": "on foot"}, "bus"], "messages": "Wind."},
    ]
    file = tmp_path / "situations.jsonl"
    file.write_text("\n".join([json.dumps(line) for line in lines]) + "\n\n")
    answer = chat_answer("Choice: walk", top_logprobs=lambda _: {"A": -0.2, "B": -2.0, "The": -4.0})
    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        options = ["--base-url", provider.base_url, "--model", "fake", "--elicitor", "labels", "--samples", "4"]
        command = ["calibrate", *options, "--situations", str(file)]
        assert main(command) == 0
        table = capsys.readouterr().out
        assert main([*command, "--json"]) == 0
        [result] = json.loads(capsys.readouterr().out)
    assert "fake: 4 free choices a situation; 0% of them name no option." in table
    assert "labels" in table
    assert result["situations"] == 3
    assert result["samples"] == 4
    assert 0 <= result["tv"]["low"] <= result["tv"]["value"] <= result["tv"]["high"] <= 1


@pytest.mark.parametrize(
    "line",
    ['{"candidates": ["a"]}', "{", "[]", '{"candidates": [], "messages": "x"}', '{"candidates": [3], "messages": "x"}'],
)
def test_a_bad_situation_is_named_by_its_line(tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "situations.jsonl"
    file.write_text('{"candidates": ["a", "b"], "messages": "x"}\n' + line)
    assert main(["calibrate", "--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--situations", str(file)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_the_built_in_situations_are_ten_and_distinct() -> None:
    assert len(BUILT_IN) == len({str(one.messages) for one in BUILT_IN}) == 10
