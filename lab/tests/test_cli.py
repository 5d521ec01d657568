"""The lab's command line: what it runs, what it refuses, and what it tells the experiments."""

import argparse
from pathlib import Path

import pytest
from agentmark_lab import cli as lab_cli
from agentmark_lab.catalogue import EXPERIMENTS
from agentmark_lab.cli import add_parser
from agentmark_lab.cli import run as run_command
from agentmark_lab.experiments.theory import false_positives
from agentmark_lab.kit.experiment import (
    Claim,
    Findings,
    Result,
)

from agentmark.cli.main import main


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return run_command(parser.parse_args(["lab", *arguments]))


def test_an_interrupt_is_no_fault_of_ours(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab_cli, "perform", interrupted)
    assert main(["lab", "run", "marginals"]) == 130
    said = capsys.readouterr().err
    assert "marginals: the same command takes it up where it was" in said
    assert said.endswith("agentmark: interrupted\n")
    assert "Traceback" not in said


def test_commands(tmp_path, capsys):
    assert command("list") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in EXPERIMENTS)
    out, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    assert command("table", "--out", str(out), "--docs", str(page)) == 2
    arguments = ("--quick", "--seed", "2", "--workers", "1", "--out", str(out))
    assert command("run", "false_positives", *arguments) == 0
    captured = capsys.readouterr()
    assert "passed" in captured.out
    assert "trials" in captured.err
    assert command("table", "--out", str(out), "--docs", str(page)) == 0
    assert "agentmark lab run false_positives --quick --seed 2" in Path(page).read_text(encoding="utf-8")


def test_unknown_name_exits_with_two(capsys):
    assert command("run", "nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


def test_failed_experiment_exits_with_one(tmp_path, monkeypatch):
    failed = Findings([Claim("it is so.", holds=False)], [])
    monkeypatch.setattr(false_positives, "run", lambda **_: failed)
    assert command("run", "false_positives", "--out", str(tmp_path)) == 1
    assert not Result.load(tmp_path / "false_positives.json").passed


def test_workers_must_be_positive():
    with pytest.raises(SystemExit) as exit_info:
        command("run", "speed", "--workers", "0")
    assert exit_info.value.code == 2


def test_module_entry_point(monkeypatch, capsys):
    from agentmark_lab import __main__ as entry

    monkeypatch.setattr("sys.argv", ["lab", "list"])
    assert entry.main() == 0
    assert "roundtrip" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "environment", "tasks", "said"),
    [("alfworld", "bfcl", None, "are for language_model"), ("language_model", None, 3, "does nothing with --quick")],
)
def test_options_that_would_do_nothing_are_refused(
    name: str, environment: str | None, tasks: int | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = argparse.Namespace(
        lab_command="run", name=name, environment=environment, tasks=tasks, model=None, quick=True
    )
    assert run_command(asked) == 2
    assert said in capsys.readouterr().err
