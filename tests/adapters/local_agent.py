"""A real model for agents: a GGUF file at llama.cpp's server, behind a route that has it write calls.

Small models write calls in many forms, of which llama.cpp reads few. So its server is asked for one form (a JSON
schema, of which it makes a grammar), and what it writes comes back as calls of chat completions. Which tool, and with
which arguments, is the model's own choice, sampled at the agent's temperature.
"""

import json
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from harness import PAYLOAD, decider, verdict

from agentmark.decide.decider import Decider
from agentmark.elicit.local import LocalModel
from agentmark.elicit.proposals import Proposals
from agentmark.testing.server import Asked, LoopbackServer, Said

GGUF_VARIABLE = "AGENTMARK_GGUF"
# As many as are needed; the verdict is asked for after each.
MOST_TASKS = 40
PLACES = ("a rainy town", "the mountains", "a big city", "an island", "a quiet village", "the desert", "a harbour")

wants_model = pytest.mark.skipif(
    not Path(os.environ.get(GGUF_VARIABLE, "").partition(os.pathsep)[0]).is_file() or find_spec("xllamacpp") is None,
    reason=f"no model: set {GGUF_VARIABLE} to a GGUF file and run make test-adapters-model",
)


def visit(city: str) -> str:
    """Travel to a city."""
    return f"You are in {city}."


def eat(dish: str) -> str:
    """Eat a dish."""
    return f"You had {dish}."


def read(book: str) -> str:
    """Read a book."""
    return f"You read {book}."


TOOLS = (visit, eat, read)


class CallingModel(LoopbackServer):
    """A local model that speaks chat completions with tools."""

    def __init__(self, model: LocalModel) -> None:
        super().__init__(self._answer)
        self.model = model.endpoint.model
        self.asked = 0
        self.tokens = 0
        self._endpoint = model.endpoint

    def _answer(self, asked: Asked) -> Said:
        body = asked.body or {}
        tools = [tool["function"] for tool in body["tools"]]
        told = f"Do one thing, by one of these tools:\n{json.dumps(tools)}\nReply with its name and arguments as JSON."
        forms = [
            {
                "type": "object",
                "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for tool in tools
        ]
        reply = self._ask(
            {
                "messages": [{"role": "system", "content": told}, *body["messages"]],
                "response_format": {"type": "json_schema", "json_schema": {"schema": {"anyOf": forms}}},
                "temperature": body.get("temperature"),
                "max_tokens": 60,
            }
        )
        self.asked += 1
        self.tokens += reply["usage"]["completion_tokens"]
        message = reply["choices"][0]["message"]
        call = json.loads(message["content"])
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call_{self.asked}", "type": "function", "function": function}],
        }
        reply["choices"][0]["finish_reason"] = "tool_calls"
        return Said.json(200, reply)

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._endpoint.api_key}"}
        request = Request(f"{self._endpoint.base_url}/chat/completions", json.dumps(body).encode(), headers)
        with urlopen(request, timeout=600) as response:
            reply: dict[str, Any] = json.load(response)
            return reply


def check_with_model(name: str, run: Callable[[CallingModel, Decider, str], None], log: Path) -> None:
    """Send an agent on short tasks until the verifier names its identity, and say what it took."""
    begun = time.monotonic()
    gguf = os.environ[GGUF_VARIABLE].partition(os.pathsep)[0]
    with (
        LocalModel(gguf) as model,
        CallingModel(model) as server,
        decider(log, Proposals(granularity="call")) as deciding,
    ):
        for number in range(MOST_TASKS):
            run(
                server,
                deciding,
                f"It is day {number + 1} of my leave, in {PLACES[number % len(PLACES)]}. Choose for me.",
            )
            found = verdict(log)
            if found.accepted:
                break
        print(
            f"{name}, {server.model}: {number + 1} tasks, {deciding.stats.steps} steps, {server.asked} samples,"
            f" {server.tokens} tokens written, {deciding.stats.bits:.1f} bits, {time.monotonic() - begun:.0f} s"
        )
        assert found.accepted
        assert found.payload == PAYLOAD
        assert found.contradicting == 0
