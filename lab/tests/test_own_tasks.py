"""Tasks that somebody brings: they are played, also by worker processes, and whatever is wrong with them is said. And
two runs that begin on the same fresh folder."""

import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agentmark_lab.envs.base import OwnTasksError, open_environment
from agentmark_lab.envs.toolbench import OwnQueries
from agentmark_lab.kit.agent_loop import BASELINE
from agentmark_lab.kit.campaign import Campaign, run_campaign
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.experiment import Result
from agentmark_lab.kit.options import Options
from lab_support import silent
from test_cli import command

# Unpacks a split of games into the folder, in step with another process: both wait until both have begun.
UNPACK = """
import sys, time
from pathlib import Path
from agentmark_lab.envs import alfworld
mine, other = Path(sys.argv[2]), Path(sys.argv[3])
extracted = alfworld.tarfile.TarFile.extractall
def together(self, *args, **kwargs):
    extracted(self, *args, **kwargs)
    mine.touch()
    while not other.exists():
        time.sleep(0.01)
alfworld.tarfile.TarFile.extractall = together
print(sorted(path.name for path in alfworld._games_folder("valid_seen", Path(sys.argv[1])).iterdir()))
"""


def query(number: int, apis: int = 4) -> dict[str, Any]:
    names = [f"api {i}" for i in range(apis)]
    described = [{"tool_name": "Tool", "api_name": name, "api_description": "Does it."} for name in names]
    return {
        "query_id": number,
        "query": "do it",
        "api_list": described,
        "relevant APIs": [["Tool", names[0]], ["Tool", names[1]]],
    }


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "easy.json").write_text(json.dumps([query(1), query(2)]), encoding="utf-8")
    (folder / "hard.json").write_text(json.dumps([query(1, apis=9)]), encoding="utf-8")
    return folder


def test_queries_are_played_also_by_workers(queries: Path, tmp_path: Path) -> None:
    campaign = Campaign("toolbench-own", (0.1,), (BASELINE,), (1, 2, 3), own=queries)
    options = Options(work=tmp_path / "work")
    alone = run_campaign(campaign, options, silent)
    assert {(o.task, o.group) for o in alone} == {("easy/1", "easy"), ("easy/2", "easy"), ("hard/1", "hard")}
    workers = run_campaign(campaign, replace(options, workers=2), silent)
    assert [(o.task, o.seed, o.success, o.steps) for o in workers] == [
        (o.task, o.seed, o.success, o.steps) for o in alone
    ]


def test_one_file_is_enough(queries: Path, tmp_path: Path) -> None:
    assert [task.id for task in OwnQueries(tmp_path, queries / "hard.json").tasks()] == ["hard/1"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "cannot be read as JSON"),
        ("{}", "is no list of queries"),
        ('[{"query": "do it"}]', "query 1 is not in ToolBench's form"),
        (json.dumps([{**query(1), "relevant APIs": [["Tool", "other"]]}]), "relevant APIs that its api_list holds"),
        ("[]", "holds no query"),
    ],
)
def test_what_is_wrong_with_queries_is_said(tmp_path: Path, content: str, fault: str) -> None:
    file = tmp_path / "q.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(OwnTasksError, match=fault):
        OwnQueries(tmp_path, file)


def test_the_command_plays_them_and_keeps_a_result_of_its_own(
    queries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    arguments = ["--queries", str(queries), "--quick", "--workers", "1"]
    arguments += ["--work", str(tmp_path / "work"), "--out", str(out)]
    assert command("run", "toolbench", *arguments) == 0
    result = Result.load(out / "toolbench-own.json")
    assert result.command == "agentmark lab run toolbench --quick --queries mine"
    assert "The tasks are brought (mine)" in result.tables[0].note
    assert {*result.data["outcomes"]["0.15"]["first"]} == {"easy/1", "easy/2", "hard/1"}
    assert str(tmp_path) not in (out / "toolbench-own.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("agentdojo", "--queries", "."), "--queries is for toolbench, not for agentdojo: its tasks are code"),
        (("scienceworld", "--games", "."), "--games is for alfworld, not for scienceworld: its tasks are part"),
        (("marginals", "--games", "."), "--games is for alfworld, not for marginals"),
        (("all", "--conversations", "."), "--conversations is for bfcl, not for all"),
        (("toolbench", "--queries", "nowhere"), "--queries nowhere: there is no such file or folder"),
    ],
)
def test_tasks_that_nobody_can_play_are_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", *arguments) == 2
    assert said in capsys.readouterr().err


def test_an_empty_folder_is_an_error_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert command("run", "toolbench", "--queries", str(folder), "--quick", "--work", str(tmp_path / "w")) == 2
    assert "holds no query" in capsys.readouterr().err


