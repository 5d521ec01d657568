"""Registries that are hostile or broken: names that look alike, files without an end, values of any kind."""

import errno
import os
from pathlib import Path

import pytest

from agentmark import Identity, Registry
from agentmark.core.errors import AgentMarkError
from agentmark.files import FileError
from agentmark.identity import registry as module
from agentmark.identity.errors import RegistryError

HEAD = '{"agentmark_registry": 1, "payload_len": 32}\n'
SECRET = bytes(range(60, 92)).hex()


@pytest.mark.parametrize(
    "name",
    [
        "emca\u202e",
        "ac\u200bme",
        "acme\x1b[2K",
        "acme\x9b",
        "acme\u2066",
        "acme\U000e0041",
        "acme\xa0",
        "acme\r",
        "acme ",
        " acme",
        "zu\u0308rich",
        "\x7f",
    ],
)
def test_a_name_that_could_look_like_anothers_is_not_issued_but_read(tmp_path: Path, name: str) -> None:
    registry = Registry(32, [Identity("acme", 1)])
    for enter in (
        registry.issue,
        lambda odd: registry.add(Identity(odd, 2)),
        lambda odd: Registry(8, [Identity(odd, 2)]),
    ):
        with pytest.raises(RegistryError, match="could look like another's") as caught:
            enter(name)
        assert str(caught.value).isprintable()
    path = tmp_path / "registry.jsonl"
    registry._enter(Identity(name, 2))
    registry.save(path)
    read = Registry.load(path)
    assert read.named(name).payload == 2
    read.revoke(name)
    read.save(path)
    assert Registry.load(path).named(name).revoked_at is not None


@pytest.mark.parametrize("name", ["acme", "zürich", "東京", "דוד", "tenant 42", "हिन्दी"])
def test_names_of_all_scripts_are_issued(name: str) -> None:
    assert Registry(16).issue(name).name == name


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('{"name": "a", "payload": "01", "issued_at": 5}', "issued_at is not a date"),
        ('{"name": "a", "payload": "01", "revoked_at": {"a": 1}}', "revoked_at is not a date"),
        ('{"name": "a", "payload": "01", "issued_at": ' + "[" * 900 + "]" * 900 + "}", "issued_at is not a date"),
        ('{"name": "a", "payload": "01", "issued_at": ' + "[" * 9000 + "]" * 9000 + "}", "is not valid JSON"),
        ('{"name": "a", "payload": "' + "f" * 1_000_000 + '"}', "does not fit 32 bits"),
        ('{"name": "a", "payload": ' + "9" * 100_000 + "}", "is not valid JSON"),
        ('{"name": "a", "payload": "-1"}', "not hexadecimal"),
        ('{"name": "a", "payload": "0x_1"}', "not hexadecimal"),
        ('{"name": "a", "payload": ""}', "not hexadecimal"),
        ('{"name": "a", "payload": 1}', "not hexadecimal"),
        ('{"name": "\\ud800", "payload": "01"}', "one line of text"),
        ('{"name": ["a"], "payload": "01"}', "has no name"),
        ('{"name": null, "payload": "01"}', "has no name"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_a_typed_error(tmp_path: Path, entry: str, fault: str) -> None:
    path = tmp_path / "registry.jsonl"
    path.write_text(HEAD + entry + "\n")
    with pytest.raises(RegistryError, match=fault):
        Registry.load(path)


@pytest.mark.parametrize(
    "content",
    [
        f'{{"agentmark_key": 1, "id": "x", "secret": "{SECRET}"}}',
        f'{{"agentmark_registry": 1, "payload_len": "{SECRET}"}}',
        f'{HEAD}{{"name": "a", "payload": "{SECRET}"}}',
        f'{HEAD}{{"name": "a", "payload": "{SECRET}!"}}',
        f'{HEAD}{{"name": "a", "payload": 1, "secret": "{SECRET}"}}',
        f'{HEAD}{{"name": "a", "payload": "01", "issued_at": ["{SECRET}"]}}',
        f'{HEAD}{{"secret": "{SECRET}"}}',
        f"{HEAD}{SECRET}",
        SECRET,
    ],
)
def test_a_secret_that_strayed_into_a_registry_is_not_repeated(tmp_path: Path, content: str) -> None:
    path = tmp_path / "registry.jsonl"
    path.write_text(content)
    with pytest.raises(RegistryError) as caught:
        Registry.load(path)
    assert SECRET not in str(caught.value)
    assert str(int(SECRET, 16)) not in str(caught.value)


def test_a_file_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="is a device"):
        Registry.load("/dev/zero")
    monkeypatch.setattr(module, "MAX_REGISTRY_SIZE", 1000)
    path = tmp_path / "registry.jsonl"
    path.write_text(HEAD + "\n" * 1000)
    with pytest.raises(FileError, match="larger than 1,000 bytes"):
        Registry.load(path)
    with pytest.raises(IsADirectoryError):
        Registry.load(tmp_path)
    with pytest.raises(AgentMarkError, match="not a name that a file can have"):
        Registry.load("a\0b")


def test_a_missing_name_is_told_with_those_that_are_like_it() -> None:
    registry = Registry(16, [Identity(f"tenant-{i:04}", i) for i in range(20)] + [Identity("acme", 99)])
    with pytest.raises(RegistryError, match="'acne': no such identity, but there is 'acme'; issue it first"):
        registry.named("acne")
    with pytest.raises(RegistryError, match="'globex': no such identity; issue it first"):
        registry.named("globex")
    with pytest.raises(RegistryError, match="no such identity; issue it first"):
        registry.named("tenant-" * 100_000)


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(16, [Identity("a", 1)])
    (tmp_path / "folder").mkdir()
    with pytest.raises(RegistryError, match="cannot be written: Is a directory"):
        registry.save(tmp_path / "folder")
    with pytest.raises(RegistryError, match="cannot be written: No such file"):
        registry.save(tmp_path / "none" / "registry.jsonl")
    path = tmp_path / "registry.jsonl"
    registry.save(path)
    before = path.read_bytes()
    registry.issue("b")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegistryError, match="cannot be written: No space left"):
        registry.save(path)
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "registry.jsonl"]
