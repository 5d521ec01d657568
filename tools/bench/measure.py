"""What a command costs, and on which machine: processor time, wall time, peak memory, and how far rounds differ."""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# As on a machine that is used: what Python has compiled, it keeps.
WARM = {"PYTHONDONTWRITEBYTECODE": ""}


@dataclass(frozen=True)
class Cost:
    """Of one run of a command with all its workers. `peak_mb` is that of its largest process."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    status: int
    printed: str
    complaint: str


def run(words: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Cost:
    """Run `agentmark` with these words in a process of its own."""
    command = [sys.executable, "-m", "agentmark", *map(str, words)]
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaint:
        begun = time.monotonic()
        process = os.posix_spawn(
            sys.executable,
            command,
            {**os.environ, **WARM, **(environment or {})},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, printed.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, complaint.fileno(), 2),
            ],
        )
        # What waits for a process is told of those that it has waited for, too.
        _, status, usage = os.wait4(process, 0)
        wall_s = time.monotonic() - begun
        printed.seek(0)
        complaint.seek(0)
        return Cost(
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=wall_s,
            peak_mb=usage.ru_maxrss / 1024,
            status=os.waitstatus_to_exitcode(status),
            printed=printed.read().decode("utf-8", "replace"),
            complaint=complaint.read().decode("utf-8", "replace"),
        )


@dataclass(frozen=True)
class Spread:
    """The middle of several rounds, and the least and the most."""

    values: Sequence[float]

    @property
    def middle(self) -> float:
        return statistics.median(self.values)

    def text(self, digits: int = 0) -> str:
        low, high = min(self.values), max(self.values)
        return f"{self.middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def interleaved(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Spread]:
    """Each of these so many times, one after the other and not each by itself: what else the machine does meanwhile
    falls on all of them alike."""
    values: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            values[name].append(measure())
    return {name: Spread(found) for name, found in values.items()}


def machine() -> str:
    """The machine in a sentence: all numbers are its own."""
    load = ", ".join([f"{average:.1f}" for average in os.getloadavg()])
    return (
        f"{_cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}; load {load} when it began"
    )


def commit() -> str:
    """The commit of the package that is measured, and whether it was changed since."""
    changed = _git("status", "--porcelain", "--", "src")
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("-changed" if changed else "")


def _git(*words: str) -> str:
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
