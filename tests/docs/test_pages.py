"""Every block of every page runs, in the environment that the page tells its reader to make, and no more.

Pages that need AgentMark alone, or a small extra, run with the other tests. Those that need a framework, a model or the
lab are marked `pages`, and `make test-docs` runs them. No block needs a provider: the models of the framework pages
stand in the pages themselves.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import environments
import pytest
from agentmark_lab.catalogue import EXPERIMENTS
from blocks import ROOT, Block, Command, blocks_of, commands_of, name_of, pages, steps_of

PAGES = {name_of(page): page for page in pages()}
RUN_BLOCKS = Path(__file__).with_name("run_blocks.py")
# Extras that take seconds to install. With others, a page runs in `make test-docs`.
SMALL = {"http", "public", "signed"}
# So do pages whose commands simulate for half a minute.
LONG = {"docs/power.md", "docs/production.md"}
PATIENCE_S = 3600
LIKE_A_COMMAND = re.compile(r"(\$|agentmark|make|pip|python|import|from) ")


@dataclass(frozen=True, slots=True)
class Illustration:
    """A command that no test can run as it stands, and why."""

    pages: str
    command: str
    reason: str

    def shows(self, page: str, command: str) -> bool:
        return bool(re.fullmatch(self.pages, page) and re.fullmatch(self.command, without_comment(command)))


# The only blocks that are not run. Patterns for the page and the whole command, without its comment.
ILLUSTRATIONS = [
    Illustration(r"README\.md", r"make test", "it would run this test"),
    Illustration(r"CONTRIBUTING\.md", r"make [\w-]+", "the project's own tests and tools; .ci/run has those that fit"),
    Illustration(
        r"docs/testing\.md", r"make fuzz .*|\.venvs/fuzz/.*", "minutes of chance inputs, and a failure to repeat"
    ),
    Illustration(
        r"docs/results/\w+\.md",
        r"((AGENTMARK_GGUF|AGENTMARK_JUDGE_\w+)=\S+ )*\S*agentmark lab run .*",
        "hours; `make test-lab` runs each, quick",
    ),
    Illustration(r"docs/lab\.md", r"\S+ lab run all.*", "hours; `make test-lab` runs all of it, quick"),
    Illustration(r"docs/[\w-]+\.md", r".*https://HOST/v1.*", "an endpoint of the reader's"),
    Illustration(r"docs/[\w-]+\.md", r".*my-model\.gguf.*", "a model of the reader's"),
]


def without_comment(command: str) -> str:
    return re.sub(r"\s+#.*", "", command)


def all_commands(page: Path) -> list[Command]:
    consoles = [block for block in blocks_of(page.read_text("utf-8")) if block.language == "console"]
    return [command for block in consoles for command in commands_of(block)]


def installs_of(page: Path) -> list[str]:
    """The commands of a page that make its environment."""
    return [command.text for command in all_commands(page) if makes_environment(command.text)]


def makes_environment(command: str) -> bool:
    return command.startswith(("pip install ", "make lab"))


def is_illustration(page: str, command: str) -> bool:
    return any(illustration.shows(page, command) for illustration in ILLUSTRATIONS)


def steps_to_run(page: Path) -> list[dict[str, object]]:
    """The steps of a page without those that make its environment, which is made by then, and without illustrations."""
    return [
        step
        for step in steps_of(page.read_text("utf-8"))
        if step["kind"] == "python"
        or not (makes_environment(str(step["text"])) or is_illustration(name_of(page), str(step["text"])))
    ]


def runs(page: Path) -> bool:
    try:
        return bool(steps_to_run(page))
    except ValueError:
        return True  # Reported by the test of that page.


def cost(page: Path) -> list[pytest.MarkDecorator]:
    try:
        installs = installs_of(page)
    except ValueError:
        return []
    extras = set(re.findall(r"\.\[([\w,-]+)\]", "\n".join(installs)))
    small = not any(line.startswith("make") for line in installs) and extras <= SMALL and name_of(page) not in LONG
    return [] if small else [pytest.mark.pages]


RUNNING = [pytest.param(name, marks=cost(page), id=name) for name, page in PAGES.items() if runs(page)]


@pytest.mark.parametrize("name", RUNNING)
def test_every_block_runs_as_pasted(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    environment = environments.make(installs_of(page))
    done = run_in_a_clone(steps_to_run(page), environment, tmp_path)
    assert done.returncode == 0, f"{name}, {done.stderr or done.stdout}"
    # The next page is read in the same environment.
    assert environments.what_it_imports(environment).is_relative_to(ROOT / "src"), "the page installs from its clone"


def run_in_a_clone(steps: list[dict[str, object]], environment: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (work / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
    reader = environments.clone(folder, environment)
    try:
        return subprocess.run(
            [environment / "bin" / "python", RUN_BLOCKS, work / "steps.json"],
            cwd=reader,
            env=environments.surroundings(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        shutil.rmtree(reader)


@pytest.mark.slow
def test_the_first_command_makes_the_environment_that_pages_count_on(tmp_path: Path) -> None:
    """In a clone that has none: what the other tests find made is made here as the front page says."""
    lines = [without_comment(command.text) for command in all_commands(PAGES["README.md"])]
    assert lines[0] == "make demo"
    place = lines.index(". .venv/bin/activate")
    first = "\n".join(["set -e", "make demo", lines[place], "agentmark verify --help"])
    reader = environments.clone(tmp_path)
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    outside = environments.surroundings(Path.home()) | settings
    done = subprocess.run(["bash", "-c", first], cwd=reader, env=outside, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (reader / "demo-output").is_dir()


@pytest.mark.parametrize("name", PAGES)
def test_blocks_name_a_language_and_only_those_that_run_hold_commands(name: str) -> None:
    for block in blocks_of(PAGES[name].read_text("utf-8")):
        if block.language == "console":
            assert commands_of(block)
        elif block.language == "text":
            commands = re.findall(
                r"^(?:\$ |agentmark |make |pip |python |import |from ).*", block.text, flags=re.MULTILINE
            )
            assert commands == [], f"line {block.line}: call it console or python, and it runs"


@pytest.mark.parametrize("name", PAGES)
def test_what_a_diff_adds_stands_in_what_runs(name: str) -> None:
    blocks = blocks_of(PAGES[name].read_text("utf-8"))
    program = {line.strip() for block in blocks if block.language == "python" for line in block.text.splitlines()}
    for block in blocks:
        if block.language == "diff":
            added = [line[1:].strip() for line in block.text.splitlines() if line.startswith("+")]
            assert added
            assert [line for line in added if line not in program] == []


def test_every_illustration_is_needed() -> None:
    commands = [(name, command.text) for name, page in PAGES.items() for command in all_commands(page)]
    unused = [entry for entry in ILLUSTRATIONS if not any(entry.shows(*command) for command in commands)]
    assert unused == []


def test_illustrations_of_make_name_targets() -> None:
    """What is not run is at least there to be run."""
    text = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text, flags=re.MULTILINE))
    shown = [command.text for page in PAGES.values() for command in all_commands(page)]
    named = {re.match(r"make ([a-z-]+)", command)[1] for command in shown if command.startswith("make ")}
    assert len(named) > 10
    assert {name for name in named - targets if not name.startswith("test-adapter-")} == set()


def test_illustrations_of_the_lab_name_experiments() -> None:
    shown = [command.text for page in PAGES.values() for command in all_commands(page)]
    named = {found[1] for command in shown if (found := re.search(r"lab run (\w+)", command))}
    assert len(named) > 30
    assert named - {*EXPERIMENTS, "all"} == set()


def test_commands_of_ours_work_where_the_reader_stands() -> None:
    """`agentmark` is found once the environment is active, so a page that calls it begins with activating it."""
    for name, page in PAGES.items():
        lines = [command.text for command in all_commands(page)]
        ours = [line for line in lines if re.match(r"agentmark |pip ", line) and not is_illustration(name, line)]
        if ours:
            assert any(
                line.partition("  #")[0].strip() == ". .venv/bin/activate" for line in lines[: lines.index(ours[0])]
            ), name


def python_blocks(page: Path) -> list[Block]:
    return [block for block in blocks_of(page.read_text("utf-8")) if block.language == "python"]


def test_the_front_page_and_each_framework_have_something_to_paste() -> None:
    for name in ["README.md", *[name for name in PAGES if re.fullmatch(r"docs/frameworks/[a-z]+(-[a-z]+)?\.md", name)]]:
        if name != "docs/frameworks/refusals.md":
            assert python_blocks(PAGES[name]), name
