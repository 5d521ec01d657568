"""Lists for several wordings: what they share is computed once, and what was said is kept."""

from collections.abc import Sequence
from pathlib import Path

from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.wordings import ByLabels, Moment

from agentmark.elicit.situation import Candidate, Message
from agentmark.elicit.tokens import Ask, Reading, Token


class WordModel:
    """Its tokens are words. It likes what it sees now: the label of the option that is named there."""

    model = "words"
    end_token = 0

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.read_so_far: list[tuple[list[int], list[Ask]]] = []

    def _id(self, word: str) -> int:
        return self.known.setdefault(word, len(self.known) + 1)

    def tokens(self, text: str) -> list[Token]:
        return [Token(self._id(word), word.encode()) for word in text.split()]

    def prompt(self, messages: Sequence[Message], opening: str, tools: Sequence[Candidate] = ()) -> list[int]:
        [message] = messages
        return [self._id(word) for word in [*str(message["content"]).split(), opening]]

    def read(self, prompt: Sequence[int], asks: Sequence[Ask]) -> list[Reading]:
        self.read_so_far.append((list(prompt), list(asks)))
        words = {number: word for word, number in self.known.items()}
        return [self._reading([words[number] for number in (*prompt, *ask.path)], ask) for ask in asks]

    def _reading(self, text: list[str], ask: Ask) -> Reading:
        # An option stands behind its label; what is seen last stands before the opening.
        wanted = self._id(text[text.index(text[-2]) - 1].rstrip("."))
        odds = {token: 0.6 if token == wanted else 0.1 for token in ask.wanted}
        return Reading(odds, {})


MOMENT = Moment("Find it.", (("go", "a room"),), "look", ("apple", "bread", "candle"), "1")


def asked(model: WordModel, work: Path, *words: str) -> list[str]:
    lists = ByLabels(model, work, Effort()).lists(MOMENT, words)
    return [max(one.as_weights(), key=one.weight) for one in lists if one is not None]


def test_a_list_follows_what_is_seen_and_not_the_order_of_the_options(tmp_path: Path) -> None:
    model = WordModel()
    seen = ["You see bread", "There is candle", "Here lies an apple"]
    assert asked(model, tmp_path, *seen) == ["bread", "candle", "apple"]
    assert MOMENT.shown != list(MOMENT.options)


def test_what_wordings_share_is_computed_once_and_what_was_said_is_kept(tmp_path: Path) -> None:
    model = WordModel()
    first = asked(model, tmp_path, "You see bread", "You see now candle")
    [(shared, asks)] = model.read_so_far
    words = {number: word for word, number in model.known.items()}
    assert [words[number] for number in shared][-4:] == [">", "look", "You", "see"]
    assert [[words[number] for number in ask.path] for ask in asks] == [
        ["bread", "Choice:"],
        ["now", "candle", "Choice:"],
    ]
    assert asked(model, tmp_path, "You see bread", "You see now candle") == first
    assert len(model.read_so_far) == 1
    asked(model, tmp_path, "You see bread")
    assert len(model.read_so_far) == 2


def test_a_list_without_any_probability_is_not_used(tmp_path: Path) -> None:
    class Silent(WordModel):
        def _reading(self, text: list[str], ask: Ask) -> Reading:
            return Reading(dict.fromkeys(ask.wanted, 0.0), {})

    assert ByLabels(Silent(), tmp_path, Effort()).lists(MOMENT, ["You see bread"]) == [None]
