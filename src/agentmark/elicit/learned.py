"""What a provider was seen to refuse for one model, so that it is asked only once."""

import logging
from dataclasses import dataclass, field, replace
from typing import Any, Literal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Form:
    """How chat requests are written for one model: the first way, but for what it was seen to refuse."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    length: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    tools: bool = True
    tool_choice: bool = True
    # Whether calls and tool output stay what they are, or are told in words.
    tool_roles: bool = True
    # Two messages of one role in a row become one.
    merged: bool = False
    # For log-probabilities: at most so many, over at least so many tokens, without reasoning before them.
    logprobs: bool = True
    most_logprobs: int | None = None
    least_tokens: int = 1
    no_reasoning: bool = False
    # For the agent's own request: several replies to one, and the word that a tool has to be called.
    several: bool = True
    required: bool = True


@dataclass(slots=True)
class Learned:
    """Shared by the elicitors of one endpoint. Nothing is learned from a refusal until the other way was accepted."""

    form: Form = field(default_factory=Form)
    # Why a form is not the first one, by its member; and why an elicitor is not asked, by its name.
    refused: dict[str, str] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)
    # Elicitors that gave a list before: what they are refused now is about this step.
    worked: set[str] = field(default_factory=set)

    def accept(self, changes: dict[str, Any], reasons: dict[str, str]) -> None:
        """Keep what made a provider accept a request that it had refused."""
        if changes:
            self.form = replace(self.form, **changes)
            self.refused.update(reasons)
            # Without the provider's words: they may quote the request.
            log.info("a request was refused; from now on %s", ", ".join([f"{k} is {v}" for k, v in changes.items()]))
