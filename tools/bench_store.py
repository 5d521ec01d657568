"""How many records a second a store takes: one caller after the other, and many at once.

    python tools/bench_store.py                      two minutes
    python tools/bench_store.py --write              into docs/bench-store.md

Each caller waits until its record is on the disk before it sends the next. Rounds of all rows are interleaved, and
beside them a bare write to the same disk is measured: the column to compare with.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "store"))

from bench.measure import Spread
from bench.pages import Table, measured_on, page_with, say
from cluster import Cluster, programs
from stored import RECORD, decision_of

from agentmark.store.open import open_store

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "bench-store.md"
CALLERS = (1, 32, 256)
INTRODUCTION = """# What the store costs

Written by `make bench-store`. A store takes records through `record`, with a decision beside each, as a gateway writes
them. Every caller waits until its record is on the disk before it sends the next.
"""


@dataclass(frozen=True)
class Seen:
    """What one round has shown of one store with so many callers."""

    per_second: float
    per_commit: float
    median_ms: float
    late_ms: float
    cpu_us: float


async def measured(url: str, callers: int, seconds: float, rng: random.Random) -> Seen:
    """With a decision beside each record, as a gateway writes them."""
    async with open_store(url, max_waiting=10_000) as store:
        waits: list[float] = []
        end = time.perf_counter() + seconds

        async def call() -> None:
            while (begun := time.perf_counter()) < end:
                record = replace(RECORD, context=rng.randbytes(32))
                await store.record(record, decision=decision_of(record))
                waits.append(time.perf_counter() - begun)

        begun, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[call() for _ in range(callers)])
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        count, commits = store.stats.records, store.stats.commits
    waits.sort()
    return Seen(
        per_second=count / took,
        per_commit=count / commits,
        median_ms=1e3 * waits[len(waits) // 2],
        late_ms=1e3 * waits[99 * len(waits) // 100],
        cpu_us=1e6 * cpu / count,
    )


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
        say("PostgreSQL is not installed, and left out")
        yield found
        return
    cluster = Cluster()
    try:
        cluster.start()
        yield {**found, "PostgreSQL": cluster.url}
    finally:
        cluster.remove()


def rounds_of(
    found: Mapping[str, str], folder: Path, rounds: int, seconds: float, rng: random.Random
) -> tuple[dict[tuple[str, int], list[Seen]], list[float]]:
    """What each database showed with so many callers, and a bare write: a value a round."""
    rows: dict[tuple[str, int], list[Seen]] = {(kind, callers): [] for kind in found for callers in CALLERS}
    bare = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        bare.append(bare_write_ms(folder))
        for (kind, callers), seen in rows.items():
            seen.append(asyncio.run(measured(found[kind], callers, seconds, rng)))
    return rows, bare


def table_of(rows: Mapping[tuple[str, int], Sequence[Seen]], bare: Sequence[float], seconds: float) -> Table:
    table = Table(
        "Records a second",
        f"{seconds:g} seconds of each row a round, the rounds interleaved: the middle of the rounds, and the least and "
        "the most. The processor time is that of the process that calls the store, all its threads together, without "
        "the server's.",
        "database",
        "callers",
        "records/s",
        "records a commit",
        "median wait, ms",
        "99 % wait, ms",
        "CPU a record, microseconds",
    )
    for (kind, callers), seen in rows.items():
        table.add(
            kind,
            callers,
            Spread([one.per_second for one in seen]).text(),
            Spread([one.per_commit for one in seen]).text(1),
            Spread([one.median_ms for one in seen]).text(1),
            Spread([one.late_ms for one in seen]).text(1),
            Spread([one.cpu_us for one in seen]).text(),
        )
    table.add("a bare write of 4 KiB through to the same disk", "", "", "", Spread(bare).text(1), "", "")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row in each round (default 5)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the records' contexts")
    parser.add_argument("--folder", type=Path, help="where the SQLite file goes (default: a temporary folder)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    below = measured_on(given.seed, given.rounds)
    with tempfile.TemporaryDirectory(dir=given.folder) as name, databases(Path(name)) as found:
        rows, bare = rounds_of(found, Path(name), given.rounds, given.seconds, random.Random(given.seed))
    section = table_of(rows, bare, given.seconds).section(below)
    print(section)
    if given.write:
        PAGE.write_text(page_with(INTRODUCTION, [section]), encoding="utf-8")


if __name__ == "__main__":
    main()
