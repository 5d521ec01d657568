"""Elicitors and models that say what they were told to say."""

from collections.abc import Callable, Iterable, Mapping

from agentmark.core.distribution import Rational
from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import Elicitation, Situation

Weights = Mapping[str, Rational]


class ScriptedElicitor:
    """Answers with a given list, a list a step, or what a function makes of the situation.

    A list may name more than the candidates: the others are left out, so that one script serves an agent whose tools
    come and go. What stands in a script as text is a fault: the elicitation fails with it.
    """

    name = "scripted"

    def __init__(
        self,
        script: Weights | Iterable[Weights | str] | Callable[[Situation], Weights | str] | None = None,
        *,
        model: str = "scripted",
    ) -> None:
        """Without a script every candidate is as likely as the next."""
        self.model = model
        self.situations: list[Situation] = []
        self._script = script if script is None or callable(script) or isinstance(script, Mapping) else iter(script)

    def elicit(self, situation: Situation) -> Elicitation:
        self.situations.append(situation)
        said = self._next(situation)
        if isinstance(said, str):
            return Elicitation(method=self.name, model=self.model, weights=None, fault=said)
        weights = {name: said[name] for name in situation.names if name in said}
        return Elicitation(method=self.name, model=self.model, weights=weights)

    async def aelicit(self, situation: Situation) -> Elicitation:
        return self.elicit(situation)

    def _next(self, situation: Situation) -> Weights | str:
        if self._script is None:
            return dict.fromkeys(situation.names, 1)
        if isinstance(self._script, Mapping):
            return self._script
        if callable(self._script):
            return self._script(situation)
        said = next(self._script, None)
        if said is None:
            raise ElicitationError(self.name, "the script is at its end")
        return said


class ScriptedChat:
    """A model that answers with the next reply of its script, and remembers what it was asked."""

    def __init__(
        self, script: Iterable[str | ChatReply] | Callable[[ChatRequest], str | ChatReply], *, model: str = "scripted"
    ) -> None:
        self.model = model
        self.requests: list[ChatRequest] = []
        self._script = script if callable(script) else iter(script)

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        said = self._script(request) if callable(self._script) else next(self._script, None)
        if said is None:
            raise ElicitationError("chat", "the script is at its end")
        return ChatReply(text=said) if isinstance(said, str) else said

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        return self.complete(request)
