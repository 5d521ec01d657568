"""A language model at work in the office: AgentMark decides which tool, the model fills in its arguments."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentmark.decide.decider import Decider
from agentmark.demo.office import ANSWER_OPTION, Office, Task, Tool
from agentmark.elicit.chat import Chat, ChatReply, ChatRequest
from agentmark.elicit.prompts import transcript
from agentmark.elicit.situation import ANSWER, Message

# What the model is shown: the request and the last few steps, shortened. Prompts are what a small machine waits for.
SHOWN_STEPS, SHOWN_CHARS = 2, 60
# Two texts of forty characters fit the first: what is cut off in the middle is no JSON.
MAX_ARGUMENT_TOKENS, MAX_ANSWER_TOKENS = 48, 24


class Ending(StrEnum):
    """How a task ended."""

    DONE = "done"
    NOT_DONE = "not done"
    # There was no time left to go on: it says nothing of the model.
    CUT_SHORT = "cut short"


@dataclass(frozen=True, slots=True)
class Episode:
    """How one task went."""

    request: str
    ending: Ending
    steps: tuple[tuple[str, str], ...]
    input_tokens: int
    output_tokens: int


class Assistant:
    """One model at work. It has no state: every episode begins in a fresh office."""

    def __init__(self, chat: Chat, rng: random.Random) -> None:
        self._chat = chat
        self._rng = rng

    def work(
        self, task: Task, decider: Decider, *, max_steps: int, may_go_on: Callable[[int], bool] = lambda _: True
    ) -> Episode:
        """Decide and act until the task is done, the model answers, the steps are used up, or `may_go_on` says no: it
        is asked after each step, and told how many there were.

        The user sees when it is done, and stops the work: small models do not know when to, and would undo it.
        """
        office, steps = Office(), list[tuple[str, str]]()
        bill, ending = _Bill(), Ending.CUT_SHORT
        may_decide = True
        while may_decide:
            tools = office.tools()
            messages = _messages(task, steps)
            decision = decider.decide([*[tool.candidate for tool in tools.values()], ANSWER_OPTION], messages)
            bill.add(decision.elicitation.input_tokens, decision.elicitation.output_tokens)
            # Without a usable list the agent decides for itself; this one then has no opinion.
            behavior = decision.behavior or self._rng.choice([*tools, ANSWER])
            if behavior == ANSWER:
                office.answer = self._answer(messages, bill)
                steps.append((ANSWER, office.answer))
            else:
                arguments = self._arguments(tools[behavior], messages, bill)
                said = tools[behavior].call(arguments)
                steps.append((_call(behavior, arguments), said))
            decider.observe(decision, behavior)
            may_decide = may_go_on(len(steps))
            if task.done(office) or office.answer is not None or len(steps) == max_steps:
                ending = Ending.DONE if task.done(office) else Ending.NOT_DONE
                break
        return Episode(task.request, ending, tuple(steps), bill.input_tokens, bill.output_tokens)

    def _answer(self, messages: list[Message], bill: "_Bill") -> str:
        request = _request(messages, "Answer the user in one short sentence.", MAX_ANSWER_TOKENS)
        return bill.of(self._chat.complete(request)).text.strip()

    def _arguments(self, tool: Tool, messages: list[Message], bill: "_Bill") -> dict[str, Any]:
        if not tool.parameters:
            return {}
        ask = f"The tool {tool.name} is called next. Write its arguments as JSON: {', '.join(tool.parameters)}."
        text = bill.of(self._chat.complete(_request(messages, ask, MAX_ARGUMENT_TOKENS, tool.schema))).text
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return arguments if isinstance(arguments, dict) else {}


class _Bill:
    """Tokens of an episode, as far as the model reports them."""

    def __init__(self) -> None:
        self.input_tokens = self.output_tokens = 0

    def add(self, input_tokens: int | None, output_tokens: int | None) -> None:
        self.input_tokens += input_tokens or 0
        self.output_tokens += output_tokens or 0

    def of(self, reply: ChatReply) -> ChatReply:
        self.add(reply.input_tokens, reply.output_tokens)
        return reply


def _messages(task: Task, steps: list[tuple[str, str]]) -> list[Message]:
    messages: list[Message] = [{"role": "user", "content": task.request}]
    for did, said in steps[-SHOWN_STEPS:]:
        messages.append({"role": "assistant", "content": did[:SHOWN_CHARS]})
        messages.append({"role": "tool", "content": said[:SHOWN_CHARS]})
    return messages


def _request(
    messages: list[Message], ask: str, max_tokens: int, schema: Mapping[str, Any] | None = None
) -> ChatRequest:
    text = f"{transcript(messages)}\n\n{ask}"
    return ChatRequest(
        messages=[{"role": "system", "content": "You assist in an office."}, {"role": "user", "content": text}],
        schema=schema,
        max_tokens=max_tokens,
        temperature=0.0,
    )


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join([f'{key}={value!r}' for key, value in arguments.items()])})"
