"""A turn: what an agent is handed, whatever its provider refuses, and what the log says of it."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from scipy.stats import chisquare

from agentmark import Decider, ElicitationError, Embedder, SettingError, SharedKey, StepRecord, Verifier
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.turn import Turn
from agentmark.elicit.chat import FunctionChat
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import ANSWER, OTHER, Candidate, Elicitation, Message, ToolCall
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor
from agentmark.wire.forcing import Rung, instruction

KEY = SharedKey(bytes(range(32)))
TOOLS = ("search", "book", "pay")
MODEL = {"search": 0.45, "book": 0.3, "pay": 0.15, ANSWER: 0.1}


class Memory:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []

    def write(self, record: StepRecord) -> None:
        self.records.append(record)


class HTTPStatusError(Exception):
    """As clients raise it."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


class Provider:
    """A model with a mind of its own, and a provider that refuses what it is told to refuse."""

    def __init__(
        self,
        refuses: Callable[[dict[str, Any]], Exception | None] = lambda _: None,
        *,
        seed: int = 1,
        obeys: bool = True,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self._refuses = refuses
        self._rng = Random(seed)
        self._obeys = obeys

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        error = self._refuses(request)
        if error is not None:
            raise error
        told = request.get("tool_choice") or request.get("allowed")
        if told is None and self._obeys:
            told = next((name for name in MODEL if request["messages"][-1]["content"] == instruction(name)), None)
        [done] = [told] if told else self._rng.choices(list(MODEL), list(MODEL.values()))
        calls = [] if done == ANSWER else [{"name": done, "arguments": {"n": self._rng.randrange(3)}}]
        return {"calls": calls, "number": len(self.requests)}


class Call(ModelCall):
    """A request of an agent that speaks in plain objects."""

    upstream = "loopback"
    model = "m"

    def __init__(
        self, provider: Provider, messages: Sequence[Message] = ({"role": "user", "content": "Go."},), **facts: Any
    ) -> None:
        self.provider = provider
        self.request = {"messages": list(messages), "tools": TOOLS}
        self.discarded: list[Any] = []
        self.spent: Spent | None = None
        for name, value in facts.items():
            setattr(self, name, value)

    def candidates(self) -> list[Candidate]:
        return [Candidate(name) for name in (*TOOLS, ANSWER)]

    def conversation(self) -> list[Message]:
        return list(self.request["messages"])

    def read(self, reply: Any) -> list[ToolCall]:
        return [ToolCall(**call) for call in reply["calls"]]

    def tokens(self, reply: Any) -> tuple[int, int]:
        return 100, 10

    def charged(self, reply: Any, spent: Spent) -> Any:
        self.spent = spent
        return reply

    def discard(self, reply: Any) -> None:
        self.discarded.append(reply)

    def forced(self, behavior: str, rung: Rung) -> dict[str, Any] | None:
        if rung == Rung.NAMED:
            return {**self.request, "tool_choice": behavior}
        if rung == Rung.ALLOWED:
            return None if behavior == ANSWER else {**self.request, "allowed": behavior}
        told = {"role": "user", "content": instruction(behavior)}
        return {**self.request, "messages": [*self.request["messages"], told]}

    def send(self, request: Any, *, sampled: bool) -> Any:
        return self.provider.answer(request)

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        await asyncio.sleep(0)
        return self.provider.answer(request)


def decider(elicitor: Any = None, **options: Any) -> tuple[Decider, Memory]:
    memory = Memory()
    return Decider(Embedder(KEY, 42, payload_len=8, scheme="R"), elicitor, memory, **options), memory


def take(deciding: Decider, call: ModelCall, *, is_async: bool = False, **options: Any) -> Turn:
    return asyncio.run(deciding.aturn(call, **options)) if is_async else deciding.turn(call, **options)


def done(turn: Turn) -> str:
    calls = turn.reply["calls"]
    return calls[0]["name"] if calls else ANSWER


either = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


# --- proposals ---


@either
def test_by_default_the_models_own_samples_are_the_list(is_async: bool) -> None:
    deciding, memory = decider()
    provider = Provider()
    calls = [Call(provider) for _ in range(80)]
    turns = [take(deciding, call, is_async=is_async) for call in calls]
    # Asked four times, each time as the agent asked.
    assert len(provider.requests) == 4 * 80
    assert all(request == calls[0].request for request in provider.requests)
    assert [record.behavior for record in memory.records] == [done(turn) for turn in turns]
    verdict = Verifier(KEY).verify(memory.records)
    assert verdict.accepted
    assert verdict.payload == 42
    meta = memory.records[0].meta or {}
    assert (meta["elicitor"], meta["samples"], meta["input_tokens"], meta["output_tokens"]) == ("proposals", 4, 400, 40)
    assert "latency_ms" in meta
    assert all(sum(record.distribution.weights) == 2**32 for record in memory.records if record.distribution)
    assert calls[0].spent == Spent(4, 400, 40)
    assert all(len(call.discarded) == 3 for call in calls)
    assert deciding.stats.marked == 80
    assert deciding.stats.calls == 320


@pytest.mark.parametrize("granularity", ["tool", "call"])
def test_what_the_agent_is_handed_is_distributed_as_the_model(granularity: Any) -> None:
    """Hypothesis: tools and arguments as often as the model gives them. 3,000 turns, level 1e-6."""
    deciding, _ = decider(Proposals(count=4, granularity=granularity))
    provider, turns = Provider(seed=7), 3000
    seen: Counter[tuple[str, int]] = Counter()
    for _ in range(turns):
        reply = deciding.turn(Call(provider)).reply
        seen[(reply["calls"][0]["name"], reply["calls"][0]["arguments"]["n"]) if reply["calls"] else (ANSWER, 0)] += 1
    expected = {
        (name, n): share * turns if name == ANSWER else share * turns / 3
        for name, share in MODEL.items()
        for n in range(1 if name == ANSWER else 3)
    }
    assert chisquare([seen[key] for key in expected], list(expected.values())).pvalue > 1e-6


def test_whole_calls_carry_more_than_tools() -> None:
    bits = {}
    for granularity in ("tool", "call"):
        deciding, memory = decider(Proposals(count=4, granularity=granularity))  # type: ignore[arg-type]
        provider = Provider(seed=3)
        for _ in range(100):
            deciding.turn(Call(provider))
        bits[granularity] = deciding.stats.bits
        names = {name for record in memory.records for name in (record.distribution or record).behaviors}  # type: ignore[union-attr]
        assert all("#" in name for name in names - {ANSWER}) == (granularity == "call")
    assert bits["call"] > 1.2 * bits["tool"]


def test_at_temperature_0_one_sample_is_taken_and_the_log_says_why() -> None:
    deciding, memory = decider()
    provider = Provider()
    turn = deciding.turn(Call(provider, temperature=0))
    assert len(provider.requests) == 1
    (record,) = memory.records
    assert (record.marked, record.behavior) == (False, done(turn))
    assert record.reason == "not sampled: at temperature 0 every sample would be the same"
    assert deciding.stats.unmarked == {record.reason: 1}


def test_tools_that_run_at_the_provider_are_not_run_four_times_unasked() -> None:
    deciding, memory = decider()
    provider = Provider()
    deciding.turn(Call(provider, runs_hosted_tools=True))
    assert len(provider.requests) == 1
    assert not memory.records[0].marked
    willing, memory = decider(Proposals(hosted_tools=True))
    willing.turn(Call(Provider(), runs_hosted_tools=True))
    assert memory.records[0].marked


@either
def test_samples_that_fail_are_left_out_and_the_agent_never_sees_them(is_async: bool) -> None:
    numbers = iter(range(10**6))
    deciding, memory = decider()
    provider = Provider(lambda _: HTTPStatusError(529, "overloaded") if next(numbers) % 4 else None)
    for _ in range(10):
        take(deciding, Call(provider), is_async=is_async)
    assert len(memory.records) == 10
    assert all(record.marked for record in memory.records)


@either
def test_if_every_sample_fails_the_agent_gets_the_error(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    deciding, memory = decider()
    with pytest.raises(HTTPStatusError, match="no such model"):
        take(deciding, Call(Provider(lambda _: HTTPStatusError(404, "no such model"))), is_async=is_async)
    assert memory.records == []
    assert "no sample came" in caplog.text


def test_the_first_sample_may_warm_the_cache() -> None:
    deciding, _ = decider(Proposals(warm_cache=True))
    refusing = Provider(lambda _: HTTPStatusError(401, "bad key"))
    with pytest.raises(HTTPStatusError):
        deciding.turn(Call(refusing))
    assert len(refusing.requests) == 1


class Together(Call):
    """The same where the API has a way to ask for several replies at once."""

    def several(self, count: int) -> dict[str, Any]:
        return {**self.request, "n": count}

    def split(self, reply: Any) -> list[Any]:
        return list(reply["choices"])

    def send(self, request: Any, *, sampled: bool) -> Any:
        if "n" not in request:
            return self.provider.answer(request)
        first = self.provider.answer(request)
        plain = {name: value for name, value in request.items() if name != "n"}
        others = [self.provider.answer(plain) for _ in range(self.most - 1)]
        self.provider.requests[-self.most :] = [request]
        return {"choices": [first, *others]}

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        return self.send(request, sampled=sampled)

    # How many replies the provider gives, however many were asked for.
    most = 4


@either
def test_several_replies_are_asked_for_at_once_where_the_api_has_it(is_async: bool) -> None:
    deciding, memory = decider()
    provider = Provider()
    call = Together(provider)
    for step in range(20):
        turn = take(deciding, call, is_async=is_async)
        assert done(turn) == memory.records[step].behavior
    assert [request.get("n") for request in provider.requests] == [4] * 20
    assert call.spent == Spent(1, 100, 10)
    assert all(record.marked and record.meta["samples"] == 4 for record in memory.records)


@either
def test_who_refuses_several_replies_is_asked_one_by_one_from_then_on(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    refused = HTTPStatusError(400, "only n = 1 is supported")
    deciding, memory = decider()
    provider = Provider(lambda request: refused if "n" in request else None)
    for _ in range(2):
        take(deciding, Together(provider), is_async=is_async)
    assert [request.get("n") for request in provider.requests] == [4, *[None] * 8]
    assert all(record.marked for record in memory.records)
    assert caplog.text.count("only n = 1 is supported") == 1


def test_who_gives_fewer_replies_is_asked_for_the_rest() -> None:
    deciding, memory = decider()
    provider = Provider()
    call = Together(provider, most=1)
    for _ in range(2):
        deciding.turn(call)
    assert [request.get("n") for request in provider.requests] == [4, *[None] * 7]
    assert call.spent == Spent(4, 400, 40)
    assert all(record.marked for record in memory.records)


@pytest.mark.parametrize("status", [429, 401, 503])
def test_an_outage_says_nothing_of_several_replies(status: int) -> None:
    error = HTTPStatusError(status, "not now")
    deciding, _ = decider()
    provider = Provider(lambda request: error if len(provider.requests) == 1 else None)
    with pytest.raises(HTTPStatusError):
        deciding.turn(Together(provider))
    assert len(provider.requests) == 1
    deciding.turn(Together(provider))
    assert [request.get("n") for request in provider.requests] == [4, 4]


def test_a_request_that_fails_either_way_teaches_nothing() -> None:
    error = HTTPStatusError(400, "no such model")
    deciding, _ = decider()
    provider = Provider(lambda request: error)
    with pytest.raises(HTTPStatusError):
        deciding.turn(Together(provider))
    assert deciding.refusals.learned() == {}


def test_closed_means_closed() -> None:
    deciding, _ = decider(fail="closed")
    provider = Provider()
    with pytest.raises(ElicitationError, match="temperature 0"):
        deciding.turn(Call(provider, temperature=0))
    assert provider.requests == []


def test_an_agent_of_your_own_needs_a_function() -> None:
    deciding, memory = decider()
    provider = Provider()
    request = {"messages": [{"content": "Go."}]}

    def read(reply: Any) -> list[ToolCall]:
        return [ToolCall(**call) for call in reply["calls"]]

    async def ask() -> Any:
        return provider.answer(request)

    first = deciding.propose(lambda: provider.answer(request), read, TOOLS)
    second = asyncio.run(deciding.apropose(ask, read, TOOLS, session="run 7", meta={"on_behalf_of": "acme"}))
    assert len(provider.requests) == 8
    assert [record.behavior for record in memory.records] == [first.behavior, second.behavior]
    assert first.reply["calls"] == [] or first.reply["calls"][0]["name"] == first.behavior
    meta = memory.records[1].meta or {}
    assert (meta["run_id"], meta["on_behalf_of"]) == ("run 7", "acme")
    cold = deciding.propose(lambda: provider.answer(request), read, TOOLS, temperature=0)
    assert (cold.behavior, cold.marked) == (None, False)
    assert cold.reply["number"] == 9


def test_proposals_are_no_elicitor_and_say_so() -> None:
    deciding, _ = decider()
    with pytest.raises(SettingError, match=r"propose\(\)"):
        deciding.decide(["a", "b"], "What next?")


def test_what_failed_and_what_it_cost_is_counted() -> None:
    numbers = iter(range(10**6))
    deciding, memory = decider()
    provider = Provider(lambda _: None if next(numbers) % 4 else HTTPStatusError(429, "slow down"))
    request = {"messages": [{"content": "Go."}]}

    def read(reply: Any) -> list[ToolCall]:
        return [ToolCall(**call) for call in reply["calls"]]

    deciding.propose(lambda: provider.answer(request), read, TOOLS, usage=lambda _: (100, 10))
    meta = memory.records[0].meta or {}
    assert (meta["samples"], meta["failed"], meta["input_tokens"]) == (3, 1, 300)
    assert (deciding.stats.calls, deciding.stats.failed, deciding.stats.output_tokens) == (4, 1, 30)
    assert "4 model calls (1 failed), 300 tokens in, 30 out" in str(deciding.stats)
    broken = Provider(lambda _: HTTPStatusError(401, "bad key"))
    with pytest.raises(HTTPStatusError):
        deciding.propose(lambda: broken.answer(request), read, TOOLS)
    assert (deciding.stats.calls, deciding.stats.failed) == (8, 5)


@pytest.mark.parametrize(
    "read", [lambda _: None, lambda _: ["search"], lambda _: 1 / 0], ids=["none", "text", "raises"]
)
def test_replies_that_cannot_be_told_apart_are_not_called_marked(read: Any) -> None:
    deciding, memory = decider()
    reply = deciding.propose(lambda: {"calls": []}, read, TOOLS).reply
    assert reply == {"calls": []}
    assert deciding.stats.marked == 0
    assert deciding.stats.unmarked == {"not sampled: a reply cannot be read": 1}
    assert [(record.marked, record.behavior) for record in memory.records] == [(False, OTHER)]


def test_samples_one_after_the_other_stay_in_the_agents_thread() -> None:
    threads = set()

    def ask() -> Any:
        threads.add(threading.get_ident())
        return {"calls": []}

    deciding, _ = decider(Proposals(at_once=False))
    deciding.propose(ask, lambda _: [], TOOLS)
    assert threads == {threading.get_ident()}


def test_what_is_easily_mistaken_is_said() -> None:
    async def ask() -> Any:
        return {}

    deciding, _ = decider()
    with pytest.raises(SettingError, match="apropose"):
        deciding.propose(ask, lambda _: [], TOOLS)
    with pytest.raises(SettingError, match="list of names"):
        deciding.propose(dict, lambda _: [], "search")


# --- the ladder ---

REFUSES_NAMED = HTTPStatusError(400, "Thinking mode does not support this tool_choice")


def refuses_named(request: dict[str, Any]) -> Exception | None:
    return REFUSES_NAMED if "tool_choice" in request else None


def refuses_choices(request: dict[str, Any]) -> Exception | None:
    is_changed = "tool_choice" in request or "allowed" in request
    return HTTPStatusError(400, "tool_choice is not supported") if is_changed else None


def refuses_changes(request: dict[str, Any]) -> Exception | None:
    is_told = len(request["messages"]) > 1
    return HTTPStatusError(400, "messages must alternate") if is_told else refuses_choices(request)


@either
@pytest.mark.parametrize(
    ("refuses", "refused", "calls"),
    [
        (lambda _: None, 0, 10),
        (refuses_named, 1, 11),
        (refuses_choices, 2, 12),
    ],
    ids=["none", "named", "choices"],
)
def test_a_refusal_is_learned_once_and_the_choice_stands(
    refuses: Any, refused: int, calls: int, is_async: bool
) -> None:
    deciding, memory = decider(ScriptedElicitor({"search": 3, "book": 2, "pay": 2, ANSWER: 0}), fallback=None)
    provider = Provider(refuses)
    turns = [take(deciding, Call(provider), is_async=is_async) for _ in range(10)]
    assert len(provider.requests) == calls
    assert [record.behavior for record in memory.records] == [done(turn) for turn in turns]
    assert all(record.marked and record.enforced is None for record in memory.records)
    assert all(request["tools"] == TOOLS for request in provider.requests)
    assert len(deciding.refusals.learned()) == refused


def test_where_nothing_can_be_forced_the_agent_decides_and_then_its_samples_do() -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL))
    provider = Provider(refuses_changes)
    turns = [deciding.turn(Call(provider)) for _ in range(20)]
    assert len(turns) == 20
    # The first turn meets every refusal, and is then sent as the agent made it.
    assert provider.requests[3 if "allowed" in provider.requests[1] else 2] == Call(provider).request
    assert (memory.records[-1].meta or {})["elicitor"] == "proposals"
    assert all(request == Call(provider).request for request in provider.requests[-40:])


def test_a_list_that_cannot_be_followed_is_not_asked_for() -> None:
    class Unforced(Call):
        def forced(self, behavior: str, rung: Rung) -> dict[str, Any] | None:
            return super().forced(behavior, rung) if behavior != ANSWER else None

    elicitor = ScriptedElicitor(MODEL)
    deciding, memory = decider(elicitor)
    deciding.turn(Unforced(Provider()))
    assert elicitor.situations == []
    assert (memory.records[0].meta or {})["elicitor"] == "proposals"


def test_an_error_that_is_the_agents_own_is_what_the_agent_sees() -> None:
    deciding, _ = decider(ScriptedElicitor(MODEL), fallback=None)
    provider = Provider(lambda _: HTTPStatusError(400, "prompt is too long"))
    with pytest.raises(HTTPStatusError, match="too long"):
        deciding.turn(Call(provider))
    # Once changed, once as it was; and nothing is learned from it.
    assert len(provider.requests) == 2
    assert deciding.refusals.learned() == {}


@pytest.mark.parametrize("error", [HTTPStatusError(401, "bad key"), HTTPStatusError(503, "down"), TimeoutError("slow")])
def test_an_outage_is_not_asked_twice(error: Exception) -> None:
    deciding, _ = decider(ScriptedElicitor(MODEL), fallback=None)
    provider = Provider(lambda _: error)
    with pytest.raises(type(error)):
        deciding.turn(Call(provider))
    assert len(provider.requests) == 1


def test_a_library_that_refuses_to_send_is_no_reason_to_break() -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL), fallback=None)
    provider = Provider(lambda request: ValueError("unknown tool_choice") if "tool_choice" in request else None)
    deciding.turn(Call(provider))
    assert memory.records


