"""How lists were once asked for: the whole conversation flattened into one text, the role of each line in brackets.
What a tool returned can then pass for the user's words. Kept for comparison only."""

import json
from collections.abc import Sequence

from agentmark.elicit.prompts import GENERAL, Prompt
from agentmark.elicit.situation import Candidate, Message, Situation

_SYSTEM = (
    "You plan the next step of an agent. You are shown its conversation and its options. State how likely it is that"
    " each option is what the agent should do next. Reply with one JSON object only: every option's exact name with its"
    " probability, a number from 0 to 1. They sum to 1."
)
_EXAMPLE: tuple[Message, Message] = (
    {
        "role": "user",
        "content": "Conversation:\n[user] Is it warmer in Oslo or in Rome today?\n[assistant calls] weather Oslo\n"
        "[tool] 4 degrees\n\nOptions:\n- search_news\n- weather: current weather of a city\n- (answer)\n\n"
        'Names: ["search_news", "weather", "(answer)"]',
    },
    {"role": "assistant", "content": '{"search_news": 0.02, "weather": 0.93, "(answer)": 0.05}'},
)


def flat(messages: Sequence[Message]) -> str:
    """A line for each message, in which a line's end in a tool's output begins a line like any other."""
    return "\n".join([line for message in messages for line in _lines(message)])


def _lines(message: Message) -> list[str]:
    role = message["role"]
    said = [f"[{role}] {message['content']}"] if message.get("content") else []
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return said + [f"[{role} calls] {function['name']} {function['arguments']}" for function in functions]


def _messages(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    options = "\n".join([f"- {c.name}: {c.description}" if c.description else f"- {c.name}" for c in shown])
    names = json.dumps([candidate.name for candidate in shown], ensure_ascii=False)
    question = f"Conversation:\n{flat(situation.messages)}\n\nOptions:\n{options}\n\nNames: {names}"
    return [{"role": "system", "content": _SYSTEM}, *_EXAMPLE, {"role": "user", "content": question}]


FLAT = Prompt("flat", _messages, GENERAL.parse, GENERAL.schema)
