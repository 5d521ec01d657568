"""The routes that state probabilities themselves: `/v1/decisions`, which is OpenAI's, and `/v1/systemone`."""

import json
from collections.abc import Mapping
from typing import Any

from agentmark.testing.refusing.apis import Body
from agentmark.testing.refusing.conversation import Request, Turn, text_of
from agentmark.testing.refusing.openai_responses import read_items
from agentmark.testing.refusing.policy import stated_weights
from agentmark.testing.refusing.profiles import Refused

MIN_OPTIONS, MAX_OPTIONS = 2, 255


def fault(body: Body, route: str) -> Refused | None:
    """What is wrong with a request of either route."""
    for name in ("model", "questions", "state" if route == "systemone" else "input"):
        if not body.get(name):
            return Refused(400, f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")
    for asked, question in _questions(body):
        if question.get("type") != "choice":
            return Refused(400, f"Question {asked!r}: this provider answers choices only.", param="questions")
        if not MIN_OPTIONS <= len(_options(question)) <= MAX_OPTIONS:
            return Refused(400, f"Question {asked!r}: a choice takes 2 to 255 options.", param="questions")
    return None


def answer(body: Body, route: str, input_tokens: int) -> object:
    request = _request(body, route)
    answers: dict[str | None, dict[str, Any]] = {}
    for name, question in _questions(body):
        weights = stated_weights(request, _options(question))
        best = max(weights, key=lambda option: weights[option])
        answers[name] = {"type": "choice", "choice": best, "confidence": weights[best], "probabilities": weights}
    usage = {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens,
    }
    if route == "systemone":
        return {"model": body["model"], "answers": answers, "usage": usage}
    listed = []
    for name, answered in answers.items():
        pairs = [{"value": value, "probability": share} for value, share in answered["probabilities"].items()]
        listed.append({**answered, "name": name, "probabilities": pairs})
    return {"model": body["model"], "answers": listed, "usage": usage}


def _request(body: Body, route: str) -> Request:
    if route != "systemone":
        return Request(model=str(body["model"]), turns=read_items(body))
    state = body["state"]
    if isinstance(state, list) and all(isinstance(message, Mapping) for message in state):
        turns = [Turn(str(message.get("role", "user")), text_of(message.get("content"))) for message in state]
        return Request(model=str(body["model"]), turns=tuple(turns))
    text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
    return Request(model=str(body["model"]), turns=(Turn("user", text),))


def _questions(body: Body) -> list[tuple[str | None, Mapping[str, Any]]]:
    questions = body["questions"]
    if isinstance(questions, Mapping):
        return list(questions.items())
    return [(question.get("name"), question) for question in questions]


def _options(question: Mapping[str, Any]) -> list[str]:
    if isinstance(question.get("criteria"), Mapping):
        return list(question["criteria"])
    return [str(option["value"]) for option in question.get("choices") or ()]
