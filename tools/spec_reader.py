"""Sections 8 and 8.2 of docs/spec.md and 8a of docs/chain.md once more: what each line of a log is.

It shares no code with the package, nor its parser: JSON is read byte by byte, so that where a line ends too early shows
by itself. `tools/make_vectors.py` writes the tables of vectors/lines.json with it.
"""

import gzip
import re
import zlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

TOTAL = 2**32
LARGEST = 2**53 - 1
WHITE_SPACE = bytes([0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20])


class CutError(Exception):
    """The bytes end, and more of them could have made it JSON."""


class BrokenError(Exception):
    """Nothing that follows could make it JSON."""


class FaultError(Exception):
    """JSON that is no record; the field that is at fault."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


class Members(list[tuple[str, Any]]):
    """An object as its members, in their order, repeated ones too."""


class Fraction(str):
    """A number with a fraction or an exponent, as it is spelled."""

    __slots__ = ()


# RFC 8259 (JSON) and RFC 3629 (UTF-8)

NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
NUMBER_CUT = re.compile(rb"-?|-?(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?)")
ESCAPES = {b'"': '"', b"\\": "\\", b"/": "/", b"b": "\b", b"f": "\f", b"n": "\n", b"r": "\r", b"t": "\t"}
# The first byte of a character, and what its second may be; every further one is 80 to bf.
SEQUENCES = [
    (range(0xC2, 0xE0), 2, range(0x80, 0xC0)),
    (range(0xE0, 0xE1), 3, range(0xA0, 0xC0)),
    (range(0xE1, 0xED), 3, range(0x80, 0xC0)),
    (range(0xED, 0xEE), 3, range(0x80, 0xA0)),
    (range(0xEE, 0xF0), 3, range(0x80, 0xC0)),
    (range(0xF0, 0xF1), 4, range(0x90, 0xC0)),
    (range(0xF1, 0xF4), 4, range(0x80, 0xC0)),
    (range(0xF4, 0xF5), 4, range(0x80, 0x90)),
]


class Parser:
    """Reads one value. Surrogates that stand alone stay in the text, to be refused where text is wanted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def whole(self) -> Any:
        value = self.value()
        self.space()
        if self.at < len(self.data):
            raise BrokenError
        return value

    def space(self) -> None:
        while self.data[self.at : self.at + 1] in (b" ", b"\t", b"\r", b"\n"):
            self.at += 1

    def peek(self) -> bytes:
        """The next byte that is not white space."""
        self.space()
        return self.byte()

    def byte(self) -> bytes:
        if self.at >= len(self.data):
            raise CutError
        return self.data[self.at : self.at + 1]

    def take(self, sign: bytes) -> None:
        if self.peek() != sign:
            raise BrokenError
        self.at += 1

    def value(self) -> Any:
        first = self.peek()
        if first == b"{":
            return self.members()
        if first == b"[":
            return self.array()
        if first == b'"':
            return self.text()
        for word, meaning in ((b"true", True), (b"false", False), (b"null", None)):
            if first == word[:1]:
                return self.word(word, meaning)
        return self.number()

    def word(self, word: bytes, meaning: Any) -> Any:
        found = self.data[self.at : self.at + len(word)]
        if found == word:
            self.at += len(word)
            return meaning
        raise CutError if word.startswith(found) else BrokenError

    def number(self) -> Any:
        found = NUMBER.match(self.data, self.at)
        if found and (found.end() == len(self.data) or self.data[found.end() : found.end() + 1] in b" \t\r\n,]}"):
            self.at = found.end()
            is_integer = found[1] is None and found[2] is None
            # An integer of forty digits is beyond every limit, and so is one that begins with them.
            return int(found[0][:40]) if is_integer else Fraction(found[0].decode())
        raise CutError if NUMBER_CUT.fullmatch(self.data, self.at) else BrokenError

    def array(self) -> Any:
        self.take(b"[")
        items: list[Any] = []
        while self.peek() != b"]":
            if items:
                self.take(b",")
            items.append(self.value())
        self.at += 1
        return items

    def members(self) -> Members:
        self.take(b"{")
        members = Members()
        while self.peek() != b"}":
            if members:
                self.take(b",")
            if self.peek() != b'"':
                raise BrokenError
            name = self.text()
            self.take(b":")
            members.append((name, self.value()))
        self.at += 1
        return members

    def text(self) -> str:
        self.at += 1
        units: list[int] = []
        while (byte := self.byte()) != b'"':
            if byte == b"\\":
                self.at += 1
                units += self.escape()
            else:
                units += utf16_units(self.character())
        self.at += 1
        return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")

    def escape(self) -> list[int]:
        letter = self.byte()
        self.at += 1
        if letter != b"u":
            if letter not in ESCAPES:
                raise BrokenError
            return [ord(ESCAPES[letter])]
        digits = b""
        while len(digits) < 4:
            digit = self.byte()
            if digit not in b"0123456789abcdefABCDEF":
                raise BrokenError
            digits += digit
            self.at += 1
        return [int(digits, 16)]

    def character(self) -> str:
        first = self.byte()[0]
        self.at += 1
        if first < 0x80:
            if first < 0x20:
                raise BrokenError
            return chr(first)
        for firsts, length, seconds in SEQUENCES:
            if first in firsts:
                sequence = bytes([first])
                for place in range(1, length):
                    byte = self.byte()[0]
                    if byte not in (seconds if place == 1 else range(0x80, 0xC0)):
                        raise BrokenError
                    sequence += bytes([byte])
                    self.at += 1
                return sequence.decode()
        raise BrokenError


