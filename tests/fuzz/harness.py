"""One input through one target: how it ended, what it cost, and whether that is allowed."""

import hashlib
import resource
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentmark.core.errors import AgentMarkError
from fuzz.command_line import BadEndError
from fuzz.targets import TARGETS, Target

# What one input of up to 64 KiB may cost, on any machine: counted generously.
CPU_ALLOWANCE_S = 10.0
# The peak of the whole process, seeds and packages included.
MEMORY_ALLOWANCE_BYTES = 1 << 30
BETWEEN = "--"


class TooLongError(BaseException):
    """Raised from a timer; nothing that catches errors may catch it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that ended as none may. `place` tells one fault from another."""

    target: str
    fault: str
    place: str
    data: bytes

    def save(self, folder: Path) -> Path:
        """Keep the input under a name that says of which target it is."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.target}{BETWEEN}{hashlib.sha256(self.data).hexdigest()[:12]}"
        path.write_bytes(self.data)
        return path


def target_of(path: Path) -> Target:
    """Whose input a kept file is: its name begins with the target's."""
    return TARGETS[path.name.split(BETWEEN)[0]]


def run_one(target: Target, data: bytes) -> Failure | None:
    """Run one input in an empty folder. Success and typed errors are the only ends that are no failure."""
    peak = _peak_bytes()
    start = time.process_time()
    fault, place = "", ""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        try:
            with _stopped_after(CPU_ALLOWANCE_S):
                target.run(data, Path(folder))
        except AgentMarkError:
            pass
        except TooLongError as error:
            fault, place = f"took more than {CPU_ALLOWANCE_S:g} s of processor time", _place(error)
        except Exception as error:
            fault, place = f"{type(error).__name__}: {error}"[:300], _place(error)
    if not fault and (spent := time.process_time() - start) > CPU_ALLOWANCE_S:
        # In code that no signal reaches.
        fault = f"took {spent:.1f} s of processor time"
    if not fault and peak < MEMORY_ALLOWANCE_BYTES <= _peak_bytes():
        fault = f"took the process to {_peak_bytes() >> 20} MiB"
    return Failure(target.name, fault, place, data) if fault else None


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def _stopped_after(cpu_s: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    """The innermost frame of ours; of a command, what it says of itself."""
    if isinstance(error, BadEndError):
        return error.place
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "agentmark/" in f.filename]
    if not frames:
        frames = list(traceback.extract_tb(error.__traceback__))[-1:]
    return f"{type(error).__name__} in {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
