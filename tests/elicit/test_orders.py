"""Several orders of the options, and one list of them."""

import asyncio
import json
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.labels import mean_masses
from agentmark.elicit.orders import mean_list, rotated, shuffled
from agentmark.elicit.prompts import OASIS
from agentmark.elicit.situation import Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import SettingError
from agentmark.testing import ScriptedChat

NAMES = ["search", "book", "wait"]
SITUATION = Situation.of(NAMES, "A flight to Oslo, please.")


def shown_in(request: ChatRequest) -> list[str]:
    [text] = [str(said["content"]) for said in request.messages if "Names: " in str(said["content"])]
    names: list[str] = json.loads(text.rpartition("Names: ")[2])
    return names


def likes_the_first(request: ChatRequest) -> ChatReply:
    """A model for which what stands first is likelier, whatever it is."""
    first, second, third = shown_in(request)
    return ChatReply(text=json.dumps({first: 6, second: 3, third: 1}), input_tokens=7, output_tokens=3)


def test_lists_are_averaged_exactly_each_divided_by_its_sum() -> None:
    # Percentages beside fractions: without dividing by the sum, the first would be all that counts.
    said = ScriptedChat(['{"search": 50, "book": 25, "wait": 25}', '{"search": 0, "book": 0.5, "wait": 0.5}'])
    found = Verbalised(said, orders=2).elicit(SITUATION)
    assert found.weights == {"search": Fraction(1, 4), "book": Fraction(3, 8), "wait": Fraction(3, 8)}
    assert (found.attempts, len(found.replies)) == (2, 2)


def test_a_preference_for_a_place_is_averaged_out() -> None:
    found = Verbalised(ScriptedChat(likes_the_first), orders=600, rng=random.Random(1)).elicit(SITUATION)
    assert found.weights is not None
    for weight in found.weights.values():
        assert float(Fraction(*weight.as_integer_ratio())) == pytest.approx(1 / 3, abs=0.04)
    assert (found.input_tokens, found.output_tokens) == (4200, 1800)


def test_one_order_is_the_list_as_it_was_stated() -> None:
    found = Verbalised(ScriptedChat(['{"search": 50, "book": 25, "wait": 25}'])).elicit(SITUATION)
    assert found.weights == {"search": 50, "book": 25, "wait": 25}
    with pytest.raises(SettingError, match="orders"):
        Verbalised(ScriptedChat([]), orders=0)


def test_an_order_without_a_usable_list_is_left_out() -> None:
    good = '{"search": 1, "book": 0, "wait": 0}'
    found = Verbalised(ScriptedChat([good, "no", "still no", good]), orders=3).elicit(SITUATION)
    assert found.weights == {"search": 1, "book": 0, "wait": 0}
    assert found.attempts == 4
    none = Verbalised(ScriptedChat(["no"] * 4), orders=2).elicit(SITUATION)
    assert (none.weights, none.fault) == (None, "there is no JSON object")


def test_leaving_orders_out_does_not_bend_the_list() -> None:
    """A model whose words fail more often with some orders than with others: on average, three orders of which some
    are lost say what one order says that was not lost."""

    def sometimes(request: ChatRequest) -> str:
        first = shown_in(request)[0]
        fails = {"search": 0.6, "book": 0.3, "wait": 0.0}[first]
        return "hm" if rng.random() < fails else str(likes_the_first(request).text)

    rng = random.Random(5)
    means = []
    for orders, trials in ((1, 6000), (3, 2500)):
        elicitor = Verbalised(ScriptedChat(sometimes), orders=orders, rng=rng)
        found = [said.weights for said in [elicitor.elicit(SITUATION) for _ in range(trials)] if said.weights]
        means.append(mean_list(found))
    for name in NAMES:
        assert float(means[0][name]) == pytest.approx(float(means[1][name]), abs=0.015)


def test_what_is_never_mentioned_in_any_order_is_unseen() -> None:
    chat = ScriptedChat(['{"search": 1}', '{"book": 1}'])
    assert Verbalised(chat, prompt=OASIS, orders=2).elicit(SITUATION).unseen == ("wait",)


class Together:
    """A chat that answers nobody until all have asked."""

    model = "together"

    def __init__(self, count: int) -> None:
        self._barrier = asyncio.Barrier(count)

    def complete(self, request: ChatRequest) -> ChatReply:
        raise NotImplementedError

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        await asyncio.wait_for(self._barrier.wait(), 10)
        return likes_the_first(request)


def test_async_orders_are_asked_at_once() -> None:
    async def ask() -> Any:
        return await Verbalised(Together(5), orders=5).aelicit(SITUATION)

    assert asyncio.run(ask()).attempts == 5


def test_one_that_fails_stops_the_others() -> None:
    stopped = []

    class Failing(Together):
        async def acomplete(self, request: ChatRequest) -> ChatReply:
            if not stopped:
                stopped.append("asked")
                raise UpstreamError("chat", "down", 503)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.append("cancelled")
                raise
            raise AssertionError

    async def ask() -> None:
        with pytest.raises(UpstreamError, match="down"):
            await Verbalised(Failing(1), orders=3).aelicit(SITUATION)

    asyncio.run(asyncio.wait_for(ask(), 20))


@given(st.integers(1, 8), st.integers(1, 10), st.integers(0, 99))
def test_orders_are_of_the_options(count: int, orders: int, seed: int) -> None:
    options = list(range(count))
    drawn, turned = shuffled(options, orders, random.Random(seed)), rotated(options, orders, random.Random(seed))
    assert (len(drawn), len(turned)) == (orders, min(orders, count))
    assert all(sorted(order) == options for order in [*drawn, *turned])
    if orders >= count:
        assert all(sorted([order[place] for order in turned]) == options for place in range(count))


def test_readings_count_alike_however_much_they_miss() -> None:
    masses = mean_masses([{"a": 0.8, "b": 0.0}, {"a": 0.0, "b": 0.2}])
    assert masses == pytest.approx({"a": 0.25, "b": 0.25})
    assert mean_masses([{"a": 0.5, "b": 0.1}, {"a": 0.0, "b": 0.0}]) == pytest.approx({"a": 0.25, "b": 0.05})
    assert mean_masses([{"a": 0.0}, {"a": 0.0}]) == {"a": 0.0}
