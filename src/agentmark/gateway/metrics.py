"""Counts for Prometheus, and the ledger that feeds them. Labels are few and known: no text of a request is one."""

import os
import re
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from agentmark.decide.stats import Ledger
from agentmark.elicit.situation import Elicitation, one_line, whole
from agentmark.record import StepRecord

# Models that are told apart; what clients name beyond is counted together, or they could fill the memory with names.
MAX_NAMES = 200
OTHER_NAME = "(other)"
# A request that names none.
NO_NAME = "none"
_BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30)
# Where workers share their counts.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class Names:
    """Texts of others that become labels: a bounded number of short ones."""

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, text: object) -> str:
        name = one_line(text, 100) if isinstance(text, str) and text else NO_NAME
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER_NAME
        self._known.add(name)
        return name


class Metrics:
    """What a gateway counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("agentmark_requests", "Requests by route and status", ["route", "status"], **own)
        self.steps = Counter("agentmark_steps", "Decisions, by what became of them", ["outcome", "model"], **own)
        self.unmarked = Counter("agentmark_unmarked", "Requests without a mark, by reason", ["reason", "model"], **own)
        self.calls = Counter("agentmark_model_calls", "Calls for samples and lists", ["kind", "model"], **own)
        self.tokens = Counter("agentmark_tokens", "Tokens of samples and lists", ["kind", "model"], **own)
        self.errors = Counter("agentmark_errors", "Answers of the gateway's own", ["reason"], **own)
        self.replayed = Counter("agentmark_replayed", "Retries answered with what was kept", **own)
        self.added = Histogram(
            "agentmark_added_seconds",
            "Time to the first byte less the upstream's",
            ["route", "model"],
            buckets=_BUCKETS,
            **own,
        )
        self.upstream = Histogram("agentmark_upstream_seconds", "Time spent waiting for the upstream", **own)
        self.stored = Histogram("agentmark_store_seconds", "Time until a record was durable", buckets=_BUCKETS, **own)
        self.in_flight = Gauge(
            "agentmark_in_flight", "Requests that are being answered", multiprocess_mode="livesum", **own
        )

    def page(self) -> tuple[bytes, str]:
        """The page that Prometheus reads: of all workers, where there are several."""
        registry = self.registry
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


class GatewayLedger(Ledger):
    """The ledger of every decider, which also counts for Prometheus."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def spent(self, elicitation: Elicitation, seconds: float) -> None:
        super().spent(elicitation, seconds)
        model = elicitation.model
        is_sampled = elicitation.samples is not None
        kind = "sample" if is_sampled else "list"
        calls = (elicitation.samples or 0) + elicitation.failed if is_sampled else elicitation.attempts
        self._metrics.calls.labels(kind, model).inc(calls)
        self._metrics.tokens.labels(f"{kind} input", model).inc(whole(elicitation.input_tokens) or 0)
        self._metrics.tokens.labels(f"{kind} output", model).inc(whole(elicitation.output_tokens) or 0)

    def kept(self, record: StepRecord, model: str) -> None:
        """A decision is in the store: only then is it one. What Prometheus has counted cannot be taken back."""
        if record.marked:
            self._metrics.steps.labels("marked", model).inc()

    def unmarked(self, reason: str, model: str, fault: str | None = None) -> None:
        # A fault may quote what the model said; the reason never does.
        super().unmarked(reason, model)
        self._metrics.steps.labels("unmarked", model).inc()
        # Numbers in a reason would make a time series of each.
        self._metrics.unmarked.labels(re.sub(r"\d+", "0", reason), model).inc()

    def fell_back(self, what: str, model: str, why: str) -> None:
        super().fell_back(what, model, _without_words(why))

    def _count(self, outcome: str, model: str) -> None:
        super()._count(outcome, model)
        self._metrics.steps.labels(outcome, model).inc()


def _without_words(why: str) -> str:
    """A status, or the kind of an error: the rest may quote a reply, and a log line never does."""
    found = re.match(r"HTTP \d{3}\b|[A-Za-z]+Error\b", why)
    return found[0] if found else "its records say what was wrong"