def test_a_disobedient_model_is_sampled_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    deciding, memory = decider(ScriptedElicitor({"search": 1, "book": 1, "pay": 1, ANSWER: 1}))
    provider = Provider(refuses_choices, obeys=False, seed=5)
    for _ in range(40):
        deciding.turn(Call(provider))
    assert deciding.stats.disobeyed >= 3
    assert [record for record in memory.records if record.enforced is False]
    assert (memory.records[-1].meta or {})["elicitor"] == "proposals"
    assert "goes its own way" in caplog.text


def test_a_model_that_states_no_list_is_sampled_and_soon_not_asked(caplog: pytest.LogCaptureFixture) -> None:
    elicitor = ScriptedElicitor(lambda _: "I would rather not say")
    deciding, memory = decider(elicitor)
    for _ in range(10):
        deciding.turn(Call(Provider()))
    assert len(elicitor.situations) == 3
    assert [record.marked for record in memory.records] == [True] * 10
    assert "I would rather not say" in caplog.text
    assert "I would rather not say" not in str([record.meta for record in memory.records])


def test_without_a_fallback_a_step_without_a_list_is_the_agents() -> None:
    deciding, memory = decider(ScriptedElicitor(["no list today"]), fallback=None)
    provider = Provider()
    turn = deciding.turn(Call(provider))
    assert provider.requests == [Call(provider).request]
    (record,) = memory.records
    assert (record.marked, record.reason, record.behavior) == (
        False, "elicitation failed: no list today", done(turn),
    )  # fmt: skip


