"""What was asked before is not asked again; and without a model it is said what is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from agentmark_lab.experiments.models import ways_of_asking
from agentmark_lab.experiments.models.ways_of_asking import collect, model_files
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from agentmark_lab.kit.presets import GGUF_VARIABLE
from made_up import outcome


class Named:
    """Of a situation, all that matters here."""

    name = "situation 1"


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every outcome kept, no model is opened at all; a missing one is asked for alone."""
    opened: list[Path] = []

    @contextmanager
    def model(file: Path) -> Iterator[SimpleNamespace]:
        opened.append(file)
        yield SimpleNamespace(model="made-up")

    monkeypatch.setattr(ways_of_asking, "opened", model)
    monkeypatch.setattr(ways_of_asking, "ask", lambda model, way, situation, rng: outcome(way, 1))
    file, options = tmp_path / "made-up.gguf", Options(work=tmp_path)
    first = collect(file, [Named()], ["labels"], options, print)  # type: ignore[list-item]
    assert first == [outcome("labels", 1)]
    assert collect(file, [Named()], ["labels"], options, print) == first  # type: ignore[list-item]
    assert len(opened) == 1
    said: list[str] = []
    both = collect(file, [Named()], ["labels", "verbalised"], options, said.append)  # type: ignore[list-item]
    assert both == [*first, outcome("verbalised", 1)]
    assert said == ["made-up: verbalised, 1 of 1, 0.5 s of CPU"]
    # Another seed is another order of the options.
    collect(file, [Named()], ["labels"], replace(options, seed=2), print)  # type: ignore[list-item]
    assert len(opened) == 3


def test_without_a_model_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways_of_asking, "small_model", lambda: None)
    with pytest.raises(MissingError, match=GGUF_VARIABLE):
        model_files(Options())
    assert model_files(Options(model_files=(Path("a.gguf"),))) == [Path("a.gguf")]
