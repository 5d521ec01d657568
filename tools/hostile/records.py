"""Records as somebody without the key would forge them: well-formed lines with made-up lists, contexts and choices."""

import json
import random
import string
from collections.abc import Iterable
from typing import Any

TOTAL = 1 << 32
_LETTERS = string.ascii_letters + string.digits + "+-"


def weights_of(rng: random.Random, size: int) -> dict[str, int]:
    """A list of random integer weights that sum to 2^32, in canonical order."""
    cuts = sorted(rng.sample(range(1, TOTAL), size - 1))
    weights = [high - low for low, high in zip([0, *cuts], [*cuts, TOTAL], strict=True)]
    return {f"b{i}": weight for i, weight in enumerate(sorted(weights, reverse=True))}


def even_weights(size: int) -> dict[str, int]:
    """A list of equal weights; the size is a power of two."""
    return {f"b{i}": TOTAL // size for i in range(size)}


def peaked_weights() -> dict[str, int]:
    """4,096 options, all but one of weight 1, in so few bytes that a packer sees the list before in its window."""
    names = [first + second for first in _LETTERS for second in _LETTERS]
    return {names[0]: TOTAL - len(names) + 1} | dict.fromkeys(names[1:], 1)


def forged(rng: random.Random, key_id: str, step: int, **members: Any) -> dict[str, Any]:
    """A record that names the key and was not made with it."""
    weights = members["weights"] if "weights" in members else weights_of(rng, 8)
    content = {
        "agentmark": 1,
        "scheme": "F",
        "key_id": key_id,
        "payload_len": 32,
        "session": "s",
        "step": step,
        "context": rng.randbytes(32).hex(),
        "weights": weights,
        "choice": rng.choice(list(weights)) if weights else "b0",
        "marked": True,
    }
    return content | members


def unmarked(rng: random.Random, key_id: str, step: int, **members: Any) -> dict[str, Any]:
    return forged(rng, key_id, step, weights=None, marked=False, reason="no list", **members)


def line_of(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def lines_up_to(size: int, lines: Iterable[bytes]) -> bytes:
    """As many whole lines as fit."""
    kept, total = [], 0
    for line in lines:
        total += len(line)
        if total > size:
            break
        kept.append(line)
    return b"".join(kept)
