"""Canonical JSON bytes: the subset of RFC 8785 without fractional numbers (spec, section 2)."""

from json.encoder import encode_basestring

from agentmark.core.errors import ContextError

# RFC 8785, 3.2.2.3 writes numbers as IEEE doubles; integers up to here are exact in one.
MAX_SAFE_INTEGER = (1 << 53) - 1

_LITERALS = {None: "null", True: "true", False: "false"}
TYPE_NAMES = "text, integers, booleans, null, lists and objects"


# Deeper than any context has reason to be, and shallow enough for every implementation's stack.
MAX_DEPTH = 64


def canonical_bytes(value: object, *, field: str = "$") -> bytes:
    """Encode a JSON value so that equal values give equal bytes, on any machine and in any language."""
    return _encode(value, field, MAX_DEPTH).encode("utf-8")


def _encode(value: object, field: str, depth: int) -> str:
    if isinstance(value, str):
        return _encode_text(value, field)
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise ContextError(field, f"integer {value} is beyond 2^53 - 1; pass it as text")
        return int.__repr__(value)
    if depth == 0:
        raise ContextError(field, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([_encode(item, f"{field}[{i}]", depth - 1) for i, item in enumerate(value)]) + "]"
    if isinstance(value, dict):
        return _encode_object(value, field, depth - 1)
    raise ContextError(field, f"{type(value).__name__} has no canonical form; use {TYPE_NAMES}")


def _encode_object(members: dict[object, object], field: str, depth: int) -> str:
    names: list[str] = []
    for name in members:
        if not isinstance(name, str):
            raise ContextError(field, f"field name {name!r} is not text")
        names.append(name)
    encoded = {name: _encode_text(name, field) for name in names}
    # RFC 8785, 3.2.3: names are sorted by UTF-16 code units, which differs from code points above U+FFFF.
    names.sort(key=None if all(map(str.isascii, names)) else _utf16)
    values = [_encode(members[name], f"{field}.{name}", depth) for name in names]
    return "{" + ",".join([f"{encoded[name]}:{value}" for name, value in zip(names, values, strict=True)]) + "}"


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _encode_text(text: str, field: str) -> str:
    if not is_unicode(text):
        raise ContextError(field, "text holds a lone surrogate, which UTF-8 cannot carry")
    # RFC 8785, 3.2.2.2: the escapes of Python's encoder without ensure_ascii are exactly these.
    return encode_basestring(text)


def is_unicode(text: str) -> bool:
    """True when the text has a UTF-8 form: it holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
