"""The commands that a demonstration ends with: each is pasted into a shell, as it was printed."""

import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmark.audit.progress import Silent
from agentmark.cli.invocation import own_command
from agentmark.demo import run
from agentmark.demo.next_steps import inspect, verify
from agentmark.demo.text import render_text
from agentmark.testing import FakeProvider
from agentmark.testing.provider import chat_answer

SCRIPT = Path(sys.executable).with_name("agentmark")


def printed_commands(text: str, program: str) -> list[str]:
    """The lines that begin with the program, where the last words begin."""
    last_words = text[text.index("Then try it yourself:") :]
    return [line.strip() for line in last_words.splitlines() if line.startswith(f"    {program} ")]


def paste(command: str, folder: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def check_answers(commands: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    """Log, damaged log, wrong key and report, in this order."""
    look, whole, damaged, wrong, report = [paste(command, folder, environment) for command in commands[:5]]
    assert look.returncode == 0, look.stderr
    assert " records" in look.stdout
    for verdict in (whole, damaged, report):
        assert verdict.returncode == 0, verdict.stderr
        assert verdict.stdout.startswith("Attributed to 'acme-eu'")
    assert wrong.returncode == 1, wrong.stderr
    assert wrong.stdout.startswith("Not attributed")
    assert "acme" not in wrong.stdout
    written = Path(folder, shlex.split(commands[4])[-1]).read_text(encoding="utf-8")
    assert "acme-eu" in written


def test_the_commands_work_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TOWNS", 8)
    monkeypatch.setattr(run, "RUNS_PER_TOWN", 1)
    monkeypatch.chdir(tmp_path)
    # A folder that a shell would take apart, and an option parser for an option.
    result = run.run_demo(Path("-a 'folder'"), seed=2, progress=Silent())
    program = own_command()
    commands = printed_commands("\n".join(render_text(result, program)), program)
    with_third_party = result.third_party is not None
    assert len(commands) == len(result.next_steps) == (9 if with_third_party else 6)
    check_answers(commands, tmp_path)
    if with_third_party:
        public, page, forged = [paste(command, tmp_path) for command in commands[6:]]
        assert public.returncode == page.returncode == 0, public.stderr + page.stderr
        assert public.stdout.startswith("Attributed to payload")
        assert "judged again" in page.stdout
        assert forged.returncode == 1, forged.stderr
        assert "altered since it was disclosed" in forged.stdout
    tenants = paste(commands[5], tmp_path)
    assert tenants.returncode == 0, tenants.stderr
    for tenant in run.TENANTS:
        assert tenant in tenants.stdout


def test_a_path_that_does_not_print_can_still_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[2J\u202e'b\\"
    folder.mkdir()
    log = folder / "log.jsonl"
    log.write_text("here", encoding="utf-8")
    line = inspect("What is there?", log).line("cat; cat")
    assert line.isprintable()
    assert paste(line.replace("cat; cat inspect", "cat"), tmp_path).stdout == "here"
    assert verify("Whose?", log, folder).line("x").count("$'") == 3


def letters(rng: random.Random) -> Any:
    return lambda _: {letter: -1.5 - rng.random() for letter in "ABCDEFGH"}


def scripted(body: dict[str, Any]) -> str:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return "I do not know."
    values = {name: (kind["enum"][0] if "enum" in kind else "x") for name, kind in schema["properties"].items()}
    return json.dumps(values)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    answer = chat_answer(scripted, top_logprobs=letters(random.Random(4)))
    with FakeProvider({"/v1/chat/completions": answer}) as fake:
        yield fake


@pytest.mark.parametrize("start", [".venv/bin/agentmark", "agentmark", f"{sys.executable} -m agentmark"])
def test_however_it_was_started(start: str, tmp_path: Path, provider: FakeProvider) -> None:
    scripts = tmp_path / ".venv/bin"
    scripts.mkdir(parents=True)
    (scripts / "agentmark").symlink_to(SCRIPT)
    environment = dict(os.environ)
    on_path = [str(scripts)] if start == "agentmark" else []
    environment["PATH"] = os.pathsep.join([*on_path, os.defpath])
    asked = f"demo --base-url {provider.base_url} --model fake --elicitor labels --minutes 60"
    said = paste(f"{start} {asked}", tmp_path, environment)
    assert said.returncode == 0, said.stderr
    commands = printed_commands(said.stdout, start)
    assert len(commands) == 5
    check_answers(commands, tmp_path, environment)
    page = (tmp_path / "demo-output/model.html").read_text(encoding="utf-8")
    assert f"{start} inspect demo-output/log-model.jsonl" in page
