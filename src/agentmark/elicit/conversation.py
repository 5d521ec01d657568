"""A conversation with its roles kept, in the shapes that models take.

What a tool returned may come from anybody. It stays in a message of the role `tool`, as in the agent's own turn: text
in it that looks like a user's message is still a tool's output. Where a model knows no such role, it is a line of JSON.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentmark.elicit.situation import Candidate, Message

# What stands for the output of a call that has none: providers refuse a call without an answer.
NO_OUTPUT = "(no output)"
# What a call is called whose name nobody knows.
SOME_TOOL = "tool"
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def settled(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The same conversation, in which every call has an id, and every tool message the id and name of its call.

    A tool message without an id answers the first open call of its name, or the first at all. One that answers no open
    call gets one: the assistant's message before it is given a call without arguments. So its text stays in the role
    `tool`, and providers, who refuse output that nobody asked for, take it. A call that was never answered gets the
    answer "(no output)".
    """
    given = [call["id"] for message in messages for call in _calls(message)]
    turns = _Turns([str(id_) for id_ in [*given, *[message.get("tool_call_id") for message in messages]] if id_])
    for message in messages:
        role = str(message.get("role", "user"))
        if role in ("tool", "function"):
            turns.answer(message)
        elif role == "assistant":
            turns.speak(message)
        else:
            turns.close()
            turns.messages.append({**message, "role": role})
    turns.close()
    return turns.messages


class _Turns:
    """Messages as they are settled, and the calls that wait for their output."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.messages: list[dict[str, Any]] = []
        self._taken = set(ids)
        self._made = 0
        # The assistant's message whose calls are being answered, and those that are not yet, by id.
        self._speaker: dict[str, Any] | None = None
        self._open: dict[str, str] = {}

    def speak(self, message: Message) -> None:
        self.close()
        calls = [{**call, **self._call(call["id"], call["name"], call["arguments"])} for call in _calls(message)]
        spoken = {"content": None, **message, "role": "assistant"}
        spoken.pop("tool_calls", None)
        self._speaker = {**spoken, "tool_calls": calls} if calls else spoken
        self._open = {call["id"]: call["name"] for call in calls}
        self.messages.append(self._speaker)

    def answer(self, message: Message) -> None:
        stated, name = message.get("tool_call_id"), message.get("name")
        named = [id_ for id_, called in self._open.items() if name in (None, called)]
        if stated in self._open:
            id_ = str(stated)
        elif stated is None and named:
            id_ = named[0]
        else:
            id_ = self._asked_for(stated, name)
        called = self._open.pop(id_)
        self.messages.append({"role": "tool", "tool_call_id": id_, "name": called, "content": message.get("content")})

    def close(self) -> None:
        """Another message follows: what was not answered by now never will be."""
        for id_, name in self._open.items():
            self.messages.append({"role": "tool", "tool_call_id": id_, "name": name, "content": NO_OUTPUT})
        self._open, self._speaker = {}, None

    def _asked_for(self, id_: object, name: object) -> str:
        """A call for output that nobody asked for."""
        if self._speaker is None:
            self._speaker = {"role": "assistant", "content": None}
            self.messages.append(self._speaker)
        mine = [call["id"] for call in self._speaker.get("tool_calls", ())]
        call = self._call(None if id_ in mine else id_, name, {})
        self._speaker["tool_calls"] = [*self._speaker.get("tool_calls", ()), call]
        self._open[call["id"]] = call["name"]
        return str(call["id"])

    def _call(self, id_: object, name: object, arguments: object) -> dict[str, Any]:
        called = name if isinstance(name, str) and name else SOME_TOOL
        return {"id": str(id_) if id_ else self._new_id(), "name": called, "arguments": arguments}

    def _new_id(self) -> str:
        """Nine letters and digits, which is what the strictest provider takes. Counted, so that prompts repeat."""
        while True:
            self._made += 1
            made = f"call{self._made:05d}"
            if made not in self._taken:
                self._taken.add(made)
                return made


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Settled messages as chat completions take them."""
    return [_chat_message(message) for message in messages]


def _chat_message(message: Message) -> dict[str, Any]:
    """Members that are nobody's business here, such as what a model thought and wants back, are passed on."""
    known = {"role", "content", "tool_calls", "tool_call_id", *(["name"] if message["role"] == "tool" else [])}
    written = {"role": message["role"], "content": _as_sent(message.get("content"))}
    calls = _calls(message)
    if calls:
        written["content"] = written["content"] or None
        written["tool_calls"] = [_chat_call(call) for call in calls]
    if "tool_call_id" in message:
        written["tool_call_id"] = message["tool_call_id"]
    return {**written, **{name: value for name, value in message.items() if name not in known}}


