import asyncio
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, MESSAGES, chat_body, messages_body
from running import KEY, gateway

from agentmark import Verifier
from agentmark.gateway.callers import Callers
from agentmark.gateway.metrics import GatewayLedger, Metrics
from agentmark.gateway.settings import Settings
from agentmark.keys.errors import KeyFileError
from agentmark.store.open import open_store
from agentmark.store.tenants import Tenant
from agentmark.testing import Errand, RefusingProvider

CREDENTIAL = "sk-upstream-secret"


def tenants(path: Path, *given: Tenant) -> list[str]:
    async def add() -> list[str]:
        async with open_store(path) as store:
            keys = []
            for tenant in given:
                await store.add_tenant(tenant)
                keys.append(await store.issue_api_key(tenant.name))
            return keys

    return asyncio.run(add())


def test_tenants_are_known_by_their_keys_and_marked_with_their_own(tmp_path: Path) -> None:
    acme = Tenant(name="acme", identity="acme", upstream_credential="env:UPSTREAM_KEY")
    other = Tenant(name="other", identity="othr", upstream_credential="env:UPSTREAM_KEY", requests_per_minute=2)
    bare = Tenant(name="bare", identity="bare")
    first, second, third = tenants(tmp_path / "store.db", acme, other, bare)
    variables = {"UPSTREAM_KEY": CREDENTIAL}
    with (
        RefusingProvider(api_key=CREDENTIAL) as provider,
        gateway(tmp_path, provider.root_url, "--tenants", "--host", "0.0.0.0", environment=variables) as running,
    ):
        running.root_url = running.root_url.replace("0.0.0.0", "127.0.0.1")
        for path, body in ((CHAT, chat_body(Errand(1))), (MESSAGES, messages_body(Errand(1)))):
            nobody = running.ask(path, body)
            assert (nobody.status, nobody.body["error"]["type"]) == (401, "authentication_error")
            wrong = running.ask(path, body, headers={"authorization": "Bearer amk_" + "0" * 16 + "_" + "0" * 64})
            assert wrong.status == 401
        assert running.ask("/v1/models").status == 401
        assert provider.requests == []
        for number in range(40):
            shown = {"authorization": f"Bearer {first}"} if number % 2 else {"x-api-key": first}
            assert running.ask(CHAT, chat_body(Errand(number)), headers=shown).status == 200
        seen = {name.lower(): value for name, value in provider.requests[-1].headers.items()}
        assert seen["authorization"] == f"Bearer {CREDENTIAL}"
        statuses = [running.ask(CHAT, chat_body(Errand(1)), headers={"x-api-key": second}).status for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert running.ask(CHAT, chat_body(Errand(1)), headers={"x-api-key": third}).status == 403
        # Nobody reads another's session.
        decided = running.ask("/decide", {"weights": {"a": 1, "b": 1}, "session": "mine"}, headers={"x-api-key": first})
        asked = {"decision": decided.body["decision"], "did": "c"}
        assert running.ask("/observe", asked, headers={"x-api-key": third}).status in (403, 404)
        page = running.ask("/metrics").content.decode()
    found = running.records()
    own = [record for record in found if record.key_id == KEY.derive("acme").id]
    assert len(own) == 41
    assert {record.meta["tenant"] for record in own} == {"acme"}
    assert Verifier(KEY.derive("acme")).verify(own, claim="acme").accepted
    assert len([record for record in found if record.key_id == KEY.derive("other").id]) == 2
    for text in (CREDENTIAL, first, second):
        assert text not in running.log_text + page + "".join([record.to_json() for record in found])


def test_with_tenants_a_key_that_is_none_is_refused_and_a_missing_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(upstream="fake:", tenants=True)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    Callers(settings, GatewayLedger(Metrics()))
    monkeypatch.setenv("AGENTMARK_KEY", "too short")
    with pytest.raises(KeyFileError, match="AGENTMARK_KEY"):
        Callers(settings, GatewayLedger(Metrics()))
