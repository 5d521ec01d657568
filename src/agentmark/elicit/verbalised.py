"""The paper's way: the model writes its list as JSON. Works with every chat model."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from agentmark.elicit.chat import Chat, ChatElicitor, ChatRequest, Dialogue
from agentmark.elicit.orders import checked_orders, mean_list, shuffled
from agentmark.elicit.parse import ParseFault
from agentmark.elicit.prompts import GENERAL, Prompt
from agentmark.elicit.situation import Candidate, Elicitation, Message, Situation


class Verbalised(ChatElicitor):
    """Asks for the list in words, options in shuffled order, with one retry that says what was wrong.

    With `orders`, it is asked in several orders, each drawn by itself, and the lists are averaged. An order in which no
    usable list was written is left out: whether a list is usable depends on its own order and words alone, so those
    that are left say on average what a single usable list says.
    """

    name: ClassVar[str] = "verbalised"

    def __init__(
        self,
        chat: Chat | None = None,
        *,
        prompt: Prompt = GENERAL,
        orders: int = 1,
        strict_schema: bool = True,
        temperature: float | None = None,
        max_tokens: int | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`strict_schema` asks the provider to enforce the shape, where it can. `rng` shuffles the options."""
        super().__init__(chat)
        self.prompt = prompt
        self._orders = checked_orders(orders)
        self._strict_schema = strict_schema
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._rng = rng or random.SystemRandom()

    def dialogues(self, situation: Situation) -> list[Dialogue]:
        return [self._ask(situation, order) for order in shuffled(situation.candidates, self._orders, self._rng)]

    def joined(self, said: Sequence[Elicitation]) -> Elicitation:
        usable = [part for part in said if part.weights is not None]
        if len(usable) < 2:
            return usable[0] if usable else said[0]
        unseen = [name for name in usable[0].unseen if all(name in part.unseen for part in usable)]
        weights = mean_list([part.weights for part in usable if part.weights is not None])
        return replace(usable[0], weights=weights, unseen=tuple(unseen))

    def _ask(self, situation: Situation, shown: Sequence[Candidate]) -> Dialogue:
        messages = self.prompt.messages(situation, shown)
        schema = self.prompt.schema(shown) if self._strict_schema else None
        fault, kind = "", ""
        for retries_left in (1, 0):
            reply = yield ChatRequest(
                messages=messages,
                tools=situation.tools if self.prompt.keeps_roles else (),
                schema=schema,
                temperature=self._temperature,
                max_tokens=self._max_tokens,
            )
            try:
                stated = self.prompt.parse(reply.text, situation.names)
            except ParseFault as refused:
                fault, kind = str(refused), refused.kind
                if retries_left:
                    messages = [*messages, *_correction(reply.text, fault)]
                continue
            return Elicitation(
                method=self._method,
                model=self.chat.model,
                weights=stated.weights,
                arguments=stated.arguments,
                unseen=stated.unstated,
            )
        return Elicitation(method=self._method, model=self.chat.model, weights=None, fault=fault, logged_fault=kind)

    @property
    def _method(self) -> str:
        return self.name if self.prompt is GENERAL else f"{self.name}/{self.prompt.name}"


def _correction(said: str, fault: str) -> list[Message]:
    """What the model is told before its second try."""
    return [
        {"role": "assistant", "content": said[:4000] or "(nothing)"},
        {"role": "user", "content": f"That cannot be used: {fault}. Reply again with the corrected JSON object only."},
    ]
