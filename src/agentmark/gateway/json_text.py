"""JSON as strangers send it: read to a limit in parts as well as in bytes."""

from typing import Any

import msgspec

# Members and elements of one text. Each takes some hundred bytes once it is read, and holds everyone up while it is:
# sixty megabytes of empty lists would be two gigabytes and four seconds.
MAX_PARTS = 500_000


class _Named(msgspec.Struct):
    """A request of which only the model's name is read."""

    model: str | None = None


_decode = msgspec.json.Decoder().decode
_decode_name = msgspec.json.Decoder(_Named).decode


class TooManyPartsError(ValueError):
    """A text of more parts than are read."""


def json_value(text: bytes) -> Any:
    """What a text says. A ValueError for what is no JSON."""
    # Between two parts stands a comma, and what is nested too deep is refused below. Those within strings count too:
    # prose of so many would be longer than models read.
    if text.count(b",") > MAX_PARTS:
        raise TooManyPartsError("JSON of more parts than are read")
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("no JSON") from None


def model_in(text: bytes) -> str | None:
    """The model that a request names, where the rest of it is not read: nothing else is made of it."""
    try:
        return _decode_name(text).model
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
