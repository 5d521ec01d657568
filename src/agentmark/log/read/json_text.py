"""JSON that is larger than a line: arrays item by item, and documents that were cut short."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from agentmark.core.strict_json import NotJsonError, StrictJsonError, parse_json, parse_json_at
from agentmark.log.read.limits import MIB
from agentmark.log.read.meter import Meter
from agentmark.record import RecordError

# Put where an object of a cut document ends too early. No export has such a member, and no record may.
CUT_MEMBER = "\x00cut short"

_BRACKET_OR_QUOTE = re.compile(r'["\[\]{}]')
_SPACE = re.compile(r"\s*")
_BETWEEN_ITEMS = re.compile(r"[ \t\r\n,]*")
_OPENING = {"}": "{", "]": "["}


def parse_row(text: str) -> Any:
    """Parse what another tool wrote. Python's tools write NaN; where it stands in a record, the record is refused."""
    return parse_json(text, allow_constants=True)


def decode_utf8(data: bytes, where: str, *, cut: bool = False) -> str:
    try:
        # A cut may fall inside a character.
        return data.decode("utf-8", "ignore" if cut else "strict")
    except UnicodeDecodeError:
        raise RecordError(where, "text", "is not UTF-8") from None


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document, and whether it was cut short: then it is closed after its last whole entry."""

    content: Any
    cut: bool


def parse_document(data: bytes, where: str, *, damaged: bool = False) -> Document:
    """Parse a document, whole or cut short. `damaged`: it is known that something is missing at its end."""
    text = decode_utf8(data, where, cut=damaged)
    try:
        return Document(parse_row(text), cut=False)
    except StrictJsonError as error:
        rest = completed(text)
        if rest is None:
            raise RecordError(where, "document", error.fault) from None
        try:
            return Document(parse_row(rest), cut=True)
        except StrictJsonError:
            raise RecordError(where, "document", error.fault) from None


def completed(text: str) -> str | None:
    """A document that was cut short, closed after its last whole item; None if it was not cut, or nothing is left.

    Objects that are closed too early get a member that says so. What is inside a whole item is not touched.
    """
    brackets = _Brackets()
    end: int | None = None
    for at, token in _tokens(text):
        if token in "{[":
            brackets.open(token)
        elif token in "}]":
            if not brackets.close(_OPENING[token]):
                return None
            if token == "}" and brackets.innermost == "[":
                end = at + 1
                brackets.remember()
        else:
            # A string that does not end.
            break
    else:
        if brackets.innermost is None:
            return None
    if end is None:
        return None
    closers = {"[": "]", "{": f",{json.dumps(CUT_MEMBER)}:true}}"}
    return text[:end] + "".join([closers[bracket] for bracket in reversed(brackets.remembered())])


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """The brackets of a JSON text that stand outside its strings, with their places; a quote for a string that does
    not end. Holds nothing but its place: a text of any length costs its length in time, and no memory.
    """
    at = 0
    while (found := _BRACKET_OR_QUOTE.search(text, at)) is not None:
        at = found.start()
        token = text[at]
        if token != '"':
            yield at, token
        elif (at := _end_of_string(text, at + 1)) < 0:
            yield found.start(), '"'
            return
        at += 1


def _end_of_string(text: str, start: int) -> int:
    """Where the quote stands that ends the string whose text begins here; -1 if none does."""
    quote = text.find('"', start)
    while quote >= 0:
        # A quote ends the string unless the backslashes before it are odd in number. Each of them is looked at once.
        before = quote
        while before > start and text[before - 1] == "\\":
            before -= 1
        if (quote - before) % 2 == 0:
            break
        start = quote + 1
        quote = text.find('"', start)
    return quote


class _Brackets:
    """The brackets that are open, a byte each, and those that were open at a place to come back to."""

    def __init__(self) -> None:
        self._open = bytearray()
        # Of those that were open there, so many still are; the others are here, the innermost first.
        self._kept = 0
        self._closed_since = bytearray()

    @property
    def innermost(self) -> str | None:
        return chr(self._open[-1]) if self._open else None

    def open(self, bracket: str) -> None:
        self._open.append(ord(bracket))

    def close(self, bracket: str) -> bool:
        """False if it is not this one that is open."""
        if self.innermost != bracket:
            return False
        if len(self._open) == self._kept:
            self._kept -= 1
            self._closed_since.append(ord(bracket))
        self._open.pop()
        return True

    def remember(self) -> None:
        self._kept = len(self._open)
        self._closed_since.clear()

    def remembered(self) -> str:
        """To copy them at every item would cost the square of the depth."""
        return (self._open[: self._kept] + self._closed_since[::-1]).decode("ascii")


class CutShortError(EOFError):
    """An array ends here, too early; its items before that were read."""


def array_items(stream: IO[bytes], name: str, meter: Meter) -> Iterator[Any]:
    """The items of a JSON array, one after the other. The stream begins with the opening bracket."""
    yield from _ArrayReader(stream, name, meter)


class _ArrayReader:
    """Holds as much of the text as one item needs."""

    def __init__(self, stream: IO[bytes], name: str, meter: Meter) -> None:
        self._stream = stream
        self._name = name
        self._meter = meter
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._ended = False
        self._text = ""
        self._at = 0
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        self._more()
        self._at = self._text.index("[") + 1
        while self._skip(_BETWEEN_ITEMS):
            if self._text[self._at] == "]":
                self._expect_end()
                return
            try:
                item, end = parse_json_at(self._text, self._at, allow_constants=True)
            except StrictJsonError as error:
                # Text that is not JSON may be so because more of it has to be read.
                may_go_on = isinstance(error, NotJsonError)
                if may_go_on and self._more():
                    continue
                if may_go_on and _is_open(self._text[self._at :]):
                    break
                raise RecordError(f"{self._name} item {self._count + 1}", "item", error.fault) from None
            # A number at the very end may go on.
            if end == len(self._text) and self._more():
                continue
            self._count += 1
            self._meter.count_row()
            yield item
            self._at = end
        raise CutShortError

    def _skip(self, ignored: re.Pattern[str]) -> bool:
        """Come to the next thing that is not ignored; False if the text ends before."""
        while True:
            skipped = ignored.match(self._text, self._at)
            assert skipped is not None
            self._at = skipped.end()
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _expect_end(self) -> None:
        self._at += 1
        if self._skip(_SPACE):
            raise RecordError(self._name, "array", f"ends after item {self._count}, and something follows it")

    def _more(self) -> bool:
        """Read on, as much again as is left; what was used is let go."""
        if self._ended:
            return False
        self._text, self._at = self._text[self._at :], 0
        left, most = len(self._text), self._meter.limits.held_bytes
        where = f"{self._name} item {self._count + 1}"
        self._meter.hold(left + 1, where, "item")
        data = self._stream.read(min(max(MIB, left), most - left))
        self._ended = not data
        self._meter.count_text(data)
        try:
            self._text += self._utf8.decode(data)
        except UnicodeDecodeError:
            raise RecordError(self._name, "document", "is not UTF-8") from None
        if left:
            # An item goes on: it is tried again with what was read, all of which may be its own.
            self._meter.check(self._text, where, "item")
        return not self._ended


def _is_open(text: str) -> bool:
    """Whether the text ends inside a string or a bracket."""
    depth = 0
    for _, token in _tokens(text):
        if token == '"':
            return True
        depth += 1 if token in "{[" else -1
    return depth > 0 or not text.rstrip().endswith(("}", "]"))
