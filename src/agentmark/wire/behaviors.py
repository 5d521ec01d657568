"""Between tools and behaviors: what an agent could do next, and what a reply shows that it did."""

from collections.abc import Iterable, Sequence

from agentmark.elicit.situation import ANSWER, ANSWER_CANDIDATE, Candidate, ToolCall


def with_answer(tools: Iterable[Candidate], *, may_answer: bool = True) -> list[Candidate]:
    """The tools, and the choice to answer without one unless the agent must call one."""
    listed = list(tools)
    if may_answer:
        listed.append(ANSWER_CANDIDATE)
    return listed


def left_to_decide(tools: Iterable[Candidate], *, may_answer: bool) -> list[Candidate]:
    """The same for a request of which nothing is known but its body: a single way to go leaves nothing to decide.

    A tool that is defined twice is one candidate; the later definition counts.
    """
    by_name = {tool.name: tool for tool in tools}
    listed = with_answer(by_name.values(), may_answer=may_answer)
    return listed if len(listed) > 1 else []


def what_was_done(calls: Sequence[ToolCall], chosen: str | None) -> str:
    """The behavior that a reply shows, from the tools it calls.

    Several calls of the chosen tool are obedience; a reply that also calls another tool is not.
    """
    if not calls:
        return ANSWER
    names = [call.name for call in calls]
    others = [name for name in names if name != chosen]
    done = others[0] if others else names[0]
    # A model may call a tool by any name it makes up; a record holds no empty or broken text.
    return done.encode("utf-8", "replace").decode("utf-8") or "(unnamed)"
