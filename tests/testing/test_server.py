"""The server that the fake providers stand on."""

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from agentmark.testing.server import Asked, LoopbackServer, Said


def connection_to(server: LoopbackServer) -> HTTPConnection:
    return HTTPConnection(urlsplit(server.root_url).netloc, timeout=5)


def test_a_connection_serves_many_requests() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Said:
        asked.append(request)
        return Said.json(200, {"said": request.body})

    with LoopbackServer(answer) as server:
        connection = connection_to(server)
        for number in range(3):
            connection.request("POST", "/x?y=1", json.dumps({"n": number}), {"X-Name": "a"})
            response = connection.getresponse()
            assert json.loads(response.read()) == {"said": {"n": number}}
            assert not response.will_close
        connection.request("POST", "/x", b"no JSON")
        assert json.loads(connection.getresponse().read()) == {"said": None}
        connection.request("GET", "/z")
        connection.getresponse().read()
        connection.close()
        assert server.connections == 1
    assert [request.method for request in asked] == ["POST"] * 4 + ["GET"]
    assert asked[0].path == "/x?y=1"
    assert asked[0].headers["X-Name"] == "a"


def test_a_fault_of_the_servers_own_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def answer(request: Asked) -> Said:
        raise ValueError("a fault of ours")

    with LoopbackServer(answer) as server:
        connection = connection_to(server)
        connection.request("POST", "/", b"{}")
        with pytest.raises(ConnectionError):
            connection.getresponse()
        connection.close()
    assert "a fault of ours" in capfd.readouterr().err


def test_pieces_are_sent_as_they_come() -> None:
    was_read = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"one"
        yield b"two" if was_read.wait(5) else b"too late"

    with LoopbackServer(lambda _: Said(200, pieces(), "text/plain")) as server:
        connection = connection_to(server)
        connection.request("POST", "/", b"{}")
        response = connection.getresponse()
        assert response.read(3) == b"one"
        was_read.set()
        assert response.read() == b"two"
        connection.close()
