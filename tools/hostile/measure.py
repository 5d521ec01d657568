"""One command in a process of its own: its processor time, its peak memory, and how it ended."""

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000
# What the command line documents: attributed or done, not attributed or findings, bad input.
TYPED_EXITS = (0, 1, 2, 3)
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a command is stopped, so that it does not take the machine down."""

    cpu_s: int
    memory_bytes: int

    @property
    def wall_s(self) -> float:
        """For one that waits instead of working, on a machine that has other things to do as well."""
        return 60.0 * self.cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    cpu_s: float
    peak_mb: float
    # As of a process: negative for the signal that ended it.
    exit: int
    said: str
    traceback: bool

    @property
    def typed(self) -> bool:
        """Whether it ended as its help says: with an exit status that means something, and no traceback."""
        return self.exit in TYPED_EXITS and not self.traceback

    @property
    def end(self) -> str:
        """The exit status, or what ended it."""
        if self.exit < 0:
            return signal.Signals(-self.exit).name
        return f"{self.exit}{' (traceback)' if self.traceback else ''}"


def measure(words: Sequence[str], limits: Limits, folder: Path) -> Measured:
    """Run a command in a folder, to its end or to its limits."""

    def limit_child() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=limit_child,  # noqa: PLW1509
        )
        status, usage = _wait(process.pid, limits.wall_s)
        process.returncode = os.waitstatus_to_exitcode(status)
        output, errors = _text(out), _text(err)
    return Measured(
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss * 1024 / MB,
        exit=process.returncode,
        said=_first_words(output, errors, process.returncode),
        traceback="Traceback (most recent call last)" in errors,
    )


def _wait(pid: int, wall_s: float) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + wall_s
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return status, usage
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        time.sleep(_PAUSE_S)


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    return str(file.read(1 << 20).decode("utf-8", "replace"))  # type: ignore[attr-defined]


def _first_words(output: str, errors: str, exit_status: int) -> str:
    """The first line of what was found; for an error the last line of it."""
    lines = (
        output.strip().splitlines() if exit_status in (0, 1) and output.strip() else errors.strip().splitlines()[-1:]
    )
    return lines[0] if lines else ""
