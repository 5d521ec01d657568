"""What a request says and what a reply is, whatever the API: the shape that the model behind the provider knows."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

# A toy tokeniser: words with the blank before them, and single signs. Close enough for counts and for cutting short.
_TOKEN = re.compile(r"</?think>|[^\S\n]*\w+|[^\S\n]*[^\w\s]|\s+")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. Arguments that are no JSON object are read as none."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: of the system, the user, the assistant (with calls), or a tool (with the call it answers)."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """What `tool_choice` leaves open: which tools (None: all of them), and whether a plain answer."""

    names: tuple[str, ...] | None = None
    may_answer: bool = True

    @property
    def is_forced(self) -> bool:
        return not self.may_answer

    @property
    def is_narrowed(self) -> bool:
        """Whether it says more than "auto" or "none" do."""
        return self.is_forced or bool(self.names)


AUTO = Choice()
NONE = Choice(names=())
REQUIRED = Choice(may_answer=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, read."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice = AUTO
    # How many replies.
    count: int = 1
    temperature: float | None = None
    max_tokens: int | None = None
    parallel: bool = True
    # The JSON schema the reply shall follow; or any JSON object; or neither.
    schema: Mapping[str, Any] | None = None
    json_object: bool = False
    # Alternatives to report for each token; None: no log-probabilities at all.
    top_logprobs: int | None = None
    # Whether the request itself asks the model to think (None: it does not say).
    thinking: bool | None = None
    is_stream: bool = False

    @property
    def allowed(self) -> tuple[str, ...]:
        """The tools that may be called."""
        names = [tool.name for tool in self.tools]
        return tuple([name for name in names if self.choice.names is None or name in self.choice.names])


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token of a reply, with its log-probability and its likeliest alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply of the model."""

    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    is_cut_short: bool = False
    # Of the text's tokens, if they were asked for.
    tokens: tuple[TokenInfo, ...] | None = None

    @property
    def thinking_tokens(self) -> int:
        return len(tokens_of(self.thinking))

    @property
    def output_tokens(self) -> int:
        """What the reply costs; a call costs its arguments and a few tokens around them."""
        spoken = self.thinking_tokens + len(tokens_of(self.text))
        return max(1, spoken + sum([len(tokens_of(call.arguments_json)) + 6 for call in self.calls]))


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a request and its replies."""

    input: int
    cached: int
    output: int
    thinking: int

    @classmethod
    def of(cls, prompt_chars: int, cached_chars: int, replies: Iterable[Reply]) -> "Usage":
        """About four characters of JSON make a token of the prompt."""
        listed = list(replies)
        thinking = sum([reply.thinking_tokens for reply in listed])
        output = sum([reply.output_tokens for reply in listed])
        return cls(max(1, ceil(prompt_chars / 4)), cached_chars // 4, output, thinking)

    @property
    def total(self) -> int:
        return self.input + self.output


def tokens_of(text: str) -> list[str]:
    """A text as tokens, which joined are the text."""
    return _TOKEN.findall(text)


def arguments_of(value: object) -> Mapping[str, Any]:
    """The arguments of a call as an object, from JSON text or from an object."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def text_of(content: object) -> str:
    """The text of a content: plain, or the text of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text", "") if isinstance(part, Mapping) else part for part in content]
        return "\n".join([part for part in parts if isinstance(part, str) and part])
    return ""


def pieces(text: str, size: int = 3) -> list[str]:
    """A text in pieces of a few tokens, as streams carry it."""
    tokens = tokens_of(text)
    return ["".join(tokens[start : start + size]) for start in range(0, len(tokens), size)]
