"""What is recognised as a question about the next step, as an instruction, and as neither."""

from typing import Any

import pytest

from agentmark.elicit import ANSWER, Candidate, Situation
from agentmark.elicit.labels import label_messages
from agentmark.elicit.prompts import PROMPTS
from agentmark.testing import Errand
from agentmark.testing.refusing.conversation import Request, Turn
from agentmark.testing.refusing.questions import instruction_in, question_in

TASK = Errand(1).task
CANDIDATES = [Candidate("add", "Put an item into the basket."), Candidate("ship"), Candidate(ANSWER, "Answer: now.")]
SITUATION = Situation.of(CANDIDATES, [{"role": "user", "content": TASK}])
NAMES = ["add", "ship", ANSWER]


def asked(*texts: str, schema: dict[str, Any] | None = None) -> Request:
    return Request(model="m", turns=tuple([Turn("user", text) for text in texts]), schema=schema)


def as_turns(messages: list[Any]) -> Request:
    return Request(model="m", turns=tuple([Turn(message["role"], message["content"]) for message in messages]))


@pytest.mark.parametrize("name", ["general", "toolbench", "alfworld", "oasis"])
def test_our_prompts_are_recognised_by_their_schemas(name: str) -> None:
    prompt = PROMPTS[name]
    request = as_turns(prompt.messages(SITUATION, CANDIDATES))
    request = Request(model="m", turns=request.turns, schema=prompt.schema(CANDIDATES))
    question = question_in(request)
    assert question is not None
    assert list(question.options) == NAMES


def test_our_prompts_are_recognised_by_their_words() -> None:
    general = question_in(as_turns(PROMPTS["general"].messages(SITUATION, CANDIDATES)))
    assert general is not None
    assert list(general.options) == NAMES
    letters = question_in(as_turns(label_messages(SITUATION, CANDIDATES)))
    assert letters is not None
    assert letters.letters
    assert letters.options == dict(zip("ABC", NAMES, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        'Before you go on: how likely is each of these as your next step? ["add", "ship", "(answer)"]',
        "State the probability of each option as JSON.\n- add: an item\n- ship\n- (answer)",
        'Probabilities, please, as one JSON object such as {"x": 0.5}. Options: ["add","ship","(answer)"]. No tool.',
    ],
)
def test_other_words_are_recognised_too(text: str) -> None:
    question = question_in(asked(TASK, text))
    assert question is not None
    assert list(question.options) == NAMES
    again = question_in(asked(TASK, text, "That cannot be used: no JSON. Reply again with the corrected JSON object."))
    assert again == question


@pytest.mark.parametrize(
    "request_", [asked(TASK), asked("Is rain probable? - yes"), asked("Write a letter."), asked("Call ship now.")]
)
def test_an_agents_own_request_is_none(request_: Request) -> None:
    assert question_in(request_) is None


def test_a_question_that_was_answered_is_past() -> None:
    turns = (*asked('Probabilities of ["add", "ship"]?').turns, Turn("assistant", "{}"), Turn("tool", "x"))
    assert question_in(Request(model="m", turns=turns)) is None


@pytest.mark.parametrize(
    ("role", "text", "told"),
    [
        ("user", "Call ship now.", "ship"),
        ("system", "Call the tool `deliver_to` now.", "deliver_to"),
        ("user", "Please call 'add' now, and nothing else.", "add"),
        ("user", "Answer the user now, without calling a tool.", ""),
        ("user", "Answer now.", ""),
        ("tool", "Call ship now.", None),
        ("assistant", "Call ship now.", None),
        ("user", "Call me later.", None),
    ],
)
def test_instructions(role: str, text: str, told: str | None) -> None:
    assert instruction_in((Turn("user", TASK), Turn(role, text))) == told
