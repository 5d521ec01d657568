"""LangSmith runs: of the client or the API, one a line or in an array, and of the bulk export (Parquet)."""

from collections.abc import Iterator
from typing import Any

from agentmark.readers.found import as_object, record_in

NAME = "LangSmith runs"
HOW = "rows with run_type and extra, inputs or outputs"


def matches(content: dict[str, Any]) -> bool:
    return "run_type" in content and any(name in content for name in ("extra", "inputs", "outputs", "dotted_order"))


def records(content: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """In the metadata, as of `@traceable(metadata=...)` and of spans; or in what the run was given or returned."""
    extra = as_object(content.get("extra"))
    places = (extra.get("metadata"), extra, content.get("metadata"), content.get("outputs"), content.get("inputs"))
    yield "", next((raw for raw in map(record_in, places) if raw is not None), None)
