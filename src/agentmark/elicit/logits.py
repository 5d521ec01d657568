"""A local model's own probabilities: what the paper names as its future direction.

`names` scores each candidate's full name as the model's reply; `labels` letters the options and reads one token.
"""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from string import ascii_uppercase
from typing import Literal

from agentmark.elicit.errors import UnsupportedError
from agentmark.elicit.labels import judged, mean_masses
from agentmark.elicit.orders import checked_orders, rotated
from agentmark.elicit.situation import Candidate, Elicitation, Message, Situation
from agentmark.elicit.tokens import Ask, Reading, Token, TokenModel
from agentmark.errors import SettingError

# The reply is begun for the model. What follows begins with a space, so that tokens never straddle the seam.
OPENING = "Choice:"
LINE_END = b"\n"

_QUESTION = (
    "Before you go on: which of these options is your next step? Take none of them yet. Reply with one line: the word"
    " Choice, a colon, and the {what} of the option."
)


class Logits:
    """Reads a list off a local model's next-token probabilities. Nothing is sampled.

    The weights are the model's own distribution, restricted to the candidates: a name's weight is the product of the
    probabilities of its tokens and of the end of the line. It is not normalised by length.
    """

    def __init__(
        self,
        model: TokenModel,
        how: Literal["names", "labels"] = "names",
        *,
        orders: int = 1,
        min_mass: float = 0.0,
        rng: random.Random | None = None,
    ) -> None:
        """Options are shown in shuffled order; with `orders`, labels are read in several and averaged. If less
        than `min_mass` of the model's probability goes to the candidates, the list is not used.
        """
        if how not in ("names", "labels"):
            raise SettingError("how", f"{how!r} is neither 'names' nor 'labels'")
        if checked_orders(orders) > 1 and how == "names":
            raise SettingError("orders", "is for labels")
        self.token_model = model
        self.name = f"logits-{how}"
        self._how = how
        self._orders = orders
        self._min_mass = min_mass
        self._rng = rng or random.SystemRandom()
        self._labels: list[tuple[str, int]] = []

    def elicit(self, situation: Situation) -> Elicitation:
        orders = rotated(situation.candidates, self._orders, self._rng)
        if self._how == "names":
            masses, tokens = self._name_masses(situation, orders[0])
        else:
            masses, tokens = self._label_masses(situation, orders)
        found = judged(masses, method=self.name, model=self.token_model.model, min_mass=self._min_mass)
        if found.weights is not None and not any(masses.values()):
            found = replace(found, weights=None, fault="no candidate has any probability")
        return replace(found, input_tokens=tokens, output_tokens=0)

    async def aelicit(self, situation: Situation) -> Elicitation:
        return await asyncio.to_thread(self.elicit, situation)

    def _name_masses(self, situation: Situation, shown: Sequence[Candidate]) -> tuple[dict[str, float], int]:
        trie = name_trie(self.token_model, situation.names)
        prompt = self.token_model.prompt(name_question(situation, shown), OPENING, situation.tools)
        nodes = list(trie.walk())
        asks = [node.ask(self.token_model.end_token) for node in nodes]
        readings = self.token_model.read(prompt, asks)
        by_path = {node.path: reading for node, reading in zip(nodes, readings, strict=True)}
        masses = dict.fromkeys(situation.names, 0.0)
        masses |= trie.masses(by_path, self.token_model.end_token)
        return masses, len(prompt) + len(nodes) - 1

    def _label_masses(
        self, situation: Situation, orders: Sequence[Sequence[Candidate]]
    ) -> tuple[dict[str, float], int]:
        labels = self._labels_for(len(situation.candidates))
        ask = Ask((), frozenset(token for _, token in labels))
        readings, tokens = [], 0
        for order in orders:
            question = _messages(situation, order, [label for label, _ in labels])
            prompt = self.token_model.prompt(question, OPENING, situation.tools)
            [reading] = self.token_model.read(prompt, [ask])
            by_name = dict(zip([option.name for option in order], [token for _, token in labels], strict=True))
            readings.append({name: reading.probabilities[by_name[name]] for name in situation.names})
            tokens += len(prompt)
        return mean_masses(readings), tokens

    def _labels_for(self, count: int) -> list[tuple[str, int]]:
        found = self._labels
        if len(found) < count:
            # A list of its own, kept only when it is whole: several threads may be here at once.
            found = self._labels = one_token_labels(self.token_model, count)
        return found[:count]


