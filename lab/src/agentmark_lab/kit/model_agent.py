"""An agent whose P_t a real language model states. What the model said is kept by what it was asked, for good."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Protocol

from agentmark.core.distribution import Rational
from agentmark.elicit.chat import Chat, ChatRequest
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import Candidate, Elicitation, Elicitor, Message, Situation
from agentmark_lab.envs.base import Episode
from agentmark_lab.kit.files import made_once


@dataclass(slots=True)
class Effort:
    """What a model was asked, and what it cost. A list from the cache counts with what it cost at the time."""

    calls: int = 0
    unusable: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class ElicitedLists:
    """Lists from a model, kept on disk by what was asked, so that a run can be repeated.

    `run` tells repeated runs apart: the lists of another run are asked for again.
    """

    elicitor: Elicitor
    folder: Path
    run: int = 0
    effort: Effort = field(default_factory=Effort)

    def elicit(self, situation: Situation) -> Elicitation:
        place = self.folder / f"{self._digest(situation)}.json"
        self.effort.calls += 1
        self.effort.cached += place.exists()
        kept = dict(made_once(place, lambda: self._asked(situation)))
        self.effort.seconds += kept.pop("seconds", 0.0)
        said = Elicitation(**kept)
        self.effort.unusable += said.weights is None
        self.effort.input_tokens += said.input_tokens or 0
        self.effort.output_tokens += said.output_tokens or 0
        return said

    def _asked(self, situation: Situation) -> dict[str, Any]:
        start = perf_counter()
        try:
            said = self.elicitor.elicit(situation)
        except ElicitationError as error:
            said = Elicitation(method=self.elicitor.name, model="none", weights=None, fault=error.fault)
        return {**_kept(said), "seconds": perf_counter() - start}

    def _digest(self, situation: Situation) -> str:
        asked: dict[str, Any] = {
            "elicitor": self.elicitor.name,
            "run": self.run,
            "candidates": [[one.name, one.description] for one in situation.candidates],
            "messages": list(situation.messages),
            "details": dict(situation.details),
        }
        return sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:32]


def _kept(said: Elicitation) -> dict[str, Any]:
    """What is kept of an elicitation: what it stated and cost, not what was written."""
    weights = None if said.weights is None else {name: float(value) for name, value in said.weights.items()}  # type: ignore[arg-type]
    return {
        "method": said.method,
        "model": said.model,
        "weights": weights,
        "fault": said.fault,
        "missing_mass": said.missing_mass,
        "attempts": said.attempts,
        "input_tokens": said.input_tokens,
        "output_tokens": said.output_tokens,
    }


def kept_reply(model: Chat, request: ChatRequest, place: Path, effort: Effort) -> str | None:
    """What the model writes, kept like the lists; None if it writes nothing that can be used, which is not kept."""

    def asked() -> list[str | int | float]:
        start = perf_counter()
        reply = model.complete(request)
        return [reply.text, reply.input_tokens or 0, reply.output_tokens or 0, perf_counter() - start]

    try:
        text, read, written, seconds = made_once(place, asked)
    except ElicitationError:
        return None
    effort.calls += 1
    effort.input_tokens += read
    effort.output_tokens += written
    effort.seconds += seconds
    return str(text)


def candidates_of(episode: Episode) -> list[Candidate]:
    """What can be done now, with what the environment says of it, if it says anything."""
    described: Mapping[str, str] = getattr(episode, "descriptions", {})
    return [Candidate(name, described.get(name, "")) for name in episode.behaviors]


class InFixedOrder:
    """An elicitor that shows the options in an order which the situation decides, or `order` where one is set: a run
    repeats, whatever was asked before."""

    def __init__(self, open_elicitor: Callable[[Random], Elicitor], seed: str) -> None:
        self._rng = Random()
        self._elicitor = open_elicitor(self._rng)
        self._seed = seed
        self.name = self._elicitor.name
        self.order: str | None = None

    def elicit(self, situation: Situation) -> Elicitation:
        self._shuffle(situation)
        return self._elicitor.elicit(situation)

    async def aelicit(self, situation: Situation) -> Elicitation:
        self._shuffle(situation)
        return await self._elicitor.aelicit(situation)

    def _shuffle(self, situation: Situation) -> None:
        self._rng.seed(f"{self._seed} {repr(situation) if self.order is None else self.order}")


class Lists(Protocol):
    """Who is asked for a list."""

    def elicit(self, situation: Situation) -> Elicitation: ...


class ModelAgent:
    """P_t of a real model: the goal, what was done and seen so far, and what can be done now. One for each episode."""

    def __init__(self, lists: Lists, *, label: str, history: int = 5, reply_len: int = 600) -> None:
        """The model is shown the latest steps, as in the paper's prompts, with so many characters of each reply."""
        self.label = label
        self._lists = lists
        self._history = history
        self._reply_len = reply_len
        self._steps: list[tuple[str, str]] = []

    @property
    def steps(self) -> Sequence[tuple[str, str]]:
        """What was done so far, and what came of it."""
        return self._steps

    def weights(self, episode: Episode) -> Mapping[str, Rational] | None:
        latest = self._steps[-self._history :]
        messages = told(episode.goal, episode.observation, latest, reply_len=self._reply_len)
        return self._lists.elicit(Situation.of(candidates_of(episode), messages)).weights

    def acted(self, behavior: str, episode: Episode) -> None:
        self._steps.append((behavior, episode.observation))


def told(goal: str, seen: str, steps: Sequence[tuple[str, str]], *, reply_len: int) -> list[Message]:
    """What a model is told: the goal, then the steps with what came of them; before the first, what it sees."""
    messages: list[Message] = [{"role": "user", "content": goal}]
    for behavior, reply in steps:
        messages.append({"role": "assistant", "content": f"I do: {behavior}"})
        messages.append({"role": "tool", "content": reply[:reply_len]})
    if not steps and seen:
        messages.append({"role": "user", "content": seen[:1200]})
    return messages
