"""Random inputs that several experiments share. Every one comes from a seeded generator: a run repeats exactly."""

from random import Random

from agentmark.core.context import context_digest, context_fields
from agentmark.keys.shared import SharedKey


def generator(seed: int, *labels: object) -> Random:
    """A generator of its own for each use, so that no two parts of an experiment share draws."""
    return Random(" ".join([str(seed), *map(str, labels)]))


def random_key(rng: Random) -> SharedKey:
    return SharedKey(rng.randbytes(32))


def fresh_context(session: str, step_index: int) -> bytes:
    """The digest of the default context: what a session uses for this step."""
    return context_digest(context_fields(session, step_index))
