"""Strategies and small builders that several test files use."""

import argparse
import random
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from agentmark import BehaviorDistribution, Embedder, SharedKey, StepRecord, Verifier
from agentmark.cli.main import SUMMARIES, load_command
from agentmark.core import statistics
from agentmark.verify.state import LogState, accumulate

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
TICKET_WEIGHTS = {"Search": 0.40, "Book": 0.25, "Pay": 0.15, "Check-in": 0.12, "Modify": 0.08}


def keys() -> st.SearchStrategy[bytes]:
    return st.binary(min_size=32, max_size=32)


def weight_lists(max_size: int = 12) -> st.SearchStrategy[dict[str, float]]:
    weights = st.floats(0, 1e6, allow_nan=False) | st.integers(0, 5).map(float)
    return st.dictionaries(NAMES, weights, min_size=1, max_size=max_size).filter(lambda ws: sum(ws.values()) > 0)


def distributions(max_size: int = 12) -> st.SearchStrategy[BehaviorDistribution]:
    return weight_lists(max_size).map(BehaviorDistribution.quantise)


def dirichlet(rng: random.Random, size: int, alpha: float) -> dict[str, float]:
    """A random list of weights, peaked for small alpha."""
    return statistics.named(statistics.dirichlet(rng, alpha, size))


def marked_log(
    key: SharedKey,
    *,
    scheme: str = "F",
    payload: int = 0x5EED,
    payload_len: int = 16,
    steps: int = 60,
    seed: int = 0,
    sessions: int = 1,
) -> list[StepRecord]:
    """Records of an agent whose lists change at every step."""
    rng = random.Random(seed)
    embedder = Embedder(key, payload, payload_len=payload_len, scheme=scheme)
    records = []
    for i in range(sessions):
        # A fixed nonce in place of a random one, so that a test does the same in every run.
        session = embedder.session(f"{scheme} {payload:x} {payload_len} {seed} {i}")
        records += [session.choose(dirichlet(rng, rng.randint(2, 12), 0.6)).record for _ in range(steps)]
    return records


def through_json(records: Iterable[StepRecord]) -> list[StepRecord]:
    return [StepRecord.from_json(record.to_json()) for record in records]


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """The commands there are, each with its parser; without the lab, which is another distribution."""
    commands = argparse.ArgumentParser(prog="agentmark").add_subparsers()
    for name in SUMMARIES:
        if name != "lab" and name not in commands.choices:
            load_command(name, commands)
    return dict(commands.choices)


EVEN = {"north": 0.25, "east": 0.25, "south": 0.25, "west": 0.25}


def logs_of_strangers(
    rng: random.Random,
    lengths: Sequence[int],
    *,
    name: str,
    payload: int = 9,
    payload_len: int = 4,
    key: SharedKey | None = None,
) -> list[list[StepRecord]]:
    """Logs of so many steps each, of two bits each, made with a key that nobody has (or with the one given)."""
    embedder = Embedder(key or SharedKey(rng.randbytes(32)), payload, payload_len=payload_len)
    sessions = [embedder.session(f"{name} {i}") for i in range(len(lengths))]
    return [
        [session.choose(EVEN).record for _ in range(steps)] for session, steps in zip(sessions, lengths, strict=True)
    ]


def state_of(verifier: Verifier, records: Iterable[StepRecord]) -> LogState:
    """What the records say under the verifier's keys."""
    return accumulate(records, verifier.keys)
