"""The one keyed function everything is drawn from (spec, section 3)."""

from hashlib import blake2b

DIGEST_SIZE = 32
BLOCK_SIZE = 64

# A label for every use of a key, so that no two uses ever see the same block.
KEY_ID = b"agentmark/1 key id"
DERIVE = b"agentmark/1 derive"
STEP_KEY = b"agentmark/1 step key"
F_STEP = b"agentmark/1 F step"
R_STEP = b"agentmark/1 R step"
R_CLOCK = b"agentmark/1 R clock"
ARGUMENTS = b"agentmark/1 arguments"

# The context digest is the one hash without a key: anyone may check it against the raw context.
CONTEXT = b"agentmark/1 context"


def prf(key: bytes, label: bytes, data: bytes = b"", *, size: int = BLOCK_SIZE) -> bytes:
    """Keyed BLAKE2b over label, a zero byte, data. Labels hold no zero byte, so the message is injective."""
    return blake2b(label + b"\0" + data, key=key, digest_size=size).digest()


def derive_step_key(shared_key: bytes, context_digest: bytes, payload_len: int) -> bytes:
    """K_t = H(K_sh || Context_t), section 4.2, with the context as its digest.

    The payload length is bound as well: a log relabelled with another length must not read as another identity.
    """
    return prf(shared_key, STEP_KEY, payload_len.to_bytes(4, "big") + context_digest, size=DIGEST_SIZE)


def step_key_state(shared_key: bytes, payload_len: int) -> blake2b:
    """The hash of a step key before its context: the same for all steps of one key and length."""
    return blake2b(STEP_KEY + b"\0" + payload_len.to_bytes(4, "big"), key=shared_key, digest_size=DIGEST_SIZE)