def test_an_elicitor_that_crashes_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    def crash(_: Any) -> Any:
        raise RuntimeError("a bug")

    deciding, memory = decider(ScriptedElicitor(crash), fallback=None)
    deciding.turn(Call(Provider()))
    assert memory.records[0].reason == "elicitation failed: the elicitor raised RuntimeError"
    assert "a bug" in caplog.text


def test_the_agents_own_model_is_lent_to_an_elicitor_without_one() -> None:
    asked = []

    class Lending(Call):
        def chat(self) -> FunctionChat:
            def complete(request: Any) -> str:
                asked.append(request)
                return '{"search": 1, "book": 0, "pay": 0, "(answer)": 0}'

            return FunctionChat("own", complete=complete)

    deciding, memory = decider(Verbalised())
    deciding.turn(Lending(Provider()))
    assert len(asked) == 1
    assert memory.records[0].behavior == "search"
    with pytest.raises(SettingError, match="adapter"):
        deciding.decide(["a", "b"], "What next?")


def test_what_a_lent_model_refuses_in_side_calls_is_not_asked_for_again() -> None:
    asked = []

    class Lending(Call):
        def chat(self) -> FunctionChat:
            def complete(request: Any) -> str:
                asked.append(request.schema)
                if request.schema is not None:
                    raise HTTPStatusError(400, "no response format here")
                return '{"search": 1, "book": 0, "pay": 0, "(answer)": 0}'

            return FunctionChat("own", complete=complete, left_out=deciding.refusals.left_out(("loopback", "m")))

    deciding, memory = decider(Verbalised())
    for _ in range(3):
        deciding.turn(Lending(Provider()))
    assert [schema is None for schema in asked] == [False, True, True, True]
    assert [record.behavior for record in memory.records] == ["search"] * 3


