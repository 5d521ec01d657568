"""`agentmark lab`: found where its distribution is installed, and missed in a clear sentence where it is not."""

import argparse
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from agentmark.cli import lab
from agentmark.cli.main import main


def installed(*entries: EntryPoint) -> Callable[..., list[EntryPoint]]:
    """What the interpreter knows of, were these distributions installed and no others."""

    def found(*, group: str, name: str) -> list[EntryPoint]:
        return [entry for entry in entries if (entry.group, entry.name) == (group, name)]

    return found


def test_without_the_lab_a_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "entry_points", installed())
    for arguments in (["list"], ["run", "all", "--quick"], [], ["--list"]):
        assert main(["lab", *arguments]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("agentmark: the lab is not installed")
        assert "`pip install . ./lab`" in said.err
        assert "Traceback" not in said.err


def add_stand_in(commands: Any) -> None:
    parser = commands.add_parser("lab")
    parser.add_argument("word")
    parser.set_defaults(run=say)


def say(args: argparse.Namespace) -> int:
    print(f"said {args.word}")
    return 0


def test_whatever_is_installed_under_the_entry_point_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = EntryPoint("lab", f"{__name__}:add_stand_in", lab.COMMANDS_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: add_stand_in)
    monkeypatch.setattr(lab, "entry_points", installed(entry))
    assert main(["lab", "this"]) == 0
    assert capsys.readouterr().out == "said this\n"


def test_the_lab_of_this_environment_lists_its_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    if not entry_points(group=lab.COMMANDS_GROUP, name="lab"):
        pytest.skip("agentmark-lab is not installed here")
    assert main(["lab", "list"]) == 0
    assert "roundtrip" in capsys.readouterr().out


def test_a_lab_that_does_not_load_harms_no_other_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An import that fails would else end in Python's exit status 1, which here means "not attributed"."""

    def broken(_: EntryPoint) -> None:
        raise ModuleNotFoundError("No module named 'agentmark.no_such_thing'")

    monkeypatch.setattr(EntryPoint, "load", broken)
    monkeypatch.setattr(lab, "entry_points", installed(EntryPoint("lab", "x:y", lab.COMMANDS_GROUP)))
    assert main(["keygen", str(tmp_path / "key.json")]) == 0
    assert main(["lab", "list"]) == 2
    said = capsys.readouterr().err
    assert "the lab that is installed does not load (No module named 'agentmark.no_such_thing')" in said
    assert "Traceback" not in said
