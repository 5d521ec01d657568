"""A gateway that is killed under load, again and again: every answered request has its record, no context twice."""

import http.client
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from bench.loopback import chat_request, messages_request
from cluster import MISSING, Cluster, programs
from gateway_process import Gateway, free_port, is_evidence, unique_contexts
from plain_agent import PATHS, headers_for

CLIENTS = 6


class Asking(threading.Thread):
    """A client that asks as fast as it is answered, each time in a session of its own, and notes what was answered."""

    def __init__(self, number: int, ports: list[int]) -> None:
        super().__init__(daemon=True)
        self.answered: list[str] = []
        self.refused: list[int] = []
        self.broken = 0
        self._number, self._ports = number, ports
        self._is_over = threading.Event()

    def run(self) -> None:
        count = 0
        while not self._is_over.is_set():
            port = self._ports[count % len(self._ports)]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                while not self._is_over.is_set():
                    count += 1
                    self._ask(connection, f"client-{self._number}-{count}", count)
                    if len(self._ports) > 1:
                        break
            except (OSError, http.client.HTTPException):
                self.broken += 1
                time.sleep(0.01)
            finally:
                connection.close()

    def _ask(self, connection: http.client.HTTPConnection, session: str, count: int) -> None:
        api = "messages" if count % 2 else "chat"
        request = messages_request if api == "messages" else chat_request
        body = request(f"Buy lamp {count}.", stream=count % 4 < 2)
        headers = {**headers_for(api, "k"), "x-agentmark-session": session}
        connection.request("POST", PATHS[api], body, headers)
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            self.answered.append(session)
        else:
            self.refused.append(response.status)

    def end(self) -> None:
        self._is_over.set()
        self.join()


def clients(ports: list[int]) -> list[Asking]:
    asking = [Asking(number, ports) for number in range(CLIENTS)]
    for client in asking:
        client.start()
    return asking


def every_answer_is_recorded(gateway: Gateway, asking: list[Asking]) -> int:
    answered = {session for client in asking for session in client.answered}
    records = gateway.records()
    contexts = unique_contexts(records)
    recorded = {record.session for record in records if is_evidence(record)}
    assert answered - recorded == set()
    assert gateway.verdict()["accepted"]
    print(
        f"{len(answered)} answered, {contexts} contexts, {sum([len(client.refused) for client in asking])} refused,"
        f" {sum([client.broken for client in asking])} connections broken"
    )
    return len(answered)


@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_a_gateway_that_is_killed_has_recorded_all_it_answered(kills: int, tmp_path: Path, fast_upstream: int) -> None:
    rng = random.Random(kills)
    gateway = Gateway(tmp_path, f"http://127.0.0.1:{fast_upstream}", port=free_port())
    gateway.start()
    asking = clients([gateway.port])
    try:
        for _ in range(kills):
            time.sleep(0.1 + rng.random() / 2)
            gateway.kill()
            gateway.start()
        time.sleep(0.5)
    finally:
        for client in asking:
            client.end()
        gateway.stop()
    assert every_answer_is_recorded(gateway, asking) > 10 * kills
    assert not [status for client in asking for status in client.refused]


@pytest.mark.skipif(programs() is None, reason=MISSING)
def test_two_gateways_share_a_postgresql_that_restarts(tmp_path: Path, fast_upstream: int) -> None:
    """Both serve the same sessions; the database crashes and recovers, and one gateway is killed."""
    database = Cluster()
    try:
        database.start()
        upstream = f"http://127.0.0.1:{fast_upstream}"
        options = ["--fail", "closed", "--store-s", "2"]
        first = Gateway(tmp_path, upstream, store=database.url, options=options)
        second = Gateway(tmp_path, upstream, store=database.url, options=options)
        with first, second:
            asking = clients([first.port, second.port])
            try:
                time.sleep(1)
                database.stop(signal.SIGQUIT)
                time.sleep(0.5)
                database.start()
                time.sleep(1.5)
                second.kill()
                second.start()
                time.sleep(1)
            finally:
                for client in asking:
                    client.end()
        assert every_answer_is_recorded(first, asking) > 50
        # While the database was away, and then not again.
        assert {status for client in asking for status in client.refused} <= {503}
        assert [record.context for record in first.records()] == [record.context for record in second.records()]
    finally:
        database.remove()
