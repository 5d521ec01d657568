"""A model as judge: five dimensions or nothing, solved or not."""

from collections.abc import Mapping
from math import log
from typing import Any

import pytest
from agentmark_lab.envs.oasis import Act, Trajectory
from agentmark_lab.experiments.social.social_quality import transcript
from agentmark_lab.kit.model_judge import DIMENSIONS, Judge, open_judge
from agentmark_lab.kit.options import JudgeChoice

from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.http_chat import HttpChat
from agentmark.testing import FakeProvider
from agentmark.testing.provider import Refusal, chat_answer


def as_reply(digits: Mapping[str, float]) -> ChatReply:
    likeliest = max(digits, key=lambda digit: digits[digit])
    return ChatReply(text=likeliest, top_logprobs=[[(token, log(mass)) for token, mass in digits.items()]])


def test_a_score_is_the_mean_of_the_digits_by_their_probability() -> None:
    asked: list[ChatRequest] = []

    def complete(request: ChatRequest) -> ChatReply:
        asked.append(request)
        return as_reply({"7": 0.45, " 8": 0.45, "well": 0.1})

    judge = Judge(FunctionChat("judge", complete=complete))
    told = transcript(Trajectory("Geek", [], [Act("like_post", {"post_id": 3}, "Like record already exists.")]))
    scores = judge.scores("You love silicon.", told)
    assert scores == pytest.approx(dict.fromkeys(DIMENSIONS, 7.5))
    shown = [str(request.messages[1]["content"]) for request in asked]
    assert all("like_post(post_id=3) (refused: Like record already exists.)" in text for text in shown)
    assert [text.rpartition("\n\n")[2] for text in shown] == [f"Score for {name}:" for name in DIMENSIONS]
    # All but the last line is the same, and so is what a server has computed of it.
    assert len({text.rpartition("\n\n")[0] for text in shown}) == 1


@pytest.mark.parametrize(
    ("written", "score"), [("8", 8.0), ("Score: 6.5.", 6.5), ("70", None), ("7 or 8", None), ("no", None), ("0", None)]
)
def test_where_no_probabilities_are_reported_the_written_digit_counts(written: str, score: float | None) -> None:
    judge = Judge(FunctionChat("judge", complete=lambda request: written))
    assert judge.scores("", "") == (None if score is None else dict.fromkeys(DIMENSIONS, score))


def test_a_judge_that_begins_with_anything_but_a_digit_is_asked_to_write() -> None:
    def complete(request: ChatRequest) -> ChatReply:
        return as_reply({"The": 0.8, "9": 0.2}) if request.top_logprobs else ChatReply(text="4")

    assert Judge(FunctionChat("judge", complete=complete)).scores("", "") == dict.fromkeys(DIMENSIONS, 4.0)


def test_a_server_that_refuses_probabilities_is_asked_to_write() -> None:
    says = chat_answer("5")

    def answer(body: dict[str, Any]) -> Any:
        return Refusal(400, "'logprobs' is not supported") if "logprobs" in body else says(body)

    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        judge = open_judge(JudgeChoice(provider.base_url, "m", "key"))
        assert judge is not None
        assert judge.scores("", "") == dict.fromkeys(DIMENSIONS, 5.0)


def test_one_dimension_that_is_missing_spoils_all() -> None:
    replies = iter(["7", "7", "?", "?", "7", "7", "7"])
    assert Judge(FunctionChat("judge", complete=lambda request: next(replies, "7"))).scores("", "") is None


def test_a_judge_says_whether_a_task_was_solved():
    said = iter(['{"solved": true}', 'Well: {"solved": false}.', '{"solved": "yes"}', "yes", '["solved"]'])
    asked = []

    def complete(request):
        asked.append(request)
        return next(said)

    judge = Judge(FunctionChat("judge", complete=complete))
    assert judge.solved("Find a flight.", "search: three flights") is True
    assert "search: three flights" in str(asked[0].messages)
    assert [judge.solved("", "") for _ in range(4)] == [False, None, None, None]


def test_a_judge_is_opened_where_one_is_given() -> None:
    assert open_judge(None) is None
    judge = open_judge(JudgeChoice("http://127.0.0.1:1/v1", "m", "key"))
    assert judge is not None
    assert isinstance(judge.chat, HttpChat)
    # Longer than any client waits by itself.
    assert judge.chat.endpoint.timeout_s == 600
