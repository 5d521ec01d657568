"""Tenants, API keys and where credentials are."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentmark import SettingError, SharedKey
from agentmark.keys.secret import without_secrets
from agentmark.store.tenants import Tenant, api_key_digest, api_key_id, is_api_key, new_api_key

ACME = Tenant(name="acme", identity="acme")


def test_an_api_key_is_random_and_not_kept() -> None:
    text, key_id, digest = new_api_key()
    other, _, _ = new_api_key()
    assert text != other
    assert text.startswith(f"amk_{key_id}_")
    assert api_key_id(text) == key_id
    assert len(bytes.fromhex(text.split("_")[2])) == 32
    assert text.split("_")[2].encode() not in digest
    assert is_api_key(text, digest)
    assert not is_api_key(other, digest)
    assert not is_api_key(text, None)
    # Not even if it should have the digest that stands in for none.
    assert not is_api_key(text, bytes(32))


def test_an_api_key_that_strays_into_a_message_is_taken_out() -> None:
    text, _, _ = new_api_key()
    assert text.split("_")[2] not in without_secrets(f"no such file: {text}")


@pytest.mark.parametrize("text", ["", "amk__", "amk_00_00", "AMK_" + "0" * 16 + "_" + "0" * 64, "\ud800"])
def test_what_is_no_api_key(text: str) -> None:
    assert api_key_id(text) is None


def test_digests_are_of_this_use() -> None:
    """The same text hashed for another purpose gives another digest."""
    assert api_key_digest("amk_x").hex() != "".join(["0"] * 64)
    assert api_key_digest("a") != api_key_digest("b")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": ""}, "tenant: '' is not one line"),
        ({"name": "a\nb"}, "is not one line"),
        ({"name": "a\u202eb"}, "is not one line"),
        ({"name": "x" * 201}, "is not one line"),
        ({"identity": "\ud800"}, "identity"),
        ({"requests_per_minute": 0}, "requests_per_minute: 0 is not a whole number above zero"),
        ({"concurrent_requests": -1}, "concurrent_requests"),
        ({"key_file": ""}, "key_file: is empty"),
        ({"upstream_credential": "env:"}, "neither env:NAME nor file:/ABSOLUTE/PATH"),
        ({"upstream_credential": "env:1A"}, "neither"),
        ({"upstream_credential": "file:relative"}, "neither"),
    ],
)
def test_what_is_no_tenant(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(SettingError) as caught:
        replace(ACME, **changes).check()
    assert fault in str(caught.value)


def test_a_credential_in_the_place_of_its_reference_is_refused_and_not_quoted() -> None:
    with pytest.raises(SettingError) as caught:
        replace(ACME, upstream_credential="sk-live-1234567890").check()
    assert "sk-live" not in str(caught.value)


def test_a_credential_from_the_environment() -> None:
    tenant = replace(ACME, upstream_credential="env:UPSTREAM")
    assert tenant.credential({"UPSTREAM": " sk-1\n"}) == "sk-1"
    with pytest.raises(SettingError, match="UPSTREAM is not set"):
        tenant.credential({})
    for broken in ("sk-1\r\nX-Admin: 1", "sk-1\nsk-2", "sk-\u00e9", "sk-\x00"):
        with pytest.raises(SettingError, match="UPSTREAM does not hold one line") as refused:
            tenant.credential({"UPSTREAM": broken})
        assert "sk-" not in str(refused.value)
    assert ACME.credential({}) is None


def test_a_credential_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "credential"
    tenant = replace(ACME, upstream_credential=f"file:{file}")
    tenant.check()
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        tenant.credential()
    file.write_text("sk-2\n")
    file.chmod(0o644)
    with pytest.raises(SettingError, match="can be read by others") as caught:
        tenant.credential()
    assert "sk-2" not in str(caught.value)
    file.chmod(0o600)
    assert tenant.credential() == "sk-2"
    for content in (b"", b"\n", b"a\nb", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(SettingError, match="does not hold one line of ASCII"):
            tenant.credential()


def test_the_key_is_derived_by_name_or_its_own(tmp_path: Path) -> None:
    own, other = SharedKey.generate(), SharedKey.generate()
    assert ACME.key(own) == own.derive("acme")
    other.save(tmp_path / "key.json")
    assert replace(ACME, key_file=str(tmp_path / "key.json")).key(own) == other
    with pytest.raises(SettingError, match="no key to derive one from"):
        ACME.key(None)
