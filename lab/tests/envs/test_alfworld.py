"""ALFWorld behind the lab's protocol: the games are the package's own, and the expert wins them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from agentmark_lab.envs.alfworld import SeenHouses
from agentmark_lab.envs.alfworld_expert import CLEAN, LOOK, PLACE, TWO, Goal, Searcher
from agentmark_lab.envs.base import Environment, Task
from agentmark_lab.kit.data import MissingError
from env_checks import check_protocol, check_repeats, expert, finish, opened, won_by_the_expert


@pytest.fixture(scope="module", params=["alfworld-id", "alfworld-ood"])
def houses(request: pytest.FixtureRequest, work: Path) -> Environment:
    return opened(request.param, work)


def sample(environment: Environment, seed: int) -> list[Task]:
    """One task of each group."""
    tasks = list(environment.tasks())
    Random(seed).shuffle(tasks)
    return list({task.group: task for task in tasks}.values())


def game(environment: Environment, task: Task) -> dict[str, Any]:
    """What the game's file says."""
    folder: Path = environment._folder  # type: ignore[attr-defined]
    content: dict[str, Any] = json.loads((folder / task.id / "game.tw-pddl").read_text(encoding="utf-8"))
    return content


def test_the_paper_s_splits(houses: Environment) -> None:
    tasks = houses.tasks()
    counts = Counter(task.group for task in tasks)
    assert len({task.id for task in tasks}) == len(tasks)
    assert counts in (
        {"A1": 13, "A2": 35, "A3": 27, "A4": 25, "A5": 16, "A6": 24},
        {"A1": 18, "A2": 24, "A3": 31, "A4": 21, "A5": 23, "A6": 17},
    )
    assert houses.max_steps == 50


def test_recorded_walkthroughs_win(houses: Environment) -> None:
    for task in sample(houses, seed=1):
        episode = houses.start(task, seed=1)
        for command in game(houses, task)["walkthrough"]:
            assert not episode.done
            episode.step(command)
        assert episode.done
        assert episode.success


