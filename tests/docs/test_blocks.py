"""The runner of the pages notices what it is there to notice."""

import json
import subprocess
import sys
from pathlib import Path

import environments
import pytest
from blocks import PageError, blocks_of, commands_of, steps_of

RUN_BLOCKS = Path(__file__).with_name("run_blocks.py")

PAGE = """\
# A page

Some text.

```python
value = 6
```

```console
$ cd folder && export PLACE=here   # a comment
what it prints
$ for name in a b
> do echo $name; done
$ false   # exits with 1
```

```python
assert value == 6
```
"""


def run(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "folder").mkdir()
    (folder / "steps.json").write_text(json.dumps(steps_of(page)), encoding="utf-8")
    return subprocess.run(
        [sys.executable, RUN_BLOCKS, "steps.json"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_page_is_taken_apart() -> None:
    first, console, last = blocks_of(PAGE)
    assert (first.language, first.line, first.text) == ("python", 6, "value = 6\n")
    assert last.line == 18
    assert [(command.line, command.status) for command in commands_of(console)] == [(10, 0), (12, 0), (14, 1)]
    assert commands_of(console)[1].text == "for name in a b\ndo echo $name; done"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```\nx\n```\n", "needs a language"),
        ("```ruby\nx\n```\n", "needs a language"),
        ("Text.\n\n    indented\n", "by indentation"),
        ("```python\nx\n", "does not end"),
    ],
)
def test_a_block_that_nobody_would_run_is_refused(page: str, fault: str) -> None:
    with pytest.raises(PageError, match=fault):
        blocks_of(page)


def test_a_list_may_be_indented_and_a_console_needs_a_command() -> None:
    assert blocks_of("- an item\n\n    that goes on\n") == []
    (block,) = blocks_of("```console\nonly output\n```\n")
    with pytest.raises(PageError, match="without a command"):
        commands_of(block)


def test_python_is_one_program_and_commands_share_a_terminal(tmp_path: Path) -> None:
    page = PAGE.replace("do echo $name; done", "do echo $name > $PLACE; done")
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "folder" / "here").read_text() == "b\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("assert value == 6", "assert value == 7", "line 18, in <module>"),
        ("assert value == 6", "import sys; sys.exit(0)", "line 18: "),
        ("$ false   # exits with 1", "$ false", "line 14: $ false\n\nexits with 1, and the page says 0"),
        ("$ false   # exits with 1", "$ true   # exits with 1", "exits with 0, and the page says 1"),
        ("$ false   # exits with 1", "$ sleep 0   # until Ctrl-C", "exits with 0, and the page says 130"),
        ("$ false   # exits with 1", "$ false | cat", "exits with 1"),
        ("$ false   # exits with 1", "$ exit 3", "exits with 3"),
        ("$ false   # exits with 1", "$ nosuchcommand", "exits with 127"),
    ],
)
def test_what_fails_is_said_with_its_line(before: str, after: str, said: str, tmp_path: Path) -> None:
    done = run(PAGE.replace(before, after), tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


def test_environments_are_told_apart_by_what_is_installed() -> None:
    assert environments.name_for([]) == "docs-base"
    assert environments.name_for(["pip install '.[langchain]'"]) == "docs-langchain"
    assert environments.name_for(["pip install '.[otel]' some-exporter==0.66b1  # a file"]) == "docs-otel-some-exporter"
    assert environments.constraints_for(["pip install '.[langchain]'"]).name == "langchain.txt"
    assert environments.constraints_for([]).name == "constraints.txt"
