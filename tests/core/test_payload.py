"""Identities as bits."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark import Identity, PayloadError, Registry, RegistryError
from agentmark.core.payload import payload_to_int, payload_to_text

HEAD = "CREATE TABLE agentmark_registry (version, payload_len)"
FULL_HEAD = (
    f"{HEAD}; INSERT INTO agentmark_registry VALUES (1, 8); "
    "CREATE TABLE identities (name, payload, issued_at, revoked_at)"
)


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


@pytest.mark.parametrize("file", ["registry.jsonl", "registry.db", "registry.sqlite3"])
def test_registry_round_trip(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
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
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (path.read_bytes()[:6] == b"SQLite") == (file != "registry.jsonl")


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


@pytest.mark.parametrize("file", ["registry.jsonl", "registry.db"])
def test_a_name_may_hold_any_character_that_prints(tmp_path: Path, file: str) -> None:
    registry = Registry(16, [Identity('東京 \\ "a"', 1), Identity("'; DROP TABLE identities; --", 2)])
    registry.save(tmp_path / file)
    assert list(Registry.load(tmp_path / file)) == list(registry)
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
        (
            '{"agentmark_registry": 1, "payload_len": 8}\n{"name": "a", "name": "b", "payload": "01"}',
            "'name' appears twice",
        ),
        ('{"agentmark_registry": 1, "payload_len": 8}\n' + "[" * 100_000, ":2: is not valid JSON"),
        (
            '{"agentmark_registry": 1, "payload_len": 8}\n{"name": "a", "payload": "xyz"}',
            ":2: its payload is not hexadecimal text",
        ),
        ('{"agentmark_registry": 1, "payload_len": 8}\n{"payload": "01"}', ":2: has no name"),
    ],
)
def test_a_broken_registry_file_names_the_line(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "registry.jsonl"
    path.write_text(content)
    with pytest.raises(RegistryError, match=fault):
        Registry.load(path)


# As a table


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("CREATE TABLE other (x)", "no such table"),
        (f"{HEAD}", "has 0 rows, not one row"),
        (f"{HEAD}; INSERT INTO agentmark_registry VALUES (2, 8)", "version 1"),
        (f"{HEAD}; INSERT INTO agentmark_registry VALUES (1, -1)", "outside"),
        (
            f"{FULL_HEAD}; INSERT INTO identities VALUES ('a', 'xyz', NULL, NULL)",
            "row 1: its payload is not hexadecimal text",
        ),
        (f"{FULL_HEAD}; INSERT INTO identities VALUES (NULL, '01', NULL, NULL)", "row 1: has no name"),
        (f"{FULL_HEAD}; INSERT INTO identities VALUES ('a', '1ff', NULL, NULL)", "does not fit 8 bits"),
        (f"{FULL_HEAD}; INSERT INTO identities VALUES ('a', '01', NULL, NULL), ('b', '1', NULL, NULL)", "belongs to"),
        (f"{FULL_HEAD}; INSERT INTO identities VALUES (CAST(X'ff' AS TEXT), '01', NULL, NULL)", "cannot|can read"),
    ],
)
def test_a_broken_table_names_the_row(tmp_path: Path, sql: str, fault: str) -> None:
    path = tmp_path / "registry.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(sql)
    with pytest.raises(RegistryError, match=fault):
        Registry.load(path)


def test_what_the_file_holds_goes_before_its_name(tmp_path: Path) -> None:
    registry = Registry(8, [Identity("a", 1)])
    registry.save(tmp_path / "registry.db")
    (tmp_path / "registry.db").rename(tmp_path / "plain.jsonl")
    assert list(Registry.load(tmp_path / "plain.jsonl")) == list(registry)
    registry.save(tmp_path / "lines.jsonl")
    (tmp_path / "lines.jsonl").rename(tmp_path / "lines.db")
    assert list(Registry.load(tmp_path / "lines.db")) == list(registry)
    with pytest.raises(FileNotFoundError):
        Registry.load(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(RegistryError, match="no such table"):
        Registry.load(tmp_path / "empty.db")
    (tmp_path / "damaged.db").write_bytes((tmp_path / "plain.jsonl").read_bytes()[:100] + b"x" * 5000)
    with pytest.raises(RegistryError, match="is not a registry that SQLite can read"):
        Registry.load(tmp_path / "damaged.db")


def test_two_views_of_one_table_never_give_a_payload_twice(tmp_path: Path) -> None:
    """Nobody holds the lock here: the table itself refuses, and loses nothing."""
    path = tmp_path / "registry.db"
    Registry(8, [Identity("a", 1), Identity("b", 2)]).save(path)
    mine, theirs = Registry.load(path), Registry.load(path)
    theirs.add(Identity("c", 3))
    theirs.revoke("a")
    theirs.save(path)
    mine.add(Identity("d", 3))
    with pytest.raises(RegistryError, match=r"'d'.*0x03 was issued meanwhile"):
        mine.save(path)
    other = Registry(8, [Identity("a", 1), Identity("b", 9)])
    with pytest.raises(RegistryError, match=r"'b'.*issued meanwhile"):
        other.save(path)
    with pytest.raises(RegistryError, match="8 bits, not of 16"):
        Registry(16).save(path)
    late = Registry(8, [Identity("a", 1), Identity("e", 5)])
    late.save(path)
    kept = Registry.load(path)
    assert [identity.name for identity in kept] == ["a", "b", "c", "e"]
    assert kept.named("a").revoked_at is not None, "a revocation is never taken back"
