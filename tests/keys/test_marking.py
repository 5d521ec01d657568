"""Marking keys and their public halves: what they say, and what is refused."""

import copy
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from vrf_examples import SMALL_ORDER

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.core import ecvrf
from agentmark.core.edwards25519 import BASE, ORDER, encode_point, multiply_sum
from agentmark.core.public_step import step_input, step_key_of
from agentmark.keys import public
from agentmark.keys.errors import KeyFileError
from agentmark.keys.marking import MarkingKey
from agentmark.keys.public import PublicKey
from agentmark.keys.shared import SharedKey
from agentmark.keys.signing import SigningKey
from agentmark.keys.vrf import VrfSecret, encode_to_curve

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


def scalar_from(signature: bytes, public_key: bytes, message: bytes, proof: bytes) -> int:
    """What a signature of Ed25519 and a proof say of their secret scalar if one seed made both, and the message is the
    point that the proof is about: their nonces are then the same hash, r. S = r + h x and s = r + c x give x."""
    hashed = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little")
    challenge, response = int.from_bytes(proof[32:48], "little"), int.from_bytes(proof[48:], "little")
    difference = int.from_bytes(signature[32:], "little") - response
    return difference * pow(hashed - challenge, -1, ORDER) % ORDER


def test_one_seed_for_signatures_and_proofs_would_give_the_secret_away() -> None:
    """The attack, carried out on a seed that serves for both; and on a marking key and a signing key of one secret,
    whose seeds are their own."""
    signing = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    alpha = b"whatever may be asked"

    def gives_away(seed_of_signatures: bytes, proving: VrfSecret) -> bool:
        message = encode_to_curve(proving.public_key, alpha)
        signer = signing.Ed25519PrivateKey.from_private_bytes(seed_of_signatures)
        public_key = signer.public_key().public_bytes_raw()
        found = scalar_from(signer.sign(message), public_key, message, proving.prove(alpha))
        return encode_point(multiply_sum((found, BASE))) == proving.public_key

    assert gives_away(SECRET, VrfSecret(SECRET))
    marking = MarkingKey(SECRET)
    assert marking.public.point != VrfSecret(SECRET).public_key
    assert not gives_away(SECRET, marking._vrf)


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
