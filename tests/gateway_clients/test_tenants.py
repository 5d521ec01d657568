"""Tenants: who shows no key gets nothing, and who shows one gets nothing of another's."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.loopback import read_reply
from gateway_process import IDENTITY, OTHERS, Gateway, agentmark, is_evidence
from plain_agent import APIS, PATHS, PlainAgent, ask, headers_for
from test_faults import first_request

from agentmark.testing import Errand, RefusingProvider
from agentmark.testing.server import Asked, LoopbackServer, Said

CREDENTIALS = {"acme": "sk-UPSTREAM-OF-ACME", "globex": "sk-UPSTREAM-OF-GLOBEX"}
IDENTITIES = {"acme": IDENTITY, "globex": OTHERS[0]}
ERRANDS = 8


class Tenants:
    """A gateway with two tenants, and their keys."""

    def __init__(self, folder: Path, upstream: str, **more: object) -> None:
        variables = {f"CREDENTIAL_{name.upper()}": value for name, value in CREDENTIALS.items()}
        self.gateway = Gateway(folder, upstream, identity=None, options=["--tenants"], variables=variables, **more)
        self.keys = {name: self._add(name) for name in CREDENTIALS}

    def _add(self, name: str) -> str:
        place = f"env:CREDENTIAL_{name.upper()}"
        options = ("--identity", IDENTITIES[name], "--credential", place)
        printed = agentmark("tenant", "add", self.gateway.store, name, *options, folder=self.gateway.folder)
        return next(word for word in printed.split() if word.startswith("amk_"))


@pytest.fixture
def provider() -> Iterator[RefusingProvider]:
    with RefusingProvider() as running:
        yield running


def test_each_tenant_has_its_own_identity_credential_and_records(tmp_path: Path, provider: RefusingProvider) -> None:
    here = Tenants(tmp_path, provider.root_url)
    with here.gateway as gateway:
        for key in here.keys.values():
            for seed in range(ERRANDS):
                errand = Errand(seed)
                agent = PlainAgent(gateway.url, APIS[seed % 3], errand, stream=seed % 2 == 0, key=key)
                # The same session id at both: they are two.
                agent.headers["x-agentmark-session"] = f"session-{seed}"
                assert errand.finished(agent.run())
    shown = {
        value for seen in provider.requests for value in seen.headers.values() if "sk-" in value or "amk_" in value
    }
    assert shown == {form.format(value) for value in CREDENTIALS.values() for form in ("{}", "Bearer {}")}
    for name in here.keys:
        log, key = f"{name}.jsonl", f"{name}.json"
        agentmark("export", gateway.store, "--tenant", name, "-o", log, folder=tmp_path)
        agentmark("keygen", key, "--from", "key.json", "--tenant", name, folder=tmp_path)
        options = ("--key", key, "--registry", "registry.jsonl", "--by", "all", "--json")
        verdict = json.loads(agentmark("verify", *options, log, folder=tmp_path))
        assert (verdict["accepted"], verdict["identity"]) == (True, IDENTITIES[name])
        # Under the other's key it says nothing.
        other = next(f"{other}.json" for other in here.keys if other != name)
        if (tmp_path / other).exists():
            told = agentmark("verify", "--key", other, *options[2:], log, folder=tmp_path, status=(1, 2, 3))
            assert IDENTITY not in told


def test_a_key_in_another_place_goes_no_further(tmp_path: Path, provider: RefusingProvider) -> None:
    here = Tenants(tmp_path, provider.root_url)
    acme = here.keys["acme"]
    more = {"Cookie": f"key={acme}", "x-goog-api-key": acme, "X-Api-Key": acme, "api-key": acme}
    with here.gateway as gateway:
        headers = {**headers_for("chat", acme), **more}
        assert ask(gateway.url, PATHS["chat"], first_request("chat"), headers).status == 200
        assert ask(gateway.url, "/v1/models", None, headers, method="GET").status == 200
        # In an address it would be in everyone's logs: said, not taken out.
        for query in (f"?key={acme}", f"?a=b&key=%61mk%5F{acme[4:]}"):
            assert ask(gateway.url, f"/v1/models{query}", None, headers, method="GET").status == 400
        # In these places alone, it is none.
        for name in ("Cookie", "x-goog-api-key"):
            assert ask(gateway.url, PATHS["chat"], first_request("chat"), {name: more[name]}).status == 401
    assert provider.requests
    assert not [value for seen in provider.requests for value in seen.headers.values() if "amk_" in value]


def test_who_shows_no_key_or_a_wrong_one_is_refused(tmp_path: Path, provider: RefusingProvider) -> None:
    here = Tenants(tmp_path, provider.root_url)
    acme = here.keys["acme"]
    wrong = {
        "none": {},
        "empty": {"Authorization": "Bearer "},
        "another": {"Authorization": "Bearer amk_0000000000000000_0000000000000000000000000000000000000000000"},
        "a part": {"x-api-key": acme[:-1]},
        "a longer one": {"x-api-key": acme + "A"},
        "another's beginning": {"x-api-key": here.keys["globex"][: len(acme) // 2] + acme[len(acme) // 2 :]},
        "the upstream's": {"Authorization": f"Bearer {CREDENTIALS['acme']}"},
        "no bearer": {"Authorization": f"Basic {acme}"},
    }
    with here.gateway as gateway:
        for name, headers in wrong.items():
            for path in (*PATHS.values(), "/v1/models", "/v1/files", "/decide", "/observe", "/anything"):
                method = "GET" if path in ("/v1/models", "/v1/files") else "POST"
                body = None if method == "GET" else first_request("chat")
                answer = ask(gateway.url, path, body, headers, method=method)
                assert answer.status == 401, (name, path, answer)
                assert acme.encode() not in answer.body
        assert provider.requests == []
        # And the right ones still work, in either vendor's place, until they are revoked.
        for api in APIS:
            assert ask(gateway.url, PATHS[api], first_request(api), headers_for(api, acme)).status == 200
    assert {record.meta["tenant"] for record in gateway.records() if is_evidence(record)} == {"acme"}
    agentmark("tenant", "revoke", gateway.store, "acme", folder=tmp_path)
    with here.gateway:
        refused = ask(gateway.url, PATHS["chat"], first_request("chat"), headers_for("chat", acme))
        assert refused.status == 401
        kept = ask(gateway.url, PATHS["chat"], first_request("chat"), headers_for("chat", here.keys["globex"]))
        assert kept.status == 200


def test_one_tenant_gets_no_reply_that_was_kept_for_another(tmp_path: Path, provider: RefusingProvider) -> None:
    here = Tenants(tmp_path, provider.root_url)
    body = first_request("chat")
    with here.gateway as gateway:
        answers = {}
        for name, key in here.keys.items():
            headers = {**headers_for("chat", key), "Idempotency-Key": "the same at both", "x-agentmark-session": "s"}
            answers[name] = [ask(gateway.url, PATHS["chat"], body, headers).data["id"] for _ in range(2)]
        assert answers["acme"][0] == answers["acme"][1]
        assert answers["globex"][0] == answers["globex"][1]
        assert answers["acme"][0] != answers["globex"][0]


def test_a_gateway_without_tenants_listens_on_the_loopback_alone(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, "http://127.0.0.1:9", options=["--host", "0.0.0.0"])
    gateway.start(wait=False)
    assert gateway.process is not None
    assert gateway.process.wait(60) == 2
    assert "loopback" in gateway.said


@pytest.mark.parametrize(
    "line",
    [
        b"GET @127.0.0.1:%d/v1/models HTTP/1.1",
        b"GET http://127.0.0.1:%d/v1/models HTTP/1.1",
        b"GET //127.0.0.1:%d/v1/models HTTP/1.1",
        b"GET :%d/v1/models HTTP/1.1",
        b"POST @127.0.0.1:%d/v1/chat/completions HTTP/1.1",
    ],
)
def test_no_request_reaches_another_host_than_the_upstream(line: bytes, tmp_path: Path) -> None:
    elsewhere: list[Asked] = []

    def answer(asked: Asked) -> Said:
        elsewhere.append(asked)
        return Said.json(200, {})

    with (
        LoopbackServer(answer) as victim,
        RefusingProvider() as provider,
        Gateway(tmp_path, provider.root_url) as gateway,
    ):
        port = int(victim.root_url.rpartition(":")[2])

        async def send() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(line % port + b"\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
            try:
                await asyncio.wait_for(read_reply(reader), 10)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # Refused without a word.
            finally:
                writer.close()

        asyncio.run(send())
        assert elsewhere == []
        assert gateway.get("/healthz").status == 200
