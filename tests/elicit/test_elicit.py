"""The elicitors, over HTTP against a provider on the loopback, and as dialogues with a scripted model."""

import asyncio
import json
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

from agentmark import Decider, Embedder, SharedKey, StepRecord
from agentmark.elicit.auto import elicitor_for
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.decisions import Decisions
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import ElicitationError, UnsupportedError, UpstreamError
from agentmark.elicit.http_chat import HttpChat
from agentmark.elicit.labels import Labels
from agentmark.elicit.prompts import ALFWORLD, GENERAL, OASIS, PROMPTS, TOOLBENCH, Prompt, transcript
from agentmark.elicit.situation import ANSWER_CANDIDATE, Candidate, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import SettingError
from agentmark.testing import FakeProvider, ScriptedChat
from agentmark.testing.provider import Refusal, chat_answer

CANDIDATES = [Candidate("search", "search the web"), Candidate("book"), ANSWER_CANDIDATE]
SITUATION = Situation.of(CANDIDATES, "Book me a flight to Oslo.")
LIST = {"search": 0.5, "book": 0.3, "(answer)": 0.2}
SAID = json.dumps(LIST)
CHAT = "/v1/chat/completions"


def endpoint(provider: FakeProvider, **options: Any) -> Endpoint:
    return Endpoint(provider.base_url, "m", timeout_s=10, max_delay_s=0.01, **options)


# --- verbalised --------------------------------------------------------------------------------------------------


def test_verbalised_reads_what_was_said() -> None:
    chat = ScriptedChat([f"Thought: no.\n```json\n{SAID}\n```"])
    said = Verbalised(chat).elicit(SITUATION)
    assert said.weights == LIST
    assert (said.method, said.model, said.attempts) == ("verbalised", "scripted", 1)


def test_one_retry_tells_the_model_what_was_wrong() -> None:
    chat = ScriptedChat(['{"search": 1.0}', SAID])
    said = Verbalised(chat).elicit(SITUATION)
    assert (said.weights, said.attempts) == (LIST, 2)
    before, again = chat.requests
    assert list(again.messages[: len(before.messages)]) == list(before.messages)
    assert again.messages[-2]["content"] == '{"search": 1.0}'
    assert 'no probability is given for "book", "(answer)"' in again.messages[-1]["content"]


def test_after_the_retry_the_step_is_unmarked_with_the_reason() -> None:
    chat = ScriptedChat(["I would search.", "Really, I would search."])
    said = Verbalised(chat).elicit(SITUATION)
    assert (said.weights, said.fault, said.attempts) == (None, "there is no JSON object", 2)
    assert said.replies == ("I would search.", "Really, I would search.")


def test_sync_and_async_are_one_text() -> None:
    for script in ([SAID], ["no", SAID], ["no", "no"]):
        one = Verbalised(ScriptedChat(script), rng=random.Random(1)).elicit(SITUATION)
        two = asyncio.run(Verbalised(ScriptedChat(script), rng=random.Random(1)).aelicit(SITUATION))
        assert one == two


def test_options_are_shown_in_shuffled_order() -> None:
    situation = Situation.of([f"tool-{i}" for i in range(8)], "Go.")
    orders = set()
    for _ in range(20):
        chat = ScriptedChat(["no", "no"])
        Verbalised(chat).elicit(situation)
        orders.add(chat.requests[0].messages[-1]["content"])
    assert len(orders) > 15


def test_the_schema_asks_for_every_candidate_and_nothing_else() -> None:
    chat = ScriptedChat([SAID])
    Verbalised(chat).elicit(SITUATION)
    schema = chat.requests[0].schema
    assert schema is not None
    assert sorted(schema["required"]) == sorted(LIST)
    assert schema["additionalProperties"] is False
    without = ScriptedChat([SAID])
    Verbalised(without, strict_schema=False).elicit(SITUATION)
    assert without.requests[0].schema is None


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=lambda prompt: prompt.name)
def test_every_prompt_shows_every_candidate_and_the_situation(prompt: Prompt) -> None:
    text = "\n".join([str(m["content"]) for m in prompt.messages(SITUATION, SITUATION.candidates)])
    assert "flight to Oslo" in text
    for candidate in CANDIDATES:
        assert candidate.name in text