def test_the_game_is_textworld_s(houses: Environment) -> None:
    """Same commands, same words and same end as TextWorld's own environment, along a walk half at random."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.envs.pddl.pddl import PddlEnv

    rng = Random(7)
    for task in sample(houses, seed=2)[:2]:
        reference = AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)))
        reference.load(game(houses, task))
        state = reference.reset()
        episode = houses.start(task, seed=1)
        assert episode.goal in state["feedback"]
        for _ in range(12):
            assert list(episode.behaviors) == state["admissible_commands"]
            assert episode.observation == state["feedback"]
            assert episode.success == state["won"]
            if episode.done:
                break
            command = rng.choice(episode.behaviors) if rng.random() < 0.5 else episode.expert() or "look"
            episode.step(command)
            state, _, _ = reference.step(command)


def test_the_expert_wins(houses: Environment) -> None:
    assert all(won_by_the_expert(houses, sample(houses, seed=3)))


def test_the_expert_finds_its_way_back(houses: Environment) -> None:
    for task in sample(houses, seed=4):
        episode = houses.start(task, seed=4)
        rng = Random(8)
        for _ in range(8):
            if not episode.done:
                episode.step(rng.choice(episode.behaviors))
        finish(episode, expert, max_steps=50)
        assert episode.success, task.id


def test_it_keeps_the_protocol_and_repeats(houses: Environment) -> None:
    check_protocol(houses, sample(houses, seed=5)[:2])
    check_repeats(houses, sample(houses, seed=6)[:2])


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("fast_downward", reason="run `make lab`, then `make test-lab`")
    monkeypatch.setenv("AGENTMARK_DATA", str(tmp_path))
    with pytest.raises(MissingError, match=r"alfworld/valid_seen.tar.xz .* is missing: .*set AGENTMARK_DATA"):
        SeenHouses(tmp_path)


def test_a_missing_package_is_named() -> None:
    """In an interpreter that finds none of them, whatever is installed here."""
    script = (
        "import sys; sys.modules['textworld'] = sys.modules['fast_downward'] = sys.modules['alfworld'] = None\n"
        "from pathlib import Path\n"
        "from agentmark_lab.envs.alfworld import SeenHouses\n"
        "try: SeenHouses(Path())\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("MissingError the package alfworld is missing: run `make lab`")


# A house of three receptacles: an open table (in reach), a closed drawer and a sink basin.
NAMES = {
    name: name.replace("_", " ") for name in ("table_1", "drawer_1", "sink_1", "cup_1", "cup_2", "pen_1", "lamp_1")
}


def house(**changed: set[tuple[str, ...]]) -> dict[str, set[tuple[str, ...]]]:
    return {
        "atlocation": {("agent", "by_table")},
        "receptacleatlocation": {("table_1", "by_table"), ("drawer_1", "by_drawer"), ("sink_1", "by_sink")},
        "receptacletype": {("table_1", "tabletype"), ("drawer_1", "drawertype"), ("sink_1", "sinkbasintype")},
        "objecttype": {("cup_1", "cuptype"), ("cup_2", "cuptype"), ("pen_1", "pentype"), ("lamp_1", "desklamptype")},
        "cancontain": {("tabletype", "cuptype"), ("drawertype", "cuptype"), ("tabletype", "pentype")},
        "openable": {("drawer_1",)},
        "inreceptacle": {("cup_1", "drawer_1"), ("pen_1", "table_1"), ("lamp_1", "table_1")},
    } | changed


@pytest.mark.parametrize(
    ("group", "changed", "advice"),
    [
        # The only place left that can hold a cup, though the cup in it has not been seen.
        (PLACE, {}, "go to drawer 1"),
        (
            PLACE,
            {"atlocation": {("agent", "by_drawer")}, "cancontain": {("drawertype", "cuptype")}},
            "open drawer 1",
        ),
        (PLACE, {"atlocation": {("agent", "by_drawer")}, "opened": {("drawer_1",)}}, "take cup 1 from drawer 1"),
        (PLACE, {"holds": {("agent", "cup_1")}, "inreceptacle": set()}, "move cup 1 to table 1"),
        (PLACE, {"holds": {("agent", "pen_1")}}, "move pen 1 to table 1"),
        (PLACE, {"holds": {("agent", "pen_1")}, "atlocation": {("agent", "by_sink")}}, "go to table 1"),
        (CLEAN, {"holds": {("agent", "cup_1")}, "inreceptacle": set()}, "go to sink 1"),
        (
            CLEAN,
            {"holds": {("agent", "cup_1")}, "inreceptacle": set(), "atlocation": {("agent", "by_sink")}},
            "clean cup 1 with sink 1",
        ),
        (
            CLEAN,
            {"holds": {("agent", "cup_1")}, "inreceptacle": set(), "isclean": {("cup_1",)}},
            "move cup 1 to table 1",
        ),
        (LOOK, {"holds": {("agent", "cup_1")}}, "use lamp 1"),
        # One cup is where it belongs: the other is looked for.
        (TWO, {"inreceptacle": {("cup_1", "table_1"), ("cup_2", "drawer_1")}}, "go to drawer 1"),
    ],
)
def test_what_the_expert_advises(group: str, changed: dict[str, set[tuple[str, ...]]], advice: str) -> None:
    goal = Goal(group, "cuptype", "tabletype", "desklamptype")
    assert Searcher(goal, house(**changed), NAMES, Random(1)).advise() == advice


def test_the_expert_is_at_a_loss_when_there_is_nothing_left_to_look_into() -> None:
    facts = house(inreceptacle=set(), openable=set())
    searcher = Searcher(Goal(PLACE, "cuptype", "tabletype", ""), facts, NAMES, Random(1))
    for place in ("by_drawer", "by_sink"):
        searcher.look(facts | {"atlocation": {("agent", place)}})
    assert searcher.advise() is None
