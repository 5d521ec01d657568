"""The input of `agentmark embed`: weights, one JSON object a line. What is not understood is refused, never ignored."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from agentmark.core.distribution import first_repeated
from agentmark.core.strict_json import Pairs, StrictJsonError, parse_json_pairs
from agentmark.errors import SettingError

MEMBERS = ("weights", "context", "meta")
# Far beyond any list of behaviors with its context.
MAX_LINE_LEN = 1 << 24
# Payloads have up to 4096 bits; Python itself refuses to read decimal numbers that are much longer than these.
MAX_DIGITS = 4000


@dataclass(frozen=True, slots=True)
class WeightLine:
    """One decision to make."""

    number: int
    weights: list[tuple[str, Any]]
    context: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


def input_lines(stream: TextIO | None) -> Iterator[str]:
    """The lines of standard input, one at a time as they come."""
    if stream is None:
        raise SettingError("standard input", "is closed")
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_LINE_LEN + 1)
        except UnicodeDecodeError:
            raise SettingError("standard input", f"is not UTF-8, in line {number} or soon after it") from None
        if len(line) > MAX_LINE_LEN:
            raise SettingError(f"line {number}", f"is longer than {MAX_LINE_LEN:,} characters")
        if not line:
            return
        yield line


def parse_weight_lines(lines: Iterable[str]) -> Iterator[WeightLine]:
    """Bare weights, or an object with weights and what goes with them."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _parse(number, line)


def _parse(number: int, line: str) -> WeightLine:
    where = f"line {number}"
    try:
        # A fault of the weights is one of this line's list, which `--keep-going` passes over: it is found later.
        members = parse_json_pairs(line)
    except StrictJsonError as error:
        raise SettingError(where, f"is not valid JSON: {error}") from None
    if not isinstance(members, Pairs):
        raise SettingError(where, "is not a JSON object of weights")
    wrapped = [value for name, value in members if name == "weights" and isinstance(value, Pairs)]
    if not wrapped:
        return WeightLine(number, members)
    named = _plain(Pairs([(name, value) for name, value in members if name != "weights"]), where)
    unknown = [name for name in named if name not in MEMBERS]
    if unknown or len(wrapped) > 1:
        raise SettingError(where, f"{unknown[0] if unknown else 'weights'!r} is not expected; use {', '.join(MEMBERS)}")
    for name in ("context", "meta"):
        if named.get(name) is not None and not isinstance(named[name], dict):
            raise SettingError(where, f"{name} is not an object")
    return WeightLine(number, wrapped[0], named.get("context"), named.get("meta"))


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, Pairs):
        repeated = first_repeated([name for name, _ in value])
        if repeated is not None:
            raise SettingError(where, f"{repeated!r} appears twice in one object")
        return {name: _plain(item, where) for name, item in value}
    if isinstance(value, list):
        return [_plain(item, where) for item in value]
    return value


def parse_payload(text: str) -> int | str:
    """A number as people write it (42, 0042, 0x2a, 0b101010), or text."""
    if len(text) > MAX_DIGITS and text.isdigit():
        raise SettingError("payload", f"a number of {len(text):,} digits is longer than any payload")
    try:
        return int(text) if text.isdigit() else int(text, 0)
    except ValueError:
        return text