def test_the_papers_prompts_say_what_the_paper_says() -> None:
    details = {"goal": "put a mug in the sink", "inventory": "mug 1", "name": "Ann", "profile": "baker"}
    situation = Situation.of(["go to sink 1", "look"], "You are in a kitchen.", details)
    shown = situation.candidates
    alfworld = ALFWORLD.messages(situation, shown)
    assert alfworld[0]["content"].startswith("You are an expert household task agent.")
    assert "Task Goal: put a mug in the sink" in alfworld[1]["content"]
    assert '["go to sink 1", "look"]' in alfworld[1]["content"]
    oasis = OASIS.messages(situation, shown)
    assert "Your name is Ann. Your profile: baker." in oasis[0]["content"]
    assert "Return ONLY a JSON object with probabilities (must sum to 1.0)." in oasis[1]["content"]
    toolbench = TOOLBENCH.messages(Situation.of(shown, [{"role": "user", "content": "q"}]), shown)
    assert '"action_weights" (probabilities for EVERY candidate tool, sum to 1)' in toolbench[0]["content"]
    assert "User Query: q" in toolbench[1]["content"]


def test_toolbench_gets_weights_and_arguments_in_one_call() -> None:
    reply = {"action_weights": LIST, "action_args": {"search": {"q": "oslo"}, "book": {}, "(answer)": None}}
    said = Verbalised(ScriptedChat(["Thought: hm\n" + json.dumps(reply)]), prompt=TOOLBENCH).elicit(SITUATION)
    assert said.weights == LIST
    assert said.arguments == reply["action_args"]
    assert said.method == "verbalised/toolbench"


def test_oasis_may_leave_actions_out_and_the_record_says_which() -> None:
    said = Verbalised(ScriptedChat(['{"search": 0.6, "book": 0.4}']), prompt=OASIS).elicit(SITUATION)
    assert said.weights == {"search": 0.6, "book": 0.4, "(answer)": 0}
    assert said.as_meta()["unseen"] == ["(answer)"]


def test_a_transcript_shows_calls_and_parts() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}]},
        {"role": "tool", "content": "done"},
    ]
    assert transcript(messages) == '[user] look (image_url)\n[assistant calls] f {"a":1}\n[tool] done'


# --- labels ------------------------------------------------------------------------------------------------------


def by_letter(probabilities: Mapping[str, float]) -> Any:
    """A model that believes in names: it gives each letter the probability of the option it stands for."""

    def reply(request: ChatRequest) -> ChatReply:
        text = str(request.messages[-1]["content"])
        options = dict(
            line.split(". ", 1) for line in text.split("Options:\n")[1].split("\n\n", maxsplit=1)[0].splitlines()
        )
        tokens = [(letter, options[letter].split(": ")[0]) for letter in options]
        alternatives = [(letter, math.log(probabilities[name])) for letter, name in tokens if probabilities[name]]
        return ChatReply(text="A", top_logprobs=[[*alternatives, ("The", -3.0)]])

    return reply


@pytest.mark.parametrize("orders", [1, 3])
def test_labels_read_the_next_token(orders: int) -> None:
    probabilities = {"search": 0.5, "book": 0.3, "(answer)": 0.1}
    chat = ScriptedChat(by_letter(probabilities))
    said = Labels(chat, orders=orders).elicit(SITUATION)
    assert said.weights == pytest.approx(probabilities)
    assert said.missing_mass == pytest.approx(0.1)
    assert said.attempts == orders
    assert chat.requests[0].max_tokens == 1


def test_orders_cancel_a_preference_for_a_letter() -> None:
    """A model that always says A with .7 is uniform over the options once every one of them was A."""

    def reply(_: ChatRequest) -> ChatReply:
        alternatives = [("A", math.log(0.7)), (" B", math.log(0.1)), ("B", math.log(0.1)), ("C", math.log(0.1))]
        return ChatReply(text="A", top_logprobs=[alternatives])

    said = Labels(ScriptedChat(reply), orders=3).elicit(SITUATION)
    assert said.weights == pytest.approx(dict.fromkeys(LIST, 1 / 3))


def test_an_option_that_was_not_seen_is_recorded() -> None:
    said = Labels(ScriptedChat(by_letter({"search": 0.9, "book": 0.05, "(answer)": 0}))).elicit(SITUATION)
    assert said.weights is not None
    assert said.weights["(answer)"] == 0
    assert said.unseen == ("(answer)",)


def test_a_model_that_ignores_the_letters_is_not_used() -> None:
    said = Labels(ScriptedChat(by_letter({"search": 0.1, "book": 0.1, "(answer)": 0.1}))).elicit(SITUATION)
    assert said.weights is None
    assert said.fault == "the options have 30.0% of the model's probability, less than 50%"


