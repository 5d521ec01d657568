"""What is measured of a text, and whether a bias shows in it."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from agentmark_lab.experiments.social.answer_writer import Answer, Brief, write_answers
from agentmark_lab.experiments.social.text_utility import Text, distinct_bigrams, judge_texts
from agentmark_lab.experiments.social.two_marks_plan import ABOVE, DISTINCT, LIKELY, TextPlan
from agentmark_lab.kit.utility_tests import FAILS, PASSES
from agentmark_lab.peers.synthid_text import NGRAM_LEN, TOP_K, GreenList

PLAN = TextPlan.of("synthid")
TEXTS = 108


def texts(seed: int, *, bias: float = 0.0, repeats: bool = False) -> list[Text]:
    """Answers whose tokens are as likely as expected, but for a bias in nats."""
    rng = Random(seed)
    made = []
    for number in range(TEXTS):
        expected = rng.gauss(-2.0, 0.3)
        tokens = tuple([rng.randrange(4 if repeats else 50) for _ in range(120)])
        answer = Answer("", expected + rng.gauss(bias, 0.15), expected)
        made.append(Text(f"task {number}", tokens, answer))
    return made


def test_bigrams_are_counted_once() -> None:
    assert distinct_bigrams([1, 2, 3]) == 1
    assert distinct_bigrams([1, 2, 1, 2, 1]) == 0.5


def test_texts_that_are_as_likely_as_expected_pass() -> None:
    judged = judge_texts("a mark", texts(1), texts(2), PLAN)
    assert judged.verdict == PASSES
    assert judged.reasons == "none"
    assert judged.texts == TEXTS


def test_a_bias_of_a_sixth_of_a_nat_fails_by_what_is_above_expectation() -> None:
    judged = judge_texts("a bias", texts(1, bias=-0.17), texts(2), PLAN)
    assert judged.verdict == FAILS
    assert judged.is_seen
    assert not judged.same(ABOVE)
    assert judged.same(DISTINCT)


def test_texts_that_repeat_themselves_fail_by_their_bigrams() -> None:
    judged = judge_texts("a bore", texts(1, repeats=True), texts(2), PLAN)
    assert judged.same(ABOVE)
    assert not judged.same(DISTINCT)
    assert judged.verdict == FAILS


def test_a_task_without_an_answer_is_left_out_of_pairs_only() -> None:
    judged = judge_texts("a mark", texts(1), texts(2)[:-1], PLAN)
    assert judged.found[ABOVE].tasks == TEXTS
    assert judged.found[LIKELY].tasks == TEXTS - 1


def test_the_writer_remembers_the_distribution_and_leaves_the_first_tokens_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model that says the same at every step, so that likelihoods can be told by hand."""
    torch = pytest.importorskip("torch", reason="needs torch: make lab-oasis")
    pytest.importorskip("transformers", reason="needs transformers: make lab-oasis")
    from agentmark_lab.experiments.social import answer_writer

    logits = torch.linspace(0, 3, 500)
    seen: list[Any] = []

    class Model:
        def generate(self, input_ids: Any, logits_processor: Any, min_new_tokens: int, **_: Any) -> Any:
            for _ in range(min_new_tokens):
                scores = logits_processor[0](input_ids, logits.expand(len(input_ids), -1))
                seen.append(scores)
                drawn = torch.multinomial(torch.softmax(scores, 1), 1)
                input_ids = torch.cat([input_ids, drawn], dim=1)
            return input_ids

    class Tokens(dict[str, Any]):
        @property
        def input_ids(self) -> Any:
            return torch.tensor([[1, 2], [3, 4]])

        attention_mask = None

    class Tokenizer:
        def apply_chat_template(self, *_: Any, **__: Any) -> str:
            return ""

        def __call__(self, *_: Any, **__: Any) -> Tokens:
            return Tokens()

        def batch_decode(self, written: Any, **_: Any) -> list[str]:
            return [" ".join(map(str, one.tolist())) for one in written]

    monkeypatch.setattr(answer_writer, "load_model", lambda work: (Model(), Tokenizer()))
    briefs = [Brief("What?", ()), Brief("Who?", (("search", "nobody"),))]
    written = write_answers(briefs, mark=GreenList(3, 2.0), tokens=9, seed=5, work=tmp_path)
    kept = torch.log_softmax(logits[-TOP_K:], 0)
    for answer in written:
        tokens = [int(token) for token in answer.text.split()]
        assert len(tokens) == 9
        by_hand = sum([float(kept[token - (500 - TOP_K)]) for token in tokens]) / 9
        assert answer.log_probability == pytest.approx(by_hand, abs=1e-5)
        assert answer.expected == pytest.approx(float((kept.exp() * kept).sum()), abs=1e-5)
    unmarked = [bool(torch.allclose(scores[0, -TOP_K:], kept, atol=1e-5)) for scores in seen]
    assert unmarked == [True] * (NGRAM_LEN - 1) + [False] * (9 - NGRAM_LEN + 1)
    # What was written is kept: asked again, nothing is drawn.
    assert write_answers(briefs, mark=GreenList(3, 2.0), tokens=9, seed=5, work=tmp_path) == written
    assert len(seen) == 9
