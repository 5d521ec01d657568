"""The model behind the provider samples what it states, and finishes whatever it is made to do on the way."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from agentmark.testing import PROFILES, Errand
from agentmark.testing.refusing.conversation import AUTO, Choice, Request, Tool, Turn, tokens_of
from agentmark.testing.refusing.policy import ANSWERING, distribution, replies, stated_weights
from agentmark.testing.refusing.questions import Question

PLAIN = PROFILES["plain"]


def request_for(errand: Errand, *later: Turn) -> Request:
    tools = tuple([Tool(tool["name"], tool["parameters"]) for tool in errand.schemas])
    return Request(model="m", turns=(Turn("user", errand.task), *later), tools=tools)


def test_what_is_sampled_is_what_is_stated() -> None:
    request = replace(request_for(Errand(1)), count=8000)
    drawn = Counter([tuple(sorted([call.name for call in reply.calls])) for reply in
                     replies(request, None, PLAIN, random.Random(5))])  # fmt: skip
    stated = distribution(request, AUTO)
    assert set(drawn) <= set(stated)
    distance = sum([abs(drawn[behavior] / 8000 - share) for behavior, share in stated.items()]) / 2
    # The mean of this distance under the stated distribution is about 0.012 for so many behaviors and draws.
    assert distance < 0.025


def test_tools_of_a_server_are_known_by_their_last_part() -> None:
    request = request_for(Errand(1))
    served = replace(request, tools=tuple([replace(tool, name=f"mcp__shop__{tool.name}") for tool in request.tools]))
    plain, prefixed = distribution(request, AUTO), distribution(served, AUTO)
    assert prefixed == {tuple([f"mcp__shop__{name}" for name in behavior]): share for behavior, share in plain.items()}
    called = [
        call for reply in replies(replace(served, count=50), None, PLAIN, random.Random(1)) for call in reply.calls
    ]
    assert {call.arguments["city"] for call in called if call.name == "mcp__shop__deliver_to"} == {Errand(1).order.city}


def test_a_temperature_sharpens() -> None:
    request = replace(request_for(Errand(1)), count=500, parallel=False)
    likeliest = max(distribution(request, AUTO).items(), key=lambda pair: pair[1])[0]
    shares = []
    for temperature in (2.0, None, 0.2, 0):
        drawn = replies(replace(request, temperature=temperature), None, PLAIN, random.Random(1))
        shares.append(sum([tuple([call.name for call in reply.calls]) == likeliest for reply in drawn]))
    assert shares == sorted(shares)
    assert shares[-1] == 500


def test_the_stated_list_follows_the_conversation() -> None:
    errand = Errand(1)
    options = [*[tool["name"] for tool in errand.schemas], "(answer)"]
    at_first = stated_weights(request_for(errand), options)
    assert sum(at_first.values()) == pytest.approx(1)
    assert at_first["(answer)"] == 0
    assert at_first["add"] > at_first["ship"] > 0
    turns = [Turn("tool", errand.add(item)) for item in errand.order.items]
    turns.append(Turn("tool", errand.deliver_to(errand.order.city)))
    ready = stated_weights(request_for(errand, *turns), options)
    assert ready["ship"] > 0.6
    assert ready["add"] == ready["deliver_to"] == 0
    turns.append(Turn("tool", errand.ship()))
    shipped = stated_weights(request_for(errand, *turns), options)
    assert shipped["(answer)"] > 0.9


def test_a_transcript_in_one_message_is_as_good() -> None:
    errand = Errand(1)
    options = [*[tool["name"] for tool in errand.schemas], "(answer)"]
    results = [errand.price(errand.order.items[0]), errand.add(errand.order.items[0])]
    lines = "\n".join([f"[user] {errand.task}", *[f"[tool] {result}" for result in results]])
    transcript = Request(model="m", turns=(Turn("user", lines),))
    kept = request_for(errand, *[Turn("tool", result) for result in results])
    assert stated_weights(transcript, options) == stated_weights(kept, options)


def test_whatever_is_forced_on_the_way_the_errand_is_finished() -> None:
    names = [tool["name"] for tool in Errand().schemas]
    for seed in range(30):
        errand, rng = Errand(seed), random.Random(seed)
        turns: list[Turn] = []
        for step in range(80):
            choice = Choice((rng.choice(names),), may_answer=False) if step < 15 else AUTO
            request = replace(request_for(errand, *turns), choice=choice)
            (reply,) = replies(request, None, PLAIN, rng)
            if not reply.calls:
                break
            turns.append(Turn("assistant", reply.text, reply.calls))
            turns += [Turn("tool", errand.call(call.name, call.arguments), answers=call.id) for call in reply.calls]
        assert errand.finished(reply.text)


def test_tools_it_has_never_seen_are_called_by_their_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "exact": {"type": "boolean"},
            "extra": {"type": "string"},
        },
        "required": ["city", "unit", "days", "tags", "exact"],
    }
    request = Request(model="m", turns=(Turn("user", "Weather?"),), tools=(Tool("weather", schema), Tool("news")))
    rng = random.Random(0)
    turns = list(request.turns)
    called = []
    for _ in range(50):
        (reply,) = replies(replace(request, turns=tuple(turns)), None, PLAIN, rng)
        if not reply.calls:
            break
        called += list(reply.calls)
        turns += [Turn("assistant", "", reply.calls), Turn("tool", "It rains.")]
    assert "It rains." in reply.text or not called
    arguments = next(call.arguments for call in called if call.name == "weather")
    assert set(arguments) == set(schema["required"])
    assert isinstance(arguments["days"], int)
    assert arguments["unit"] in ("C", "F")


def test_answers_to_questions_come_bare_under_a_schema_and_in_words_without() -> None:
    question = Question({"add": "add", "ship": "ship"})
    request = request_for(Errand(1))
    schema = {"type": "object", "properties": {"add": {"type": "number"}, "ship": {"type": "number"}}}
    bare = replies(replace(request, schema=schema), question, PLAIN, random.Random(0))[0].text
    words = replies(request, question, PLAIN, random.Random(0))[0].text
    assert json.loads(bare) == json.loads(words[words.index("{") :])
    assert json.loads(bare) == stated_weights(request, ["add", "ship"])
    assert not words.startswith("{")


def test_a_limit_cuts_the_text_and_leaves_calls_out() -> None:
    request = replace(request_for(Errand(1)), max_tokens=2, choice=Choice(names=()))
    (reply,) = replies(request, None, PLAIN, random.Random(0))
    assert reply.is_cut_short
    assert len(tokens_of(reply.text)) == 2
    (forced,) = replies(replace(request, choice=Choice(may_answer=False)), None, PLAIN, random.Random(0))
    assert forced.is_cut_short
    assert forced.calls == ()


def test_ids_differ_even_when_all_else_is_the_same() -> None:
    request = replace(request_for(Errand(1)), temperature=0.0, count=5)
    drawn = replies(request, None, PLAIN, random.Random(0))
    calls = [call for reply in drawn for call in reply.calls]
    assert len({call.id for call in calls}) == len(calls)
    assert len({(call.name, call.arguments_json) for call in calls}) == len(calls) / 5


def test_a_forced_answer_before_the_end_claims_nothing() -> None:
    errand = Errand(1)
    request = replace(request_for(errand), choice=Choice(names=()))
    assert distribution(request, request.choice) == {ANSWERING: 1.0}
    (reply,) = replies(request, None, PLAIN, random.Random(0))
    assert errand.answer not in reply.text