def test_labels_say_when_they_cannot() -> None:
    with pytest.raises(UnsupportedError, match="21 candidates, and labels carry 20"):
        Labels(ScriptedChat(["A"])).elicit(Situation.of([f"t{i}" for i in range(21)], ""))
    with pytest.raises(UnsupportedError, match="no log-probabilities"):
        Labels(ScriptedChat(["A"])).elicit(SITUATION)
    with pytest.raises(SettingError, match="orders"):
        Labels(ScriptedChat(["A"]), orders=0)


# --- over HTTP ---------------------------------------------------------------------------------------------------


def test_chat_over_http_sends_what_providers_take() -> None:
    with FakeProvider({CHAT: chat_answer(SAID)}) as provider:
        chat = HttpChat(endpoint(provider, extra={"cache_prompt": False}))
        said = Verbalised(chat, temperature=0.5, max_tokens=99).elicit(SITUATION)
    assert said.weights == LIST
    assert (said.input_tokens, said.output_tokens) == (1, 1)
    ((path, body),) = provider.requests
    assert path == CHAT
    assert body["response_format"]["type"] == "json_schema"
    assert (body["model"], body["temperature"], body["max_tokens"], body["cache_prompt"]) == ("m", 0.5, 99, False)


def test_an_optional_parameter_that_is_refused_is_left_out_from_then_on() -> None:
    def picky(body: dict[str, Any]) -> Any:
        for name in ("response_format", "max_tokens", "temperature"):
            if name in body:
                return Refusal(400, f"Unsupported parameter: '{name}'")
        return chat_answer(SAID)(body)

    with FakeProvider({CHAT: picky}) as provider:
        elicitor = Verbalised(HttpChat(endpoint(provider)), temperature=0.5, max_tokens=99)
        assert elicitor.elicit(SITUATION).weights == LIST
        asked = len(provider.requests)
        assert elicitor.elicit(SITUATION).weights == LIST
    assert asked == 5  # The response format twice: as a schema, and as any JSON object.
    assert len(provider.requests) == asked + 1
    assert provider.requests[-1][1]["max_completion_tokens"] == 99


def test_labels_over_http() -> None:
    answer = chat_answer("A", top_logprobs=lambda _: {"A": math.log(0.6), "B": math.log(0.3), "C": math.log(0.1)})
    with FakeProvider({CHAT: answer}) as provider:
        said = elicitor_for(endpoint(provider), "labels").elicit(SITUATION)
    assert said.weights is not None
    assert sorted(said.weights.values()) == pytest.approx([0.1, 0.3, 0.6])
    assert provider.requests[0][1]["top_logprobs"] == 20


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        (Refusal(429, "slow down"), "HTTP 429: slow down"),
        (Refusal(503, "overloaded"), "HTTP 503: overloaded"),
        (Refusal(302, "elsewhere"), "HTTP 302"),
        (lambda _: {"choices": []}, "shape"),
        (lambda _: {"choices": [{"message": {"content": "A"}, "logprobs": {"content": [{}]}}]}, "shape"),
    ],
)
def test_the_providers_own_error_is_passed_on(route: Any, fault: str) -> None:
    with FakeProvider({CHAT: route}) as provider, pytest.raises(UpstreamError, match=fault):
        elicitor_for(endpoint(provider), "verbalised").elicit(SITUATION)


def test_a_provider_that_is_down_or_not_a_provider() -> None:
    with FakeProvider({}) as provider:
        gone = endpoint(provider)
    with pytest.raises(ElicitationError, match=r"127\.0\.0\.1"):
        elicitor_for(gone, "verbalised").elicit(SITUATION)
    with pytest.raises(SettingError, match="http"):
        Endpoint("localhost:8080", "m")


def test_the_api_key_is_sent_and_never_shown() -> None:
    headers: list[str | None] = []
    with FakeProvider(
        {CHAT: chat_answer(SAID)}, on_headers=lambda h: headers.append(h.get("Authorization"))
    ) as provider:
        with_key = endpoint(provider, api_key="sk-secret")
        elicitor_for(with_key, "verbalised").elicit(SITUATION)
    assert headers == ["Bearer sk-secret"]
    assert "sk-secret" not in repr(with_key)


# --- decision endpoints --------------------------------------------------------------------------------------------


