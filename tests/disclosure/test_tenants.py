"""The registry of public keys."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.disclosure.tenants import Tenant, Tenants, is_tenants_file
from agentmark.identity.errors import RegistryError
from agentmark.keys.marking import MarkingKey

FIRST, SECOND = (MarkingKey(bytes(range(start, start + 32))).public for start in (7, 160))


def test_a_registry_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "tenants.jsonl"
    tenants = Tenants()
    tenants.register("acme", FIRST)
    tenants.revoke("acme")
    tenants.register("acme", SECOND)
    tenants.save(path)
    assert is_tenants_file(path)
    assert list(Tenants.load(path)) == list(tenants)
    found = Tenants.load(path).with_key(FIRST.id)
    assert found is not None
    assert found.revoked_at is not None


def test_a_name_has_one_key_at_a_time_and_a_key_one_name() -> None:
    tenants = Tenants()
    tenants.register("acme", FIRST)
    with pytest.raises(RegistryError, match="revoke it first"):
        tenants.register("acme", SECOND)
    with pytest.raises(RegistryError, match="on record for 'acme'"):
        tenants.register("other", FIRST)
    with pytest.raises(RegistryError, match="could look like another"):
        tenants.register(" acme", SECOND)
    with pytest.raises(RegistryError, match="no key here"):
        tenants.revoke("other")


def test_a_name_may_have_had_several_keys() -> None:
    tenants = Tenants()
    tenants.register("acme", FIRST)
    assert tenants.revoke("acme").public_key == FIRST
    tenants.register("acme", SECOND)
    with pytest.raises(RegistryError, match="on record for 'acme'"):
        tenants.register("acme", FIRST)
    assert tenants.revoke("acme").public_key == SECOND
    assert [tenant.revoked_at is not None for tenant in tenants] == [True, True]


def test_a_large_registry_is_entered_in_its_length() -> None:
    made_up = [Tenant(f"t{i}", replace(FIRST, id=f"{i:032x}"), "2026-01-01") for i in range(20_000)]
    tenants = Tenants(made_up)
    assert tenants.with_key(f"{19_999:032x}") == made_up[-1]


def test_keys_that_were_on_record_at_a_time() -> None:
    tenants = Tenants(
        [
            Tenant("a", FIRST, "2026-01-01T00:00:00Z"),
            Tenant("b", SECOND, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ]
    )
    assert [t.name for t in tenants.registered_by(datetime(2026, 2, 1, tzinfo=UTC))] == ["a"]
    assert len(tenants.registered_by(None)) == len(tenants.registered_by(datetime(2026, 5, 1, tzinfo=UTC))) == 2


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("nonsense", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"name": "a"}', "is not an object of"),
        ('{"name": "a", "public_key": {}, "registered_at": "noon", "revoked_at": null}', "registered_at"),
        ('{"name": "a", "public_key": {}, "registered_at": "2026-01-01", "revoked_at": null}', "public_key:"),
    ],
)
def test_damaged_lines_are_refused_by_their_place(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "tenants.jsonl"
    path.write_text('{"agentmark_tenants": 1}\n' + line + "\n")
    with pytest.raises(RegistryError, match=rf"tenants\.jsonl:2.*{fault}"):
        Tenants.load(path)
    path.write_text('{"agentmark_tenants": 2}\n')
    with pytest.raises(RegistryError, match="version 1"):
        Tenants.load(path)
