"""Processes of their own that use a store."""

import os
import subprocess
import sys
from pathlib import Path

WRITER = """
import asyncio, sys
from dataclasses import replace
from stored import new_record
from agentmark.store.errors import RepeatedContextError
from agentmark.store.open import open_store

async def main(path, shared):
    async with open_store(path) as store:
        await asyncio.gather(*[store.record(new_record()) for _ in range(150)])
        # Both processes want this one.
        wanted = replace(new_record(), context=bytes.fromhex(shared))
        try:
            await store.record(wanted)
            print("taken")
        except RepeatedContextError:
            print("refused")

asyncio.run(main(*sys.argv[1:]))
"""


def program(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, *words]


def environment() -> dict[str, str]:
    """For programs that use what the tests use."""
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), str(here.parents[1] / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run_program(text: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        program(text, *words), env=environment(), check=True, capture_output=True, text=True, timeout=120
    )
