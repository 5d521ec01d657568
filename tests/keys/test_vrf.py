"""The secret side on libsodium: the RFC's proofs, and the same answers as the plain check."""

import copy
import pickle
from random import Random

import pytest
from vrf_examples import EXAMPLES, SMALL_ORDER, Example

from agentmark.core import ecvrf
from agentmark.core import edwards25519 as ed
from agentmark.core.ecvrf import PROOF_SIZE

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.keys import public, vrf
from agentmark.keys.vrf import VrfSecret


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_rfc_come_out(example: Example) -> None:
    secret = VrfSecret(example.seed)
    assert secret.public_key == example.public_key
    assert secret.prove(example.alpha) == example.proof
    assert secret.output(example.alpha) == example.output
    assert vrf.proof_output(example.public_key, example.alpha, example.proof) == example.output


def cross_check(random: Random) -> bool:
    """One random proof, sound or damaged, put to both; whether it held."""
    secret = VrfSecret(random.randbytes(32))
    alpha = random.randbytes(random.randrange(100))
    proof = bytearray(secret.prove(alpha))
    key = secret.public_key
    match random.randrange(6):
        case 0:
            proof[random.randrange(PROOF_SIZE)] ^= 1 << random.randrange(8)
        case 1:
            alpha += b"\0"
        case 2:
            key = VrfSecret(random.randbytes(32)).public_key
        case 3:
            start = random.choice([0, 32, 48])
            proof[start : start + 32] = random.randbytes(32)
            del proof[PROOF_SIZE:]
        case _:
            assert ecvrf.proof_output(key, alpha, bytes(proof)) == secret.output(alpha)
    found = vrf.proof_output(key, alpha, bytes(proof))
    assert found == ecvrf.proof_output(key, alpha, bytes(proof))
    return found is not None


def test_both_checks_say_the_same() -> None:
    random = Random(4)
    held = [cross_check(random) for _ in range(60)]
    assert any(held)
    assert not all(held)


@pytest.mark.slow
def test_both_checks_say_the_same_of_ten_thousand_proofs() -> None:
    random = Random(5)
    held = sum([cross_check(random) for _ in range(10_000)])
    # A third is left as it is; one damaged proof in 2^100 holds.
    assert 3000 < held < 3700


@pytest.mark.parametrize("gamma", [*SMALL_ORDER, ed.P.to_bytes(32, "little"), (1 | 1 << 255).to_bytes(32, "little")])
def test_gammas_of_small_order_and_second_spellings_are_refused(gamma: bytes) -> None:
    example = EXAMPLES[0]
    assert not vrf.has_prime_order(gamma)
    assert not public.is_public_key(gamma)
    assert vrf.proof_output(example.public_key, example.alpha, gamma + example.proof[32:]) is None


def test_a_flipped_bit_anywhere_in_a_proof_or_a_key_is_refused() -> None:
    example = EXAMPLES[1]
    for place in range(8 * PROOF_SIZE):
        proof = bytearray(example.proof)
        proof[place // 8] ^= 1 << place % 8
        assert vrf.proof_output(example.public_key, example.alpha, bytes(proof)) is None
    for place in range(256):
        key = bytearray(example.public_key)
        key[place // 8] ^= 1 << place % 8
        point = bytes(key)
        assert not public.is_public_key(point) or vrf.proof_output(point, example.alpha, example.proof) is None


def test_both_say_the_same_of_public_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(6)
    small = [ed.decode_point(text) for text in SMALL_ORDER]
    texts = [b"", b"\0" * 31, b"\0" * 33, *SMALL_ORDER, *[random.randbytes(32) for _ in range(40)]]
    for point in small:
        assert point is not None
        texts.append(ed.encode_point(ed.add(ed.BASE, point)))
    texts += [VrfSecret(random.randbytes(32)).public_key for _ in range(5)]
    with_sodium = [public.is_public_key(text) for text in texts]
    monkeypatch.setattr("agentmark.keys.public.find_spec", lambda name: None)
    assert [public.is_public_key(text) for text in texts] == with_sodium
    assert all(with_sodium[-5:])
    assert not any(with_sodium[:11])


@pytest.mark.parametrize("numbers", [bytes(48), bytes(16) + b"\1" + bytes(31), b"\1" + bytes(47)])
def test_proofs_with_zeros_get_the_same_answer(numbers: bytes) -> None:
    """libsodium does not multiply by zero."""
    example = EXAMPLES[0]
    proof = example.proof[:32] + numbers
    assert vrf.proof_output(example.public_key, example.alpha, proof) is None
    assert ecvrf.proof_output(example.public_key, example.alpha, proof) is None


def test_a_secret_does_not_show() -> None:
    example = EXAMPLES[0]
    secret = VrfSecret(example.seed)
    assert example.seed.hex() not in repr(secret)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            take(secret)
