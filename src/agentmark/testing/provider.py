"""A provider on the loopback that speaks HTTP as the real ones do, and says what it was told to say."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error the provider answers with."""

    status: int
    message: str = "refused by script"
    headers: Mapping[str, str] = field(default_factory=dict)


# A list is a stream: its bodies are sent one after the other, as server-sent events.
Answer = Callable[[Body], "Body | list[Body] | Refusal"]


class FakeProvider:
    """Serves the routes it is given: a path such as "/v1/chat/completions" to a function from request to response body.

    Every other path is a 404, so that what a provider does not have can be tested too. Use it in a `with` block:
    `base_url` is what a client is pointed at, `requests` what it was asked, `connections` over how many connections.
    """

    def __init__(
        self, routes: Mapping[str, Answer | Refusal], *, on_headers: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        """`on_headers` is shown the headers of each request."""
        self.requests: list[tuple[str, Body]] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            # Connections are kept, as real providers keep them.
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                provider.connections += 1
                provider._open.append(self.connection)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.requests.append((self.path, body))
                if on_headers is not None:
                    on_headers(dict(self.headers.items()))
                route = routes.get(self.path, Refusal(404, f"no route {self.path}"))
                said = route if isinstance(route, Refusal) else route(body)
                if isinstance(said, Refusal):
                    error = json.dumps({"error": {"message": said.message}})
                    self._send(said.status, error, headers=said.headers)
                elif isinstance(said, list):
                    events = [json.dumps(event) for event in said] + ["[DONE]"]
                    self._send(200, "".join([f"data: {event}\n\n" for event in events]), "text/event-stream")
                else:
                    self._send(200, json.dumps(said))

            def _send(
                self,
                status: int,
                content: str,
                kind: str = "application/json",
                headers: Mapping[str, str] = MappingProxyType({}),
            ) -> None:
                data = content.encode("utf-8")
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Silence: tests have their own output."""

        class Server(ThreadingHTTPServer):
            # Many agents may knock at once.
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        # A provider that is gone answers nobody, on a kept connection either.
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


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
