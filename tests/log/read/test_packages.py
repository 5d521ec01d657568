"""Readers against the vendors' own packages: `make test-logs` runs these in an environment that has them."""

import asyncio
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from log_run import the_run

from agentmark.log.read.open import open_log

RUN = the_run()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def read(path: Path) -> tuple[list[str], str, int]:
    source = open_log(path)
    return [record.to_json() for record in source], source.summary.format, source.summary.skipped


LINES = [record.to_json() for record in RUN]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("log_format", ["eval", "json"])
@pytest.mark.parametrize("kept_as", ["object", "text", "named"])
def test_inspect_writes_what_is_read(tmp_path: Path, log_format: str, kept_as: str) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import Sample
    from inspect_ai.log import transcript
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    @solver
    def decide() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            transcript().info("started")
            for record in RUN:
                data: Any = {"agentmark.record": record.to_json()}
                data = {"object": record.as_dict(), "text": record.to_json(), "named": data}[kept_as]
                transcript().info(data, source="agentmark")
            return state

        return solve

    task = Task(dataset=[Sample(input="hi")], solver=decide())
    (log,) = eval(task, model="mockllm/model", log_dir=str(tmp_path), log_format=log_format, display="none")
    assert log.status == "success"
    assert read(Path(log.location.removeprefix("file://"))) == (LINES, "Inspect log", 1)
    asyncio.set_event_loop(None)


@pytest.mark.filterwarnings("default")
def test_langfuse_models_write_what_is_read(tmp_path: Path) -> None:
    """The SDK's own response model; what the server puts into `metadata` is after its source."""
    pytest.importorskip("langfuse")
    from langfuse.api.commons.types.observation_v2 import ObservationV2
    from langfuse.api.observations.types.observations_v2response import ObservationsV2Response

    def observation(metadata: Any) -> Any:
        return ObservationV2(
            id="o1", trace_id="t1", start_time=NOW, project_id="p1", type="SPAN", name="decide", metadata=metadata
        )

    rows = [observation({"attributes": {"agentmark.record": line}, "scope": {"name": "agentmark"}}) for line in LINES]
    rows.append(observation({}))
    page = ObservationsV2Response(data=rows, meta={})
    path = tmp_path / "page.json"
    path.write_text(page.json())
    assert read(path) == (LINES, "Langfuse observations", 1)
    path.write_text("".join(row.json() + "\n" for row in rows))
    assert read(path) == (LINES, "Langfuse observations", 1)


@pytest.mark.filterwarnings("default")
def test_langfuse_spans_carry_the_record_as_metadata(tmp_path: Path) -> None:
    """What the SDK sends for `metadata={"agentmark.record": ...}`: one attribute, encoded as JSON once more."""
    pytest.importorskip("langfuse")
    from langfuse import Langfuse
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # Port 9 discards: nothing is sent anywhere.
    client = Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", tracer_provider=provider)
    for line in LINES:
        client.start_observation(name="decide", metadata={"agentmark.record": line}).end()
    sent = [span.attributes["langfuse.observation.metadata.agentmark.record"] for span in exporter.get_finished_spans()]
    assert sent == [json.dumps(line, ensure_ascii=False) for line in LINES]
    path = tmp_path / "blob.jsonl"
    rows = [{"trace_id": "t", "type": "SPAN", "metadata": {"agentmark.record": value}} for value in sent]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(path) == (LINES, "Langfuse observations", 0)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kept_as", ["lines", "array", "parquet"])
def test_langsmith_models_write_what_is_read(tmp_path: Path, kept_as: str) -> None:
    """The SDK's own `Run`, as `Client.list_runs` returns it; in Parquet, objects are JSON text, as in bulk exports."""
    pytest.importorskip("langsmith")
    from langsmith.schemas import Run

    def run(metadata: dict[str, Any]) -> Any:
        ids = {name: uuid.uuid5(uuid.NAMESPACE_OID, name) for name in ("id", "trace_id", "session_id")}
        return Run(name="decide", start_time=NOW, run_type="chain", extra={"metadata": metadata}, inputs={}, **ids)

    runs = [run({"agentmark.record": line}) for line in LINES] + [run({})]
    path = tmp_path / "runs"
    texts = [item.model_dump_json() if hasattr(item, "model_dump_json") else item.json() for item in runs]
    if kept_as == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        rows = [json.loads(text) for text in texts]
        flat = [{"id": r["id"], "run_type": r["run_type"], "extra": json.dumps(r["extra"])} for r in rows]
        parquet.write_table(pyarrow.Table.from_pylist(flat), path)
    else:
        path.write_text("".join(f"{t}\n" for t in texts) if kept_as == "lines" else f"[{','.join(texts)}]")
    assert read(path) == (LINES, "Parquet" if kept_as == "parquet" else "LangSmith runs", 1)
