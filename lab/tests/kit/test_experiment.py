"""What an experiment hands over, and how it is kept."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import agentmark_lab
import pytest
from agentmark_lab.kit.experiment import (
    Claim,
    Findings,
    Result,
    ResultError,
    perform,
    version_here,
)
from agentmark_lab.kit.options import JudgeChoice, ModelChoice, Options
from lab_support import silent

import agentmark


def test_a_result_names_the_commit_of_its_own_code(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "agentmark" / "__init__.py"
    package.parent.mkdir()
    package.write_text("")
    (tmp_path / "other").write_text("")
    lab = tmp_path / "lab" / "__init__.py"
    lab.parent.mkdir()
    lab.write_text("")
    monkeypatch.setattr(agentmark, "__file__", str(package))
    monkeypatch.setattr(agentmark_lab, "__file__", str(lab))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert version_here() == agentmark.__version__
    # Somebody else's checkout, in which it is merely installed.
    git("init")
    git("add", "other")
    git("commit", "-m", "theirs")
    assert version_here() == agentmark.__version__
    git("add", "agentmark", "lab")
    git("commit", "-m", "ours")
    assert re.fullmatch(rf"{agentmark.__version__} at [0-9a-f]{{10}}", version_here())
    (tmp_path / "other").write_text("changed")
    assert not version_here().endswith("with changes")
    for code in (package, lab):
        code.write_text("changed = True")
        assert version_here().endswith("with changes")
        code.write_text("")
        assert not version_here().endswith("with changes")


def test_the_command_names_the_models_of_an_experiment_that_asks_some():
    def command_of(options: Options, **members: object) -> str:
        kept = {"NAME": "x", "TITLE": "y", "run": lambda options, progress: Findings([], []), **members}
        return perform(SimpleNamespace(**kept), options, silent).command

    files = Options(quick=True, model_files=(Path("/models/a.gguf"), Path("/b.gguf")))
    assert command_of(files) == "agentmark lab run x --quick"
    asking = command_of(files, ASKS_MODELS=True)
    assert asking == f"AGENTMARK_GGUF=a.gguf{os.pathsep}b.gguf agentmark lab run x --quick"
    stated = Options(quick=True, model=ModelChoice("m", "http://localhost/v1", "secret"))
    assert command_of(stated, ASKS_MODELS=True) == "agentmark lab run x --quick --model http://localhost/v1 m"
    preset = Options(quick=True, model=ModelChoice("deepseek"))
    assert command_of(preset, ASKS_MODELS=True) == "agentmark lab run x --quick --model deepseek"
    judged = Options(quick=True, judge=JudgeChoice("http://127.0.0.1:5/v1", "m", "secret"))
    assert command_of(judged) == "agentmark lab run x --quick"
    named = "AGENTMARK_JUDGE_URL=URL AGENTMARK_JUDGE_MODEL=m agentmark lab run x --quick"
    assert command_of(judged, ASKS_JUDGE=True) == named


def test_a_missed_aim_is_reported_and_does_not_fail():
    findings = Findings([Claim("fast", holds=False, aim=True), Claim("right", holds=True)], [])
    assert findings.passed
    assert [claim.sentence for claim in findings.claims] == ["Aim not met: fast", "Holds: right"]
    assert not Findings([Claim("right", holds=False)], []).passed


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"machine": {}, "tables": []}'])
def test_a_damaged_result_is_named(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(ResultError, match=r"broken\.json"):
        Result.load(path)
