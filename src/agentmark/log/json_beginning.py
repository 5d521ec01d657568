"""Whether bytes are the beginning of a JSON object: what a crash leaves of a line (spec, section 8.2).

A parser that gives up says where, but not whether more text could have helped: it stops at the first letter of `tru`
and of `garbage` alike. So the tokens are followed here, each to the end or to where the bytes end.
"""

import codecs
import re
from enum import Enum, auto

_SPACE = r"[ \t\r\n]*+"
_OPEN_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_WHOLE = r"-?(?:0|[1-9][0-9]*+)"
# A number ends where something else begins: 1 is no token of `1.`, which may become 1.5.
_NUMBER = rf"{_WHOLE}(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?=[ \t\r\n,\]}}]|\Z)"
_TOKEN = re.compile(
    rf'{_SPACE}(?:(?P<string>{_OPEN_STRING}")|(?P<scalar>{_NUMBER}|true|false|null)|(?P<sign>[][{{}}:,]))'
)

# What is left of a token that was cut; nothing, if the cut fell between two.
_CUT_STRING = rf"{_OPEN_STRING}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?"
_CUT_NUMBER = rf"-|{_WHOLE}\.|{_WHOLE}(?:\.[0-9]++)?[eE][+-]?"
_CUT_LITERAL = "tr?u?|fa?l?s?|nu?l?"
_CUT_NAME = re.compile(rf"{_SPACE}(?:{_CUT_STRING})?\Z")
_CUT_VALUE = re.compile(rf"{_SPACE}(?:{_CUT_STRING}|{_CUT_NUMBER}|{_CUT_LITERAL})?\Z")
_CUT_SIGN = re.compile(rf"{_SPACE}\Z")


class _Expected(Enum):
    """What may come next."""

    VALUE = auto()
    VALUE_OR_END = auto()
    NAME = auto()
    NAME_OR_END = auto()
    COLON = auto()
    COMMA_OR_END = auto()


_VALUES = frozenset({"string", "scalar", "{", "["})
_ALLOWED = {
    _Expected.VALUE: _VALUES,
    _Expected.VALUE_OR_END: _VALUES | {"]"},
    _Expected.NAME: frozenset({"string"}),
    _Expected.NAME_OR_END: frozenset({"string", "}"}),
    _Expected.COLON: frozenset({":"}),
    _Expected.COMMA_OR_END: frozenset({",", "}", "]"}),
}
_CUT = {
    _Expected.VALUE: _CUT_VALUE,
    _Expected.VALUE_OR_END: _CUT_VALUE,
    _Expected.NAME: _CUT_NAME,
    _Expected.NAME_OR_END: _CUT_NAME,
    _Expected.COLON: _CUT_SIGN,
    _Expected.COMMA_OR_END: _CUT_SIGN,
}
_OPENED = {"{": _Expected.NAME_OR_END, "[": _Expected.VALUE_OR_END}
_CLOSER = {"{": "}", "[": "]"}
_AFTER_COMMA = {"{": _Expected.NAME, "[": _Expected.VALUE}


def begins_json_object(data: bytes) -> bool:
    """True if something can be added to the end that makes this one JSON object in UTF-8, and something has to be.

    How deep it is nested, and whether a name repeats, does not matter: neither can be told before the end.
    """
    text = _decoded(data)
    if text is None or not text.startswith("{"):
        return False
    opened = ["{"]
    expected = _Expected.NAME_OR_END
    at = 1
    while token := _TOKEN.match(text, at):
        following = _following(token, expected, opened)
        if following is None:
            return False
        expected = following
        at = token.end()
    return _CUT[expected].match(text, at) is not None


def _decoded(data: bytes) -> str | None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    half = decoder.getstate()[0]
    if not half:
        return text
    # Half a character can stand in a string alone, and not in an escape: as an x can, which begins nothing.
    return text + "x" if _begins_character(half) else None


def _begins_character(half: bytes) -> bool:
    """Whether it can be completed. Python's decoder also waits for the rest of a lone surrogate."""
    endings = [fill * count for fill in (b"\x80", b"\xbf") for count in (1, 2, 3)]
    return any(half + ending == (half + ending).decode("utf-8", "ignore").encode() for ending in endings)


def _following(token: re.Match[str], expected: _Expected, opened: list[str]) -> _Expected | None:
    """What may follow this token; None if it may not stand here, or if nothing may follow it."""
    kind = token["sign"] or token.lastgroup
    if kind not in _ALLOWED[expected]:
        return None
    match kind:
        case "{" | "[":
            opened.append(kind)
            return _OPENED[kind]
        case "}" | "]":
            return _Expected.COMMA_OR_END if kind == _CLOSER[opened.pop()] and opened else None
        case ",":
            return _AFTER_COMMA[opened[-1]]
        case ":":
            return _Expected.VALUE
    is_name = expected in (_Expected.NAME, _Expected.NAME_OR_END)
    return _Expected.COLON if is_name else _Expected.COMMA_OR_END
