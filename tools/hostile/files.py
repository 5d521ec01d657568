"""The kinds of hostile files: a name, what the file is, and who writes it. Each has at most a megabyte."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_SIZE = 1_000_000
# What a packed file unpacks to: far beyond what a reader may take, and made in seconds.
UNPACKED = 400_000_000


@dataclass(frozen=True, slots=True)
class Maker:
    """What a file is made with: the id of a key that is public, and fixed randomness. Never the key itself."""

    key_id: str

    def rng(self, name: str) -> random.Random:
        """The same file in every run."""
        return random.Random(name)


@dataclass(frozen=True, slots=True)
class HostileFile:
    """One file. `write` gets the path to write to."""

    name: str
    suffix: str
    about: str
    write: Callable[[Maker, Path], None]


def checked_size(path: Path) -> int:
    """The size of a file; more than a megabyte is a fault of whoever made it."""
    size = path.stat().st_size
    if not 0 < size <= MAX_SIZE:
        raise ValueError(f"{path.name} has {size} bytes, and should have between 1 and {MAX_SIZE}")
    return size
