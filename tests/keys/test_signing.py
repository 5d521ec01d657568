"""Ed25519 keys: made, saved and refused as shared keys are."""

import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentmark.keys.signing import SigningError, SigningKey, check_public_key, verify_signature

SIGNER = SigningKey(bytes(range(7, 39)))
STRANGER = SigningKey(bytes(range(200, 232)))


def test_signatures_are_ed25519_over_label_and_message() -> None:
    # RFC 8032, section 7.1, test 1.
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = SigningKey(seed)
    assert key.public_key == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    signature = key.sign(b"label", b"message")
    assert signature == Ed25519PrivateKey.from_private_bytes(seed).sign(b"label\0message").hex()
    assert verify_signature(key.public_key, b"label", b"message", signature)
    assert not verify_signature(key.public_key, b"labe", b"l\0message", signature)
    assert not verify_signature(key.public_key, b"label", b"message!", signature)
    assert not verify_signature(SIGNER.public_key, b"label", b"message", signature)
    for malformed in ("", signature.upper(), signature[:-2], "zz" * 64):
        assert not verify_signature(key.public_key, b"label", b"message", malformed)
    assert not verify_signature("zz", b"label", b"message", signature)
    for label in (b"", b"with\0zero"):
        with pytest.raises(ValueError, match="label"):
            key.sign(label, b"message")


def test_a_signing_key_is_saved_once_and_loaded_back(tmp_path: Path) -> None:
    path = tmp_path / "signing.json"
    key = SigningKey.generate()
    key.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SigningKey.load(path).public_key == key.public_key
    with pytest.raises(SigningError, match="exists already"):
        key.save(path)
    with pytest.raises(SigningError, match="cannot be written"):
        key.save(tmp_path / "no" / "folder")


def test_a_signing_key_does_not_show_its_secret() -> None:
    secret = bytes(range(7, 39)).hex()
    assert secret not in repr(SIGNER) + str(SIGNER) + f"{SIGNER}"
    for leak in (pickle.dumps, copy.copy, lambda key: key.__getstate__()):
        with pytest.raises(TypeError, match="not pickled"):
            leak(SIGNER)
    with pytest.raises(AttributeError, match="immutable"):
        SIGNER.public_key = "00" * 32


def signing_key_file(**members: Any) -> str:
    content = {"agentmark_signing_key": 1, "public_key": SIGNER.public_key, "secret": bytes(range(7, 39)).hex()}
    return json.dumps(content | members)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("nonsense", "not an AgentMark signing key file"),
        ("[]", "not an AgentMark signing key file"),
        ('{"agentmark_key": 1, "secret": ""}', "not an AgentMark signing key file"),
        (signing_key_file(agentmark_signing_key=2), "agentmark_signing_key is not 1, the version"),
        (signing_key_file(agentmark_signing_key=True), "agentmark_signing_key is not 1, the version"),
        (signing_key_file(secret="00"), "64 lower-case hexadecimal digits"),
        (signing_key_file(secret=None), "64 lower-case hexadecimal digits"),
        (signing_key_file(secret="00" * 32), "repeats a few bytes; make a random one with `agentmark signing-key`"),
        (signing_key_file(secret=b"correct horse battery staple!!!!".hex()), "typed text"),
        (signing_key_file(public_key=STRANGER.public_key), "does not belong to its secret"),
        (signing_key_file(public_key=None), "does not belong to its secret"),
    ],
)
def test_a_damaged_signing_key_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "signing.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(SigningError, match=fault):
        SigningKey.load(path)


@pytest.mark.parametrize("member", ["agentmark_signing_key", "public_key", "secret"])
def test_a_secret_in_the_wrong_member_does_not_leak_through_the_error(tmp_path: Path, member: str) -> None:
    path = tmp_path / "signing.json"
    misplaced = bytes(range(60, 92)).hex()
    for value in (misplaced, misplaced.upper(), [misplaced], misplaced + "!"):
        path.write_text(signing_key_file(**{member: value}))
        path.chmod(0o600)
        with pytest.raises(SigningError) as caught:
            SigningKey.load(path)
        shown = f"{caught.value} {caught.value!r} {vars(caught.value)}"
        assert misplaced not in shown.lower()
        assert bytes(range(7, 39)).hex() not in shown


def test_a_secret_in_place_of_a_file_or_a_public_key_is_not_repeated() -> None:
    secret = bytes(range(60, 92)).hex()
    with pytest.raises(SigningError, match="64 hex digits, not shown") as caught:
        SigningKey.load(secret)
    assert secret not in repr(caught.value)
    with pytest.raises(SigningError, match="64 hex digits, not shown") as caught:
        check_public_key(secret.upper())
    assert secret not in repr(caught.value).lower()


def test_a_signing_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "signing.json"
    path.write_text(signing_key_file())
    path.chmod(0o640)
    with pytest.raises(SigningError, match="chmod 600"):
        SigningKey.load(path)
    path.chmod(0o600)
    assert SigningKey.load(path).public_key == SIGNER.public_key
    with pytest.raises(SigningError, match="cannot be read"):
        SigningKey.load(tmp_path / "none.json")
    with pytest.raises(SigningError):
        SigningKey.load(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(SigningError, match="not a regular file"):
        SigningKey.load(tmp_path / "pipe")


def test_a_public_key_is_told_from_a_typing_error() -> None:
    assert check_public_key(SIGNER.public_key) == SIGNER.public_key
    for text in ("", "abc", SIGNER.public_key.upper(), SIGNER.public_key[:-1], SIGNER.public_key + "00"):
        with pytest.raises(SigningError, match="is not a public key"):
            check_public_key(text)