def utf16_units(character: str) -> list[int]:
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2)]


# Section 8: the step record


def is_text(value: Any) -> bool:
    return type(value) is str and not any(0xD800 <= ord(character) < 0xE000 for character in value)


def is_digits(value: Any, count: int) -> bool:
    return type(value) is str and re.fullmatch(f"[0-9a-f]{{{count}}}", value) is not None


def repeated_name(value: Any) -> str | None:
    if isinstance(value, Members):
        names = [name for name, _ in value]
        for name in names:
            if names.count(name) > 1:
                return name
    inside = [member for _, member in value] if isinstance(value, Members) else value
    if not isinstance(value, (Members, list)):
        return None
    return next((name for name in map(repeated_name, inside) if name is not None), None)


def is_context_value(value: Any, levels: int) -> bool:
    """Section 2: the values of a context, with so many levels left."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (Members, list)):
        members = [member for _, member in value] if isinstance(value, Members) else value
        named = not isinstance(value, Members) or all(is_text(name) for name, _ in value)
        return levels > 0 and named and all(is_context_value(member, levels - 1) for member in members)
    return is_text(value) or (type(value) is int and abs(value) <= LARGEST)


def is_weights(value: Any) -> bool:
    return (
        isinstance(value, Members)
        and 1 <= len(value) <= 4096
        and all(name and is_text(name) and type(weight) is int and weight >= 0 for name, weight in value)
    )


REQUIRED: dict[str, Callable[[Any], bool]] = {
    "agentmark": lambda value: type(value) is int and value == 1,
    "scheme": lambda value: type(value) is str and value in ("F", "R"),
    "key_id": lambda value: bool(value) and is_text(value),
    "payload_len": lambda value: type(value) is int and 0 <= value <= 4096,
    "session": lambda value: bool(value) and is_text(value),
    "step": lambda value: type(value) is int and 0 <= value <= LARGEST,
    "context": lambda value: is_digits(value, 64),
    "weights": lambda value: value is None or is_weights(value),
    "choice": lambda value: bool(value) and is_text(value),
    "marked": lambda value: isinstance(value, bool),
}
OPTIONAL: dict[str, Callable[[Any], bool]] = {
    "partial": lambda value: isinstance(value, bool),
    "reason": lambda value: bool(value) and is_text(value),
    "enforced": lambda value: isinstance(value, bool),
    "prev": lambda value: is_digits(value, 64),
    "raw_context": lambda value: isinstance(value, Members) and is_context_value(value, 64),
    "meta": lambda value: isinstance(value, Members) and is_context_value(value, 64),
}


def check_record(content: Any) -> dict[str, Any]:
    """The record as an object of Python's; FaultError with the field for what is none."""
    if not isinstance(content, Members):
        raise FaultError("record")
    name = repeated_name(content)
    if name is not None:
        raise FaultError(name)
    record = dict(content)
    for name, is_valid in REQUIRED.items():
        if name not in record or not is_valid(record[name]):
            raise FaultError(name)
    for name, value in record.items():
        if name not in REQUIRED and name not in OPTIONAL:
            raise FaultError(name)
        if name in OPTIONAL and value is not None and not OPTIONAL[name](value):
            raise FaultError(name)
    check_together(record)
    return {name: plain(value) for name, value in record.items() if name == "weights" or value is not None}


