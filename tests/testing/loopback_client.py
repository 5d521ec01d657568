"""A client of the standard library's, and an agent's loop for each of the APIs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

from agentmark.testing import Errand, RefusingProvider

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI = "/v1beta/models/gemini-x:generateContent"
GEMINI_STREAM = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
MAX_STEPS = 40


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: Any


class Client:
    """Keeps one connection open, as agents do."""

    def __init__(self, provider: RefusingProvider, headers: dict[str, str] | None = None) -> None:
        self._headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01", **(headers or {})}
        self._connection = HTTPConnection(urlsplit(provider.base_url).netloc, timeout=10)

    def close(self) -> None:
        self._connection.close()

    def post(self, path: str, body: object) -> Answered:
        response = self._send(path, body)
        return Answered(response.status, dict(response.headers.items()), json.loads(response.read()))

    def ok(self, path: str, body: object) -> Any:
        answered = self.post(path, body)
        assert answered.status == 200, answered.body
        return answered.body

    def patient(self, path: str, body: object) -> Any:
        """Asks again as long as it is told to come back later."""
        for _ in range(3):
            answered = self.post(path, body)
            if answered.status not in (429, 503, 529):
                break
        assert answered.status == 200, answered.body
        return answered.body

    def events(self, path: str, body: object) -> list[dict[str, Any]]:
        """The data of a stream's events, but for the line that ends those of chat completions."""
        response = self._send(path, body)
        assert response.headers["Content-Type"] == "text/event-stream", response.read()
        try:
            lines = response.read().decode("utf-8").splitlines()
        except IncompleteRead:
            self.close()
            raise
        said = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [json.loads(data) for data in said if data != "[DONE]"]

    def _send(self, path: str, body: object) -> Any:
        self._connection.request("POST", path, json.dumps(body), self._headers)
        return self._connection.getresponse()


@contextmanager
def client_of(provider: RefusingProvider, **headers: str) -> Iterator[Client]:
    client = Client(provider, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        yield client
    finally:
        client.close()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def chat_body(errand: Errand, **members: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [user(errand.task)], "tools": errand.chat_tools, **members}


def responses_body(errand: Errand, **members: Any) -> dict[str, Any]:
    return {"model": "m", "input": [user(errand.task)], "tools": errand.responses_tools, **members}


def messages_body(errand: Errand, **members: Any) -> dict[str, Any]:
    messages = [user(errand.task)]
    body = {"model": "m", "max_tokens": 1000, "system": "You shop.", "messages": messages}
    return {**body, "tools": errand.anthropic_tools, **members}


def gemini_body(errand: Errand, **members: Any) -> dict[str, Any]:
    contents = [{"role": "user", "parts": [{"text": errand.task}]}]
    return {"contents": contents, "tools": errand.gemini_tools, **members}


# --- streams, put together as clients do -----------------------------------------------------------------------------


def chat_message(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of the first choice."""
    said: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": []}
    for delta in [choice["delta"] for event in events for choice in event["choices"] if choice["index"] == 0]:
        for name in ("content", "reasoning_content"):
            said[name] += delta.get(name) or ""
        for part in delta.get("tool_calls") or ():
            if part["index"] == len(said["tool_calls"]):
                said["tool_calls"].append({"id": part["id"], "type": part["type"], "function": dict(part["function"])})
            else:
                said["tool_calls"][part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return {name: value for name, value in said.items() if value}


def message_blocks(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content of an Anthropic message."""
    blocks: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            delta = {name: value for name, value in event["delta"].items() if name != "type"}
            for name, value in delta.items():
                if name == "partial_json":
                    inputs[event["index"]] = inputs.get(event["index"], "") + value
                else:
                    blocks[event["index"]][name] += value
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text)
    return blocks


def response_items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of a response, which each event for an item that is done repeats; the pieces must say the same."""
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    for index, item in enumerate(items):
        own = [event for event in events if event.get("output_index") == index]
        pieces = "".join([event["delta"] for event in own if event["type"].endswith(".delta")])
        parts = item.get("content") or item.get("summary") or [{"text": item.get("arguments")}]
        assert pieces == parts[0]["text"]
    assert events[-1]["response"]["output"] == items
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return items


# --- one step of each API: the request with the reply and the results of its calls, and what was said at the end ------

Step = Callable[[dict[str, Any], Any, Errand], str | None]


def chat_step(body: dict[str, Any], reply: Any, errand: Errand) -> str | None:
    message = reply["choices"][0]["message"]
    body["messages"].append(message)
    for call in message.get("tool_calls") or ():
        result = errand.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
        body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return None if message.get("tool_calls") else message["content"]


def responses_step(body: dict[str, Any], reply: Any, errand: Errand) -> str | None:
    body["input"] += reply["output"]
    calls = [item for item in reply["output"] if item["type"] == "function_call"]
    for call in calls:
        result = errand.call(call["name"], json.loads(call["arguments"]))
        body["input"].append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
    spoken = [item for item in reply["output"] if item["type"] == "message"]
    return None if calls else spoken[0]["content"][0]["text"]


def messages_step(body: dict[str, Any], reply: Any, errand: Errand) -> str | None:
    body["messages"].append({"role": "assistant", "content": reply["content"]})
    calls = [block for block in reply["content"] if block["type"] == "tool_use"]
    if not calls:
        return "".join([block["text"] for block in reply["content"] if block["type"] == "text"])
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": errand.call(call["name"], call["input"])}
        for call in calls
    ]
    body["messages"].append({"role": "user", "content": results})
    return None


def gemini_step(body: dict[str, Any], reply: Any, errand: Errand) -> str | None:
    content = reply["candidates"][0]["content"]
    body["contents"].append(content)
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    if not calls:
        return "".join([part["text"] for part in content["parts"]])
    results = [
        {"functionResponse": {"name": call["name"], "response": {"result": errand.call(call["name"], call["args"])}}}
        for call in calls
    ]
    body["contents"].append({"role": "user", "parts": results})
    return None


APIS: dict[str, tuple[str, Callable[..., dict[str, Any]], Step]] = {
    "chat": (CHAT, chat_body, chat_step),
    "responses": (RESPONSES, responses_body, responses_step),
    "messages": (MESSAGES, messages_body, messages_step),
    "gemini": (GEMINI, gemini_body, gemini_step),
}


def run(client: Client, api: str, errand: Errand, **members: Any) -> str | None:
    """An agent's whole run; what it told its user, or None if it never did."""
    path, make_body, step = APIS[api]
    body = make_body(errand, **members)
    for _ in range(MAX_STEPS):
        said = step(body, client.patient(path, body), errand)
        if said is not None:
            return said
    return None
