"""Lists that are kept, and their mean."""

from pathlib import Path

import pytest
from agentmark_lab.experiments.models import stated_lists
from agentmark_lab.experiments.models.stated_lists import Asking, lists_of, mean_list, plain_replies
from agentmark_lab.experiments.models.tool_agent import Reply, Tool, ToolSituation
from agentmark_lab.kit.options import Options
from made_up import outcome, stand_in

SITUATION = ToolSituation("situation 1", (Tool("search", "", (), ()),), ({"role": "user", "content": "Find it."},))


def test_a_mean_of_lists_is_a_list() -> None:
    assert mean_list([{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}]) == pytest.approx({"a": 0.4, "b": 0.6})


def test_a_list_is_asked_for_once_in_each_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(stated_lists, "opened", stand_in(opened))
    monkeypatch.setattr(stated_lists, "timed", lambda elicitor, way, model, one: outcome(way, elicitor))
    shuffles: list[float] = []

    def asker(model: object, rng: object, situation: object) -> int:
        shuffles.append(rng.random())  # type: ignore[attr-defined]
        return len(shuffles)

    file, options = tmp_path / "made-up.gguf", Options(work=tmp_path)
    both = lists_of(file, [SITUATION], Asking("words", asker, (0, 1)), options, print)  # type: ignore[arg-type]
    assert [one.situation for one in both["situation 1"]] == ["situation 1", "situation 2"]
    assert len(set(shuffles)) == 2, "each order is another"
    third = lists_of(file, [SITUATION], Asking("words", asker, (0, 1, 2)), options, print)  # type: ignore[arg-type]
    assert third["situation 1"][:2] == both["situation 1"]
    assert len(shuffles) == 3
    lists_of(file, [SITUATION], Asking("other words", asker, (0,)), options, print)  # type: ignore[arg-type]
    assert shuffles[3] == shuffles[0], "ways are shown the options in the same order"


def test_a_plain_reply_reads_its_prompt_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    cached: list[bool] = []

    def draw(
        model: object, one: ToolSituation, seed: int, *, cached_prompt: list[bool] = cached, cached: bool
    ) -> Reply:
        cached_prompt.append(cached)
        return Reply("search", "{}", "CALL search {}", 9, 0, 7, 1.0, 2.0, 0.1, 0.05)

    monkeypatch.setattr(stated_lists, "opened", stand_in(opened))
    monkeypatch.setattr(stated_lists, "draw", draw)
    file, options = tmp_path / "made-up.gguf", Options(work=tmp_path)
    first = plain_replies(file, [SITUATION], options, print)
    assert first["situation 1"].cpu_s == 0.05
    assert plain_replies(file, [SITUATION], options, print) == first
    assert cached == [False]
