"""Outcomes of elicitation that are made up, and a stand-in for the model that they would come from."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace

from agentmark_lab.experiments.models.ways_of_asking import Outcome

NAMES = ["search", "book", "pay", "Finish"]


def outcome(way: str, number: int, *, fault: str | None = None) -> Outcome:
    rng = random.Random(f"{way} {number}")
    return Outcome(
        model="made-up",
        way=way,
        situation=f"situation {number}",
        source="none",
        candidates=NAMES,
        relevant=["search"],
        weights=None if fault else {name: rng.random() for name in NAMES},
        fault=fault,
        missing_mass=0.1 if way.startswith("logits") else None,
        attempts=1,
        input_tokens=100,
        output_tokens=5,
        seconds=1.0,
        cpu_s=0.5,
        replies=["{}"],
    )


def stand_in(opened: list[Path]) -> Callable[[Path], AbstractContextManager[SimpleNamespace]]:
    """What opens a model that cannot be asked anything, and notes that it was opened."""

    @contextmanager
    def model(file: Path) -> Iterator[SimpleNamespace]:
        opened.append(file)
        yield SimpleNamespace(model="made-up")

    return model
