"""A writing process is killed again and again: whatever it was told is written is there, and no context is there twice.

SIGKILL gives a process no chance to tidy up. Other than a power cut it leaves what the system holds of its files, so it
tests the order of commit and answer, not the disk.
"""

import os
import random
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from programs import environment, program

from agentmark.store.open import open_store

# Writes without end, and says of each record that it was told is written: its context, one a line.
WRITER = """
import asyncio, os, sys
from dataclasses import replace
from stored import decision_of, new_record
from agentmark.store.errors import RepeatedContextError
from agentmark.store.open import open_store

async def write(store):
    while True:
        record = new_record()
        await store.record(record, decision=decision_of(record))
        # Straight to the pipe, in one piece: what is in there is there whatever happens to this process.
        os.write(1, f"{record.context.hex()}\\n".encode())

async def main(url, *known):
    async with open_store(url) as store:
        for context in known:
            try:
                await store.record(replace(new_record(), context=bytes.fromhex(context)))
                os.write(1, b"a context was taken twice\\n")
            except RepeatedContextError:
                pass
        await asyncio.gather(*[write(store) for _ in range(16)])

asyncio.run(main(*sys.argv[1:]))
"""


def killed_while_writing(url: str, known: list[str], rng: random.Random) -> list[str]:
    """What one process was told is written, until it was killed in the middle of its work."""
    with subprocess.Popen(
        program(WRITER, url, *known), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ready, _, _ = select.select([process.stdout, process.stderr], [], [], 60)
        assert process.stdout in ready, process.stderr.read1().decode()
        time.sleep(rng.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().decode()
        process.wait(60)
        assert process.returncode == -signal.SIGKILL
    return said.splitlines()


def kill_in_a_loop(url: str, rounds: int) -> None:
    rng = random.Random(rounds)
    acknowledged: list[str] = []
    for _ in range(rounds):
        # The next one is also asked to write contexts that are taken.
        acknowledged += killed_while_writing(url, acknowledged[-3:], rng)
        assert len(acknowledged[-1]) == 64, acknowledged[-1]
    held = [line.split('"context":"')[1][:64] for line in open_store(url).lines()]
    assert len(held) == len(set(held))
    assert set(acknowledged) <= set(held)
    # Of every round at most what was being written is there beyond that.
    assert len(held) - len(acknowledged) <= 16 * rounds
    assert len(acknowledged) > rounds


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_a_process_that_is_killed(url: str) -> None:
    kill_in_a_loop(url, 3)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_a_process_that_is_killed_sixty_times(url: str) -> None:
    kill_in_a_loop(url, 60)


def test_the_file_is_whole_after_all_that(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    kill_in_a_loop(str(path), 2)
    import sqlite3

    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
