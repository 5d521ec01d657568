"""Runs the blocks of one page as a reader would who pastes them: `python run_blocks.py STEPS`, in its environment.

STEPS is a JSON file: the steps of the page in their order, each with its kind, its line and its text, and a command
with the status it must exit with. Python blocks are one program, and commands are typed into one terminal, in the
folder where this was started. It stops at the first step that fails, says which one on standard error, and exits with
1. It uses the standard library alone, because the environment may have nothing else.
"""

import json
import secrets
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import IO

# A command that runs until it is interrupted is given so long to get going.
ENDLESS_S = 8


class Terminal:
    """One shell for all commands of a page, so that a folder, a variable or an activated environment stays."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._count = 0
        # A pipe whose first command fails has failed.
        options = ["--noprofile", "--norc", "-o", "pipefail"]
        self._shell = subprocess.Popen(
            ["bash", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, command: str) -> tuple[int, str]:
        """The status of a command, and what it printed. It has nothing to read from, as nobody is there to type."""
        self._count += 1
        script = self._work / f"command-{self._count}.sh"
        script.write_text(command + "\n", encoding="utf-8")
        end = secrets.token_hex(16)
        _pipe(self._shell.stdin).write(f". '{script}' < /dev/null\nprintf '\\n%s %s\\n' {end} $?\n".encode())
        _pipe(self._shell.stdin).flush()
        printed: list[str] = []
        for line in _pipe(self._shell.stdout):
            text = line.decode("utf-8", "replace")
            if text.startswith(end):
                return int(text.split()[1]), "".join(printed)
            printed.append(text)
        return self._shell.wait(), "".join(printed)  # The command ended the shell itself.


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def main(steps_file: Path) -> int:
    steps = json.loads(steps_file.read_text(encoding="utf-8"))
    # Python stands in a file of its own on the lines where the page has it: errors then name the page's lines, and
    # what reads its own source (decorators of some frameworks do) finds it.
    program = steps_file.with_suffix(".py")
    program.write_text(_on_their_lines(steps), encoding="utf-8")
    module = types.ModuleType("__main__")
    module.__file__ = str(program)
    sys.modules["__main__"] = module
    sys.path[0] = str(Path.cwd())
    terminal = Terminal(steps_file.parent)
    for step in steps:
        fault = None
        if step["kind"] == "python":
            try:
                exec(compile("\n" * (step["line"] - 1) + step["text"], program, "exec"), module.__dict__)
            except BaseException:
                fault = traceback.format_exc()
        else:
            limit = f"timeout --preserve-status --signal=INT {ENDLESS_S} " if step["endless"] else ""
            status, printed = terminal.run(limit + step["text"])
            print(f"$ {step['text']}\n{printed}", end="", flush=True)
            if status != step["status"]:
                fault = f"$ {step['text']}\n{printed}exits with {status}, and the page says {step['status']}"
        if fault is not None:
            print(f"line {step['line']}: {fault}", file=sys.stderr)
            return 1
    return 0


def _on_their_lines(steps: list[dict[str, object]]) -> str:
    lines: list[str] = []
    for step in steps:
        if step["kind"] == "python":
            lines += [""] * (int(str(step["line"])) - 1 - len(lines))
            lines += str(step["text"]).splitlines()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