# --- never in silence, never in the way ---


def test_a_request_that_cannot_be_read_goes_through(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Call):
        def conversation(self) -> list[Message]:
            raise KeyError("content")

    deciding, memory = decider()
    provider = Provider()
    turn = deciding.turn(Odd(provider))
    assert turn.reply["number"] == 1
    assert memory.records == []
    assert deciding.stats.unmarked == {"the request cannot be read": 1}
    assert "cannot be read" in caplog.text or "KeyError" in caplog.text


def test_a_reply_that_cannot_be_read_is_a_reply_all_the_same() -> None:
    class Odd(Call):
        def read(self, reply: Any) -> list[ToolCall]:
            raise KeyError("calls")

    deciding, memory = decider()
    deciding.turn(Odd(Provider()))
    assert memory.records[0].behavior == OTHER


def test_a_sink_that_fails_does_not_break_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Full:
        def write(self, record: StepRecord) -> None:
            raise OSError(28, "No space left on device")

    deciding = Decider(Embedder(KEY, 42, payload_len=8), None, Full())
    assert deciding.turn(Call(Provider())).reply
    assert deciding.stats.unrecorded == 1
    assert "No space left" in caplog.text
    with pytest.raises(OSError, match="No space"):
        Decider(Embedder(KEY, 42, payload_len=8), None, Full(), fail="closed").turn(Call(Provider()))


