"""The logs that are packed are what a program would have written, and claims about them can fail."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agentmark_lab.experiments.theory.log_costs import (
    Sizes,
    Timed,
    _chain_claims,
    _packing_claims,
    checkpoint_size,
)
from agentmark_lab.experiments.theory.packed_logs import (
    PACKERS,
    Packed,
    lines_of,
    otlp_lines,
    packed,
    steps,
)
from agentmark_lab.kit.draws import generator

from agentmark import Limits, SigningKey, open_log

SOME_MS = Timed([1.0, 2.0])
WRITING = dict.fromkeys(("without a chain", "with links", "with links, state and checkpoints"), SOME_MS)
OPENING = {(way, length): SOME_MS for way in tuple(WRITING)[1:] for length in (10, 20)}


def a_log(copies: int = 1, packed_bytes: int = 4000, stopped_by: str | None = None) -> Packed:
    sizes = dict.fromkeys(PACKERS, packed_bytes)
    return Packed("a log", 100, copies, 400_000, sizes, dict.fromkeys(PACKERS, stopped_by))


def held(claims: list[Any]) -> list[bool]:
    return [claim.holds for claim in claims]


def names_in(content: Any) -> Any:
    """The shape of JSON: names and kinds; of attributes, how each kind of value is written."""
    if isinstance(content, dict):
        return {name: names_in(value) for name, value in content.items() if name != "parentSpanId"}
    if isinstance(content, list):
        return sorted({json.dumps(names_in(item), sort_keys=True) for item in content})
    return type(content).__name__


def test_otlp_lines_have_the_shape_that_the_exporter_writes(tmp_path: Path) -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.json.file").FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from agentmark.log.otel import OtelSink

    (record,) = steps(1, 1)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter(str(tmp_path / "real.jsonl"))))
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("chat", attributes={"gen_ai.input.messages": "words"}):
        OtelSink(tracer).write(record)
    provider.shutdown()
    real = [json.loads(line) for line in (tmp_path / "real.jsonl").read_text().splitlines()]
    made = [json.loads(line) for line in otlp_lines([record], 500, generator(1))]
    assert names_in(made) == names_in(real)
    decisions = [lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for lines in (made, real)]
    assert decisions[0]["attributes"] == decisions[1]["attributes"]
    assert decisions[0]["name"] == decisions[1]["name"]


def test_prompts_grow_and_records_are_read_back(tmp_path: Path) -> None:
    records = steps(1, 20)
    lines = list(otlp_lines(records, 3000, generator(1)))
    prompts = [len(line) for line in lines[1::2]]
    assert {later - earlier for earlier, later in pairwise(prompts)} == {100}
    (tmp_path / "traces.jsonl").write_bytes(b"".join(lines))
    assert list(open_log(tmp_path / "traces.jsonl")) == records


def test_what_is_packed_is_read_whole_or_stopped(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    records = steps(1, 300)
    whole = packed("steps", 300, lines_of(records, tmp_path), tmp_path)
    assert set(whole.stopped_by.values()) == {None}
    assert whole.ratio("zstd, level 19") > 3
    again = packed("copies", 3000, lines_of(records * 10, tmp_path), tmp_path, copies=10)
    assert again.stopped_by["zstd, level 19"] == "records_per_kib"
    assert not again.is_within("zstd, level 19", Limits())
    with pytest.raises(RuntimeError, match="300 of 301"):
        packed("steps", 301, lines_of(records, tmp_path), tmp_path)


def test_a_default_that_stops_an_honest_log_is_told() -> None:
    limits = Limits()
    assert held(_packing_claims([a_log()], limits)) == [True, True]
    assert held(_packing_claims([a_log(stopped_by="held_bytes")], limits)) == [False, True]
    # A hundred records in a thousand bytes: more than forty a KiB, and so not within the limits either.
    assert held(_packing_claims([a_log(packed_bytes=1000, stopped_by="records_per_kib")], limits)) == [True, False]
    # Copies may be packed tighter.
    assert held(_packing_claims([a_log(), a_log(copies=5, packed_bytes=1000)], limits)) == [True, True]


def test_a_link_of_another_size_and_a_chain_that_is_not_intact_are_told() -> None:
    assert held(_chain_claims(WRITING, OPENING, Sizes([74], {1: 500, 10: 1500, 100: 11_500}, True)))[:2] == [True, True]
    assert held(_chain_claims(WRITING, OPENING, Sizes([74, 75], {}, False)))[:2] == [False, False]


def test_slow_writing_and_opening_miss_their_aims() -> None:
    slow = {**WRITING, "with links, state and checkpoints": Timed([500.0])}
    growing = {**OPENING, ("with links", 20): Timed([1.6])}
    assert held(_chain_claims(WRITING, OPENING, Sizes([74], {}, True)))[2:] == [True, True]
    assert held(_chain_claims(slow, growing, Sizes([74], {}, True)))[2:] == [False, False]


def test_ratios_are_those_of_each_round() -> None:
    assert Timed([3.0, 8.0]).over(Timed([1.0, 2.0])) == [3.0, 4.0]


def test_sizes_of_checkpoints_are_those_that_a_log_holds(tmp_path: Path) -> None:
    key = SigningKey(bytes(range(32)))
    sizes = Sizes.measure(steps(1, 250), key, generator(1), tmp_path)
    assert sizes.links == [74]
    assert sizes.intact
    found = [line for line in (tmp_path / "weighed.jsonl").read_bytes().splitlines(True) if b'"signature"' in line]
    # The first has no digest before it; the others state one session, as it grows.
    assert abs(len(found[1]) - checkpoint_size(key, 1, generator(2))) <= 3
    assert round(sizes.beside_sessions + 10 * sizes.each_session) == pytest.approx(sizes.checkpoints[10], abs=2)
