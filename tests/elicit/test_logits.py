"""Full names and labels scored with a toy model whose probabilities are known exactly."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import run
from sys import executable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.elicit.errors import UnsupportedError
from agentmark.elicit.logits import Logits, name_trie
from agentmark.elicit.situation import Candidate, Message, Situation
from agentmark.elicit.tokens import Ask, Reading, Token
from agentmark.errors import SettingError

END = 0
PIECES = [
    b"",
    b"\n",
    b" ",
    b"a",
    b"b",
    b"ab",
    b" a",
    b" ab",
    b" b",
    b")",
    b" (",
    b")\n",
    b"b\n",
    b"_",
    b" A",
    b" B",
    b" C",
]


class ToyModel:
    """A vocabulary of a few pieces, the longest of which is always taken; each place has its own random odds."""

    model = "toy"
    end_token = END

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.asked: list[Ask] = []

    def prompt(self, messages: Sequence[Message], opening: str, tools: Sequence[Candidate] = ()) -> list[int]:
        self.messages, self.opening, self.tools = messages, opening, tools
        return [1, 2, 3]

    def tokens(self, text: str) -> list[Token]:
        rest, tokens = text.encode(), []
        while rest:
            fitting = [Token(i, piece) for i, piece in enumerate(PIECES) if piece and rest.startswith(piece)]
            tokens.append(max(fitting or [Token(99, rest[:1])], key=lambda token: len(token.text)))
            rest = rest[len(tokens[-1].text) :]
        return tokens

    def odds(self, path: Sequence[int]) -> dict[int, float]:
        rng = random.Random(f"{self.seed} {list(path)}")
        draws = [rng.gammavariate(0.5, 1.0) for _ in PIECES]
        return {token: draw / sum(draws) for token, draw in enumerate(draws)}

    def read(self, prompt: Sequence[int], asks: Sequence[Ask]) -> list[Reading]:
        self.asked += asks
        texts = dict(enumerate(PIECES))
        return [Reading(self.odds(ask.path), texts) for ask in asks]


def by_brute_force(model: ToyModel, name: str) -> float:
    """Follow the tokens of the name; at every place add the chance that one token ends the line with it."""
    total, reach, path, rest = 0.0, 1.0, [], b" " + name.encode()
    for token in [*model.tokens(f" {name}"), None]:
        odds = model.odds(path)
        total += reach * sum([p for i, p in odds.items() if PIECES[i].startswith(rest + b"\n")])
        if token is None:
            return total + reach * odds[END]
        reach *= odds[token.id]
        path.append(token.id)
        rest = rest[len(token.text) :]
    raise AssertionError


@given(
    st.sets(st.text("ab_()", min_size=1, max_size=6).filter(lambda name: "(" not in name[1:]), min_size=1),
    st.integers(0, 99),
)
def test_a_name_has_the_product_of_its_tokens(names: set[str], seed: int) -> None:
    model = ToyModel(seed)
    result = Logits(model).elicit(Situation.of(sorted(names), "x"))
    assert result.weights is not None
    for name in names:
        assert result.weights[name] == pytest.approx(by_brute_force(model, name), rel=1e-9)
    assert result.missing_mass is not None
    assert sum(map(float, result.weights.values())) + result.missing_mass == pytest.approx(1)


def test_shared_beginnings_are_read_once() -> None:
    model = ToyModel()
    Logits(model).elicit(Situation.of(["ab", "ab_a", "ab_b"], "x"))
    paths = [ask.path for ask in model.asked]
    assert len(paths) == len(set(paths)) == 5  # nothing, " ab", "_", "a", "b"
    assert paths[0] == ()


def test_a_name_that_begins_another_is_told_by_the_end_of_the_line() -> None:
    trie = name_trie(ToyModel(), ["a", "a_b"])
    [first] = trie.children.values()
    assert first.left == {"a": b"", "a_b": b"_b"}
    assert END in first.ask(END).wanted
    assert END not in trie.ask(END).wanted


def test_every_place_follows_its_parent() -> None:
    paths = [node.path for node in name_trie(ToyModel(), ["ab", "ab_a", "b", "b_b", "(a)"]).walk()]
    for i, path in enumerate(paths[1:], start=1):
        assert path[:-1] in paths[:i]


class Skewed(ToyModel):
    """Likes the first label, whatever it stands for."""

    def odds(self, path: Sequence[int]) -> dict[int, float]:
        return {**dict.fromkeys(range(len(PIECES)), 0.0), 14: 0.6, 15: 0.1, 16: 0.1, END: 0.2}


def test_labels_are_single_tokens_and_orders_average_the_order_out() -> None:
    situation = Situation.of({"red": "a colour", "green": "", "blue": ""}, "Which?")
    once = Logits(Skewed(), "labels", rng=random.Random(1)).elicit(situation)
    assert sorted(map(float, _weights(once.weights).values())) == pytest.approx([0.1, 0.1, 0.6])
    assert once.missing_mass == pytest.approx(0.2)
    turned = Logits(Skewed(), "labels", orders=3).elicit(situation)
    assert list(_weights(turned.weights).values()) == pytest.approx([0.8 / 3] * 3)
    assert turned.input_tokens == 9


def test_options_are_shown_in_shuffled_order_and_the_reply_is_begun() -> None:
    model, shown = ToyModel(), set()
    for seed in range(20):
        Logits(model, rng=random.Random(seed)).elicit(Situation.of(["a", "b", "ab"], "x"))
        shown.add(str(model.messages[-1]["content"]))
    assert len(shown) == 6
    assert model.opening == "Choice:"


def test_too_many_options_for_the_labels_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="4 candidates, and toy has 3 one-token labels"):
        Logits(ToyModel(), "labels").elicit(Situation.of(["a", "b", "ab", "ba"], "x"))


def test_a_name_with_a_line_break_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="line break"):
        Logits(ToyModel()).elicit(Situation.of(["a\nb", "b"], "x"))


def test_too_little_probability_is_a_fault_if_asked_for() -> None:
    result = Logits(ToyModel(), min_mass=0.99).elicit(Situation.of(["a", "b"], "x"))
    assert result.weights is None
    assert "less than 99%" in str(result.fault)


def test_bad_settings() -> None:
    with pytest.raises(SettingError):
        Logits(ToyModel(), "words")  # type: ignore[arg-type]
    with pytest.raises(SettingError):
        Logits(ToyModel(), "names", orders=2)
    with pytest.raises(SettingError):
        Logits(ToyModel(), "labels", orders=0)


@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("from agentmark.elicit.local import LocalModel; LocalModel(__file__)", "local"),
        ("from agentmark.elicit.transformers import TransformersModel; TransformersModel(__file__)", "transformers"),
    ],
)
def test_without_its_packages_a_backend_names_the_extra(tmp_path: Path, statement: str, extra: str) -> None:
    script = tmp_path / "script.py"
    blocked = "import sys; sys.modules.update(dict.fromkeys(('xllamacpp', 'torch', 'transformers')))\n"
    script.write_text(blocked + statement)
    done = run([executable, str(script)], capture_output=True, text=True, check=False)
    assert f"pip install '.[{extra}]'" in done.stderr


def _weights(weights: Mapping[str, object] | None) -> Mapping[str, float]:
    assert weights is not None
    return {name: float(weight) for name, weight in weights.items()}  # type: ignore[arg-type]
