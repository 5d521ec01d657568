"""What to try after a demonstration: commands that work as they are printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentmark.text import shell_path, shell_word

# Somebody else's key, to see what it reads.
WRONG_KEY = "wrong-key.json"


@dataclass(frozen=True, slots=True)
class NextStep:
    """One command without the name of the program, and the question that it answers. Its words are files, and words of
    ours that need no quotes."""

    question: str
    words: tuple[str | Path, ...]

    def line(self, program: str) -> str:
        """As it is typed. `program` is quoted already."""
        shown = [shell_path(str(word)) if isinstance(word, Path) else shell_word(word) for word in self.words]
        return " ".join([program, *shown])


# Each delivery, or task, is a session of its own. Whose they are together is one question.
TOGETHER = "--pool"


def verify(question: str, log: Path, folder: Path, *options: str | Path, key: str = "key.json") -> NextStep:
    """A verification with the key and the registry that lie in the folder of the demonstration."""
    files = ("--key", folder / key, "--registry", folder / "registry.jsonl")
    return NextStep(question, ("verify", log, *files, *options))


def inspect(question: str, log: Path) -> NextStep:
    return NextStep(question, ("inspect", log))


def damaged_steps(log: Path, folder: Path) -> tuple[NextStep, ...]:
    """What to try on a damaged log."""
    report = folder / "report.html"
    return (
        verify("And what is left of it after the damage?", log, folder, TOGETHER),
        verify("And with somebody else's key? It names nobody.", log, folder, TOGETHER, "--any-key-id", key=WRONG_KEY),
        verify(
            f"For someone who must rely on it: a report. Open {report} in a browser afterwards.",
            log,
            folder,
            TOGETHER,
            "--report",
            report,
        ),
    )


def step_lines(steps: Sequence[NextStep], program: str) -> list[str]:
    """Questions, and below each the command that answers it."""
    return [line for step in steps for line in (step.question, f"    {step.line(program)}")]
