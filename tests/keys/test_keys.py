"""A real secret or none: what is refused, what never leaks, what derives."""

import copy
import errno
import json
import logging
import os
import pickle
from pathlib import Path

import pytest

from agentmark import KeyFileError, SharedKey


def test_a_key_file_round_trip(tmp_path: Path) -> None:
    key = SharedKey.generate()
    path = tmp_path / "key.json"
    key.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SharedKey.load(path) == key
    assert SharedKey.load(path, key_id=key.id).id == key.id


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    SharedKey.generate().save(path)
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="exists already"):
        SharedKey.generate().save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.json"
    SharedKey.generate().save(path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"read by others.*{mode:04o}.*chmod 600") as caught:
        SharedKey.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "fault"),
    [
        (b"", "has 0 bytes"),
        (b"short", "has 5 bytes"),
        (bytes(range(33)), "has 33 bytes"),
        (bytes(32), "repeats"),
        (b"\0\xff" * 16, "repeats"),
        (b"correct horse battery staple 123", "typed text"),
        (b"0123456789abcdef0123456789ABCDEF", "typed text"),
        ("text", "not bytes"),
    ],
)
def test_weak_secrets_are_refused(secret: bytes, fault: str) -> None:
    with pytest.raises(KeyFileError, match=fault):
        SharedKey(secret)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("not json", "not an AgentMark key file"),
        ("[]", "not an AgentMark key file"),
        ('{"agentmark_key": 1}', "not an AgentMark key file"),
        ('{"agentmark_key": 2, "secret": "00"}', "agentmark_key is not 1, the version"),
        ('{"agentmark_key": true, "secret": "00"}', "agentmark_key is not 1, the version"),
        ('{"agentmark_key": 1, "secret": "zz"}', "not hexadecimal"),
        ('{"agentmark_key": 1, "secret": 5}', "not hexadecimal"),
        ('{"agentmark_key": 1, "secret": "00ff"}', "has 2 bytes"),
        ('{"agentmark_key": 1, "secret": "00", "secret": "ff"}', "not an AgentMark key file"),
    ],
)
def test_a_damaged_key_file_is_refused_by_name(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "key.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match=fault) as caught:
        SharedKey.load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_names_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    key = SharedKey.generate()
    key.save(path)
    with pytest.raises(KeyFileError, match=f"holds key {key.id}, not 0123"):
        SharedKey.load(path, key_id="0123")
    content = json.loads(path.read_text())
    content["id"] = "0" * 16
    path.write_text(json.dumps(content))
    with pytest.raises(KeyFileError, match="another key id"):
        SharedKey.load(path)


def test_a_damaged_file_does_not_leak_through_the_error(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    SharedKey.generate().save(path)
    secret = json.loads(path.read_text())["secret"]
    path.write_text(path.read_text()[:-2])
    with pytest.raises(KeyFileError) as caught:
        SharedKey.load(path)
    assert caught.value.__context__ is None
    assert secret not in repr(caught.value)


def everything_of(error: BaseException) -> str:
    """All that a traceback or a log of errors would show of it."""
    shown = ""
    seen: BaseException | None = error
    while seen is not None:
        shown += f"{seen} {seen!r} {vars(seen)}"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return shown


@pytest.mark.parametrize("member", ["agentmark_key", "id", "secret", "comment"])
def test_a_secret_in_the_wrong_member_does_not_leak_through_the_error(tmp_path: Path, member: str) -> None:
    path = tmp_path / "key.json"
    SharedKey.generate().save(path)
    content = json.loads(path.read_text())
    misplaced = bytes(range(60, 92)).hex()
    content["secret"] = "00" if member == "comment" else content["secret"]
    for value in (misplaced, misplaced.upper(), [misplaced], {"secret": misplaced}, misplaced + "!", f" {misplaced}"):
        path.write_text(json.dumps(content | {member: value}))
        with pytest.raises(KeyFileError) as caught:
            SharedKey.load(path)
        assert misplaced not in everything_of(caught.value).lower()
        assert content["secret"] == "00" or content["secret"] not in everything_of(caught.value)


def test_a_secret_in_place_of_its_file_is_not_repeated(tmp_path: Path) -> None:
    secret = bytes(range(60, 92)).hex()
    for path in (secret, tmp_path / secret.upper(), tmp_path / secret / "key.json", secret[:-3]):
        with pytest.raises(KeyFileError, match="hex digits, not shown") as caught:
            SharedKey.load(path)
        assert secret[:48] not in everything_of(caught.value).lower()


def test_a_command_to_copy_holds_the_name_as_one_word(tmp_path: Path) -> None:
    path = tmp_path / "key; rm -rf x"
    SharedKey.generate().save(path)
    path.chmod(0o644)
    with pytest.raises(KeyFileError) as caught:
        SharedKey.load(path)
    assert f"`chmod 600 '{path}'`" in str(caught.value)


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="larger than 65,536 bytes"):
        SharedKey.load(path)
    with pytest.raises(KeyFileError, match="not a regular file"):
        SharedKey.load("/dev/zero")


def test_names_that_no_file_can_have_are_refused() -> None:
    with pytest.raises(KeyFileError, match="not a name that a file can have"):
        SharedKey.load("a\0b")
    with pytest.raises(KeyFileError, match="not a name that a file can have"):
        SharedKey.generate().save("a\0b")


def test_half_a_key_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyFileError, match="cannot be written: No space left"):
        SharedKey.generate().save(tmp_path / "key.json")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KeyFileError, match="not a regular file"):
        SharedKey.load(tmp_path / "pipe")


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="No such file"):
        SharedKey.load(tmp_path / "none.json")
    with pytest.raises(KeyFileError, match="cannot be read"):
        SharedKey.load(tmp_path)
    with pytest.raises(KeyFileError, match="cannot be written"):
        SharedKey.generate().save(tmp_path / "no" / "key.json")