def test_each_cause_is_said_once_and_the_sum_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "agentmark"), decider()[0] as deciding:
        for _ in range(5):
            deciding.turn(Call(Provider(), temperature=0))
    warned = [entry for entry in caplog.records if "temperature 0" in entry.getMessage()]
    assert len(warned) == 2
    assert warned[0].name == "agentmark.decide"
    assert "5 steps: 0 marked" in warned[1].getMessage()
    assert warned[1].levelno == logging.WARNING


def test_steps_that_leave_nothing_to_choose_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    deciding, _ = decider()
    sure = Provider()
    sure.answer = lambda request: {"calls": [{"name": "search", "arguments": {}}], "number": 1}  # type: ignore[method-assign]
    for _ in range(25):
        deciding.turn(Call(sure))
    assert "left one thing to do" in caplog.text
    assert deciding.stats.bits == 0


# --- runs ---


def continued(messages: list[Message], turn: Turn, *, did: str | None = None) -> list[Message]:
    """The conversation after a turn, as the agent did it, or as somebody made it do."""
    name = did or done(turn)
    arguments = turn.reply["calls"][0]["arguments"] if turn.reply["calls"] else {}
    said = {"role": "assistant", "content": "", "tool_calls": [{"name": name, "arguments": arguments}]}
    return [*messages, said, {"role": "tool", "content": "done"}]