def decisions_answer(probabilities: Any) -> Any:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        question = body["questions"][0]
        names = [choice["value"] for choice in question["choices"]]
        listed = probabilities(names) if callable(probabilities) else probabilities
        given = {
            "type": "choice",
            "name": question["name"],
            "choice": names[0],
            "confidence": 1,
            "probabilities": listed,
        }
        return {"answers": [given], "model": "luna", "usage": {"input_tokens": 5, "output_tokens": 0}}

    return answer


def listed(weights: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"value": name, "probability": value} for name, value in weights.items()]


def test_decisions_endpoint() -> None:
    with FakeProvider({"/v1/decisions": decisions_answer(listed(LIST))}) as provider:
        said = elicitor_for(endpoint(provider), "decisions").elicit(SITUATION)
    assert said.weights == LIST
    assert (said.method, said.model, said.input_tokens) == ("decisions", "luna", 5)
    body = provider.requests[0][1]
    assert body["input"] == '[user] "Book me a flight to Oslo."'
    assert {c["value"]: c.get("description") for c in body["questions"][0]["choices"]}["search"] == "search the web"


def test_systemone_endpoint() -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        ((name, question),) = body["questions"].items()
        assert question["criteria"] == {"search": "search the web", "book": None, "(answer)": CANDIDATES[2].description}
        return {"answers": {name: {"type": "choice", "choice": "search", "probabilities": LIST, "confidence": 0.4}}}

    with FakeProvider({"/v1/systemone": answer}) as provider:
        said = asyncio.run(elicitor_for(endpoint(provider), "systemone").aelicit(SITUATION))
    assert said.weights == LIST
    assert said.method == "systemone"


@pytest.mark.parametrize(
    ("probabilities", "fault"),
    [
        (listed({"search": 0.5, "book": 0.5}), r"'\(answer\)' has no probability"),
        (listed({**LIST, "hack": 0.1}), "'hack' is no candidate"),
        (listed(LIST) + listed({"book": 0.3}), "'book' is there twice"),
        (listed({**LIST, "book": True}), "True"),
        (listed({**LIST, "book": "0.3"}), "'0.3'"),
        (listed({**LIST, "book": -0.3}), "-0.3"),
        (None, "shape"),
        ([{"value": "book"}], "shape"),
        ("probabilities", "shape"),
    ],
)
def test_a_decision_that_cannot_be_used(probabilities: Any, fault: str) -> None:
    with FakeProvider({"/v1/decisions": decisions_answer(probabilities)}) as provider:
        said = Decisions(endpoint(provider)).elicit(SITUATION)
    assert said.weights is None
    assert said.fault is not None
    import re

    assert re.search(fault, said.fault)


def test_a_model_that_declines() -> None:
    answer = {"answers": [{"type": "refusal", "name": None}]}
    with FakeProvider({"/v1/decisions": lambda _: answer}) as provider:
        assert Decisions(endpoint(provider)).elicit(SITUATION).fault == "the model declined to decide"
    with pytest.raises(SettingError, match="route"):
        Decisions(endpoint(provider), "oracle")


# --- auto ----------------------------------------------------------------------------------------------------------


def test_auto_does_not_hide_an_outage() -> None:
    with FakeProvider({"/v1/decisions": Refusal(503)}) as provider, pytest.raises(UpstreamError, match="503"):
        elicitor_for(endpoint(provider)).elicit(SITUATION)
    with pytest.raises(SettingError, match="none of auto"):
        elicitor_for(endpoint(provider), "oracle")


def test_a_function_serves_as_a_chat() -> None:
    async def ask(request: ChatRequest) -> str:
        return SAID

    only_async = FunctionChat("m", acomplete=ask)
    assert asyncio.run(Verbalised(only_async).aelicit(SITUATION)).weights == LIST
    with pytest.raises(SettingError, match="adecide"):
        Verbalised(only_async).elicit(SITUATION)
    only_sync = FunctionChat("m", complete=lambda request: SAID)
    assert asyncio.run(Verbalised(only_sync, prompt=GENERAL).aelicit(SITUATION)).weights == LIST


async def _raise(request: ChatRequest) -> str:
    raise OSError("connection refused")


@pytest.mark.parametrize("chat", [FunctionChat("m", acomplete=_raise), FunctionChat("m", complete=lambda r: 1 / 0)])
def test_a_lent_model_that_raises_is_an_upstream_that_failed(chat: FunctionChat) -> None:
    with pytest.raises(UpstreamError, match=r"connection refused|division by zero"):
        asyncio.run(Verbalised(chat).aelicit(Situation.of(["a", "b"], "")))


