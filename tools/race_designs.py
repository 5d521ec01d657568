"""How a name's 256 clock values may follow from one hash, and how much of the entropy each way carries (ADR 21).

    python tools/race_designs.py

For each list the share of its entropy that a step of R carries, E[-log2 q_t] / H, with its standard error: the mean
over random clocks of the entropy of the winner over all 256 symbols. Needs NumPy; takes about two minutes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

SYMBOLS = np.arange(256)
STEPS, BATCH = 10_000, 500
Array = np.ndarray[Any, Any]
Tops = Callable[[np.random.Generator, int, int], Array]


def product(left: int, right: int) -> int:
    """In GF(2^8) modulo x^8 + x^4 + x^3 + x + 1."""
    total = 0
    while right:
        total ^= left if right & 1 else 0
        left = left << 1 ^ (0x11B if left & 0x80 else 0)
        right >>= 1
    return total


PRODUCTS = np.array([[product(left, right) for right in range(256)] for left in range(256)])


def independent(rng: np.random.Generator, steps: int, names: int) -> Array:
    """A value of its own for every symbol: 32 blocks a name."""
    return rng.integers(0, 256, (steps, names, 256))


def lattice(rng: np.random.Generator, steps: int, names: int) -> Array:
    """(v + s g) mod 256 with an odd g."""
    start = rng.integers(0, 256, (steps, names, 1))
    return (start + (2 * rng.integers(0, 128, (steps, names, 1)) + 1) * SYMBOLS) % 256


def field(rng: np.random.Generator, steps: int, names: int) -> Array:
    """v xor g * s in GF(2^8), with max(1, g): what the specification says."""
    start = rng.integers(0, 256, (steps, names, 1))
    return start ^ PRODUCTS[np.maximum(1, rng.integers(0, 256, (steps, names)))]


def permuted(rng: np.random.Generator, steps: int, names: int) -> Array:
    """A random permutation of the 256 values, as a yardstick: it does not follow from one hash."""
    return rng.permuted(np.broadcast_to(SYMBOLS, (steps, names, 256)), axis=-1)


def carried(shares: Array, tops: Tops, rng: np.random.Generator) -> tuple[float, float]:
    """E[-log2 q_t] as a share of the entropy, and its standard error."""
    entropy = -(shares * np.log2(shares)).sum()
    found = []
    for _ in range(STEPS // BATCH):
        top = tops(rng, BATCH, len(shares))
        # Below the top byte all symbols of a name have the same bits, except where every symbol is independent.
        below = rng.random((BATCH, len(shares), 256 if tops is independent else 1))
        winner = (-np.log((top + below) / 256) / shares[None, :, None]).argmin(1)
        wins = np.stack([(winner == name).sum(1) for name in range(len(shares))], 1) / 256
        found.append(-(wins * np.log2(np.where(wins > 0, wins, 1))).sum(1))
    evidence = np.concatenate(found) / entropy
    return float(evidence.mean()), float(evidence.std() / len(evidence) ** 0.5)


def main() -> None:
    rng = np.random.default_rng(1)
    lists = {
        "fair coin": [0.5, 0.5],
        ".9, .1": [0.9, 0.1],
        "App. C (.40 .25 .15 .12 .08)": [0.40, 0.25, 0.15, 0.12, 0.08],
        ".91 and nine of .01": [0.91] + [0.01] * 9,
        "twenty alike": [0.05] * 20,
    }
    for number in (1, 2):
        drawn = np.maximum(rng.dirichlet([0.1] * 10), 1e-9)
        lists[f"Dirichlet(.1) of ten, list {number}"] = list(drawn / drawn.sum())
    designs: tuple[Tops, ...] = (independent, lattice, field, permuted)
    print("| list | " + " | ".join(design.__name__ for design in designs) + " |")
    print("|---|" + "---|" * len(designs))
    for what, shares in lists.items():
        cells = ["{:.4f} ({:.4f})".format(*carried(np.array(shares), design, rng)) for design in designs]
        print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