def calling_turn(deciding: Decider, provider: Provider, messages: list[Message], session: str) -> Turn:
    """A turn in which a tool is called."""
    while True:
        turn = deciding.turn(Call(provider, messages), session=session)
        if done(turn) != ANSWER:
            return turn


def test_thirty_runs_at_once_are_thirty_sessions() -> None:
    deciding, memory = decider()
    provider = Provider()

    async def run(number: int) -> None:
        for _ in range(4):
            await deciding.aturn(Call(provider), session=f"run {number}")

    async def all_runs() -> None:
        await asyncio.gather(*[run(number) for number in range(30)])

    asyncio.run(all_runs())
    sessions = {(record.session, (record.meta or {})["run_id"]) for record in memory.records}
    assert len(sessions) == 30
    assert len({session for session, _ in sessions}) == 30
    for session, _ in sessions:
        steps = sorted(record.step_index for record in memory.records if record.session == session)
        assert steps == [0, 1, 2, 3]
    assert Verifier(KEY).verify(memory.records).payload == 42


@pytest.mark.parametrize("elicitor", [None, ScriptedElicitor({"search": 1, "book": 1, "pay": 1, ANSWER: 0})])
def test_a_persons_edit_is_recorded_as_such(elicitor: Any) -> None:
    deciding, memory = decider(elicitor)
    provider, asked = Provider(), [{"role": "user", "content": "Go."}]
    first = calling_turn(deciding, provider, asked, "run")
    count = len(memory.records)
    other = next(name for name in TOOLS if name != done(first))
    deciding.turn(Call(provider, continued(asked, first, did=other)), session="run")
    edited = memory.records[count]
    assert (edited.enforced, (edited.meta or {})["did"], (edited.meta or {})["edited"]) == (False, other, True)
    assert deciding.stats.edited == 1
    assert Verifier(KEY).verify(memory.records).counts["not enforced"] == 2


def test_an_edit_that_the_conversation_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    deciding, memory = decider()
    provider, asked = Provider(), [{"role": "user", "content": "Go."}]
    first = calling_turn(deciding, provider, asked, "run")
    count = len(memory.records)
    other = next(name for name in TOOLS if name != done(first))
    monkeypatch.setattr(Call, "as_done", lambda self, calls: [ToolCall(other)])
    deciding.turn(Call(provider, continued(asked, first)), session="run")
    assert (memory.records[count].enforced, (memory.records[count].meta or {})["did"]) == (False, other)


def test_what_nobody_edited_stays_in_the_evidence() -> None:
    deciding, memory = decider()
    provider, messages = Provider(), [{"role": "user", "content": "Go."}]
    for _ in range(10):
        messages = continued(messages, calling_turn(deciding, provider, messages, "run"))
    assert all(record.enforced is None for record in memory.records)


@either
def test_a_retry_repeats_the_decision(is_async: bool) -> None:
    fails = iter([True, True, False] * 5)
    deciding, memory = decider(elicitor := ScriptedElicitor(MODEL), fallback=None)
    provider = Provider(lambda _: HTTPStatusError(503, "down") if next(fails) else None)
    messages: list[Message] = [{"role": "user", "content": "Go."}]
    for _ in range(5):
        for _ in range(2):
            with pytest.raises(HTTPStatusError):
                take(deciding, Call(provider, messages), is_async=is_async, session="run")
        turn = take(deciding, Call(provider, messages), is_async=is_async, session="run")
        messages = [*messages, {"role": "assistant", "content": str(len(messages))}, {"role": "user", "content": "On."}]
        assert done(turn) == memory.records[-1].behavior
    assert len(memory.records) == len(elicitor.situations) == 5
    assert all(record.enforced is None for record in memory.records)


def test_a_call_that_failed_for_good_is_no_evidence() -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL), fallback=None)
    fails = iter([True, False])
    provider = Provider(lambda _: HTTPStatusError(503, "down") if next(fails) else None)
    with pytest.raises(HTTPStatusError):
        deciding.turn(Call(provider), session="run")
    # The run goes on elsewhere: the decision was never followed.
    deciding.turn(Call(provider, [{"role": "user", "content": "Something else."}]), session="run")
    assert [(record.step_index, record.enforced) for record in memory.records] == [(0, None), (0, False), (1, None)]
    late, memory = decider(ScriptedElicitor(MODEL), fallback=None)
    with pytest.raises(HTTPStatusError):
        late.turn(Call(Provider(lambda _: HTTPStatusError(503, "down"))))
    late.close()
    assert [record.enforced for record in memory.records] == [None, False]


def test_what_is_remembered_of_a_step_is_not_what_the_model_said() -> None:
    deciding, _ = decider()
    calling_turn(deciding, Provider(), [{"role": "user", "content": "Go."}], "run")
    kept = [made.last for made in deciding.run("run").memory.made.values()]
    assert kept
    assert all(decision.reply is None and decision.elicitation.proposals == () for decision in kept)
    deciding.turn(Call(Provider()))
    assert not deciding.runs.unnamed.memory.made


