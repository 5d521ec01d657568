"""ECVRF-EDWARDS25519-SHA512-TAI (RFC 9381) on libsodium's group: the secret side, and faster checks.

Needs the package `pynacl`, which is imported when it is used (extra `public`). Scalars that are secret go through
libsodium alone, whose operations take the same time whatever they are.
"""

from functools import cache
from hashlib import sha512
from types import ModuleType
from typing import NoReturn

from agentmark.core import ecvrf
from agentmark.core.ecvrf import CHALLENGE_SIZE, PROOF_SIZE
from agentmark.core.edwards25519 import ORDER, POINT_SIZE, P
from agentmark.errors import MissingExtraError

SCALAR_SIZE = 32
# x = 0 has one spelling: these two are the other one.
_SECOND_SPELLINGS = frozenset([(y | 1 << 255).to_bytes(POINT_SIZE, "little") for y in (1, P - 1)])


class VrfSecret:
    """The secret scalar of a seed, the key that nonces come from, and the public key."""

    __slots__ = ("_nonce_key", "_scalar", "public_key")

    def __init__(self, seed: bytes) -> None:
        digest = sha512(seed).digest()
        scalar = bytearray(digest[:SCALAR_SIZE])
        scalar[0] &= 248
        scalar[31] = scalar[31] & 127 | 64
        # Reduced, since libsodium takes scalars below 2^255 as they are, and a sum of two of them modulo the order.
        self._scalar = _sodium().crypto_core_ed25519_scalar_reduce(bytes(scalar) + bytes(SCALAR_SIZE))
        self._nonce_key = digest[SCALAR_SIZE:]
        self.public_key: bytes = _sodium().crypto_scalarmult_ed25519_base_noclamp(self._scalar)

    def output(self, alpha: bytes) -> bytes:
        """beta at this input."""
        gamma = _sodium().crypto_scalarmult_ed25519_noclamp(self._scalar, encode_to_curve(self.public_key, alpha))
        return ecvrf.output_of_cleared(_clear_cofactor(gamma))

    def prove(self, alpha: bytes) -> bytes:
        """pi: what convinces others that beta is the output (RFC 9381, section 5.1)."""
        sodium = _sodium()
        base = encode_to_curve(self.public_key, alpha)
        gamma = sodium.crypto_scalarmult_ed25519_noclamp(self._scalar, base)
        # RFC 9381, section 5.4.2.2: a nonce of the secret and the input, so that none is used twice.
        nonce = sodium.crypto_core_ed25519_scalar_reduce(sha512(self._nonce_key + base).digest())
        points = [
            self.public_key,
            base,
            gamma,
            sodium.crypto_scalarmult_ed25519_base_noclamp(nonce),
            sodium.crypto_scalarmult_ed25519_noclamp(nonce, base),
        ]
        challenge = ecvrf.challenge_of(points)
        product = sodium.crypto_core_ed25519_scalar_mul(_as_scalar(challenge), self._scalar)
        return bytes(gamma + challenge + sodium.crypto_core_ed25519_scalar_add(nonce, product))

    def __reduce__(self) -> NoReturn:
        raise TypeError("VrfSecret is not pickled or copied: it is as secret as the key that it was made of")

    def __repr__(self) -> str:
        return f"VrfSecret(public_key={self.public_key.hex()!r})"


def proof_output(public_key: bytes, alpha: bytes, proof: bytes) -> bytes | None:
    """beta, if the proof holds; else None. The same answers as `core.ecvrf.proof_output`, some ten times as fast."""
    sodium = _sodium()
    if len(proof) != PROOF_SIZE:
        return None
    gamma, challenge = proof[:POINT_SIZE], proof[POINT_SIZE : POINT_SIZE + CHALLENGE_SIZE]
    response = proof[POINT_SIZE + CHALLENGE_SIZE :]
    if int.from_bytes(response, "little") >= ORDER or not has_prime_order(gamma):
        return None
    base, scalar = encode_to_curve(public_key, alpha), _as_scalar(challenge)
    if not any(response) or not any(scalar):
        # libsodium refuses to multiply by zero, which no honest proof ever does.
        return ecvrf.proof_output(public_key, alpha, proof)
    multiply = sodium.crypto_scalarmult_ed25519_noclamp
    u = sodium.crypto_core_ed25519_sub(
        sodium.crypto_scalarmult_ed25519_base_noclamp(response), multiply(scalar, public_key)
    )
    v = sodium.crypto_core_ed25519_sub(multiply(response, base), multiply(scalar, gamma))
    if ecvrf.challenge_of([public_key, base, gamma, u, v]) != challenge:
        return None
    return ecvrf.output_of_cleared(_clear_cofactor(gamma))


def has_prime_order(point: bytes) -> bool:
    """Whether these bytes are the one spelling of a point of the prime-order subgroup, and not of its identity."""
    return bool(_sodium().crypto_core_ed25519_is_valid_point(point)) and _is_canonical(point)


def encode_to_curve(public_key: bytes, alpha: bytes) -> bytes:
    """RFC 9381, section 5.4.1.1: try and increment."""
    for counter in range(256):
        candidate = sha512(ecvrf.SUITE + b"\x01" + public_key + alpha + bytes((counter, 0))).digest()[:POINT_SIZE]
        if _is_canonical(candidate):
            try:
                return _clear_cofactor(candidate)
            except _sodium_error():
                continue
    raise AssertionError("256 hashes in a row are no point: this does not happen")


def _clear_cofactor(point: bytes) -> bytes:
    """8 P by three doublings: libsodium adds all points of the curve, and multiplies those of prime order only."""
    add = _sodium().crypto_core_ed25519_add
    for _ in range(3):
        point = add(point, point)
    return point


def _is_canonical(point: bytes) -> bool:
    """libsodium also reads y beyond the field, and -0 for x = 0."""
    return int.from_bytes(point, "little") & (1 << 255) - 1 < P and point not in _SECOND_SPELLINGS


def _as_scalar(challenge: bytes) -> bytes:
    return challenge + bytes(SCALAR_SIZE - CHALLENGE_SIZE)


def _sodium_error() -> type[Exception]:
    from nacl.exceptions import RuntimeError as SodiumError

    return SodiumError


@cache
def _sodium() -> ModuleType:
    try:
        from nacl import bindings
    except ImportError:
        raise MissingExtraError("pynacl", "public") from None
    return bindings
