"""An agent with nothing but a socket: the three APIs, whole and streamed, with every byte and header to be seen.

It retries as the vendors' clients do (408, 429 and 5xx, a connection that breaks, `Retry-After`, the header that says
so), and keeps what the model said as it was said, thoughts and signatures included.
"""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentmark.testing import Errand

APIS = ("chat", "responses", "messages")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
# What the vendors' clients retry with: twice. This one has more patience, as a framework around them has.
RETRIES = 6
MOST_TURNS = 60
LONGEST_WAIT_S = 0.1
TIMEOUT_S = 60


@dataclass(frozen=True)
class Answer:
    """What came back. A reply that broke off has what came of it; one that never began has status 0."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class FailedError(Exception):
    """What the agent gives up at."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"status {answer.status}: {answer.body[:300]!r}")
        self.answer = answer


def headers_for(api: str, key: str) -> dict[str, str]:
    if api == "messages":
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return {"Authorization": f"Bearer {key}"}


def ask(
    url: str,
    path: str,
    body: object | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    timeout: float = TIMEOUT_S,
) -> Answer:
    """One request on a connection of its own."""
    place = urlsplit(url)
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout)
    try:
        connection.request(method, path, content, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Answer(response.status, response.read(), told)
        except http.client.IncompleteRead as error:
            return Answer(response.status, error.partial, told, is_whole=False)
        except OSError:
            return Answer(response.status, b"", told, is_whole=False)
    except (OSError, http.client.HTTPException):
        return Answer(0, is_whole=False)
    finally:
        connection.close()


class PlainAgent:
    """One errand in one conversation."""

    def __init__(
        self, url: str, api: str, errand: Errand, *, stream: bool = False, key: str = "k", **extra: Any
    ) -> None:
        self.url, self.api, self.errand, self.is_stream, self.key = url, api, errand, stream, key
        self.extra = extra
        self.headers: dict[str, str] = {}
        self.messages: list[Any] = [{"role": "user", "content": errand.task}]
        # Every answer, those that were retried included.
        self.answers: list[Answer] = []

    def body(self) -> dict[str, Any]:
        if self.api == "responses":
            body = {"model": "gpt-4o", "input": self.messages, "tools": self.errand.responses_tools}
        elif self.api == "messages":
            tools = self.errand.anthropic_tools
            body = {"model": "claude-opus-5-5", "max_tokens": 2000, "messages": self.messages, "tools": tools}
        else:
            body = {"model": "gpt-4o", "messages": self.messages, "tools": self.errand.chat_tools}
        return {**body, **({"stream": True} if self.is_stream else {}), **self.extra}

    def run(self) -> str:
        """What it says last."""
        for _ in range(MOST_TURNS):
            said, calls = self.turn()
            if not calls:
                return said
        raise TimeoutError(f"{MOST_TURNS} turns, and no end")

    def turn(self) -> tuple[str, list[tuple[str, str, dict[str, Any]]]]:
        """One call of the model, and of the tools that it calls: what was said, and (id, name, arguments) of calls."""
        answer = self.asked()
        read = {"chat": self._chat, "responses": self._responses, "messages": self._messages}[self.api]
        return read(answer)

    def asked(self) -> Answer:
        for retry in range(RETRIES + 1):
            headers = {**headers_for(self.api, self.key), "x-stainless-retry-count": str(retry), **self.headers}
            answer = ask(self.url, PATHS[self.api], self.body(), headers)
            self.answers.append(answer)
            if answer.status == 200 and answer.is_whole:
                return answer
            if answer.is_whole and answer.status not in (408, 409, 429) and answer.status < 500:
                break
            wait_s = float(answer.headers.get("retry-after-ms", 20)) / 1000
            time.sleep(min(wait_s, LONGEST_WAIT_S))
        raise FailedError(answer)

    # --- what each API says ------------------------------------------------------------------------------------------

    def _chat(self, answer: Answer) -> tuple[str, list[tuple[str, str, dict[str, Any]]]]:
        message = _merged_chunks(answer.body) if self.is_stream else answer.data["choices"][0]["message"]
        self.messages.append(message)
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        self.messages += [
            {"role": "tool", "tool_call_id": number, "content": self.errand.call(name, arguments)}
            for number, name, arguments in calls
        ]
        return message.get("content") or "", calls

    def _responses(self, answer: Answer) -> tuple[str, list[tuple[str, str, dict[str, Any]]]]:
        if self.is_stream:
            done = [data for data in events(answer.body) if data.get("type") == "response.completed"]
            output = done[-1]["response"]["output"]
        else:
            output = answer.data["output"]
        self.messages += output
        calls = [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in output
            if item["type"] == "function_call"
        ]
        self.messages += [
            {"type": "function_call_output", "call_id": number, "output": self.errand.call(name, arguments)}
            for number, name, arguments in calls
        ]
        parts = [part for item in output if item["type"] == "message" for part in item["content"]]
        return "".join([part.get("text", "") for part in parts]), calls

    def _messages(self, answer: Answer) -> tuple[str, list[tuple[str, str, dict[str, Any]]]]:
        blocks = _merged_blocks(answer.body) if self.is_stream else answer.data["content"]
        self.messages.append({"role": "assistant", "content": blocks})
        calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        if calls:
            results = [
                {"type": "tool_result", "tool_use_id": number, "content": self.errand.call(name, arguments)}
                for number, name, arguments in calls
            ]
            self.messages.append({"role": "user", "content": results})
        return "".join([block["text"] for block in blocks if block["type"] == "text"]), calls


def events(body: bytes) -> Iterator[dict[str, Any]]:
    """The events of a stream that carry JSON."""
    for line in body.decode("utf-8").splitlines():
        if line.startswith("data:") and line != "data: [DONE]":
            yield json.loads(line[5:])


def _merged_chunks(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for chunk in events(body):
        for choice in chunk.get("choices") or ():
            _merge(message, choice["delta"])
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
    return message


def _merge(into: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Text is added to text, calls by their index; the rest is put beside."""
    for name, value in delta.items():
        if name == "tool_calls":
            calls = into.setdefault(name, [])
            for part in value:
                while len(calls) <= part["index"]:
                    calls.append({})
                _merge(calls[part["index"]], part)
        elif isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        elif (
            isinstance(value, str)
            and isinstance(into.get(name), str)
            and name in ("content", "arguments", "reasoning_content")
        ):
            into[name] += value
        elif value is not None or name not in into:
            into[name] = value


def _merged_blocks(body: bytes) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    written: dict[int, str] = {}
    for event in events(body):
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            number, delta = event["index"], event["delta"]
            if delta["type"] == "input_json_delta":
                written[number] = written.get(number, "") + delta["partial_json"]
            else:
                name = delta["type"].removesuffix("_delta")
                blocks[number][name] = blocks[number].get(name, "") + delta[name]
        elif event["type"] == "content_block_stop" and event["index"] in written:
            blocks[event["index"]]["input"] = json.loads(written[event["index"]] or "{}")
    return blocks