def test_the_environment_and_the_keyring_are_other_sources() -> None:
    secret = "5b" * 8 + "".join(f"{i:02x}" for i in range(24))
    key = SharedKey.from_environment("K", environment={"K": secret})
    assert key == SharedKey(bytes.fromhex(secret))
    with pytest.raises(KeyFileError, match=r"\$K: is not set"):
        SharedKey.from_environment("K", environment={})
    with pytest.raises(KeyFileError, match="not hexadecimal"):
        SharedKey.from_environment("K", environment={"K": "secret!"})


def test_the_secret_never_shows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = SharedKey.generate()
    path = tmp_path / "key.json"
    key.save(path)
    secret = json.loads(path.read_text())["secret"]
    logging.getLogger().warning("%s %r", key, key)
    assert not hasattr(key, "__dict__")
    shown = [repr(key), str(key), f"{key}", caplog.text]
    for text in shown:
        assert secret not in text
        assert bytes.fromhex(secret).decode("latin-1") not in text
    for copier in (pickle.dumps, copy.copy, copy.deepcopy, SharedKey.__getstate__):
        with pytest.raises(TypeError, match="not pickled"):
            copier(key)
    with pytest.raises(AttributeError, match="immutable"):
        key.id = "other"  # type: ignore[misc]


def test_errors_about_weak_secrets_do_not_repeat_them() -> None:
    with pytest.raises(KeyFileError) as caught:
        SharedKey(b"correct horse battery staple 123")
    assert "horse" not in str(caught.value)


def test_derived_keys_are_distinct_and_cannot_be_confused() -> None:
    master = SharedKey.generate()
    acme, globex = master.derive("acme"), master.derive("globex")
    assert acme == master.derive("acme")
    assert len({master.id, acme.id, globex.id}) == 3
    context = bytes(32)
    assert len({key.step_key(context, 8) for key in (master, acme, globex)}) == 3
    with pytest.raises(KeyFileError, match="name is empty"):
        master.derive("")
    with pytest.raises(KeyFileError, match="lone surrogate"):
        master.derive("acme\udcff")


def test_a_context_digest_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        SharedKey.generate().step_key(b"short", 8)


def test_step_keys_of_many_contexts_are_those_of_each() -> None:
    key = SharedKey(bytes(range(32)))
    for payload_len in (0, 16, 4096):
        step_key = key.step_key_maker(payload_len)
        for context in (bytes(32), bytes(range(32)), bytes(32)):
            assert step_key(context) == key.step_key(context, payload_len)