def one_token_labels(model: TokenModel, count: int) -> list[tuple[str, int]]:
    """A, B, and so on, then pairs of letters: the first so many that are a single token of this model after a space,
    each with its token."""
    found: list[tuple[str, int]] = []
    for label in (*ascii_uppercase, *["".join(pair) for pair in product(ascii_uppercase, repeat=2)]):
        if len(found) == count:
            break
        tokens = model.tokens(f" {label}")
        if len(tokens) == 1:
            found.append((label, tokens[0].id))
    if len(found) < count:
        fault = f"{count} candidates, and {model.model} has {len(found)} one-token labels"
        raise UnsupportedError("logits-labels", fault, always=False)
    return found


def name_question(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    """The agent's conversation, and the question whose answer is a name, with the options in this order."""
    return _messages(situation, shown, [""] * len(shown))


def _messages(situation: Situation, shown: Sequence[Candidate], labels: Sequence[str]) -> list[Message]:
    lines = [
        (f"{label}. " if label else "- ")
        + (f"{option.name}: {option.description}" if option.description else option.name)
        for label, option in zip(labels, shown, strict=True)
    ]
    question = _QUESTION.format(what="letter" if labels[0] else "exact name")
    text = f"{question}\n\nOptions:\n" + "\n".join(lines)
    return [*situation.messages, {"role": "user", "content": text}]


@dataclass(slots=True)
class Node:
    """A prefix that names share, token by token. `left` holds, by name, the bytes still to be written."""

    path: tuple[int, ...]
    left: dict[str, bytes] = field(default_factory=dict)
    children: dict[int, "Node"] = field(default_factory=dict)

    def walk(self) -> Iterator["Node"]:
        """This node and those below it, parents first: each differs from one before it by a single token."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def ask(self, end_token: int) -> Ask:
        ends = {end_token} if b"" in self.left.values() else set()
        return Ask(self.path, frozenset(self.children.keys() | ends))

    def masses(self, readings: Mapping[tuple[int, ...], Reading], end_token: int) -> dict[str, float]:
        """The probability of each name below, given that the model has come here."""
        reading = readings[self.path]
        masses = {name: self._ending(name, reading, end_token) for name in self.left}
        for token, child in self.children.items():
            for name, mass in child.masses(readings, end_token).items():
                masses[name] += reading.probabilities[token] * mass
        return masses

    def _ending(self, name: str, reading: Reading, end_token: int) -> float:
        """The probability that the next token ends the line with this name: the end of the reply, a line break, or one
        token that holds the rest of the name and a line break."""
        rest = self.left[name]
        total = reading.probabilities[end_token] if rest == b"" else 0.0
        for token, text in reading.texts.items():
            if token != end_token and text.startswith(rest + LINE_END):
                total += reading.probabilities[token]
        return total


def name_trie(model: TokenModel, names: Sequence[str]) -> Node:
    """The names as the model would write them after the opening, merged where they begin alike."""
    root = Node(())
    for name in names:
        if "\n" in name or "\r" in name:
            raise UnsupportedError("logits-names", f"the name {name!r} has a line break", always=False)
        node, rest = root, f" {name}".encode()
        node.left[name] = rest
        for token in _spaced(model, name):
            node = node.children.setdefault(token.id, Node((*node.path, token.id)))
            rest = rest[len(token.text) :]
            node.left[name] = rest
    return root


def _spaced(model: TokenModel, name: str) -> list[Token]:
    """The tokens of a space and the name. Some tokenizers add the space of their own accord."""
    wanted = f" {name}".encode()
    for text in (f" {name}", name):
        tokens = model.tokens(text)
        if b"".join(token.text for token in tokens) == wanted:
            return tokens
    raise UnsupportedError("logits-names", f"{model.model} cannot write {name!r} token by token", always=False)
