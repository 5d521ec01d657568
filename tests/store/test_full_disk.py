"""A disk that is really full: a file system of a few megabytes, where the system lets us mount one."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from stored import new_record

from agentmark import StepRecord
from agentmark.store.errors import StoreError
from agentmark.store.open import open_store
from agentmark.store.store import Store

SIZE = "6m"


@pytest.fixture
def tiny_disk() -> Iterator[Path]:
    # Not in a folder of pytest's, which lets nobody but its owner through: the server runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="agentmark-tiny-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0777", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("file systems cannot be mounted here: that takes root on Linux")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


async def fill_and_make_room(store: Store, ballast: Path) -> list[StepRecord]:
    """Write until the disk is full, make room, and write again; what was acknowledged."""
    acknowledged: list[StepRecord] = []

    async def fill() -> None:
        while True:
            record = new_record(meta={"filler": "x" * 5000})
            await store.record(record)
            acknowledged.append(record)

    with pytest.raises(StoreError, match="full") as caught:
        await fill()
    # Reading goes on.
    held = (await store.contents()).records
    assert len(acknowledged) <= held <= len(acknowledged) + (caught.value.written is None)
    ballast.unlink()
    record = new_record()
    await store.record(record)
    return [*acknowledged, record]


def check(url: str, acknowledged: list[StepRecord]) -> None:
    assert len(acknowledged) > 50
    lines = list(open_store(url).lines())
    assert len(lines) == len(set(lines))
    assert {record.to_json() for record in acknowledged} <= set(lines)


def run(url: str, ballast: Path) -> list[StepRecord]:
    async def done() -> list[StepRecord]:
        async with open_store(url) as store:
            return await asyncio.wait_for(fill_and_make_room(store, ballast), 120)

    return asyncio.run(done())


def test_sqlite_on_a_full_disk(tiny_disk: Path) -> None:
    (tiny_disk / "ballast").write_bytes(bytes(2_000_000))
    url = str(tiny_disk / "store.db")
    check(url, run(url, tiny_disk / "ballast"))


def test_postgresql_on_a_full_disk(cluster: Cluster, tiny_disk: Path) -> None:
    """Of the tables: a server whose own log has no room stops, and is then out of reach."""
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    space = tiny_disk / "space"
    space.mkdir(mode=0o700)
    cluster.give_to_server(space)
    cluster.execute(f"CREATE TABLESPACE tiny LOCATION '{space}'")
    cluster.execute("ALTER ROLE owner SET default_tablespace = tiny")
    try:
        check(cluster.url, run(cluster.url, ballast))
    finally:
        cluster.execute("ALTER ROLE owner RESET default_tablespace")
        cluster.execute("DROP SCHEMA agentmark CASCADE")
        cluster.execute("DROP TABLESPACE tiny")
