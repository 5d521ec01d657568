"""Identities as bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark import Identity, PayloadError, Registry, RegistryError
from agentmark.core.payload import payload_to_int, payload_to_text


def test_the_ways_to_write_a_payload() -> None:
    assert payload_to_int(42, 32) == (42, 32)
    assert payload_to_int(b"\x01\x02") == (0x0102, 16)
    assert payload_to_int([1, 0, 1]) == (0b101, 3)
    assert payload_to_int("acme", 40) == (0x61636D6500, 40)
    assert payload_to_int("acme") == (0x61636D65, 32)
    assert payload_to_int(None) == (0, 0)


@given(st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable() and text.strip("\0") == text))
def test_text_comes_back(text: str) -> None:
    assert payload_to_text(*payload_to_int(text, 8 * 40)) == text


@pytest.mark.parametrize(
    ("payload", "payload_len", "fault"),
    [
        (5, None, "needs payload_len"),
        (256, 8, "does not fit"),
        (-1, 8, "does not fit"),
        ("tenant-0042", 32, "needs 88 bits and payload_len is 32"),
        ("", 8, "empty"),
        (b"abc", 16, "do not fill"),
        ([0, 2], None, "neither 0 nor 1"),
        (True, 1, "neither a number"),
        (1, -1, "outside"),
        (1, 4097, "outside"),
        (1, 8.0, "not an integer"),
    ],
)
def test_payloads_that_do_not_fit_say_what_to_do(payload: object, payload_len: object, fault: str) -> None:
    with pytest.raises(PayloadError, match=fault):
        payload_to_int(payload, payload_len)  # type: ignore[arg-type]


def test_registry_round_trip(tmp_path: object) -> None:
    path = f"{tmp_path}/registry.jsonl"
    registry = Registry(16)
    issued = registry.issue("tenant-0042")
    registry.add(Identity("zürich", 7))
    registry.revoke("zürich")
    registry.save(path)
    loaded = Registry.load(path)
    assert list(loaded) == list(registry)
    assert loaded.holder(issued.payload) == issued
    assert loaded.named("zürich").revoked_at is not None
    assert loaded.holder((issued.payload + 1) % 7 + 8) is None or len(loaded) == 2


def test_registry_refuses_what_would_make_an_identity_ambiguous() -> None:
    registry = Registry(8, [Identity("a", 1)])
    with pytest.raises(RegistryError, match=r"'a'.*already"):
        registry.add(Identity("a", 2))
    with pytest.raises(RegistryError, match=r"'b'.*belongs to 'a'"):
        registry.add(Identity("b", 1))
    with pytest.raises(RegistryError, match=r"'c'.*does not fit 8 bits"):
        registry.add(Identity("c", 256))
    with pytest.raises(RegistryError, match="every identity needs a name"):
        registry.add(Identity("", 3))
    with pytest.raises(RegistryError, match="no such identity"):
        registry.named("d")


def test_a_name_may_hold_any_character_but_a_line_feed(tmp_path: object) -> None:
    registry = Registry(16, [Identity("a\u2028b\u0085c", 1)])
    registry.save(f"{tmp_path}/registry.jsonl")
    assert list(Registry.load(f"{tmp_path}/registry.jsonl")) == list(registry)
    with pytest.raises(RegistryError, match="one line of text"):
        registry.add(Identity("a\nb", 2))


def test_a_full_registry_says_so() -> None:
    registry = Registry(1)
    payloads = {registry.issue("a").payload, registry.issue("b").payload}
    assert payloads == {0, 1}
    with pytest.raises(RegistryError, match="taken"):
        registry.issue("c")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ('{"name": "a"}', "head"),
        ('{"agentmark_registry": 1, "payload_len": -1}', "outside"),
        ('{"agentmark_registry": 1, "payload_len": 8}\nnonsense', ":2: is not valid JSON"),
        ('{"agentmark_registry": 1, "payload_len": 8}\n{"name": "a", "payload": "xyz"}', ":2: payload 'xyz'"),
        ('{"agentmark_registry": 1, "payload_len": 8}\n{"payload": "01"}', ":2: has no name"),
    ],
)
def test_a_broken_registry_file_names_the_line(tmp_path: object, content: str, fault: str) -> None:
    from pathlib import Path

    path = Path(f"{tmp_path}/registry.jsonl")
    path.write_text(content)
    with pytest.raises(RegistryError, match=fault):
        Registry.load(path)
