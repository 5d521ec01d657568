"""What every agent here does: errands, one after the other, in conversations of their own.

An agent says how it does one errand, and calls `do_all`. Where its provider is, and the key, stand in the environment
variables that its vendor's client reads, so nothing here knows whether a gateway stands in between.
"""

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable, Callable

from agentmark.testing import Errand

Run = Callable[[Errand], "str | Awaitable[str | None] | None"]


def do_all(run: Run, count: int) -> None:
    """Print a JSON line for each errand: whether it was finished, how many tools were called, and what was said."""
    asyncio.run(_do_all(run, count))


async def _do_all(run: Run, count: int) -> None:
    for seed in range(count):
        errand = Errand(seed)
        # One that waits is in nobody's way here; one that awaits keeps its connections from errand to errand.
        said = run(errand)
        if inspect.isawaitable(said):
            said = await said
        print(json.dumps({"finished": errand.finished(said), "calls": len(errand.calls), "said": said}), flush=True)


def count() -> int:
    """How many errands: the last argument."""
    return int(sys.argv[-1])
