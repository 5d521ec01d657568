"""What a user has to type to start this program again."""

import os
import sys
from pathlib import Path

import pytest

from agentmark.cli.invocation import own_command

WORDS = ["python3", "demo"]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named agentmark in a folder that the shell does not search."""
    monkeypatch.setenv("PATH", os.defpath)
    path = tmp_path / "a folder" / "agentmark"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_script_that_the_shell_does_not_find_is_called_by_its_path(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_command(str(script), WORDS) == f"'{script}'"
    monkeypatch.chdir(script.parent.parent)
    assert own_command("a folder/agentmark", WORDS) == "'a folder/agentmark'"


def test_a_script_on_the_path_is_called_by_its_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    assert own_command(str(script), WORDS) == "agentmark"
    another = script.parent.parent / "agentmark"
    another.write_bytes(script.read_bytes())
    assert own_command(str(another), WORDS) == str(another), "the name would start the other one"


def test_a_module_is_started_with_the_same_interpreter_and_options() -> None:
    words = [".venv/bin/python", "-X", "utf8", "-m", "agentmark", "demo", "--out", "-m"]
    assert own_command("/x/agentmark/__main__.py", words) == ".venv/bin/python -X utf8 -m agentmark"


def test_called_from_other_code_it_is_this_interpreter() -> None:
    assert own_command("/usr/bin/pytest", ["python", "-m", "pytest"]) == f"{sys.executable} -m agentmark"
    assert own_command("agentmark.txt/run", []) == f"{sys.executable} -m agentmark"
