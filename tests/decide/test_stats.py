"""Counts, warnings and metrics: what goes unmarked is seen."""

import logging
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agentmark import Embedder, SharedKey
from agentmark.decide.stats import MANY_REASONS, MAX_REASONS, Ledger, Stats
from agentmark.elicit.situation import Elicitation


@pytest.fixture(scope="session")
def reader() -> Any:
    """OpenTelemetry as a program would configure it: once in a process."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


def points(reader: Any) -> Counter[tuple[str, ...]]:
    """Sums by metric and attributes."""
    found: Counter[tuple[str, ...]] = Counter()
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    key = (metric.name, *[str(value) for _, value in sorted(point.attributes.items())])
                    found[key] += point.value if hasattr(point, "value") else point.count
    return found


def test_the_same_counts_as_metrics(reader: Any) -> None:
    before = points(reader)
    ledger = Ledger()
    choice = Embedder(SharedKey.generate(), 1, payload_len=8, scheme="R").session().choose({"a": 1, "b": 1})
    ledger.decided(choice.record, "metered")
    ledger.unmarked("elicitation failed: HTTP 401", "metered")
    ledger.disobeyed("a", "metered")
    ledger.spent(Elicitation(method="proposals", model="metered", samples=4, input_tokens=40, output_tokens=8), 0.5)
    seen = points(reader) - before
    assert seen[("agentmark.steps", "marked", "metered")] == 1
    assert seen[("agentmark.steps", "unmarked", "elicitation failed: HTTP 0", "metered")] == 1
    assert seen[("agentmark.steps", "disobeyed", "metered")] == 1
    assert seen[("agentmark.tokens", "proposals", "metered", "input")] == 40
    assert seen[("agentmark.tokens", "proposals", "metered", "output")] == 8
    assert seen[("agentmark.elicit.duration", "proposals", "metered")] == 1


def test_without_opentelemetry_nothing_is_missed() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from agentmark.decide.stats import Ledger\n"
        "ledger = Ledger(); ledger.unmarked('why', 'm'); print(ledger.stats().unmarked)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{'why': 1}"


def test_a_warning_for_each_cause_and_model_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger()
    for share in ("12.5%", "3.1%"):
        ledger.unmarked(f"the options have {share} of the probability", "m")
    ledger.unmarked("elicitation failed: HTTP 401", "m", "HTTP 401: Incorrect API key provided")
    ledger.unmarked("elicitation failed: HTTP 401", "other", "HTTP 401: Incorrect API key provided")
    assert len(caplog.records) == 3
    assert "Incorrect API key" in caplog.records[1].getMessage()
    assert all(entry.levelno == logging.WARNING for entry in caplog.records)


def test_reasons_without_end_do_not_fill_the_memory() -> None:
    ledger = Ledger()
    for number in range(MAX_REASONS + 30):
        ledger.unmarked(f"reason {number}", "m")
    unmarked = ledger.stats().unmarked
    assert len(unmarked) == MAX_REASONS + 1
    assert unmarked[MANY_REASONS] == 30


def test_one_line_says_it_all() -> None:
    stats = Stats(
        marked=37, unmarked={"HTTP 401": 3}, disobeyed=1, bits=33.14, calls=160, input_tokens=12300, output_tokens=800
    )
    assert str(stats) == (
        "40 steps: 37 marked, with 33.1 bits to choose from, 3 unmarked (HTTP 401: 3), 1 disobeyed,"
        " 160 model calls, 12300 tokens in, 800 out, 0.0 s"
    )
    assert stats.marked_share == 37 / 40
    assert Stats().marked_share == 0


@pytest.mark.parametrize(("marked", "level"), [(9, logging.INFO), (1, logging.WARNING)])
def test_a_log_that_is_mostly_unmarked_ends_with_a_warning(
    marked: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger()
    session = Embedder(SharedKey.generate(), 1, payload_len=8, scheme="R").session()
    for _ in range(marked):
        ledger.decided(session.choose({"a": 1, "b": 1}).record, "m")
    for _ in range(4):
        ledger.unmarked("why", "m")
    with caplog.at_level(logging.INFO, "agentmark"):
        ledger.closed()
    assert caplog.records[-1].levelno == level
