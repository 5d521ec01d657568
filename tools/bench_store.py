"""How many records a second a store takes: one caller after the other, and many at once.

Each caller waits until its record is on the disk before it sends the next. Numbers are of one run on one machine; the
column to compare with is the time of a bare write to the same disk, which is measured beside them.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "store"))

from cluster import Cluster, programs
from stored import decision_of, new_record

from agentmark.store.open import open_store

CALLERS = (1, 32, 256)


async def measured(url: str, callers: int, seconds: float) -> str:
    """One row: with a decision beside each record, as a gateway writes them."""
    async with open_store(url, max_waiting=10_000) as store:
        waits: list[float] = []
        end = time.perf_counter() + seconds

        async def call() -> None:
            while (begun := time.perf_counter()) < end:
                record = new_record()
                await store.record(record, decision=decision_of(record))
                waits.append(time.perf_counter() - begun)

        begun, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[call() for _ in range(callers)])
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        count, commits = store.stats.records, store.stats.commits
    waits.sort()
    cells = [
        f"{callers}",
        f"{count / took:,.0f}",
        f"{count / commits:.1f}",
        f"{1e3 * waits[len(waits) // 2]:.1f}",
        f"{1e3 * waits[99 * len(waits) // 100]:.1f}",
        f"{1e6 * cpu / count:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def bare_write_ms(folder: Path) -> float:
    """A page written through to the disk, as each commit has to be; the middle of many."""
    took = []
    with (folder / "bare").open("wb", buffering=0) as file:
        for _ in range(200):
            begun = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begun)
    return 1e3 * sorted(took)[len(took) // 2]


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    found = {"SQLite": str(folder / "store.db")}
    if programs() is None:
        print("PostgreSQL is not installed, and left out")
        yield found
        return
    cluster = Cluster()
    try:
        cluster.start()
        yield {**found, "PostgreSQL": cluster.url}
    finally:
        cluster.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row (default 5)")
    parser.add_argument("--folder", type=Path, help="where the SQLite file goes (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name, databases(Path(name)) as found:
        print(f"a bare write of 4 KiB, through to the disk: {bare_write_ms(Path(name)):.1f} ms")
        for kind, url in found.items():
            print(f"\n{kind}\n")
            print("| callers | records/s | records a commit | median wait, ms | 99 % wait, ms | CPU a record, us |")
            print("|---|---|---|---|---|---|")
            for callers in CALLERS:
                print(asyncio.run(measured(url, callers, arguments.seconds)), flush=True)


if __name__ == "__main__":
    main()
