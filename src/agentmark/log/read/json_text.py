"""JSON that is larger than a line: arrays item by item, and documents that were cut short."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from agentmark.log.read.packing import MAX_HELD, MIB, too_large
from agentmark.record import RecordError

# Put where an object of a cut document ends too early. No export has such a member, and no record may.
CUT_MEMBER = "\x00cut short"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]|"', re.DOTALL)


class JsonFaultError(ValueError):
    """Text that is not JSON, is nested too deeply, or names a member twice."""


def parse(text: str) -> Any:
    """Parse one value. Names that appear twice are refused, as in records: the last would hide the first."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonFaultError(_fault(error)) from None


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RepeatedNameError
    return members


class _RepeatedNameError(ValueError):
    pass


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_names)


def _fault(error: Exception) -> str:
    if isinstance(error, _RepeatedNameError):
        return "names a member twice in one object"
    return "is nested too deeply" if isinstance(error, RecursionError) else "is not valid JSON"


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


class ArrayItems:
    """Items of a JSON array, one after the other. `cut` tells, at the end, whether the array was cut short."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        """The stream begins with the opening bracket."""
        self._stream = stream
        self._name = name
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._ended = False
        self._text = ""
        self._at = 0
        self.count = 0
        self.cut = False

    def __iter__(self) -> Iterator[Any]:
        self._more()
        self._at = self._text.index("[") + 1
        while self._skip_space():
            if self._text[self._at] == "]":
                self._expect_end()
                return
            try:
                item, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                hopeless = isinstance(error, RecursionError | _RepeatedNameError)
                if not hopeless and self._more():
                    continue
                if hopeless or not _is_open(self._text[self._at :]):
                    raise RecordError(f"{self._name} item {self.count + 1}", "item", _fault(error)) from None
                break
            # A number at the very end may go on.
            if end == len(self._text) and self._more():
                continue
            self.count += 1
            yield item
            self._at = end
        self.cut = True

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
        raise RecordError(self._name, "array", f"ends after item {self.count}, and something follows it")

    def _more(self) -> bool:
        """Read on, as much again as is left; what was used is let go."""
        if self._ended:
            return False
        left = self._text[self._at :]
        if len(left) > MAX_HELD:
            raise too_large(f"{self._name} item {self.count + 1}", "item")
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
