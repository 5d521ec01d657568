"""Structured logs: a line of JSON each, on standard error, and never a word of a request or a reply."""

import json
import logging
import sys
import traceback
from typing import Any

from agentmark.keys.secret import without_secrets
from agentmark.times import utc_now


class JsonLines(logging.Formatter):
    """A log record as JSON. Of an error its kind and place are told, not its words, which may quote anything."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {"time": utc_now(), "level": record.levelname.lower(), "logger": record.name}
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            said |= fields
        else:
            said["message"] = without_secrets(record.getMessage())
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said["error"] = type(error).__name__
            said["at"] = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-6:]]
        return json.dumps(said)


def set_up_logs(level: str) -> None:
    """Every log line of the process goes out as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("agentmark").setLevel(level.upper())
