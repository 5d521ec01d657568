"""A provider on the loopback that speaks HTTP as the real ones do, and says what it was told to say."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentmark.testing.server import Asked, Body, LoopbackServer, Said


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error the provider answers with."""

    status: int
    message: str = "refused by script"
    headers: Mapping[str, str] = field(default_factory=dict)


# A list is a stream: its bodies are sent one after the other, as server-sent events.
Answer = Callable[[Body], "Body | list[Body] | Refusal"]


class FakeProvider(LoopbackServer):
    """Serves the routes it is given: a path such as "/v1/chat/completions" to a function from request to response body.

    Every other path is a 404, so that what a provider does not have can be tested too. Use it in a `with` block:
    `base_url` is what a client is pointed at, `requests` what it was asked, `connections` over how many connections.
    """

    def __init__(
        self, routes: Mapping[str, Answer | Refusal], *, on_headers: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        """`on_headers` is shown the headers of each request."""
        super().__init__(self._answer)
        self.requests: list[tuple[str, Body]] = []
        self._routes = routes
        self._on_headers = on_headers

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    def _answer(self, asked: Asked) -> Said:
        body = asked.body or {}
        self.requests.append((asked.path, body))
        if self._on_headers is not None:
            self._on_headers(asked.headers)
        route = self._routes.get(asked.path, Refusal(404, f"no route {asked.path}"))
        said = route if isinstance(route, Refusal) else route(body)
        if isinstance(said, Refusal):
            return Said.json(said.status, {"error": {"message": said.message}}, said.headers)
        if isinstance(said, list):
            events = [json.dumps(event) for event in said] + ["[DONE]"]
            stream = "".join([f"data: {event}\n\n" for event in events])
            return Said(200, stream.encode("utf-8"), "text/event-stream")
        return Said.json(200, said)


def chat_answer(
    text: str | Callable[[Body], str], *, top_logprobs: Callable[[Body], Mapping[str, float]] | None = None
) -> Answer:
    """A route for /chat/completions that says `text`; with `top_logprobs`, of the first token."""

    def answer(body: Body) -> Body:
        content = text if isinstance(text, str) else text(body)
        choice: Body = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        if top_logprobs is not None and body.get("logprobs"):
            alternatives = [{"token": token, "logprob": value} for token, value in top_logprobs(body).items()]
            choice["logprobs"] = {"content": [{"token": content, "logprob": 0.0, "top_logprobs": alternatives}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}

    return answer
