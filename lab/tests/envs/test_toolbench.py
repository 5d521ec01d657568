"""ToolBench: 765 queries, their candidates, and the offline proxy of success."""

from collections import Counter
from pathlib import Path

import env_checks
import pytest
from agentmark_lab.envs import toolbench
from agentmark_lab.envs.base import Environment
from agentmark_lab.envs.toolbench import FINISH, Query, api_name
from agentmark_lab.kit.data import MissingError


@pytest.fixture(scope="module")
def environment(work: Path) -> Environment:
    return env_checks.opened("toolbench", work)


def test_six_subsets_under_the_labels_of_the_paper(environment: Environment) -> None:
    tasks = environment.tasks()
    assert Counter([task.group for task in tasks]) == {"T1": 158, "T2": 163, "T3": 153, "T4": 124, "T5": 106, "T6": 61}
    assert len({task.id for task in tasks}) == 765
    assert {task.id.partition("/")[0] for task in tasks if task.group == "T5"} == {"G2_instruction"}


def test_the_expert_wins_every_query_and_giving_up_none(environment: Environment) -> None:
    assert all(env_checks.won_by_the_expert(environment, environment.tasks()))
    assert not any(env_checks.won_by_giving_up(environment, environment.tasks()))


def test_protocol(environment: Environment) -> None:
    env_checks.check_protocol(environment, environment.tasks())


def test_an_episode_repeats(environment: Environment) -> None:
    env_checks.check_repeats(environment, environment.tasks()[::40])


def query(replies: dict[str, str] | None = None) -> Query:
    apis = [
        {"tool_name": "Weather Now!", "api_name": "24h forecast", "api_description": "A forecast"},
        {"tool_name": "Weather Now!", "api_name": "id", "api_description": "", "template_response": {"id": "str"}},
        {"tool_name": "Maps", "api_name": "Route", "api_description": None},
    ]
    gold = [["Weather Now!", "24h forecast"], ["Maps", "Route"]]
    return Query({"query": "Shall I go?", "api_list": apis, "relevant APIs": gold}, replies or {})


def test_the_proxy_wants_every_gold_api_and_then_finish() -> None:
    forecast, identity, route = "get_24h_forecast_for_weather_now", "is_id_for_weather_now", "route_for_maps"
    assert query().behaviors == (forecast, identity, route, FINISH)
    for calls, won in [
        ([forecast, route, FINISH], True),
        ([route, identity, forecast, forecast, FINISH], True),
        ([forecast, FINISH], False),
        ([forecast, route], False),
    ]:
        episode = query()
        for call in calls:
            episode.step(call)
        assert (episode.success, episode.done) == (won, calls[-1] == FINISH), calls


def test_replies_are_recorded_or_simulated_and_decide_nothing() -> None:
    episode = query({"route_for_maps": "recorded"})
    episode.step("route_for_maps")
    assert episode.observation == "recorded"
    episode.step("is_id_for_weather_now")
    assert episode.observation == '{"error": "", "response": {"id": "str"}}'
    assert episode.descriptions["route_for_maps"] == ""


def test_names_follow_the_rule_of_the_prompts() -> None:
    assert api_name("Bing  Image-Search", "/v7.0/images?") == "v7_0_images_for_bing_image_search"
    assert api_name("168predict", "from") == "is_from_for_get_168predict"


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTMARK_DATA", str(tmp_path))
    with pytest.raises(MissingError, match=r"toolbench/solvable_queries_765\.tar\.xz .* or set AGENTMARK_DATA"):
        toolbench.ToolBench(tmp_path)