def test_runs_are_forgotten_before_they_fill_the_memory() -> None:
    deciding, memory = decider()
    deciding.runs._most = 3
    for number in (0, 1, 2, 3, 0):
        deciding.turn(Call(Provider()), session=f"run {number}")
    first, last = memory.records[0], memory.records[-1]
    assert (first.meta or {})["run_id"] == (last.meta or {})["run_id"]
    assert first.session != last.session


# --- live streams ---


class Live(Call):
    def is_live(self, reply: Any) -> bool:
        return True


@either
@pytest.mark.parametrize("ending", ["obeys", "differs", "breaks off"])
def test_a_live_stream_is_finished_by_the_adapter(ending: str, is_async: bool) -> None:
    deciding, memory = decider(ScriptedElicitor({"search": 1, "book": 0, "pay": 0, ANSWER: 0}), fallback=None)
    turn = take(deciding, Live(Provider()), is_async=is_async)
    assert len(memory.records) == 1
    calls = {"obeys": [ToolCall("search")], "differs": [ToolCall("pay")], "breaks off": None}[ending]
    if is_async:
        asyncio.run(turn.afinish(calls))
    else:
        turn.finish(calls)
    turn.finish(calls)
    expected = {"obeys": [None], "differs": [None, False], "breaks off": [None, False]}[ending]
    assert [record.enforced for record in memory.records] == expected


# --- what fails on our side alone (law L11) ---


def _nested() -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(3000):
        nested = {"in": nested}
    return nested


@pytest.mark.parametrize("arguments", [{1: 2, "a": 3}, _nested()], ids=["keys that cannot be sorted", "too deep"])
def test_a_conversation_of_any_shape_is_no_reason_to_break(arguments: Any) -> None:
    deciding, memory = decider()
    called = {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": arguments}]}
    for calls in (called, {**called, "tool_calls": ["no object"]}):
        call = Call(Provider(), [{"role": "user", "content": "Go."}, calls])
        assert deciding.turn(call, session="run").reply["number"]
    assert len(memory.records) == 2


@either
@pytest.mark.parametrize("part", ["tokens", "charged", "discard", "adiscard", "forced", "as_done"])
def test_an_adapter_that_stumbles_does_not_break_the_agent(part: str, is_async: bool) -> None:
    def stumbles(*_: Any, **__: Any) -> Any:
        raise KeyError("usage")

    deciding, memory = decider(ScriptedElicitor(MODEL) if part == "forced" else None)
    call = Call(Provider())
    setattr(call, part, stumbles)
    assert take(deciding, call, is_async=is_async, session="run").reply["number"]
    assert memory.records


@pytest.mark.parametrize("read", [None, ["search"], [ToolCall(["search"])], (1 // 0 for _ in [1])])  # type: ignore[arg-type]
def test_a_reply_read_as_anything_is_a_reply(read: Any) -> None:
    deciding, memory = decider()
    call = Call(Provider())
    call.read = lambda reply: read  # type: ignore[method-assign]
    assert deciding.turn(call).reply["number"]
    assert memory.records


def test_what_no_record_can_hold_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    deciding, memory = decider()
    deciding.turn(Call(Provider()), session="thread \ud800", meta={"who": "\ud800", "share": 0.5, "team": "a"})
    (record,) = memory.records
    assert record.marked
    meta = record.meta or {}
    assert (meta["team"], meta["run_id"]) == ("a", "thread ?")
    assert not {"who", "share"} & set(meta)
    assert "no record can hold" in caplog.text


def test_a_choice_that_cannot_be_made_is_the_agents_and_is_recorded() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("private")

    deciding, memory = decider(Proposals(granularity="call"))
    call = Call(Provider())
    call.read = lambda reply: [ToolCall("search", Unprintable())]  # type: ignore[method-assign]
    assert deciding.turn(call).reply["number"] == 1
    (record,) = memory.records
    assert not record.marked
    assert record.reason == "not sampled: the choice failed with RuntimeError"
    assert sum(deciding.stats.unmarked.values()) == 1


class Stuck(Call):
    """A call whose reply does not come until somebody gives up."""

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        await asyncio.sleep(60)

    def send(self, request: Any, *, sampled: bool) -> Any:
        raise KeyboardInterrupt


@either
def test_a_call_that_was_given_up_is_no_evidence(is_async: bool) -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL))

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await deciding.aturn(Stuck(Provider()), session="run")

    if is_async:
        with pytest.raises(TimeoutError):
            asyncio.run(give_up())
    else:
        with pytest.raises(KeyboardInterrupt):
            deciding.turn(Stuck(Provider()), session="run")
    (record,) = memory.records
    assert record.marked
    # Tried again, it is the same decision; without that, it is taken back.
    deciding.turn(Call(Provider(), [{"role": "user", "content": "Something else."}]), session="run")
    assert memory.records[1].context == record.context
    assert not memory.records[1].enforced


@pytest.mark.parametrize("granularity", ["tool", "call"])
@pytest.mark.parametrize("elicitor", ["samples", "list"])
def test_parallel_agents_of_one_run_that_begin_alike_are_not_taken_for_edited(granularity: Any, elicitor: str) -> None:
    """Votes among agents with one prompt, branches of a graph: all of them honest, none may lose its evidence."""
    stating = Proposals(granularity=granularity) if elicitor == "samples" else ScriptedElicitor(MODEL)
    deciding, memory = decider(stating)
    provider = Provider(seed=5)
    begun: list[list[Message]] = [[{"role": "user", "content": "Go."}] for _ in range(30)]
    rng = Random(2)
    for _ in range(4):
        order = rng.sample(range(30), 30)
        turns = {number: deciding.turn(Call(provider, begun[number]), session="run") for number in order}
        # Some are asked again before they go on.
        turns |= {n: deciding.turn(Call(provider, begun[n]), session="run") for n in order[:5]}
        begun = [continued(begun[n], turns[n]) if turns[n].reply["calls"] else begun[n] for n in range(30)]
    assert deciding.stats.edited == 0
    assert all(record.enforced is None for record in memory.records)


def test_failures_of_many_turns_at_once_are_all_taken_back() -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL), fallback=None)
    provider = Provider(lambda _: HTTPStatusError(503, "down"))

    async def all_at_once() -> None:
        asked = [[{"role": "user", "content": f"Go {number % 30}."}] for number in range(60)]
        calls = [deciding.aturn(Call(provider, messages)) for messages in asked]
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(all_at_once())
    deciding.close()
    decided = {record.context for record in memory.records if record.enforced is None}
    assert decided == {record.context for record in memory.records if record.enforced is False}
    assert decided


