"""What the adapters share: from tools to candidates, and from a reply to what was done."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.situation import ANSWER, ANSWER_CANDIDATE, Candidate, Message

# What frameworks call the sides of a conversation.
_ROLES = {
    **dict.fromkeys(("human", "user-prompt", "retry-prompt", "retry-feedback"), "user"),
    **dict.fromkeys(("ai", "model", "text"), "assistant"),
    "system-prompt": "system",
    "tool-return": "tool",
}


def with_answer(tools: Iterable[Candidate], *, may_answer: bool = True) -> list[Candidate]:
    """The tools, and the choice to answer without one unless the agent must call one."""
    return [*tools, *([ANSWER_CANDIDATE] if may_answer else [])]


def message(role: str, text: str, calls: Iterable[tuple[str, Any]] = ()) -> Message:
    """One message of the conversation as elicitors read it: its text, and the calls it makes with their arguments."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"role": _ROLES.get(role, role), "content": text, **({"tool_calls": made} if made else {})}


def messages_of_items(instructions: str | None, items: str | Iterable[Mapping[str, Any]]) -> list[Message]:
    """A conversation from the items of OpenAI's Responses API: what was said, called and returned."""
    messages = [message("system", instructions)] if instructions else []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = str(item.get("type", "message"))
        if kind == "message":
            messages.append(message(str(item.get("role", "user")), text_of(item.get("content"))))
        elif kind.endswith("_call_output"):
            messages.append(message("tool", text_of(item.get("output"))))
        elif kind.endswith("_call"):
            name = item.get("name", kind.removesuffix("_call"))
            arguments = next((item[field] for field in ("arguments", "input", "action") if field in item), "")
            messages.append(message("assistant", "", [(name, arguments)]))
    return messages


def ends_stream(event: Any, items: list[Any]) -> bool:
    """Whether an event ends a stream of the Responses API; then `items` holds all that was put out.

    Items are collected on the way, because some providers leave them out of the last event.
    """
    if event.type == "response.output_item.done":
        items.append(event.item)
    ends = event.type in ("response.completed", "response.incomplete")
    if ends and event.response.output:
        items[:] = event.response.output
    return ends


def text_of(content: object) -> str:
    """The text of a content: plain, or in parts of which only text can be read."""
    if isinstance(content, list | tuple):
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        return " ".join([part for part in parts if isinstance(part, str)])
    return "" if content is None else str(content)


def settings_of(request: ChatRequest) -> dict[str, Any]:
    """What a side call asks of the model besides its messages, if anything."""
    settings = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    return {name: value for name, value in settings.items() if value is not None}


def may_force(profile: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a model takes a forced choice of a tool, and goes on thinking then. Reads Pydantic AI's profiles."""
    asked = [value for name, value in settings.items() if "thinking" in name or "reasoning" in name]
    thinks = any(asked) or profile.get("thinking_enabled_by_default") or profile.get("thinking_always_enabled")
    refuses = not profile.get("supports_forced_tool_choice_with_thinking", True)
    stops = profile.get("forced_tool_choice_disables_thinking", False)
    return profile.get("supports_forced_tool_choice", True) and not (thinks and (refuses or stops))


def model_name(model: Any) -> str:
    """What a model object calls itself, or its class."""
    names = [getattr(model, name, None) for name in ("model_name", "model")]
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)


def chat_reply(text: object, usage: Any) -> ChatReply:
    """What came back from a side call, with token counts from a mapping or an object as far as it has them."""
    counts = usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    return ChatReply(text=str(text), input_tokens=counts.get("input_tokens"), output_tokens=counts.get("output_tokens"))


def candidates_of_body(body: Mapping[str, Any]) -> list[Candidate]:
    """What the body of a chat completion leaves to decide: its functions and the answer; nothing if one is named."""
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    named = {one["name"]: one for one in functions if one.get("name")}
    choice = body.get("tool_choice") or "auto"
    if choice not in ("auto", "required", "any") or len(named) < (1 if choice == "auto" else 2):
        return []
    listed = [Candidate(name, one.get("description") or "", one.get("parameters")) for name, one in named.items()]
    return with_answer(listed, may_answer=choice == "auto")


def forced_body(body: Mapping[str, Any], behavior: str | None) -> dict[str, Any]:
    """The body with one way to go. Tools that run at the provider are no decision of the agent's: they stay.

    For an answer the functions stay too, where `tool_choice` can forbid them: some providers want those that the
    conversation called before to be defined.
    """
    hosted = [tool for tool in body.get("tools") or () if "function" not in tool]
    if behavior is None:
        return dict(body)
    if behavior == ANSWER:
        return {**body, "tools": hosted} if hosted else {**body, "tool_choice": "none"}
    chosen = [tool for tool in body["tools"] if tool.get("function", {}).get("name") == behavior]
    return {**body, "tools": [*hosted, *chosen], "tool_choice": {"type": "function", "function": {"name": behavior}}}


def what_was_done(calls: Sequence[str], chosen: str | None) -> str:
    """The behavior that a reply shows, from the names of the tools it calls.

    Several calls of the chosen tool are obedience; a reply that also calls another tool is not.
    """
    if not calls:
        return ANSWER
    done = next((name for name in calls if name != chosen), calls[0])
    # A model may call a tool by any name it makes up; a record holds no empty or broken text.
    return done.encode("utf-8", "replace").decode("utf-8") or "(unnamed)"


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
