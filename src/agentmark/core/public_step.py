"""Step keys and key ids of public mode: what a verifiable random function is asked, and what becomes of its answer.

Inputs and outputs carry labels of their own, as every use of a key does. After the step key nothing differs.
"""

from agentmark.core.prf import DIGEST_SIZE, KEY_ID, STEP_KEY, prf

VRF_SEED = b"agentmark/1 vrf seed"
VRF_STEP_KEY = b"agentmark/1 vrf step key"
DERIVE_MARKING = b"agentmark/1 derive marking"
DISCLOSURE = b"agentmark/1 disclosure"

# 128 bits, so that nobody finds a second key pair with the id of a first.
PUBLIC_KEY_ID_SIZE = 16


def key_id_input() -> bytes:
    return KEY_ID + b"\0"


def step_input(context_digest: bytes, payload_len: int) -> bytes:
    """What the function is asked at a step: the message of a symmetric step key."""
    return STEP_KEY + b"\0" + payload_len.to_bytes(4, "big") + context_digest


def disclosure_input(canonical: bytes) -> bytes:
    """What signs a disclosure: its proof of this input."""
    return DISCLOSURE + b"\0" + canonical


def key_id_of(output: bytes) -> str:
    return prf(output, KEY_ID, size=PUBLIC_KEY_ID_SIZE).hex()


def step_key_of(output: bytes) -> bytes:
    return prf(output, VRF_STEP_KEY, size=DIGEST_SIZE)
