"""No file whatsoever raises anything but an error of ours."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_shapes import EXPORTS, LINE, LINES, RUN, SHAPES

from agentmark import AgentMarkError, StepRecord
from agentmark.log.read.open import open_log
from agentmark.log.sqlite import SqliteLog

NAMES = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "kvlistValue", "values",
     "data", "runs", "run_type", "extra", "metadata", "outputs", "traceId", "type", "context", "context.span_id",
     "span_id", "name", "attributes.agentmark", "agentmark", "agentmark.record", "record", "eval", "samples", "status",
     "events", "event", "attachments", "epoch", "scheme", "agentmark_checkpoint"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    [LINE, LINE[:50], "agentmark.record", "info", "attachment://1", json.dumps({"agentmark.record": LINE}), "{"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=25
)


def survives(path: Path) -> None:
    for skip_bad in (False, True):
        source = open_log(path, skip_bad=skip_bad)
        try:
            records = list(source)
        except AgentMarkError:
            continue
        assert all(isinstance(record, StepRecord) for record in records)
        assert all(isinstance(sentence, str) for sentence in source.summary.passed_over)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=4), form=st.sampled_from(["lines", "array", "document", "indented", "gzip"]))
def test_no_json_stops_a_reader(tmp_path: Path, values: list[Any], form: str) -> None:
    path = tmp_path / "log"
    if form in ("lines", "gzip"):
        content = "".join(json.dumps(value) + "\n" for value in values)
    elif form == "array":
        content = json.dumps(values)
    else:
        content = json.dumps(values[0] if values else None, indent=1 if form == "indented" else None)
    path.write_bytes(gzip.compress(content.encode()) if form == "gzip" else content.encode())
    survives(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.sampled_from([*SHAPES, "sqlite", "recorded"]),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), st.binary(max_size=8)), min_size=1, max_size=3),
    pack=st.sampled_from([bytes, gzip.compress]),
)
def test_no_damaged_log_stops_a_reader(
    tmp_path_factory: pytest.TempPathFactory,
    shape: str,
    cuts: list[tuple[float, int, bytes]],
    pack: Callable[[bytes], bytes],
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    content = DAMAGEABLE[shape]
    for place, length, put in cuts:
        at = int(place * len(content))
        content = content[:at] + put + content[at + length :]
    path.write_bytes(pack(content))
    survives(path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from(
        [b"", b"PK\x03\x04", b"SQLite format 3\x00", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"[", b"{", b'{"agentmark"']
    ),
    rest=st.binary(max_size=300),
)
def test_no_bytes_stop_a_reader(tmp_path: Path, head: bytes, rest: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(head + rest)
    survives(path)


def _a_database() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with SqliteLog(path) as log:
            for record in RUN[:10]:
                log.write(record)
        return path.read_bytes()


DAMAGEABLE = {name: make(LINES[:6]) for name, (make, _) in SHAPES.items()}
DAMAGEABLE |= {"sqlite": _a_database(), "recorded": (EXPORTS / "inspect.eval").read_bytes()}
