"""The payload m: an identity as `payload_len` bits, m_1 first and most significant (spec, section 5)."""

from collections.abc import Sequence

from agentmark.core.canonical import is_unicode
from agentmark.core.errors import PayloadError

MAX_PAYLOAD_LEN = 4096

PayloadLike = int | bytes | str | Sequence[int] | None


def check_payload_len(payload_len: int) -> int:
    if isinstance(payload_len, bool) or not isinstance(payload_len, int):
        raise PayloadError(f"payload_len {payload_len!r} is not an integer")
    if not 0 <= payload_len <= MAX_PAYLOAD_LEN:
        raise PayloadError(f"payload_len {payload_len} outside 0..{MAX_PAYLOAD_LEN}")
    return payload_len


def payload_to_int(payload: PayloadLike, payload_len: int | None = None) -> tuple[int, int]:
    """The payload as (integer, length in bits).

    An int needs `payload_len`. Bytes and bits have a length of their own. Text is its UTF-8 bytes, followed by zero
    bits up to `payload_len`. None carries nothing (length 0): the mark then says "ours" and no more.
    """
    if payload_len is not None:
        check_payload_len(payload_len)
    if payload is None:
        return _of_length(0, 0, payload_len, "no payload")
    if isinstance(payload, bool):
        raise PayloadError(f"{payload!r} is neither a number, bytes, bits nor text")
    if isinstance(payload, int):
        return _from_int(payload, payload_len)
    if isinstance(payload, str):
        return _from_text(payload, payload_len)
    if isinstance(payload, (bytes, bytearray)):
        return _of_length(int.from_bytes(payload, "big"), 8 * len(payload), payload_len, "bytes")
    if isinstance(payload, Sequence):
        return _from_bits(payload, payload_len)
    raise PayloadError(f"{payload!r} is neither a number, bytes, bits nor text")


def payload_to_text(payload: int, payload_len: int) -> str | None:
    """The text that `payload_to_int` would have turned into this payload, if it is printable text."""
    if payload_len == 0 or payload_len % 8:
        return None
    data = payload.to_bytes(payload_len // 8, "big").rstrip(b"\0")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text and text.isprintable() else None


def number_in_words(number: int) -> str:
    """A number for a message. Python refuses to write out one of thousands of digits, and nobody would read it."""
    return str(number) if number.bit_length() <= 64 else f"a number of {number.bit_length()} bits"


def _from_int(payload: int, payload_len: int | None) -> tuple[int, int]:
    if payload_len is None:
        raise PayloadError("a number needs payload_len, its length in bits")
    if payload < 0 or payload.bit_length() > payload_len:
        raise PayloadError(f"{number_in_words(payload)} does not fit {payload_len} bits")
    return payload, payload_len


def _from_text(text: str, payload_len: int | None) -> tuple[int, int]:
    if not text or "\0" in text:
        raise PayloadError(f"text {text!r} is empty or holds a zero byte")
    if not is_unicode(text):
        raise PayloadError("text holds a lone surrogate, which has no bytes")
    data = text.encode("utf-8")
    length = 8 * len(data)
    if payload_len is None:
        payload_len = check_payload_len(length)
    if length > payload_len:
        raise PayloadError(
            f"text {text!r} needs {length} bits and payload_len is {payload_len}: "
            f"raise payload_len to {length}, or issue the name a short number with a Registry"
        )
    return int.from_bytes(data, "big") << (payload_len - length), payload_len


def _from_bits(bits: Sequence[object], payload_len: int | None) -> tuple[int, int]:
    value = 0
    for bit in bits:
        if not isinstance(bit, int) or bit not in (0, 1):
            raise PayloadError(f"bit {bit!r} is neither 0 nor 1")
        value = value << 1 | int(bit)
    return _of_length(value, len(bits), payload_len, "bits")


def _of_length(value: int, length: int, payload_len: int | None, kind: str) -> tuple[int, int]:
    check_payload_len(length)
    if payload_len is not None and payload_len != length:
        raise PayloadError(f"{kind} of length {length} do not fill payload_len {payload_len}")
    return value, length
