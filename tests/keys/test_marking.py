"""Marking keys and their public halves: what they say, and what is refused."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from vrf_examples import SMALL_ORDER

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.core import ecvrf
from agentmark.core.public_step import step_input, step_key_of
from agentmark.keys import public
from agentmark.keys.errors import KeyFileError
from agentmark.keys.marking import MarkingKey
from agentmark.keys.public import PublicKey
from agentmark.keys.shared import SharedKey
from agentmark.keys.signing import SigningKey

SECRET = bytes(range(7, 39))
CONTEXT = bytes(range(32))


def test_a_proved_step_key_is_the_one_that_marks() -> None:
    key = MarkingKey(SECRET)
    proof = key.prove_step(CONTEXT, 16)
    assert key.public.step_key(CONTEXT, 16, proof) == key.step_key(CONTEXT, 16)
    output = ecvrf.proof_output(key.public.point, step_input(CONTEXT, 16), proof)
    assert output is not None
    assert step_key_of(output) == key.step_key(CONTEXT, 16)


def test_a_proof_is_of_one_context_length_and_key() -> None:
    key, other = MarkingKey(SECRET), MarkingKey.generate()
    proof = key.prove_step(CONTEXT, 16)
    assert key.public.step_key(CONTEXT, 17, proof) is None
    assert key.public.step_key(bytes(32), 16, proof) is None
    assert other.public.step_key(CONTEXT, 16, proof) is None
    assert not key.public.signs(b"agentmark/1 disclosure\0", proof)


def test_without_the_package_the_same_is_checked_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    key = MarkingKey(SECRET)
    proof, held = key.prove_step(CONTEXT, 16), key.public.as_dict()
    monkeypatch.setattr(public, "find_spec", lambda name: None)
    checked = PublicKey.from_dict(held)
    assert checked == key.public
    assert checked.step_key(CONTEXT, 16, proof) == key.step_key(CONTEXT, 16)


def test_one_secret_has_nothing_in_common_across_its_uses() -> None:
    """The same 32 bytes as a shared key, a signing key and a marking key: no value of one is a value of another."""
    marking, shared, signing = MarkingKey(SECRET), SharedKey(SECRET), SigningKey(SECRET)
    assert marking.public.point.hex() != signing.public_key
    assert marking.step_key(CONTEXT, 16) != shared.step_key(CONTEXT, 16)
    assert not marking.id.startswith(shared.id)
    assert marking.derive("acme").id != MarkingKey(shared.derive("acme")._secret).id


def test_keys_of_tenants_are_their_own() -> None:
    key = MarkingKey(SECRET)
    assert key.derive("acme") == key.derive("acme")
    assert key.derive("acme").public.point != key.derive("globex").public.point
    for name in ("", "\ud800"):
        with pytest.raises(KeyFileError, match="name"):
            key.derive(name)


def test_files_come_back_as_they_were_written(tmp_path: Path) -> None:
    key = MarkingKey.generate()
    key.save(tmp_path / "marking.json")
    key.public.save(tmp_path / "marking.pub.json")
    assert (tmp_path / "marking.json").stat().st_mode & 0o777 == 0o600
    assert MarkingKey.load(tmp_path / "marking.json") == key
    assert PublicKey.load(tmp_path / "marking.pub.json") == key.public
    assert key._secret.hex() not in (tmp_path / "marking.pub.json").read_text()
    for save in (key.save, key.public.save):
        with pytest.raises(KeyFileError, match="exists already"):
            save(tmp_path / ("marking.json" if save == key.save else "marking.pub.json"))


def test_a_marking_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    MarkingKey.generate().save(tmp_path / "marking.json")
    (tmp_path / "marking.json").chmod(0o644)
    with pytest.raises(KeyFileError, match="can be read by others"):
        MarkingKey.load(tmp_path / "marking.json")


def _public_file(**changes: Any) -> dict[str, Any]:
    return MarkingKey(SECRET).public.as_dict() | changes


OTHER = MarkingKey(bytes(range(160, 192))).public


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("text", "is not an AgentMark public key file"),
        ({}, "is not an AgentMark public key file"),
        (_public_file(agentmark_public_key=2), "the version"),
        (_public_file(agentmark_public_key=True), "the version"),
        (_public_file(secret="00"), "holds a secret"),
        (_public_file(public_key=OTHER.point.hex()), "proof of the key id"),
        (_public_file(id_proof=OTHER.id_proof.hex()), "proof of the key id"),
        (_public_file(id_proof="00"), "proof of the key id"),
        (_public_file(id=OTHER.id), "its id"),
        (_public_file(public_key="zz"), "hexadecimal"),
        (_public_file(public_key=OTHER.point.hex().upper()), "hexadecimal"),
        *[(_public_file(public_key=point.hex()), "prime order") for point in SMALL_ORDER],
        (_public_file(public_key=""), "prime order"),
    ],
)
def test_public_keys_that_are_crooked_or_damaged_are_refused(content: object, fault: str) -> None:
    with pytest.raises(KeyFileError, match=fault):
        PublicKey.from_dict(content)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"agentmark_marking_key": 2}, "the version"),
        ({"id": OTHER.id}, "another key id"),
        ({"public_key": OTHER.point.hex()}, "another key id"),
        ({"secret": "00" * 32}, "repeats"),
        ({"secret": "not hex"}, "hexadecimal"),
        ({"secret": None}, "hexadecimal"),
    ],
)
def test_damaged_marking_keys_are_refused_and_not_quoted(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    file = tmp_path / "marking.json"
    MarkingKey(SECRET).save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(KeyFileError, match=fault) as refused:
        MarkingKey.load(file)
    assert SECRET.hex() not in str(refused.value)


def test_a_marking_key_does_not_show_or_travel() -> None:
    key = MarkingKey(SECRET)
    assert SECRET.hex() not in repr(key) + str(key)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)
    with pytest.raises(TypeError, match="not pickled"):
        copy.copy(key)
    with pytest.raises(AttributeError, match="immutable"):
        key.id = "other"


def test_the_fingerprint_is_that_of_the_point() -> None:
    assert MarkingKey(SECRET).public.fingerprint == MarkingKey(SECRET).public.fingerprint
    assert MarkingKey(SECRET).public.fingerprint != OTHER.fingerprint
