"""What counts as a refusal of ours, and what is remembered of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from agentmark.decide.forcing import MAX_FAILURES, Refusals, may_be_ours, speaks_of_the_choice, status_of
from agentmark.wire.forcing import Rung


def error(kind: type[Exception] = Exception, message: str = "", **facts: Any) -> Exception:
    raised = kind(message)
    for name, value in facts.items():
        setattr(raised, name, value)
    return raised


class APITimeoutError(Exception):
    pass


class APIConnectionError(Exception):
    pass


@pytest.mark.parametrize(
    "facts",
    [
        {"status_code": 400},
        {"code": 400},
        {"status": 400},
        {"response": SimpleNamespace(status_code=400)},
        {"code": "invalid_request_error", "status_code": 400},
    ],
)
def test_the_status_of_any_clients_error(facts: dict[str, Any]) -> None:
    assert status_of(error(**facts)) == 400


def test_an_error_without_a_status() -> None:
    assert status_of(error()) is None
    assert status_of(error(code=True)) is None
    assert status_of(error(status=7)) is None


@pytest.mark.parametrize("status", [400, 403, 404, 405, 415, 422])
def test_a_changed_request_may_be_the_cause(status: int) -> None:
    assert may_be_ours(error(status_code=status))


@pytest.mark.parametrize("status", [401, 402, 407, 408, 429, 500, 502, 503, 529])
def test_credentials_limits_and_outages_are_not_ours(status: int) -> None:
    assert not may_be_ours(error(status_code=status))


@pytest.mark.parametrize("kind", [OSError, TimeoutError, ConnectionError, APITimeoutError, APIConnectionError])
def test_a_broken_connection_is_not_ours(kind: type[Exception]) -> None:
    assert not may_be_ours(error(kind))


def test_what_a_library_refuses_to_send_may_be_ours() -> None:
    assert may_be_ours(error(ValueError, "unrecognized tool_choice"))


@pytest.mark.parametrize(
    "message",
    [
        "Thinking mode does not support this tool_choice",
        "tool_choice forces tool use is not compatible with this model.",
        "Thinking may not be enabled when tool_choice forces tool use.",
        "Function calling config is invalid: function_calling_config.mode",
        "Unknown parameter: 'tool_choice.allowed_tools'.",
    ],
)
def test_refusals_in_the_words_of_providers(message: str) -> None:
    assert speaks_of_the_choice(error(message=message, status_code=400))


def test_an_error_of_the_agents_own_speaks_of_something_else() -> None:
    assert not speaks_of_the_choice(error(message="prompt is too long: 250000 tokens > 200000 maximum"))


def test_each_upstream_and_model_is_remembered_by_itself() -> None:
    refusals, here, there = Refusals(), ("host", "a"), ("host", "b")
    assert refusals.rungs(here) == [Rung.NAMED, Rung.ALLOWED, Rung.INSTRUCTION]
    refusals.learn(here, [Rung.NAMED], "no")
    assert refusals.rungs(here) == [Rung.ALLOWED, Rung.INSTRUCTION]
    assert len(refusals.rungs(there)) == 3
    assert refusals.learned() == {"host a: named": "no"}


def test_only_failures_in_a_row_count() -> None:
    refusals, here = Refusals(), ("host", "a")
    for _ in range(5):
        for _ in range(MAX_FAILURES - 1):
            assert not refusals.count(here, "lists", failed=True)
        assert not refusals.count(here, "lists", failed=False)
    for _ in range(MAX_FAILURES):
        is_given_up = refusals.count(here, "lists", failed=True)
    assert is_given_up
    assert refusals.is_given_up(here, "lists")
    assert not refusals.is_given_up(here, "obedience")
