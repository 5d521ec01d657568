"""What an elicitor is asked, and what it answers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from agentmark.core.canonical import MAX_SAFE_INTEGER
from agentmark.core.distribution import Rational, first_repeated
from agentmark.errors import SettingError

# The behavior "answer the user now". No provider allows brackets in the name of a tool, so it cannot meet one.
ANSWER = "(answer)"
# What a log calls a behavior that was not among the candidates: its name is the model's own text.
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One behavior the agent may choose: a tool, a subgoal, an action."""

    name: str
    description: str = ""
    # JSON schema of its arguments, for elicitors that ask for them in the same call.
    schema: Mapping[str, Any] | None = None


ANSWER_CANDIDATE = Candidate(ANSWER, "Answer the user now, without calling a tool.")

Candidates = Iterable[Candidate | str] | Mapping[str, str]
# {"role": "system" | "user" | "assistant" | "tool", "content": text}; of an assistant perhaps with "tool_calls":
# [{"id": text, "name": text, "arguments": object or JSON text}]; of a tool perhaps with "tool_call_id" and "name".
Message = Mapping[str, Any]
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Situation:
    """One decision: the conversation or observation so far, and what could be done next."""

    candidates: tuple[Candidate, ...]
    # Chat messages with text content, oldest first. The agent's own conversation is read, never edited.
    messages: tuple[Message, ...]
    # Parts of the situation by name, for prompts that put them in places of their own (a goal, an inventory).
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, candidates: Candidates, messages: str | Sequence[Message], details: Mapping[str, str] | None = None
    ) -> Self:
        """Candidates as objects, names, or a mapping of names to descriptions; messages, or one observation as text."""
        if isinstance(candidates, Mapping):
            listed = [Candidate(name, text) for name, text in candidates.items()]
        else:
            listed = [Candidate(item) if isinstance(item, str) else item for item in candidates]
        if not listed:
            raise SettingError("candidates", "there are none")
        repeated = first_repeated([candidate.name for candidate in listed])
        if repeated is not None:
            raise SettingError("candidates", f"{repeated!r} is there twice")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return cls(tuple(listed), tuple(messages), dict(details or {}))

    @property
    def names(self) -> list[str]:
        return [candidate.name for candidate in self.candidates]

    @property
    def tools(self) -> tuple[Candidate, ...]:
        """The candidates that a provider can be told of as tools, in the agent's order: all but the answer, if any has
        a schema or a tool was called before. Actions and subgoals are none."""
        named = tuple([one for one in self.candidates if one.name != ANSWER and is_tool_name(one.name)])
        called = any(message.get("tool_calls") for message in self.messages)
        return named if called or any(tool.schema is not None for tool in named) else ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a reply makes: the tool's name, and its arguments as an object or as the JSON text of one."""

    name: str
    arguments: Any = field(default=None, repr=False)
    # What results refer to; empty where nobody gave one. Two samples of one call have two.
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One reply of the agent's own model, which the agent may be handed: what it calls, and the reply itself."""

    calls: tuple[ToolCall, ...]
    reply: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """What the model said: a list of weights, or replies whose counts are the list, or why there is neither."""

    method: str
    model: str
    weights: Mapping[str, Rational] | None = None
    # Replies drawn alike and independently (`agentmark.elicit.proposals`), and what tells them apart.
    proposals: tuple[Proposal, ...] | None = field(default=None, repr=False)
    granularity: str = "tool"
    # Why there are no weights; and the same without a word of the model's, which is what a record says.
    fault: str | None = None
    logged_fault: str | None = None
    # Arguments by candidate, where the model was asked for them in the same call.
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    # The share of the model's probability that went to none of the options, and options it never mentioned.
    missing_mass: float | None = None
    unseen: tuple[str, ...] = ()
    attempts: int = 1
    # Where the list is the counts of replies: how many came, and how many calls for one failed. How long it all took.
    samples: int | None = None
    failed: int = 0
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    # What the model wrote, reply by reply. Never logged: it may hold private text.
    replies: tuple[str, ...] = field(default=(), repr=False)

    def as_meta(self) -> dict[str, Any]:
        """What a record says of its elicitation: integers and text, no prompt, no reply."""
        optional: dict[str, Any] = {
            "attempts": self.attempts if self.attempts > 1 else None,
            "missing_ppm": None if self.missing_mass is None else round(self.missing_mass * 1_000_000),
            "unseen": list(self.unseen) or None,
            "samples": whole(self.samples),
            "failed": self.failed or None,
            "latency_ms": None if self.seconds is None else round(self.seconds * 1000),
            "input_tokens": whole(self.input_tokens),
            "output_tokens": whole(self.output_tokens),
        }
        return {
            "elicitor": one_line(self.method),
            "model": one_line(self.model),
            **{name: value for name, value in optional.items() if value is not None},
        }


def is_tool_name(name: str) -> bool:
    """Whether every provider takes it as the name of a tool."""
    return _TOOL_NAME.fullmatch(name) is not None


def whole(count: object) -> int | None:
    """A count as providers should state it; anything else is none."""
    return count if type(count) is int and 0 <= count <= MAX_SAFE_INTEGER else None


def one_line(text: str, limit: int = 300) -> str:
    """Text for a record: Unicode, on one line, and no longer than anyone reads."""
    flat = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


class Elicitor(Protocol):
    """Turns a situation into weights. An upstream that fails raises `ElicitationError`; a reply that cannot be used is
    an `Elicitation` with a fault."""

    @property
    def name(self) -> str: ...

    def elicit(self, situation: Situation) -> Elicitation: ...

    async def aelicit(self, situation: Situation) -> Elicitation: ...