def test_two_runs_on_a_fresh_folder_do_not_collide(queries: Path, tmp_path: Path) -> None:
    """The whole plan, twice at once, with the same work folder and the same place for the result."""
    arguments = ["lab", "run", "toolbench", "--queries", str(queries), "--workers", "1"]
    arguments += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    start = [sys.executable, "-m", "agentmark", *arguments]
    runs = [subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [(run.communicate()[1], run.returncode) for run in runs]
    assert [code for _, code in ended] == [0, 0], ended
    result = Result.load(tmp_path / "out" / "toolbench-own.json")
    assert len(result.data["outcomes"]["0.3"]["second"]) == 3


def test_two_runs_that_unpack_the_games_at_once_both_find_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has unpacked all of them before either puts them in their place."""
    source = tmp_path / "json_2.1.1" / "valid_seen" / "a game"
    source.mkdir(parents=True)
    (source / "game.tw-pddl").write_text("{}", encoding="utf-8")
    (tmp_path / "data" / "alfworld").mkdir(parents=True)
    with tarfile.open(tmp_path / "data" / "alfworld" / "valid_seen.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "json_2.1.1", "json_2.1.1")
    shutil.rmtree(tmp_path / "json_2.1.1")
    monkeypatch.setenv("AGENTMARK_DATA", str(tmp_path / "data"))
    work, one, two = tmp_path / "work", tmp_path / "one", tmp_path / "two"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", UNPACK, work, mine, other], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for mine, other in ((one, two), (two, one))
    ]
    ended = [(*run.communicate(), run.returncode) for run in runs]
    assert [(out, code) for out, _, code in ended] == [("['a game']\n", 0)] * 2, ended
    assert [path.name for path in work.iterdir()] == ["json_2.1.1"]


def opened(name: str, work: Path, own: Path) -> Any:
    try:
        return open_environment(name, work, own)
    except MissingError as missing:
        pytest.skip(str(missing))


def test_games_in_a_folder_are_played_and_nothing_is_written_into_it(work: Path, tmp_path: Path) -> None:
    try:
        houses: Any = open_environment("alfworld-id", work)
    except MissingError as missing:
        pytest.skip(str(missing))
    own = tmp_path / "my games"
    some = houses.tasks()[:: len(houses.tasks()) // 3][:3]
    for number, task in enumerate(some):
        place = own / "deep" / "er" / str(number)
        place.mkdir(parents=True)
        for name in ("game.tw-pddl", "traj_data.json"):
            shutil.copy(houses._folder / task.id / name, place / name)
    before = sorted(own.rglob("*"))
    campaign = Campaign("alfworld-own", (0.05,), (BASELINE,), (1,), own=own)
    outcomes = run_campaign(campaign, Options(work=tmp_path / "work", workers=2), silent)
    assert [(o.task, o.group) for o in outcomes] == [(f"deep/er/{i}", task.group) for i, task in enumerate(some)]
    assert all(o.success for o in outcomes)
    assert sorted(own.rglob("*")) == before


def test_what_is_wrong_with_games_is_said(work: Path, tmp_path: Path) -> None:
    opened("alfworld-id", work, None)  # type: ignore[arg-type]
    with pytest.raises(OwnTasksError, match=r"holds no game\.tw-pddl"):
        open_environment("alfworld-own", tmp_path, tmp_path)
    (tmp_path / "game.tw-pddl").write_text("{}", encoding="utf-8")
    with pytest.raises(OwnTasksError, match="cannot be read"):
        open_environment("alfworld-own", tmp_path, tmp_path)
    (tmp_path / "traj_data.json").write_text('{"task_type": "dance", "pddl_params": {}}', encoding="utf-8")
    with pytest.raises(OwnTasksError, match="'dance'; known: look_at_obj"):
        open_environment("alfworld-own", tmp_path, tmp_path)


def test_conversations_in_a_folder_are_played(tmp_path: Path) -> None:
    try:
        from agentmark_lab.envs import bfcl
    except MissingError as missing:
        pytest.skip(str(missing))
    name = f"BFCL_v4_{bfcl.SUITE}.json"
    own = tmp_path / "own"
    (own / "possible_answer").mkdir(parents=True)
    for folder in ("", "possible_answer"):
        lines = (bfcl._DATA / folder / name if folder else bfcl._DATA / name).read_text(encoding="utf-8").splitlines()
        (own / folder / name).write_text("\n".join(lines[:2]), encoding="utf-8")
    campaign = Campaign("bfcl-own", (0.0,), (BASELINE,), (1,), own=own)
    outcomes = run_campaign(campaign, Options(work=tmp_path), silent)
    assert [o.success for o in outcomes] == [True, True]
    (own / "possible_answer" / name).write_text("", encoding="utf-8")
    with pytest.raises(OwnTasksError, match="no answer to multi_turn_base_0"):
        bfcl.OwnConversations(tmp_path, own)
