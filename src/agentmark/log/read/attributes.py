"""Looking for a record in what an export makes of span attributes: flat, nested, or JSON in a string."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any

from agentmark.core.strict_json import StrictJsonError
from agentmark.log.read.json_text import CUT_MEMBER, parse_row
from agentmark.record import RecordError, StepRecord

RECORD = "agentmark.record"
# JSON in a string is parsed while the row around it is held, and so on inwards: what such a string may take in memory.
MAX_TEXT = 16 << 20


class LongTextError(ValueError):
    """JSON in a string that is too long to be looked into."""

    fault = f"is, or stands in, a text of more than {MAX_TEXT >> 20} MiB"


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands where a record should, and cannot be one."""

    fault: str


def as_object(value: object) -> Mapping[str, Any]:
    """An object, or the object in a JSON string; an empty one for anything else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and "agentmark" in value and value.lstrip().startswith("{"):
        try:
            parsed = parse_text(value)
        except StrictJsonError:
            return {}
        return parsed if isinstance(parsed, dict) else {}
    return {}


def parse_text(text: str) -> Any:
    """Parse JSON that stands in a string."""
    if getsizeof(text) > MAX_TEXT:
        raise LongTextError
    return parse_row(text)


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def record_in(container: object) -> object:
    """What stands under `agentmark.record`, in one name or in two; None if nothing does."""
    members = as_object(container)
    raw = members.get(RECORD)
    return raw if raw is not None else as_object(members.get("agentmark")).get("record")


def to_record(raw: object, where: str) -> StepRecord:
    """A record as it was found: text as it was written, or an object if the exporting tool has parsed it."""
    if isinstance(raw, str):
        raw = _unquoted(raw)
        if getsizeof(raw) > MAX_TEXT:
            raise LongTextError
        if not raw.lstrip().startswith("{"):
            raise RecordError(where, RECORD, "is text, but no JSON object")
        try:
            return StepRecord.from_json(raw, where=where)
        except RecordError as error:
            if error.field != "line":
                raise
            fault = (
                f"is not valid JSON; it has {len(raw)} characters, and may have been cut by the tool that exported it"
            )
            raise RecordError(where, RECORD, fault) from None
    if isinstance(raw, dict):
        if CUT_MEMBER in raw:
            raise RecordError(where, RECORD, "is cut short")
        return StepRecord.from_dict(raw, where=where)
    if isinstance(raw, Broken):
        raise RecordError(where, RECORD, raw.fault)
    raise RecordError(where, RECORD, f"is {_kind(raw)}, neither text nor an object")


def _unquoted(text: str) -> str:
    """The text in a JSON string: Langfuse's clients encode metadata once more, texts too."""
    if text.startswith('"'):
        try:
            inner = parse_text(text)
        except StrictJsonError:
            return text
        return inner if isinstance(inner, str) else text
    return text


def _kind(value: object) -> str:
    kinds = {list: "a list", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), f"of type {type(value).__name__}")
