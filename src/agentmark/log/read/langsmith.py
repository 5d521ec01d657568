"""LangSmith runs: of the client or the API, one a line or in an array, and of the bulk export (Parquet)."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import as_object, record_in
from agentmark.log.read.format import Format


class LangSmithRuns(Format):
    """Known by the type of a run."""

    name = "LangSmith runs"
    accepted = "LangSmith runs (rows with run_type and extra, inputs or outputs)"

    def matches(self, content: Mapping[str, Any]) -> bool:
        return "run_type" in content and any(name in content for name in ("extra", "inputs", "outputs", "dotted_order"))

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """In the metadata, as of spans, of `@traceable(metadata=...)`, and of a run's own, and nowhere else.

        Inputs and outputs are not looked into, not even by name: the arguments of a tool are the inputs of its run, and
        its answer the outputs. Whoever talks to the agent writes them, and anybody can write a record.
        """
        yield "", record_in(as_object(content.get("extra")).get("metadata"))
