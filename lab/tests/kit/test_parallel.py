"""Worker processes: the outcome does not depend on them, and none outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agentmark_lab.experiments.theory import false_positives
from agentmark_lab.kit.options import Options
from lab_support import silent


def test_workers_do_not_change_the_outcome():
    runs = [Options(quick=True, seed=3, workers=workers) for workers in (1, 2)]
    one, two = [false_positives.run(options, silent).data for options in runs]
    assert one == two


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_stop_when_their_parent_is_killed_or_interrupted(how, tmp_path):
    """They would go on for minutes otherwise, and nobody would take what they bring."""
    parent = subprocess.Popen(
        [sys.executable, "-c", SLEEPY, str(tmp_path)], cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: len(list(tmp_path.glob("*"))) == 2)
        workers = [int(path.name) for path in tmp_path.glob("*")]
    finally:
        parent.send_signal(how)
        parent.wait(timeout=60)
    wait_until(lambda: not any(alive(pid) for pid in workers))


# A shell starts what runs in its background with interrupts ignored; here they are what is tested.
SLEEPY = """
import signal, sys
from functools import partial
from agentmark_lab.kit.parallel import map_chunks
from lab_support import sleep_long

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    map_chunks(partial(sleep_long, sys.argv[1]), [0, 1], workers=2, progress=print, label="x")
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
