"""A sink that hangs, that is behind, or that was open at a fork."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from agentmark.decide.decider import Decider
from agentmark.decide.writing import LateRecordError, LostRecordError, Writing
from agentmark.embed.embedder import Embedder
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord

KEY = SharedKey.generate()
SESSION = Embedder(KEY, 42, payload_len=8).session("a session")
SOON_S = 0.05


def record() -> StepRecord:
    return SESSION.choose({"a": 0.5, "b": 0.5}).record


class Gate:
    """A sink that hangs while its gate is shut."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.gate = threading.Event()
        self.records: list[StepRecord] = []
        if is_open:
            self.gate.set()

    def write(self, record: StepRecord) -> None:
        self.gate.wait()
        self.records.append(record)


@pytest.fixture
def gate() -> Iterator[Gate]:
    sink = Gate()
    yield sink
    sink.gate.set()


class Losses:
    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def __call__(self, record: StepRecord, error: BaseException) -> None:
        self.errors.append(error)


def test_a_record_is_written_when_write_returns() -> None:
    sink = Gate(is_open=True)
    writing = Writing(sink, lost=Losses())
    for number in range(1, 100):
        writing.write(record())
        assert len(sink.records) == number


def test_what_the_sink_raises_comes_back_to_the_caller() -> None:
    class Full:
        def write(self, record: StepRecord) -> None:
            raise OSError(28, "No space left on device")

    losses = Losses()
    with pytest.raises(OSError, match="No space"):
        Writing(Full(), lost=losses).write(record())
    # Who waited was told; nobody is told twice.
    assert losses.errors == []


def test_a_sink_that_hangs_is_waited_for_once_and_catches_up_in_order(gate: Gate) -> None:
    writing = Writing(gate, lost=(losses := Losses()), patience_s=SOON_S)
    records = [record() for _ in range(20)]
    waited = time.monotonic()
    for written in records:
        with pytest.raises(LateRecordError):
            writing.write(written)
    # One wait, not twenty.
    assert time.monotonic() - waited < 10 * SOON_S
    gate.gate.set()
    writing.close()
    assert gate.records == records
    assert losses.errors == []
    writing.write(record())
    assert len(gate.records) == 21


def test_a_sink_that_never_answers_costs_its_records_and_nothing_else(gate: Gate) -> None:
    writing = Writing(gate, lost=(losses := Losses()), patience_s=SOON_S, most=3)
    for _ in range(4):
        with pytest.raises(LateRecordError):
            writing.write(record())
    # One is being written, three are in line.
    with pytest.raises(LostRecordError, match="3 records wait"):
        writing.write(record())
    writing.close()
    assert [type(error) for error in losses.errors] == [LostRecordError] * 4


def test_a_late_record_that_fails_is_counted_by_whoever_asked_to_be_told() -> None:
    shut = threading.Event()

    class SlowAndFull:
        def write(self, record: StepRecord) -> None:
            shut.wait()
            raise OSError(28, "No space left on device")

    writing = Writing(SlowAndFull(), lost=(losses := Losses()), patience_s=SOON_S)
    with pytest.raises(LateRecordError):
        writing.write(record())
    shut.set()
    writing.close()
    assert [type(error) for error in losses.errors] == [OSError]


def test_an_event_loop_is_not_held_up(gate: Gate) -> None:
    writing = Writing(gate, lost=Losses(), patience_s=30)

    async def other_work() -> int:
        waiting = asyncio.create_task(writing.awrite(record()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        gate.gate.set()
        await waiting
        return len(gate.records)

    assert asyncio.run(other_work()) == 1


def test_a_caller_that_is_cancelled_leaves_its_record_in_line(gate: Gate) -> None:
    writing = Writing(gate, lost=Losses(), patience_s=30)

    async def cancelled() -> None:
        waiting = asyncio.create_task(writing.awrite(record()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())
    gate.gate.set()
    writing.write(record())
    assert len(gate.records) == 2


def test_the_sink_sees_the_callers_context() -> None:
    span: ContextVar[str] = ContextVar("span", default="none")
    seen = []

    class Tracer:
        def write(self, record: StepRecord) -> None:
            seen.append(span.get())

    writing = Writing(Tracer(), lost=Losses())
    span.set("the agent's step")
    writing.write(record())
    assert seen == ["the agent's step"]


def test_an_agent_goes_on_while_its_log_hangs(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    with Decider(Embedder(KEY, 42, payload_len=8), None, gate, patience_s=SOON_S) as decider:
        for _ in range(5):
            assert decider.decide_from({"a": 0.5, "b": 0.5}).behavior in ("a", "b")
        assert "does not answer" in caplog.text
        # Not lost yet: the sink may come back.
        assert decider.stats.unrecorded == 0
    assert decider.stats.unrecorded == 5
    assert [entry.levelno for entry in caplog.records if "does not answer: the agent" in entry.getMessage()] == [
        logging.ERROR
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_child_writes_though_the_parent_was_writing_when_it_forked(gate: Gate) -> None:
    writing = Writing(gate, lost=Losses(), patience_s=SOON_S)
    with pytest.raises(LateRecordError):
        writing.write(record())
    child = os.fork()
    if child == 0:
        # The parent's thread hangs in the sink and is not here; the record in line is the parent's.
        gate.gate.set()
        try:
            writing.write(record())
            os._exit(len(gate.records))
        except BaseException:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    gate.gate.set()
    writing.close()
    assert len(gate.records) == 1
