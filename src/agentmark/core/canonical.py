"""Canonical JSON bytes: the subset of RFC 8785 without fractional numbers (spec, section 2)."""

import json

from agentmark.core.errors import ContextError

# RFC 8785, 3.2.2.3 writes numbers as IEEE doubles; integers up to here are exact in one.
MAX_SAFE_INTEGER = (1 << 53) - 1

TYPE_NAMES = "text, integers, booleans, null, lists and objects"


def canonical_bytes(value: object, *, field: str = "$") -> bytes:
    """Encode a JSON value so that equal values give equal bytes, on any machine and in any language."""
    return _encode(value, field).encode("utf-8")


def _encode(value: object, field: str) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _encode_text(value, field)
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise ContextError(field, f"integer {value} is beyond 2^53 - 1; pass it as text")
        return int.__repr__(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_encode(item, f"{field}[{i}]") for i, item in enumerate(value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_encode_members(value, field)) + "}"
    raise ContextError(field, f"{type(value).__name__} has no canonical form; use {TYPE_NAMES}")


def _encode_members(members: dict[object, object], field: str) -> list[str]:
    for name in members:
        if not isinstance(name, str):
            raise ContextError(field, f"field name {name!r} is not text")
    encoded = {name: _encode_text(name, field) for name in members if isinstance(name, str)}
    # RFC 8785, 3.2.3: names are sorted by UTF-16 code units, which differs from code points above U+FFFF.
    names = sorted(encoded, key=lambda name: name.encode("utf-16-be"))
    return [f"{encoded[name]}:{_encode(members[name], f'{field}.{name}')}" for name in names]


def _encode_text(text: str, field: str) -> str:
    if not is_unicode(text):
        raise ContextError(field, "text holds a lone surrogate, which UTF-8 cannot carry")
    # RFC 8785, 3.2.2.2: Python's escapes without ensure_ascii are exactly these.
    return json.dumps(text, ensure_ascii=False)


def is_unicode(text: str) -> bool:
    """True when the text has a UTF-8 form: it holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
