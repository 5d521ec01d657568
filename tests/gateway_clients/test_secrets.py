"""After a run with secrets of a form that can be recognised, everything that came out is searched for them."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from bench.loopback import chat_request
from gateway_process import IDENTITY, MODES, Gateway, agentmark
from plain_agent import APIS, PATHS, Answer, FailedError, PlainAgent, ask, headers_for
from test_tenants import CREDENTIALS, Tenants

from agentmark import Registry
from agentmark.testing import Errand, RefusingProvider

CLIENT_KEY = "sk-CLIENTSOWNKEY0001"
PROMPT = "PROMPTTEXT0003"
SYSTEM = "SYSTEMTEXT0004"
IDEMPOTENCY = "IDEMPOTENCY0005"


def forms(secret: bytes) -> list[bytes]:
    """The ways in which bytes are written out."""
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)]


def secrets_in(folder: Path) -> dict[str, list[bytes]]:
    """The key and the payload of a folder, in every form."""
    key = json.loads((folder / "key.json").read_text())
    key_bytes = [bytes.fromhex(text) for text in re.findall(r'"([0-9a-f]{64})"', json.dumps(key))]
    assert len(key_bytes) == 1, "a key file has one secret"
    registry = Registry.load(folder / "registry.jsonl")
    payload = registry.named(IDENTITY).payload
    return {
        "the key": forms(key_bytes[0]),
        "the payload": [f"{payload:08x}".encode(), str(payload).encode(), payload.to_bytes(4, "big")],
    }


def texts(*found: str) -> dict[str, list[bytes]]:
    return {name: [name.encode()] for name in found}


def search(secrets: Mapping[str, list[bytes]], places: Mapping[str, bytes]) -> list[str]:
    """Where something was found that must not be there."""
    return [
        f"{name} in {place}"
        for name, ways in secrets.items()
        for place, content in places.items()
        if any(way in content for way in ways)
    ]


def everything_said(answer: Answer) -> bytes:
    return answer.body + json.dumps(dict(answer.headers)).encode()


def files_of(folder: Path, store: str) -> dict[str, bytes]:
    """The database with all that SQLite writes beside it."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{store}*")}


def ask_in_every_way(gateway: Gateway, key: str) -> dict[str, bytes]:
    """Errands, refusals, faults and retries; and what the gateway itself says of them."""
    said: dict[str, bytes] = {}
    for api in APIS:
        for stream in (False, True):
            errand = Errand(1, items=2)
            more = {"instructions": SYSTEM} if api == "responses" else {"system": SYSTEM} if api == "messages" else {}
            agent = PlainAgent(gateway.url, api, errand, stream=stream, key=key, **more)
            agent.messages[0]["content"] += f" {PROMPT}"
            agent.headers["Idempotency-Key"] = f"{IDEMPOTENCY}-{api}-{stream}"
            try:
                agent.run()
            except FailedError as error:
                said[f"an error at {api}"] = everything_said(error.answer)
        broken = ask(gateway.url, PATHS[api], b'{"model": "' + PROMPT.encode(), headers_for(api, key))
        said[f"a broken body at {api}"] = everything_said(broken)
        nobody = ask(gateway.url, PATHS[api], chat_request(PROMPT), headers_for(api, key + "x"))
        said[f"a wrong key at {api}"] = everything_said(nobody)
    for path in ("/metrics", "/healthz", "/readyz", "/v1/models", "/decide", "/nowhere"):
        said[path] = everything_said(gateway.get(path, {"Authorization": f"Bearer {key}"}))
    return said


@pytest.mark.parametrize("mode", MODES)
def test_nothing_secret_is_anywhere_but_where_it_must_be(mode: str, tmp_path: Path) -> None:
    options = ["--keep-replies", "0", "--log-level", "debug"]
    with RefusingProvider() as provider, Gateway(tmp_path, provider.root_url, mode=mode, options=options) as gateway:
        said = ask_in_every_way(gateway, CLIENT_KEY)
    # And with nobody upstream, which is a fault that is logged.
    with Gateway(tmp_path, provider.root_url, mode=mode, options=options) as down:
        said |= {f"down: {place}": content for place, content in ask_in_every_way(down, CLIENT_KEY).items()}
    left = {
        **files_of(tmp_path, gateway.store),
        "the export": gateway.export().read_bytes(),
        "the log": gateway.said.encode() + down.said.encode(),
    }
    assert len(left) >= 3
    hidden = {**secrets_in(tmp_path), **texts(CLIENT_KEY, PROMPT, SYSTEM, IDEMPOTENCY)}
    # A broken body may be quoted by the upstream, whose words are handed on; not by us.
    assert search(hidden, {**left, **said}) == []


def test_a_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "gateway.db-wal").write_bytes(b"..." + PROMPT.encode())
    assert search(texts(PROMPT), files_of(tmp_path, "gateway.db")) == [f"{PROMPT} in gateway.db-wal"]
    assert forms(b"\x01\xab") == [b"\x01\xab", b"01ab", b"01AB", b"Aas="]


def test_no_key_or_credential_of_a_tenant_is_kept_or_said(tmp_path: Path) -> None:
    with RefusingProvider() as provider:
        here = Tenants(tmp_path, provider.root_url)
        with here.gateway as gateway:
            said = ask_in_every_way(gateway, here.keys["acme"])
    # And with nobody upstream, which is a fault that is logged.
    with here.gateway:
        said |= {f"down: {place}": content for place, content in ask_in_every_way(gateway, here.keys["acme"]).items()}
    left = {
        **files_of(tmp_path, gateway.store),
        "the export": gateway.export().read_bytes(),
        "the log": gateway.said.encode(),
        "the list of tenants": agentmark("tenant", "list", gateway.store, folder=tmp_path).encode(),
    }
    # The beginning of an API key is its public id.
    keys = {f"the API key of {name}": [key.rpartition("_")[2].encode()] for name, key in here.keys.items()}
    hidden = {**secrets_in(tmp_path), **keys, **texts(*CREDENTIALS.values())}
    assert search(hidden, {**left, **said}) == []