def test_what_is_remembered_of_a_run_holds_no_reply() -> None:
    deciding, _ = decider()
    deciding.turn(Call(Provider()), session="run")
    (made,) = deciding.run("run").memory.made.values()
    assert made.last is not None
    assert made.last.reply is None
    assert made.last.elicitation.proposals == ()


def test_what_a_list_cost_in_vain_is_counted_once() -> None:
    class Vain:
        name = "vain"

        def elicit(self, situation: Any) -> Elicitation:
            return Elicitation(method="vain", model="m", fault="no list", input_tokens=1000, output_tokens=100)

        async def aelicit(self, situation: Any) -> Elicitation:
            return self.elicit(situation)

    deciding, memory = decider(Vain())
    call = Call(Provider())
    deciding.turn(call)
    assert (deciding.stats.input_tokens, deciding.stats.output_tokens) == (1000 + 400, 100 + 40)
    assert (memory.records[0].meta or {})["input_tokens"] == 400
    assert call.spent == Spent(5, 1400, 140)


def test_steps_that_came_to_nothing_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    deciding, memory = decider(ScriptedElicitor(MODEL), fallback=None)
    with pytest.raises(HTTPStatusError):
        deciding.turn(Call(Provider(lambda _: HTTPStatusError(503, "down"))))
    deciding.turn(Live(Provider(), [{"role": "user", "content": "Something else."}])).finish(None)
    assert deciding.stats.unfinished == 2 == len([record for record in memory.records if record.enforced is False])
    assert caplog.text.count("came to nothing") == 1
    assert "2 unfinished" in str(deciding.stats)


def test_a_server_that_fails_over_a_forced_choice_does_not_break_the_agent() -> None:
    """llama.cpp, for one, answers 500 where its template cannot express a choice."""
    deciding, _ = decider(ScriptedElicitor(MODEL), fallback=None)
    is_forced = {"tool_choice", "allowed"}
    provider = Provider(
        lambda request: HTTPStatusError(500, "jinja: tool_choice") if is_forced & set(request) else None
    )
    assert deciding.turn(Call(provider)).reply["number"]
    assert list(deciding.refusals.learned())


def test_a_connection_that_broke_once_teaches_nothing() -> None:
    class TransportError(Exception):
        """As HTTP clients name the kind that all of these are."""

    class ReadError(TransportError):
        pass

    deciding, _ = decider(ScriptedElicitor(MODEL), fallback=None)
    with pytest.raises(ReadError):
        deciding.turn(Call(Provider(lambda _: ReadError(""))))
    assert deciding.refusals.learned() == {}
    deciding.turn(Call(provider := Provider()))
    assert "tool_choice" in provider.requests[0]


def test_samples_are_taken_one_by_one_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def start(thread: threading.Thread) -> None:
        begun.append(thread)
        if len(begun) > 1:
            raise RuntimeError("can't start new thread")
        started(thread)

    started = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    deciding, _ = decider()
    assert deciding.turn(Call(provider := Provider())).reply["number"]
    assert len(provider.requests) == 4


def test_a_loop_whose_threads_are_gone_still_gets_its_records() -> None:
    deciding, memory = decider()

    async def late() -> Turn:
        await asyncio.get_running_loop().shutdown_default_executor()
        return await deciding.aturn(Call(Provider()))

    assert asyncio.run(late()).reply["number"]
    assert len(memory.records) == 1
    assert deciding.stats.unrecorded == 0
