"""The lab's command line: what it runs, what it refuses, and what it tells the experiments."""

import argparse
import os
from pathlib import Path

import pytest
from agentmark_lab import cli as lab_cli
from agentmark_lab.catalogue import EXPERIMENTS, GROUPS
from agentmark_lab.cli import add_parser, options_of
from agentmark_lab.cli import run as run_command
from agentmark_lab.experiments.models import language_model
from agentmark_lab.experiments.theory import false_positives
from agentmark_lab.kit.experiment import (
    Claim,
    Findings,
    Result,
)
from agentmark_lab.kit.options import JudgeChoice, ModelChoice, Options, Progress

from agentmark.cli.main import main
from agentmark.errors import SettingError


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
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed if line.startswith("  ")] == list(EXPERIMENTS)
    assert [line.partition(":")[0] for line in listed if line and not line.startswith("  ")] == [
        group.package for group in GROUPS
    ]
    out, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    assert command("table", "--out", str(out), "--docs", str(page)) == 2
    arguments = ("--quick", "--seed", "2", "--workers", "1", "--out", str(out), "--work", str(tmp_path / "work"))
    assert command("run", "false_positives", *arguments) == 0
    captured = capsys.readouterr()
    assert "passed" in captured.out
    assert "trials" in captured.err
    assert command("table", "--out", str(out), "--docs", str(page)) == 0
    written = (page.with_suffix("") / "false_positives.md").read_text(encoding="utf-8")
    assert "agentmark lab run false_positives --quick --seed 2" in written


def test_unknown_name_exits_with_two(capsys):
    assert command("run", "nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


def test_failed_experiment_exits_with_one(tmp_path, monkeypatch):
    failed = Findings([Claim("it is so.", holds=False)], [])
    monkeypatch.setattr(false_positives, "run", lambda options, progress: failed)
    arguments = ("--out", str(tmp_path), "--work", str(tmp_path / "work"))
    assert command("run", "false_positives", *arguments) == 1
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
    ("arguments", "said"),
    [
        (["alfworld", "--environment", "bfcl"], "is for language_model"),
        (["language_model", "--tasks", "3", "--quick"], "does nothing with --quick"),
        (["rewording", "--environment", "bfcl"], "is for language_model"),
        (["all", "--tasks", "3"], "is for rewording and language_model"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", *arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("stated", ["none", "0", "-1"])
def test_a_number_of_tasks_is_a_number(stated: str) -> None:
    with pytest.raises(SystemExit) as exit_info:
        command("run", "language_model", "--tasks", stated)
    assert exit_info.value.code == 2


def stated_options(*arguments: str, environment: dict[str, str]) -> Options:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return options_of(parser.parse_args(["lab", "run", "language_model", *arguments]), environment)


def test_options_are_what_was_asked_for() -> None:
    plain = stated_options(environment={})
    assert plain == Options(workers=os.cpu_count() or 1)
    environment = {
        "AGENTMARK_GGUF": os.pathsep.join(["a.gguf", "b.gguf"]),
        "AGENTMARK_API_KEY": "key",
        "AGENTMARK_JUDGE_URL": "http://127.0.0.1:1/v1",
        "AGENTMARK_JUDGE_MODEL": "judge",
        "AGENTMARK_JUDGE_KEY": "another",
    }
    arguments = ("--model", "http://127.0.0.1:2/v1", "m", "--environment", "bfcl", "--tasks", "3", "--work", "w")
    stated = stated_options(*arguments, "--workers", "2", "--seed", "5", environment=environment)
    assert stated == Options(
        seed=5,
        workers=2,
        work=Path("w"),
        model=ModelChoice("m", "http://127.0.0.1:2/v1", "key"),
        model_files=(Path("a.gguf"), Path("b.gguf")),
        environment="bfcl",
        tasks=3,
        judge=JudgeChoice("http://127.0.0.1:1/v1", "judge", "another"),
    )
    preset = stated_options("--model", "deepseek", environment={"OPENAI_API_KEY": "usual"})
    assert preset.model == ModelChoice("deepseek", api_key="usual")


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (("--model", "nothing"), {}, "deepseek, gemini"),
        ((), {"AGENTMARK_JUDGE_URL": "http://127.0.0.1:1/v1"}, "AGENTMARK_JUDGE_MODEL"),
    ],
)
def test_what_is_half_stated_is_said(arguments: tuple[str, ...], environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        stated_options(*arguments, environment=environment)


def test_an_experiment_is_told_by_its_options_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Options] = []

    def run(options: Options, progress: Progress) -> Findings:
        told.append(options)
        assert "secret" not in str(options)
        return Findings([Claim("so.", holds=True)], [])

    monkeypatch.setattr(language_model, "run", run)
    monkeypatch.setenv("AGENTMARK_API_KEY", "secret")
    before = dict(os.environ)
    arguments = ("--model", "http://127.0.0.1:1/v1", "m", "--environment", "bfcl", "--tasks", "3")
    folders = ("--out", str(tmp_path), "--work", str(tmp_path / "work"))
    assert command("run", "language_model", *arguments, *folders) == 0
    assert dict(os.environ) == before
    assert told[0].model == ModelChoice("m", "http://127.0.0.1:1/v1", "secret")
    saved = (tmp_path / "language_model-bfcl.json").read_text(encoding="utf-8")
    assert "--environment bfcl --tasks 3 --model http://127.0.0.1:1/v1 m" in saved
    assert "secret" not in saved
