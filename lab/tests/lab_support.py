"""Small things that several tests of the lab use, and what their worker processes do."""

import os
import time
from pathlib import Path

from agentmark_lab.kit.experiment import Machine, Result, Table


def silent(message: str) -> None:
    """Progress that nobody reads."""


def some_result(**changes) -> Result:
    table = Table("Numbers", ["what", "count"], [["a | b", 1234], ["c", 0.5]], "Counted twice.")
    content = {
        "name": "marginals",
        "title": "A title",
        "command": "agentmark lab run marginals",
        "seed": 1,
        "quick": False,
        "machine": Machine.here(),
        "version": "0.1.0",
        "seconds": 12.3,
        "passed": True,
        "claims": ["Holds: it is so."],
        "tables": [table],
        "data": {"x": [1, 2.5, None]},
    }
    return Result(**{**content, **changes})


def counted(log: Path, broken: Path, chunk: int) -> tuple[int, float]:
    if chunk == 3 and broken.exists():
        raise RuntimeError("interrupted")
    with log.open("a", encoding="utf-8") as lines:
        lines.write(f"{chunk}\n")
    return chunk, float("inf")


def sleep_long(folder: str, _: int) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(120)
