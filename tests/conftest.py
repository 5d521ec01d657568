"""Settings for every test."""

import signal

import pytest
from hypothesis import settings

from agentmark import SharedKey, StepRecord
from agentmark.verify import intake

# These machines are shared: a slow example says nothing, and the examples are the same in every run.
settings.register_profile("agentmark", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("agentmark")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def read_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which records the verifying side has read since the test began, in order."""
    calls: list[str] = []
    read = intake.read_step

    def counted(record: StepRecord, key: SharedKey, payload_len: int) -> intake.Step:
        calls.append(record.where)
        return read(record, key, payload_len)

    monkeypatch.setattr(intake, "read_step", counted)
    return calls
