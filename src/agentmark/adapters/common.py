"""What the adapters share: from tools to candidates, and from a reply to what was done."""

from collections.abc import Iterable, Sequence

from agentmark.elicit.situation import ANSWER, ANSWER_CANDIDATE, Candidate


def with_answer(tools: Iterable[Candidate], *, may_answer: bool = True) -> list[Candidate]:
    """The tools, and the choice to answer without one unless the agent must call one."""
    return [*tools, *([ANSWER_CANDIDATE] if may_answer else [])]


def what_was_done(calls: Sequence[str], chosen: str | None) -> str:
    """The behavior that a reply shows, from the names of the tools it calls.

    Several calls of the chosen tool are obedience; a reply that also calls another tool is not.
    """
    if not calls:
        return ANSWER
    return next((name for name in calls if name != chosen), calls[0])
