"""Tables that are not what they seem: queries that never end, values of any length, damage."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentmark import Identity, Registry
from agentmark.identity import registry as registry_module
from agentmark.identity import table
from agentmark.identity.errors import RegistryError

HEAD = "CREATE TABLE agentmark_registry (version, payload_len); INSERT INTO agentmark_registry VALUES (1, 32);"
ROWS = "CREATE TABLE identities (name, payload, issued_at, revoked_at);"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def database(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (
            f"{HEAD} CREATE VIEW identities AS {ENDLESS} SELECT i AS rowid, 'a' || i AS name, "
            "printf('%x', i) AS payload, NULL AS issued_at, NULL AS revoked_at FROM n",
            "identities is not a table of rows",
        ),
        (
            f"{ROWS} CREATE VIEW agentmark_registry AS {ENDLESS} SELECT 1 AS version, 32 AS payload_len FROM n",
            "agentmark_registry is not a table of rows",
        ),
        (f"{HEAD} CREATE VIEW IDENTITIES AS {ENDLESS} SELECT i FROM n", "identities is not a table of rows"),
        (f"{HEAD} CREATE VIRTUAL TABLE identities USING fts5(name)", "identities is not a table of rows"),
        (f"{HEAD} INSERT INTO agentmark_registry VALUES (1, 8); {ROWS}", "has several rows, not one row"),
        (f"{HEAD} {ROWS} INSERT INTO identities VALUES ('a', '01', 5, NULL)", "row 1: issued_at is not a date"),
        (f"{HEAD} {ROWS} INSERT INTO identities VALUES ('a', '01', NULL, X'00')", "row 1: revoked_at is not a date"),
        (f"{HEAD} {ROWS} INSERT INTO identities VALUES (X'61', '01', NULL, NULL)", "row 1: has no name"),
        (f"{HEAD} CREATE TABLE identities (name)", "no such column"),
        (
            f"{HEAD} CREATE TABLE identities (seed, name AS (hex(zeroblob(seed))), payload, issued_at, revoked_at);"
            "INSERT INTO identities (seed, payload) VALUES (400000000, '01')",
            "too big",
        ),
        (f"{HEAD} CREATE TABLE identities (name PRIMARY KEY, payload, issued_at, revoked_at) WITHOUT ROWID", "rowid"),
    ],
)
def test_a_table_that_is_none_is_a_typed_error(tmp_path: Path, script: str, fault: str) -> None:
    path = database(tmp_path / "registry.db", script)
    with pytest.raises(RegistryError, match=fault):
        Registry.load(path)


def test_nothing_is_written_into_a_view(tmp_path: Path) -> None:
    path = database(tmp_path / "registry.db", f"{HEAD} CREATE VIEW identities AS {ENDLESS} SELECT i AS name FROM n")
    with pytest.raises(RegistryError, match="identities is not a table of rows"):
        Registry(32, [Identity("a", 1)]).save(path)


def test_work_and_size_come_to_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "registry.db"
    Registry(32, [Identity(f"tenant-{i}", i) for i in range(3000)]).save(path)
    assert len(Registry.load(path)) == 3000
    monkeypatch.setattr(registry_module, "MAX_REGISTRY_SIZE", 1000)
    with pytest.raises(RegistryError, match="more than 1,000 characters"):
        Registry.load(path)
    monkeypatch.undo()
    monkeypatch.setattr(table, "MAX_WORK", 10_000)
    monkeypatch.setattr(table, "WORK_ROUND", 1000)
    with pytest.raises(RegistryError, match="interrupted"):
        Registry.load(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "registry.db")
    with pytest.raises(RegistryError, match="is not a file"):
        Registry.load(tmp_path / "registry.db")


def test_damage_anywhere_is_a_typed_error_or_none(tmp_path: Path) -> None:
    """Bytes all over the file turned one at a time, and its end cut off at many places."""
    whole = tmp_path / "whole.db"
    Registry(32, [Identity(f"tenant-{i}", i) for i in range(20)]).save(whole)
    content = whole.read_bytes()
    turned = [
        content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :] for place in range(0, len(content), 61)
    ]
    path = tmp_path / "registry.db"
    refused = 0
    for damaged in [*turned, *[content[:end] for end in range(16, len(content), 997)]]:
        path.write_bytes(damaged)
        try:
            Registry.load(path)
        except RegistryError:
            refused += 1
    assert refused > 30