# --- what must not break an agent, and must not reach a log ----------------------------------------------------------


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": "12"}, {"prompt_tokens": 1.5}, {"prompt_tokens": -1}, {"prompt_tokens": 1 << 60}]
)
def test_counts_that_are_none_are_left_out(usage: dict[str, Any]) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {**chat_answer(SAID)(body), "usage": usage}  # type: ignore[dict-item]

    with FakeProvider({CHAT: answer}) as provider:
        said = elicitor_for(endpoint(provider), "verbalised").elicit(SITUATION)
    assert said.weights == LIST
    assert "input_tokens" not in said.as_meta()


@pytest.mark.parametrize("logprob", [1000.0, float("nan"), 0.5])
def test_what_is_no_log_probability_is_refused(logprob: float) -> None:
    chat = ScriptedChat(lambda _: ChatReply(text="A", top_logprobs=[[("A", logprob)]]))
    with pytest.raises(UpstreamError, match="no log-probability"):
        Labels(chat).elicit(SITUATION)


def test_labels_are_never_read_at_another_temperature() -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "temperature" in body:
            return Refusal(400, "'temperature' is not supported with this model")
        return chat_answer("A", top_logprobs=lambda _: {"A": 0.0})(body)

    with FakeProvider({CHAT: picky}) as provider, pytest.raises(UnsupportedError, match="temperature 1"):
        elicitor_for(endpoint(provider), "labels").elicit(SITUATION)


@pytest.mark.parametrize(
    "message",
    [
        "Your request asks what the temperature in Oslo is, which is not allowed.",
        "max_tokens is too large: the maximum context length is 8192",
    ],
)
def test_text_that_merely_names_a_parameter_changes_nothing(message: str) -> None:
    with FakeProvider({CHAT: Refusal(400, message)}) as provider:
        elicitor = Verbalised(HttpChat(endpoint(provider)), temperature=0.5, max_tokens=99)
        for _ in range(2):
            with pytest.raises(UpstreamError, match="HTTP 400"):
                elicitor.elicit(SITUATION)
    assert all({"temperature", "max_tokens"} <= body.keys() for _, body in provider.requests)


def test_an_endpoint_refuses_secrets_where_they_would_leak() -> None:
    with pytest.raises(SettingError, match="user or a password") as caught:
        Endpoint("http://user:hunter2@127.0.0.1/v1", "m")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingError, match="no header can carry") as caught:
        Endpoint("http://127.0.0.1/v1", "m", api_key="sk-secret\n")
    assert "secret" not in str(caught.value)


PRIVATE = "Patient John Doe"


def raising(_: ChatRequest) -> str:
    raise RuntimeError(PRIVATE)


@pytest.mark.parametrize(
    "elicitor",
    [
        Verbalised(FunctionChat("m", complete=raising)),
        Verbalised(ScriptedChat(lambda _: json.dumps({PRIVATE: 1.0}))),
        Verbalised(ScriptedChat(lambda _: f'{{"{PRIVATE}": 1, "{PRIVATE}": 1}}')),
    ],
    ids=["the model raised", "an unknown name", "a name twice"],
)
def test_the_models_words_stay_out_of_the_log(elicitor: Verbalised) -> None:
    records: list[StepRecord] = []

    class Memory:
        def write(self, record: StepRecord) -> None:
            records.append(record)

    decider = Decider(Embedder(SharedKey.generate(), 1, payload_len=8), elicitor, Memory())
    decision = decider.decide(CANDIDATES, "What next?")
    decider.observe(decision, PRIVATE)
    assert records[0].behavior == "(other)"
    assert PRIVATE not in records[0].to_json()
    assert PRIVATE in str(decision.elicitation.fault)


def test_a_made_up_tool_is_not_named_in_the_log() -> None:
    records: list[StepRecord] = []

    class Memory:
        def write(self, record: StepRecord) -> None:
            records.append(record)

    decider = Decider(Embedder(SharedKey.generate(), 1, payload_len=8), Verbalised(ScriptedChat([SAID])), Memory())
    decider.observe(decider.decide(CANDIDATES, "What next?"), PRIVATE)
    assert records[1].enforced is False
    assert records[1].meta is not None
    assert records[1].meta["did"] == "(other)"
