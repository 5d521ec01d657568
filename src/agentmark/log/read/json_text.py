"""JSON that is larger than a line: arrays item by item, and documents that were cut short."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from agentmark.core.strict_json import NotJsonError, StrictJsonError, parse_json, parse_json_at
from agentmark.log.read.packing import MAX_HELD, MIB, too_large
from agentmark.record import RecordError

# Put where an object of a cut document ends too early. No export has such a member, and no record may.
CUT_MEMBER = "\x00cut short"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]|"', re.DOTALL)


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
    open_brackets: list[str] = []
    end: int | None = None
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in ("{", "["):
            open_brackets.append(bracket)
        elif bracket in ("}", "]"):
            if not open_brackets or open_brackets.pop() != {"}": "{", "]": "["}[bracket]:
                return None
            if bracket == "}" and open_brackets and open_brackets[-1] == "[":
                end = token.end()
        elif bracket == '"':
            break
    else:
        if not open_brackets:
            return None
    if end is None:
        return None
    closers = {"[": "]", "{": f",{json.dumps(CUT_MEMBER)}:true}}"}
    return text[:end] + "".join(closers[bracket] for bracket in reversed(_open_at(text, end)))


def _open_at(text: str, end: int) -> list[str]:
    """The brackets that are open there. To keep them at every item would cost the square of the depth."""
    open_brackets: list[str] = []
    for token in _TOKEN.finditer(text, 0, end):
        if token[0] in ("{", "["):
            open_brackets.append(token[0])
        elif token[0] in ("}", "]"):
            open_brackets.pop()
    return open_brackets


class CutShortError(EOFError):
    """An array ends here, too early; its items before that were read."""


def array_items(stream: IO[bytes], name: str) -> Iterator[Any]:
    """The items of a JSON array, one after the other. The stream begins with the opening bracket."""
    yield from _ArrayReader(stream, name)


class _ArrayReader:
    """Holds as much of the text as one item needs."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._ended = False
        self._text = ""
        self._at = 0
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        self._more()
        self._at = self._text.index("[") + 1
        while self._skip_space():
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
            yield item
            self._at = end
        raise CutShortError

    def _skip_space(self) -> bool:
        """Come to the next item or the closing bracket; False if the text ends before."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n,":
                self._at += 1
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _expect_end(self) -> None:
        self._at += 1
        while not self._text[self._at :].strip():
            if not self._more():
                return
        raise RecordError(self._name, "array", f"ends after item {self._count}, and something follows it")

    def _more(self) -> bool:
        """Read on, as much again as is left; what was used is let go."""
        if self._ended:
            return False
        left = self._text[self._at :]
        if len(left) > MAX_HELD:
            raise too_large(f"{self._name} item {self._count + 1}", "item")
        data = self._stream.read(max(MIB, len(left)))
        self._ended = not data
        try:
            self._text, self._at = left + self._utf8.decode(data), 0
        except UnicodeDecodeError:
            raise RecordError(self._name, "document", "is not UTF-8") from None
        return not self._ended


def _is_open(text: str) -> bool:
    """Whether the text ends inside a string or a bracket."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif token[0] == '"':
            return True
    return depth > 0 or not text.rstrip().endswith(("}", "]"))
