"""Outcomes of elicitation that are made up."""

import random

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
