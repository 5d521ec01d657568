"""Checking proofs of ECVRF-EDWARDS25519-SHA512-TAI (RFC 9381, section 5): what a key pair must have said.

A verifiable random function has one output for each input under a public key. Only the holder of the secret can compute
it, and with the proof anyone can check it. Everything here is public, so it needs no library.
"""

from hashlib import sha512

from agentmark.core.edwards25519 import (
    BASE,
    ORDER,
    POINT_SIZE,
    Point,
    clear_cofactor,
    decode_point,
    encode_point,
    has_prime_order,
    multiply_sum,
    negate,
)

SUITE = b"\x03"
CHALLENGE_SIZE = 16
PROOF_SIZE = POINT_SIZE + CHALLENGE_SIZE + 32
OUTPUT_SIZE = 64


def is_public_key(public_key: bytes) -> bool:
    """Whether this is a point of the prime-order subgroup, and not zero: stricter than the RFC's key validation.

    A key of mixed order could have two outputs at one input, and one of small order an output that everyone knows.
    """
    point = decode_point(public_key)
    return point is not None and has_prime_order(point)


def encode_to_curve(public_key: bytes, alpha: bytes) -> Point:
    """RFC 9381, section 5.4.1.1: try and increment."""
    for counter in range(256):
        digest = sha512(SUITE + b"\x01" + public_key + alpha + bytes((counter, 0))).digest()
        point = decode_point(digest[:POINT_SIZE])
        if point is not None:
            # The identity comes out with probability 2^-252, and no check below could then fail.
            return clear_cofactor(point)
    raise AssertionError("256 hashes in a row are no point: this does not happen")


def proof_output(public_key: bytes, alpha: bytes, proof: bytes) -> bytes | None:
    """beta, if the proof holds for this key and input; else None (RFC 9381, section 5.3).

    `public_key` is one for which `is_public_key` holds. A Gamma outside the prime-order subgroup is refused as well.
    """
    if len(proof) != PROOF_SIZE:
        return None
    gamma_text = proof[:POINT_SIZE]
    challenge = proof[POINT_SIZE : POINT_SIZE + CHALLENGE_SIZE]
    response = int.from_bytes(proof[POINT_SIZE + CHALLENGE_SIZE :], "little")
    gamma, key = decode_point(gamma_text), decode_point(public_key)
    if gamma is None or key is None or response >= ORDER or not has_prime_order(gamma):
        return None
    base = encode_to_curve(public_key, alpha)
    # U = s B - c Y and V = s H - c Gamma.
    scalar = int.from_bytes(challenge, "little")
    u = multiply_sum((response, BASE), (scalar, negate(key)))
    v = multiply_sum((response, base), (scalar, negate(gamma)))
    points = [public_key, encode_point(base), gamma_text, encode_point(u), encode_point(v)]
    if challenge_of(points) != challenge:
        return None
    return output_of(gamma)


def challenge_of(points: list[bytes]) -> bytes:
    """RFC 9381, section 5.4.3."""
    return sha512(SUITE + b"\x02" + b"".join(points) + b"\x00").digest()[:CHALLENGE_SIZE]


def output_of(gamma: Point) -> bytes:
    """beta of a proof's Gamma (RFC 9381, section 5.2)."""
    return output_of_cleared(encode_point(clear_cofactor(gamma)))


def output_of_cleared(cleared: bytes) -> bytes:
    """beta, from 8 Gamma as bytes."""
    return sha512(SUITE + b"\x03" + cleared + b"\x00").digest()
