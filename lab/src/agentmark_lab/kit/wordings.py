"""Lists that a model states in one situation, with what it sees now in several wordings.

A local model is shown what it sees now last of all: whatever stands before that is computed once for all wordings. A
model behind a URL is asked for each list by itself. What was said is kept by what was asked, for good.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Protocol

from agentmark.core.distribution import BehaviorDistribution
from agentmark.elicit.logits import OPENING, one_token_labels
from agentmark.elicit.situation import Message, Situation
from agentmark.elicit.tokens import Ask, TokenModel
from agentmark_lab.kit.files import made_once
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, InFixedOrder, told

_QUESTION = "Reply with one line: the word Choice, a colon, and the letter of your next step."


@dataclass(frozen=True, slots=True)
class Moment:
    """A step at which a list is wanted: what came before, and what can be done. `order` decides in which order the
    options are shown."""

    goal: str
    # What was done before and seen then, and what was done last: what is seen now is not among them.
    steps: tuple[tuple[str, str], ...]
    last: str
    options: tuple[str, ...]
    order: str

    @property
    def shown(self) -> list[str]:
        options = list(self.options)
        Random(self.order).shuffle(options)
        return options


class Wordings(Protocol):
    """Whoever states the lists: one for each wording of what is seen now, None where it cannot be used."""

    def lists(self, moment: Moment, words: Sequence[str]) -> list[BehaviorDistribution | None]: ...


class ByLabels:
    """A local model: the options are lettered, and the probabilities of the letters are the list."""

    def __init__(self, model: TokenModel, folder: Path, effort: Effort) -> None:
        self._model = model
        self._folder = folder
        self._effort = effort

    def lists(self, moment: Moment, words: Sequence[str]) -> list[BehaviorDistribution | None]:
        asked = json.dumps([_QUESTION, asdict(moment), list(words)], sort_keys=True)
        place = self._folder / f"{sha256(asked.encode()).hexdigest()[:32]}.json"
        self._effort.calls += len(words)
        self._effort.cached += len(words) if place.exists() else 0
        kept = made_once(place, lambda: self._asked(moment, words))
        self._effort.input_tokens += kept["tokens"]
        self._effort.seconds += kept["seconds"]
        return [_usable(weights) for weights in kept["weights"]]

    def _asked(self, moment: Moment, words: Sequence[str]) -> dict[str, Any]:
        start = perf_counter()
        shown = moment.shown
        labels = one_token_labels(self._model, len(shown))
        prompts = [self._model.prompt(_messages(moment, labels, said), OPENING) for said in words]
        shared = _common_beginning(prompts)
        wanted = frozenset(token for _, token in labels)
        readings = self._model.read(shared, [Ask(tuple(prompt[len(shared) :]), wanted) for prompt in prompts])
        return {
            "weights": [
                {name: one.probabilities[token] for name, (_, token) in zip(shown, labels, strict=True)}
                for one in readings
            ],
            "tokens": len(shared) + sum([len(prompt) - len(shared) for prompt in prompts]),
            "seconds": perf_counter() - start,
        }


class ByElicitor:
    """Any other model, by the elicitor that it is asked with."""

    def __init__(self, elicitor: InFixedOrder, folder: Path, effort: Effort, *, reply_len: int) -> None:
        self._elicitor = elicitor
        self._folder = folder
        self._effort = effort
        self._reply_len = reply_len

    def lists(self, moment: Moment, words: Sequence[str]) -> list[BehaviorDistribution | None]:
        self._elicitor.order = moment.order
        # What was said in another order is another answer.
        run = int(sha256(moment.order.encode()).hexdigest()[:8], 16)
        lists = ElicitedLists(self._elicitor, self._folder, run, self._effort)
        found = []
        for said in words:
            messages = told(moment.goal, "", [*moment.steps, (moment.last, said)], reply_len=self._reply_len)
            found.append(_usable(lists.elicit(Situation.of(list(moment.options), messages)).weights))
        return found


def _messages(moment: Moment, labels: Sequence[tuple[str, int]], said: str) -> list[Message]:
    before = "".join([f"> {done}\n{seen}\n" for done, seen in moment.steps])
    options = "\n".join([f"{label}. {name}" for (label, _), name in zip(labels, moment.shown, strict=True)])
    text = f"{moment.goal}\n\n{before}\nOptions:\n{options}\n\n{_QUESTION}\n\n> {moment.last}\n{said}"
    return [{"role": "user", "content": text}]


def _common_beginning(prompts: Sequence[list[int]]) -> list[int]:
    columns = zip(*prompts, strict=False)
    return [tokens[0] for tokens in takewhile(lambda tokens: len(set(tokens)) == 1, columns)]


def _usable(weights: Any) -> BehaviorDistribution | None:
    return BehaviorDistribution.quantise(weights) if weights and any(weights.values()) else None
