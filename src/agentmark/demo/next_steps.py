"""What to try after a demonstration: commands that work as they are printed."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NextStep:
    """One command without the name of the program, and the question that it answers."""

    question: str
    words: tuple[str, ...]

    def line(self, program: str) -> str:
        """As it is typed. `program` is quoted already."""
        return " ".join([program, *map(quoted, self.words)])


def verify(question: str, log: Path, folder: Path, *options: str, key: str = "key.json") -> NextStep:
    """A verification with the key and the registry that lie in the folder of the demonstration."""
    files = ("--key", named(folder / key), "--registry", named(folder / "registry.jsonl"))
    return NextStep(question, ("verify", named(log), *files, *options))


def inspect(question: str, log: Path) -> NextStep:
    return NextStep(question, ("inspect", named(log)))


def named(path: Path) -> str:
    """A path as an argument: none may look like an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def quoted(word: str) -> str:
    """A word for a shell. What does not print is spelled as bash and zsh read it: $'\\x1b' and the like."""
    return shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_spelled, word))}'"


def _spelled(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in "'\\" else character
    # By its bytes: the name of a file need not be text, and shells differ in what they make of a code point.
    return "".join([f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")])


def step_lines(steps: Sequence[NextStep], program: str) -> list[str]:
    """Questions, and below each the command that answers it."""
    return [line for step in steps for line in (step.question, f"    {step.line(program)}")]
