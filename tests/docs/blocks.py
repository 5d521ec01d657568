"""The blocks of a page: what stands between fences, by the language that the fence names.

`python` and `console` blocks run. Of a console block the lines that begin with `$ ` are commands (`> ` goes on with the
command above); the others are what it prints. A command exits with 0, unless a comment on it says `# exits with 1`; one
that runs `# until Ctrl-C` is interrupted after a while.
A `diff` shows what changes in the reader's own program: the lines it adds stand in a Python block of the same page.
"""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("python", "console")
SHOWN = ("diff", "json", "text", "toml", "yaml")

_STATUS = re.compile(r"# exits with (\d+)")
_ENDLESS = "# until Ctrl-C"
_INTERRUPTED = 130
_INDENTED = re.compile(r" {4,}\S|\t")
_LIST_ITEM = re.compile(r"\s*([-*+]|\d+\.) ")


class PageError(ValueError):
    """A page that cannot be taken apart into blocks."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the line of the page on which its text begins, and the text."""

    language: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, on which line it stands, and the status that the page says it exits with."""

    line: int
    text: str
    status: int
    endless: bool = False


def pages() -> list[Path]:
    """Every page that is written for readers."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page in their order; code that no fence names the language of is refused."""
    blocks: list[Block] = []
    begun: tuple[str, int] | None = None
    lines: list[str] = []
    before = ""
    in_list = False
    for number, line in enumerate(text.splitlines(), start=1):
        if begun is None and line.lstrip().startswith("```"):
            if line.startswith(" ") or line[3:] not in RUN + SHOWN:
                raise PageError(f"line {number}: a block needs a language of {', '.join(RUN + SHOWN)}, unindented")
            begun, lines = (line[3:], number + 1), []
        elif begun is not None and line == "```":
            blocks.append(Block(*begun, "".join(f"{line}\n" for line in lines)))
            begun = None
        elif begun is not None:
            lines.append(line)
        elif not in_list and not before.strip() and _INDENTED.match(line):
            raise PageError(f"line {number}: a block by indentation; put it between fences, with its language")
        if begun is None and line.strip():
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line.startswith(" "))
        before = line
    if begun is not None:
        raise PageError(f"line {begun[1]}: a block that does not end")
    return blocks


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if line.startswith("$ "):
            said = _STATUS.search(line)
            endless = _ENDLESS in line
            status = int(said[1]) if said else _INTERRUPTED if endless else 0
            found.append(Command(number, line[2:], status, endless))
        elif line.startswith("> ") and found:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line[2:]}")
    if not found:
        raise PageError(f"line {block.line}: a console block without a command; call it text")
    return found


def steps_of(text: str) -> list[dict[str, object]]:
    """What of a page runs, as run_blocks.py takes it: Python blocks and commands, in their order."""
    steps: list[dict[str, object]] = []
    for block in blocks_of(text):
        if block.language == "python":
            steps.append({"kind": "python", "line": block.line, "text": block.text})
        elif block.language == "console":
            steps += [{"kind": "command", **asdict(command)} for command in commands_of(block)]
    return steps
