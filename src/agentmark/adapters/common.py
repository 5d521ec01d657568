"""What the adapters share: from tools to candidates, and from a reply to what was done."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.situation import ANSWER, ANSWER_CANDIDATE, Candidate, Message

# What frameworks call the two sides of a conversation.
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}


def with_answer(tools: Iterable[Candidate], *, may_answer: bool = True) -> list[Candidate]:
    """The tools, and the choice to answer without one unless the agent must call one."""
    return [*tools, *([ANSWER_CANDIDATE] if may_answer else [])]


def message(role: str, text: str, calls: Iterable[tuple[str, Any]] = ()) -> Message:
    """One message of the conversation as elicitors read it: its text, and the calls it makes with their arguments."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"role": _ROLES.get(role, role), "content": text, **({"tool_calls": made} if made else {})}


def settings_of(request: ChatRequest) -> dict[str, Any]:
    """What a side call asks of the model besides its messages, if anything."""
    settings = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    return {name: value for name, value in settings.items() if value is not None}


def what_was_done(calls: Sequence[str], chosen: str | None) -> str:
    """The behavior that a reply shows, from the names of the tools it calls.

    Several calls of the chosen tool are obedience; a reply that also calls another tool is not.
    """
    if not calls:
        return ANSWER
    return next((name for name in calls if name != chosen), calls[0])


class Reply:
    """The names of the tools that a reply calls; None until there is a reply."""

    calls: Sequence[str] | None = None


@contextmanager
def observed(decider: Decider, decision: Decision | None) -> Iterator[Reply]:
    """Around the model's call: what its reply did is observed at the end. A call that fails has done nothing."""
    reply = Reply()
    try:
        yield reply
    finally:
        if decision is not None:
            done = None if reply.calls is None else what_was_done(reply.calls, decision.behavior)
            decider.observe(decision, done)
