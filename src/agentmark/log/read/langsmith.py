"""LangSmith runs: of the client or the API, one a line or in an array, and of the bulk export (Parquet)."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import RECORD, as_object, record_in
from agentmark.log.read.format import Format


class LangSmithRuns(Format):
    """Known by the type of a run."""

    name = "LangSmith runs"
    accepted = "LangSmith runs (rows with run_type and extra, inputs or outputs)"

    def matches(self, content: Mapping[str, Any]) -> bool:
        return "run_type" in content and any(name in content for name in ("extra", "inputs", "outputs", "dotted_order"))

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """In the metadata, as of `@traceable(metadata=...)` and of spans; or, by name, in what the run returned or got.

        Text in inputs and outputs is never parsed: users and models said it, and anybody can say a record.
        """
        extra = as_object(content.get("extra"))
        kept = [record_in(place) for place in (extra.get("metadata"), extra, content.get("metadata"))]
        named = [content[name].get(RECORD) for name in ("outputs", "inputs") if isinstance(content.get(name), dict)]
        yield "", next((raw for raw in (*kept, *named) if raw is not None), None)
