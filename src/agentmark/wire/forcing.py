"""Ways of telling a provider what to do next, from the surest to the mildest. None of them touches `tools`.

Tools stand at the head of a prompt: to change them voids the provider's cache, and is refused where thinking that was
made under them is sent back.
"""

from enum import StrEnum

from agentmark.elicit.situation import ANSWER


class Rung(StrEnum):
    """A rung of the ladder. What a provider refuses is not tried again; below the last, nothing is forced."""

    NAMED = "named"  # the choice names the tool, or forbids all of them
    ALLOWED = "allowed"  # the choice allows one tool, and requires a call
    INSTRUCTION = "instruction"  # a sentence after the conversation, which the model may disobey


def instruction(behavior: str) -> str:
    """What the model is told after the conversation."""
    if behavior == ANSWER:
        return "Answer now, without calling a tool."
    return f"Call {behavior} now."
