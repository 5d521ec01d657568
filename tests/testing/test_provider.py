"""The fake provider says what it was told to say, and nothing else."""

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

from agentmark.testing import FakeProvider
from agentmark.testing.provider import Refusal, chat_answer


def test_routes_refusals_and_streams() -> None:
    routes = {
        "/v1/chat/completions": chat_answer("hello"),
        "/v1/later": Refusal(429, "too many", {"Retry-After": "7"}),
        "/v1/stream": lambda body: [{"n": 1}, {"n": body["n"]}],
    }
    answers = []
    with FakeProvider(routes) as provider:
        connection = HTTPConnection(urlsplit(provider.base_url).netloc, timeout=5)
        for path in (*routes, "/v1/nowhere"):
            connection.request("POST", path, json.dumps({"model": "m", "n": 2}))
            response = connection.getresponse()
            answers.append((response.status, response.headers, response.read().decode()))
        connection.close()
        assert provider.connections == 1
    assert [status for status, _, _ in answers] == [200, 429, 200, 404]
    assert json.loads(answers[0][2])["choices"][0]["message"]["content"] == "hello"
    assert answers[1][1]["Retry-After"] == "7"
    assert answers[2][2] == 'data: {"n": 1}\n\ndata: {"n": 2}\n\ndata: [DONE]\n\n'
    assert [path for path, _ in provider.requests] == [*routes, "/v1/nowhere"]
