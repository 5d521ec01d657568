"""Record tests/log/read/exports with the real packages: python tools/record_exports.py inspect | phoenix URL

inspect: needs inspect_ai. phoenix: needs opentelemetry-exporter-otlp-proto-http, arize-phoenix-client, pandas and
pyarrow, and an empty Phoenix server (`phoenix serve`) at the URL.

When the bytes of the schemes changed and with them what the run chooses, its records were put in the place of the
recorded ones; all around them is as the packages wrote it.
"""

import gzip
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXPORTS = ROOT / "tests" / "log" / "read" / "exports"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "log")]

from log_run import the_run  # noqa: E402


def record_inspect() -> None:
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import Sample
    from inspect_ai.log import transcript
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    run = the_run()
    half = len(run) // 2

    @solver
    def decide() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            transcript().info("started")
            for record in run[:half] if state.sample_id == 1 else run[half:]:
                transcript().info(record.as_dict(), source="agentmark")
            return state

        return solve

    for suffix in ("eval", "json"):
        with tempfile.TemporaryDirectory() as folder:
            samples = [Sample(input="one", id=1), Sample(input="two", id=2)]
            task = Task(dataset=samples, solver=decide(), name="agentmark")
            (log,) = eval(task, model="mockllm/model", log_dir=folder, log_format=suffix, display="none")
            assert log.status == "success", log.error
            content = Path(log.location.removeprefix("file://")).read_bytes()
        if suffix == "eval":
            (EXPORTS / "inspect.eval").write_bytes(content)
        else:
            (EXPORTS / "inspect.json.gz").write_bytes(gzip.compress(content, mtime=0))


def record_phoenix(url: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from phoenix.client import Client

    from agentmark.log.otel import OtelSink

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("agentmark")
    sink = OtelSink(tracer)
    with tracer.start_as_current_span("agent"):
        for record in the_run():
            sink.write(record)
    provider.shutdown()
    time.sleep(3)
    client = Client(base_url=url)
    spans = client.spans.get_spans(project_identifier="default", limit=1000)
    frame = client.spans.get_spans_dataframe(project_identifier="default", limit=1000)
    exports = {
        "phoenix_spans.json": json.dumps(spans, default=str),
        "phoenix_frame.jsonl": frame.to_json(orient="records", lines=True, date_format="iso"),
        "phoenix_columns.json": frame.to_json(date_format="iso"),
    }
    for name, text in exports.items():
        (EXPORTS / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    frame.to_parquet(EXPORTS / "phoenix_frame.parquet", compression="gzip")


if __name__ == "__main__":
    if sys.argv[1:] == ["inspect"]:
        record_inspect()
    elif sys.argv[1:2] == ["phoenix"] and len(sys.argv) == 3:
        record_phoenix(sys.argv[2])
    else:
        sys.exit(__doc__)