def _chat_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": arguments_text(call["arguments"])}
    rest = {name: value for name, value in call.items() if name not in ("id", "name", "arguments")}
    return {"id": call["id"], "type": "function", "function": function, **rest}


def tool_definitions(tools: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The agent's tools as chat completions take them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.schema or _NO_PARAMETERS),
            },
        }
        for tool in tools
    ]


def in_words(messages: Sequence[Message], *, outputs: bool = True) -> list[dict[str, Any]]:
    """Settled messages without calls and without the role `tool`, for models that know neither; or without calls only.

    A call is a line of JSON among the assistant's words. A tool's output is a line of JSON in a user's message, since
    there is no role left for it: it says what it is, and nothing in it can end the line.
    """
    written = []
    for message in messages:
        text = text_of(message.get("content"))
        if message["role"] == "tool" and not outputs:
            written.append({"role": "tool", "name": message.get("name", SOME_TOOL), "content": text})
            continue
        if message["role"] == "tool":
            output = {"tool": message.get("name", SOME_TOOL), "output": text}
            written.append({"role": "user", "content": json_line({"tool_output": output})})
            continue
        calls = [
            json_line({"tool_call": {"tool": call["name"], "arguments": read_arguments(call["arguments"])}})
            for call in _calls(message)
            # One that we made up for the sake of its output says nothing.
            if (call["name"], call["arguments"]) != (SOME_TOOL, {})
        ]
        written.append({"role": message["role"], "content": "\n".join([*([text] if text else []), *calls])})
    return written


def texts_only(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages whose contents are plain text: a part that is none is named by its kind."""
    return [{**message, "content": text_of(message.get("content"))} for message in messages]


def merged(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message, for models that want roles to alternate."""
    written: list[dict[str, Any]] = []
    for message in messages:
        plain = message["role"] != "tool" and not message.get("tool_calls")
        last = written[-1] if written else {}
        if plain and last.get("role") == message["role"] and not last.get("tool_calls"):
            texts = [text_of(last.get("content")), text_of(message.get("content"))]
            written[-1] = {**last, "content": "\n\n".join([text for text in texts if text])}
        else:
            written.append(dict(message))
    return written


def as_lines(messages: Sequence[Message]) -> str:
    """A conversation as one text, for models that take no messages: a line for each, its content as JSON, so that no
    content can begin a line of its own."""
    return "\n".join([line for message in messages for line in _lines(message)])


def _lines(message: Message) -> list[str]:
    role = str(message.get("role", "user"))
    text = text_of(message.get("content"))
    calls = [
        f"[{role} calls] {json_line(call['name'])} {json_line(read_arguments(call['arguments']))}"
        for call in _calls(message)
    ]
    return [*([f"[{role}] {json_line(text)}"] if text else []), *calls]


def text_of(content: object) -> str:
    """The text of a message: plain, or in parts of which only text can be shown."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part if isinstance(part, Mapping) else {"text": str(part)} for part in content]
        return " ".join([str(part["text"]) if "text" in part else f"({part.get('type', 'part')})" for part in parts])
    return json.dumps(content, ensure_ascii=False, default=str)


def arguments_text(arguments: object) -> str:
    """Arguments of a call as JSON text, which is how chat completions carry them."""
    if isinstance(arguments, str):
        return arguments or "{}"
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)


def json_line(value: object) -> str:
    """JSON on one line, whatever reads lines: Unicode has line ends that JSON leaves as they are."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    for end in ("\x85", "\u2028", "\u2029"):
        text = text.replace(end, f"\\u{ord(end):04x}")
    return text


def _calls(message: Message) -> list[dict[str, Any]]:
    """A message's calls in the common form, from that form or from that of chat completions."""
    found = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        rest = {name: value for name, value in call.items() if name not in ("type", "function")}
        named = {"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")}
        found.append({**rest, **named})
    return found


def read_arguments(arguments: object) -> object:
    """Arguments that came as JSON text, read; text that is none stays text."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _as_sent(content: object) -> object:
    """Parts stay parts: what the model saw in its own turn, a picture for instance, it sees here."""
    if isinstance(content, list) and content and all(isinstance(part, Mapping) for part in content):
        return content
    return text_of(content)