def check_together(record: dict[str, Any]) -> None:
    """What members demand of each other."""
    weights = None if record["weights"] is None else dict(record["weights"])
    if record.get("partial"):
        if weights is not None and sum(weights.values()) > TOTAL:
            raise FaultError("weights")
    elif weights is None:
        if record["marked"]:
            raise FaultError("weights")
    elif sum(weights.values()) != TOTAL:
        raise FaultError("weights")
    elif record["choice"] not in weights:
        raise FaultError("choice")
    if not record["marked"] and record.get("reason") is None:
        raise FaultError("reason")


def plain(value: Any) -> Any:
    if isinstance(value, Members):
        return {name: plain(member) for name, member in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


# Section 8a: checkpoints


def is_utc(value: Any) -> bool:
    pattern = r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?(Z|\+00:00)"
    found = re.fullmatch(pattern, value) if type(value) is str else None
    try:
        return found is not None and bool(datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return False


def is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LARGEST


def is_statement(value: Any) -> bool:
    return (
        isinstance(value, Members)
        and sorted(name for name, _ in value) == ["count", "head"]
        and is_count(dict(value)["count"])
        and is_digits(dict(value)["head"], 64)
    )


CHECKPOINT: dict[str, Callable[[Any], bool]] = {
    "agentmark_checkpoint": lambda value: type(value) is int and value == 1,
    "sessions": lambda value: (
        isinstance(value, Members)
        and all(session and is_text(session) and is_statement(stated) for session, stated in value)
    ),
    "total": is_count,
    "previous": lambda value: value is None or is_digits(value, 64),
    "time": is_utc,
    "public_key": lambda value: is_digits(value, 64),
    "signature": lambda value: is_digits(value, 128),
}


def is_checkpoint(content: Members) -> bool:
    members = dict(content)
    return (
        repeated_name(content) is None
        and members.keys() == CHECKPOINT.keys()
        and all(is_valid(members[name]) for name, is_valid in CHECKPOINT.items())
    )


# Section 8.2: logs of lines


def read_line(line: bytes, *, has_line_feed: bool) -> tuple[str, Any]:
    """What a line is, and the record or the field at fault, if it is a record or bad. White space is off already."""
    try:
        content = Parser(line).whole()
    except CutError:
        begins = line.startswith(b'{"agentmark') or b'{"agentmark'.startswith(line)
        if line.startswith(b"{") and (begins or not has_line_feed):
            return "cut short", None
    except BrokenError:
        pass
    else:
        names = [name for name, _ in content] if isinstance(content, Members) else []
        spelled = b'"agentmark_checkpoint"' in line
        if spelled and "agentmark_checkpoint" in names and "agentmark" not in names:
            return ("checkpoint" if is_checkpoint(content) else "bad checkpoint"), None
        try:
            return "record", check_record(content)
        except FaultError as fault:
            return "bad", fault.field
    return ("bad checkpoint", None) if line.startswith(b'{"agentmark_checkpoint"') else ("bad", "line")


def unpack(data: bytes) -> tuple[bytes, bool]:
    """What a file unpacks to, and whether it is damaged."""
    if data[:2] != b"\x1f\x8b":
        return data, False
    unpacked, rest = b"", data
    while rest.strip(b"\0"):
        member = zlib.decompressobj(wbits=31)
        try:
            # Byte by byte, so that nothing before a fault is lost.
            for place in range(len(rest)):
                unpacked += member.decompress(rest[place : place + 1])
                if member.eof:
                    break
        except zlib.error:
            return unpacked, True
        if not member.eof:
            return unpacked, True
        rest = rest[place + 1 :]
    assert unpacked == gzip.decompress(data)
    return unpacked, False


def read_log(data: bytes) -> list[tuple[int, str, Any]]:
    """The lines of a log, each as its number, what it is, and the record or the field at fault."""
    data, damaged = unpack(data)
    found = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip(WHITE_SPACE):
            found.append((number, *read_line(line.strip(WHITE_SPACE), has_line_feed=number < len(lines))))
    if damaged and not lines[-1]:
        found.append((len(lines), "cut short", None))
    return found
