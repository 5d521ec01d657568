"""Proofs as RFC 9381 has them, and everything near one refused."""

from random import Random

import pytest
from vrf_examples import EXAMPLES, SMALL_ORDER, Example

from agentmark.core import edwards25519 as ed
from agentmark.core.ecvrf import PROOF_SIZE, is_public_key, proof_output


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_rfc_hold(example: Example) -> None:
    assert is_public_key(example.public_key)
    assert proof_output(example.public_key, example.alpha, example.proof) == example.output


def test_a_flipped_bit_anywhere_in_a_proof_is_refused() -> None:
    key, alpha, proof = EXAMPLES[1].public_key, EXAMPLES[1].alpha, EXAMPLES[1].proof
    random = Random(3)
    for place in random.sample(range(8 * PROOF_SIZE), 60):
        altered = bytearray(proof)
        altered[place // 8] ^= 1 << place % 8
        assert proof_output(key, alpha, bytes(altered)) is None


def test_a_proof_is_of_one_input_and_one_key() -> None:
    first, second = EXAMPLES[1], EXAMPLES[2]
    assert proof_output(first.public_key, second.alpha, first.proof) is None
    assert proof_output(first.public_key, first.alpha + b"\0", first.proof) is None
    assert proof_output(second.public_key, first.alpha, first.proof) is None


def test_a_response_beyond_the_order_is_refused() -> None:
    """The same number modulo the order would check, and give a second proof of one output."""
    example = EXAMPLES[0]
    response = int.from_bytes(example.proof[48:], "little") + ed.ORDER
    assert proof_output(example.public_key, example.alpha, example.proof[:48] + response.to_bytes(32, "little")) is None


def test_a_gamma_of_mixed_order_is_refused() -> None:
    """Such a Gamma has the same 8 Gamma, and so the same output: not the key's own proof, though."""
    example = EXAMPLES[0]
    gamma, small = ed.decode_point(example.proof[:32]), ed.decode_point(SMALL_ORDER[4])
    assert gamma is not None
    assert small is not None
    mixed = ed.encode_point(ed.add(gamma, small))
    assert proof_output(example.public_key, example.alpha, mixed + example.proof[32:]) is None


@pytest.mark.parametrize("text", SMALL_ORDER)
def test_keys_and_gammas_of_small_order_are_refused(text: bytes) -> None:
    example = EXAMPLES[0]
    assert not is_public_key(text)
    assert proof_output(example.public_key, example.alpha, text + example.proof[32:]) is None


@pytest.mark.parametrize("size", [0, 1, PROOF_SIZE - 1, PROOF_SIZE + 1, 2 * PROOF_SIZE])
def test_a_proof_of_another_size_is_refused(size: int) -> None:
    example = EXAMPLES[0]
    assert proof_output(example.public_key, example.alpha, (example.proof * 2)[:size]) is None


def test_a_key_of_mixed_order_is_none() -> None:
    small = ed.decode_point(SMALL_ORDER[5])
    assert small is not None
    assert not is_public_key(ed.encode_point(ed.add(ed.BASE, small)))
