"""OpenAI's chat completions, which most other providers speak too.

They answer the questions of `agentmark.wire.apis.Api`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall, whole
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message, text_of
from agentmark.wire.shapes import object_at, objects_at, text_at

PATH = "/v1/chat/completions"

# The kinds of tools that the agent runs; each is described under the name of its kind. Others run at the provider,
# inside a reply, and are no decision of the agent's.
_OWN_KINDS = ("function", "custom")
# What leaves the choice open, and whether the agent may then answer. A named tool is the agent's own decision and
# stands; a list of allowed ones leaves those open.
_OPEN_CHOICES = {"auto": True, "required": False, "any": False}


def candidates(body: Mapping[str, Any]) -> list[Candidate]:
    choice = body.get("tool_choice") or "auto"
    allowed = object_at(choice, "allowed_tools")
    if allowed:
        choice = text_at(allowed, "mode")
    if not isinstance(choice, str) or choice not in _OPEN_CHOICES:
        return []
    names = [text_at(_described(tool), "name") for tool in objects_at(allowed, "tools")] if allowed else None
    tools = []
    for tool in objects_at(body, "tools"):
        described = _described(tool)
        name = text_at(described, "name")
        if name and (names is None or name in names):
            tools.append(Candidate(name, text_at(described, "description"), object_at(described, "parameters") or None))
    return left_to_decide(tools, may_answer=_OPEN_CHOICES[choice])


def runs_hosted_tools(body: Mapping[str, Any]) -> bool:
    """Some models look things up by themselves when they are given options for it."""
    return "web_search_options" in body or any(_own_kind(tool) is None for tool in objects_at(body, "tools"))


def calls_one_at_most(body: Mapping[str, Any]) -> bool:
    return body.get("parallel_tool_calls") is False


def conversation(body: Mapping[str, Any]) -> list[Message]:
    return [_read_message(said) for said in objects_at(body, "messages")]


def forced(body: Mapping[str, Any], behavior: str, rung: Rung) -> dict[str, Any] | None:
    if rung == Rung.INSTRUCTION:
        said = {"role": "user", "content": instruction(behavior)}
        return {**body, "messages": [*objects_at(body, "messages"), said]}
    if behavior == ANSWER:
        # Nor could a tool of the provider's be used on the way to the answer then.
        is_forbidden = rung == Rung.NAMED and not runs_hosted_tools(body)
        return {**body, "tool_choice": "none"} if is_forbidden else None
    chosen = [tool for tool in objects_at(body, "tools") if text_at(_described(tool), "name") == behavior]
    kind = (_own_kind(chosen[-1]) if chosen else None) or "function"
    named = {"type": kind, kind: {"name": behavior}}
    if rung == Rung.NAMED:
        return {**body, "tool_choice": named}
    allowed = {"mode": "required", "tools": [named]}
    return {**body, "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}


def choices(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = objects_at(reply, "choices")
    return [{**reply, "choices": [choice]} for choice in listed] or [dict(reply)]


def calls(reply: Mapping[str, Any]) -> list[ToolCall]:
    messages = [object_at(choice, "message") for choice in objects_at(reply, "choices")]
    return [_call(call) for said in messages for call in _calls_in(said)]


def tokens(reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = object_at(reply, "usage")
    return whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens"))


def text(reply: Mapping[str, Any]) -> str:
    """What the first choice says."""
    for choice in objects_at(reply, "choices"):
        said = object_at(choice, "message")
        return _text_parts(said.get("content")) or text_at(said, "refusal")
    return ""


def stream() -> "_Stream":
    return _Stream()


@dataclass(slots=True)
class _Call:
    """A call that is being put together."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def is_another(self, call_id: str, name: str) -> bool:
        """Whether a piece in this call's slot begins another call.

        Some providers give every parallel call the index 0, and some give each piece of one call a new id: so another
        call begins with another id and a name together, not with one of them alone.
        """
        return bool(self.name and name and call_id) and call_id != self.id

    def add(self, call_id: str, name: str, arguments: str) -> None:
        """A name may come in pieces, and some providers repeat it whole."""
        self.id = self.id or call_id
        if name != self.name:
            self.name += name
        self.pieces.append(arguments)


@dataclass(slots=True)
class _Choice:
    """One choice of a streamed reply. Its calls stand in slots, which are numbered as the provider numbers them."""

    slots: dict[int, list[_Call]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    finished: bool = False

    def add(self, delta: Mapping[str, Any]) -> None:
        self.said.append(_text_parts(delta.get("content")))
        self.refused.append(text_at(delta, "refusal"))
        for position, part in enumerate(_calls_in(delta)):
            self._add_call(position, part)

    def _add_call(self, position: int, part: Mapping[str, Any]) -> None:
        """Some providers give no index: then the position in the event stands for it."""
        index = part.get("index")
        slot = self.slots.setdefault(index if isinstance(index, int) else position, [])
        call_id = text_at(part, "id")
        described = _described(part)
        name = text_at(described, "name")
        if not slot or slot[-1].is_another(call_id, name):
            slot.append(_Call())
        slot[-1].add(call_id, name, text_at(described, "arguments") or text_at(described, "input"))

    @property
    def calls(self) -> Iterator[ToolCall]:
        for _, slot in sorted(self.slots.items()):
            for call in slot:
                yield ToolCall(call.name, "".join(call.pieces), call.id)


class _Stream:
    """Puts chunks together: `choices[].delta` with pieces of text and of calls, up to a `finish_reason`.

    The line `[DONE]` after the last chunk is no JSON: who reads it may take the reply as finished without more.
    """

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        for position, part in enumerate(objects_at(event, "choices")):
            index = part.get("index")
            choice = self._choices.setdefault(index if isinstance(index, int) else position, _Choice())
            choice.add(object_at(part, "delta"))
            if part.get("finish_reason"):
                choice.finished = True

    @property
    def calls(self) -> list[ToolCall]:
        return [call for _, choice in sorted(self._choices.items()) for call in choice.calls]

    @property
    def text(self) -> str:
        """What the first choice says."""
        for _, choice in sorted(self._choices.items()):
            return "".join(choice.said) or "".join(choice.refused)
        return ""

    @property
    def finished(self) -> bool:
        return bool(self._choices) and all(choice.finished for choice in self._choices.values())


def _own_kind(tool: Mapping[str, Any]) -> str | None:
    """The kind of a tool that the agent runs, or of a call of one: the member that describes it. None: not its own."""
    for kind in _OWN_KINDS:
        if kind in tool:
            return kind
    return None


def _described(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = _own_kind(tool)
    return {} if kind is None else object_at(tool, kind)


def _calls_in(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of a message, or the pieces of them: also of one that is said as it was before there were several."""
    called = object_at(said, "function_call")
    return [*objects_at(said, "tool_calls"), *([{"function": called}] if called else [])]


def _text_parts(content: object) -> str:
    """What a reply says, plain or in parts; parts of other kinds, such as thinking, are not said to the user."""
    if isinstance(content, str):
        return content
    return "".join([text_at(part, "text") for part in content]) if isinstance(content, list) else ""


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = _described(call)
    arguments = function.get("arguments", function.get("input", ""))
    return ToolCall(text_at(function, "name"), arguments, text_at(call, "id"))


def _read_message(said: Mapping[str, Any]) -> Message:
    made = [_call(call) for call in _calls_in(said)]
    shown = text_of(said.get("content")) or text_at(said, "refusal")
    return message(text_at(said, "role") or "user", shown, made, answers=text_at(said, "tool_call_id"))
