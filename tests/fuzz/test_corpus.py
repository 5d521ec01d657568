"""Inputs that once ended as none may, and a short run of fresh ones: `make fuzz` goes on for as long as it is let."""

import random
from pathlib import Path

import pytest

from fuzz.harness import run_one, target_of
from fuzz.targets import TARGETS

KEPT = sorted((Path(__file__).parent / "data").iterdir())
# How many inputs of each target: a second or so for all.
FRESH = 12


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_what_once_failed_ends_as_it_should(path: Path) -> None:
    failure = run_one(target_of(path), path.read_bytes())
    assert failure is None, failure and failure.fault


@pytest.mark.parametrize("name", TARGETS)
def test_fresh_inputs_end_as_they_should(name: str) -> None:
    """The same ones in every run."""
    target, rng = TARGETS[name], random.Random(name)
    for _ in range(FRESH):
        failure = run_one(target, target.draw(rng))
        assert failure is None, failure and f"{failure.fault} ({failure.place})"
