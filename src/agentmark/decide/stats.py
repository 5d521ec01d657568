"""What became of the steps: counted, said once in the program's log, and measured for OpenTelemetry (law L12)."""

import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentmark.core.theory import entropy
from agentmark.decide.forks import renew_in_forks
from agentmark.elicit.situation import Elicitation, one_line, whole
from agentmark.record import StepRecord

logger = logging.getLogger("agentmark.decide")

# Reasons that are told apart; what comes after is counted together.
MAX_REASONS = 50
MANY_REASONS = "(other reasons)"
# After so many steps without anything to choose from, somebody should know.
EMPTY_STEPS = 20


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the decider was made. `unmarked` is by reason."""

    marked: int = 0
    unmarked: Mapping[str, int] = field(default_factory=dict)
    # Steps whose choice the model did not follow, and those that a person changed afterwards.
    disobeyed: int = 0
    edited: int = 0
    # Marked steps that came to nothing: the call failed and nobody tried again, or its stream broke off.
    unfinished: int = 0
    # Records that could not be written.
    unrecorded: int = 0
    # What the lists of the marked steps left to choose, in bits: an upper limit of what the log can carry.
    bits: float = 0.0
    # Calls of a model for lists and samples, how many samples of them failed, their tokens, and the time they took.
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        return self.marked + sum(self.unmarked.values())

    @property
    def marked_share(self) -> float:
        return self.marked / self.steps if self.steps else 0.0

    def __str__(self) -> str:
        parts = [f"{self.steps} steps: {self.marked} marked, with {self.bits:.1f} bits to choose from"]
        if self.unmarked:
            reasons = "; ".join([f"{reason}: {count}" for reason, count in self.unmarked.items()])
            parts.append(f"{sum(self.unmarked.values())} unmarked ({reasons})")
        words = ("disobeyed", "edited", "unfinished", "unrecorded")
        parts += [f"{getattr(self, word)} {word}" for word in words if getattr(self, word)]
        parts.append(f"{self.calls} model calls ({self.failed} failed)" if self.failed else f"{self.calls} model calls")
        # Nobody may have said what the calls cost.
        if self.input_tokens or self.output_tokens:
            parts.append(f"{self.input_tokens} tokens in, {self.output_tokens} out")
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


class Ledger:
    """Counts steps, and says once for each cause and model what kept a step from being marked. Thread-safe."""

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)
        self._counts: Counter[str] = Counter()
        self._unmarked: Counter[str] = Counter()
        self._bits = 0.0
        self._seconds = 0.0
        self._said: set[tuple[str, str]] = set()
        self._empty_in_a_row = 0
        self._meter = _Meter()

    def renew(self) -> None:
        self._lock = threading.Lock()

    def stats(self) -> Stats:
        with self._lock:
            counts = self._counts
            return Stats(
                marked=counts["marked"],
                unmarked=dict(self._unmarked),
                disobeyed=counts["disobeyed"],
                edited=counts["edited"],
                unfinished=counts["unfinished"],
                unrecorded=counts["unrecorded"],
                bits=self._bits,
                calls=counts["calls"],
                failed=counts["failed"],
                input_tokens=counts["input_tokens"],
                output_tokens=counts["output_tokens"],
                seconds=self._seconds,
            )

    def spent(self, elicitation: Elicitation, seconds: float) -> None:
        """What it cost to get a list."""
        is_sampled = elicitation.samples is not None
        calls = (elicitation.samples or 0) + elicitation.failed if is_sampled else elicitation.attempts
        read, written = whole(elicitation.input_tokens) or 0, whole(elicitation.output_tokens) or 0
        with self._lock:
            self._counts.update(calls=calls, failed=elicitation.failed, input_tokens=read, output_tokens=written)
            self._seconds += seconds
        self._meter.spent(elicitation, read, written, seconds)

    def decided(self, record: StepRecord, model: str) -> None:
        """A choice was made from a list, with the mark or without."""
        if not record.marked:
            self.unmarked(record.reason or "", model)
            return
        bits = 0.0 if record.distribution is None else entropy(record.distribution)
        with self._lock:
            self._counts["marked"] += 1
            self._bits += bits
            self._empty_in_a_row = self._empty_in_a_row + 1 if bits == 0 else 0
            is_empty = self._empty_in_a_row >= EMPTY_STEPS
        self._meter.step("marked", "", model)
        if is_empty:
            fault = f"{EMPTY_STEPS} steps in a row left one thing to do: they carry nothing, and nobody can be named"
            self._warn("nothing to choose from", model, fault)

    def undone(self, record: StepRecord, model: str) -> None:
        """A choice was taken back before anything came of it: its record could not be kept."""
        if record.marked:
            with self._lock:
                self._counts["marked"] -= 1
                self._bits -= 0.0 if record.distribution is None else entropy(record.distribution)
            self._meter.step("undone", "", model)

    def unmarked(self, reason: str, model: str, fault: str | None = None) -> None:
        """A step goes without the mark. `fault` says more than a record may, for whoever reads the program's log."""
        with self._lock:
            is_new = reason not in self._unmarked and len(self._unmarked) >= MAX_REASONS
            self._unmarked[MANY_REASONS if is_new else reason] += 1
        self._meter.step("unmarked", reason, model)
        self._warn(reason, model, f"a step goes unmarked: {fault or reason}")

    def disobeyed(self, chosen: str, model: str) -> None:
        """The model did something else than was chosen."""
        self._count("disobeyed", model)
        self._warn("disobeyed", model, f"the model did something else than {chosen!r}, which was chosen")

    def edited(self, model: str) -> None:
        """Somebody changed what the agent did."""
        self._count("edited", model)
        self._warn("edited", model, "a step was changed after the model's reply: it is out of the evidence")

    def unfinished(self, model: str) -> None:
        """A step was decided, and nothing came of it."""
        self._count("unfinished", model)
        self._warn("unfinished", model, "a step was decided and came to nothing: it is out of the evidence")

    def late(self, model: str) -> None:
        """A record was not written in time. It stands in line, and is not lost yet."""
        fault = "the log does not answer: the agent goes on, and records wait for it to be written"
        self._warn("late", model, fault, level=logging.ERROR)

    def unrecorded(self, error: BaseException, model: str) -> None:
        """A record is lost: the sink failed."""
        self._count("unrecorded", model)
        self._warn("unrecorded", model, f"a record could not be written: {error!r}", level=logging.ERROR)

    def fell_back(self, what: str, model: str, why: str) -> None:
        """A way of asking or of forcing that the provider does not have."""
        self._warn(f"fell back: {what}", model, f"{what}: {why}")

    def closed(self) -> None:
        """The last line: at a glance whether the log is worth anything."""
        stats = self.stats()
        if stats.steps:
            level = logging.WARNING if stats.marked_share < 0.5 or stats.unrecorded else logging.INFO
            logger.log(level, "%s", stats)

    def _count(self, outcome: str, model: str) -> None:
        with self._lock:
            self._counts[outcome] += 1
        self._meter.step(outcome, "", model)

    def _warn(self, cause: str, model: str, message: str, *, level: int = logging.WARNING) -> None:
        """Once for each cause and model. Numbers in a cause, such as a share, do not make it another."""
        key = (re.sub(r"\d+", "0", cause), model)
        with self._lock:
            if key in self._said:
                return
            self._said.add(key)
        logger.log(level, "%s: %s (said once; see the decider's stats)", model, one_line(message))


class _Meter:
    """The same as OpenTelemetry metrics, where it is installed. Without a configured provider they cost nothing."""

    def __init__(self) -> None:
        self._steps: Any = None
        try:
            from opentelemetry import metrics
        except ImportError:
            return
        meter = metrics.get_meter("agentmark")
        self._steps = meter.create_counter("agentmark.steps", description="Decisions, by what became of them")
        self._tokens = meter.create_counter("agentmark.tokens", description="Tokens for lists and samples")
        self._duration = meter.create_histogram("agentmark.elicit.duration", unit="s", description="Time for a list")

    def step(self, outcome: str, reason: str, model: str) -> None:
        if self._steps is not None:
            said = {"agentmark.outcome": outcome, "gen_ai.request.model": model}
            # Numbers in a reason would make a time series of each.
            self._steps.add(1, {**said, "agentmark.reason": re.sub(r"\d+", "0", reason)} if reason else said)

    def spent(self, elicitation: Elicitation, read: int, written: int, seconds: float) -> None:
        if self._steps is not None:
            said = {"agentmark.elicitor": elicitation.method, "gen_ai.request.model": elicitation.model}
            self._tokens.add(read, {**said, "gen_ai.token.type": "input"})
            self._tokens.add(written, {**said, "gen_ai.token.type": "output"})
            self._duration.record(seconds, said)
