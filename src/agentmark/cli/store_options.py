"""What the commands about a store share."""

import argparse
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from agentmark.cli.common import file_name

if TYPE_CHECKING:
    from agentmark.store.store import Store

Result = TypeVar("Result")

STORE_HELP = "the store: a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE"


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=file_name, metavar="STORE", help=STORE_HELP)


def in_store(
    arguments: argparse.Namespace, work: "Callable[[Store], Awaitable[Result]]", *, make: bool = False
) -> Result:
    """Do something in the store that was named. It has to be there, unless it is to be made."""
    import asyncio

    from agentmark.store.open import open_store

    async def done() -> Result:
        store = open_store(arguments.store)
        if not make:
            await store.look()
        async with store:
            return await work(store)

    return asyncio.run(done())


def moment(word: str) -> float:
    """The type of an argument that is a time: ISO 8601, in UTC unless it says otherwise."""
    try:
        parsed = datetime.fromisoformat(word)
    except ValueError:
        raise argparse.ArgumentTypeError("is no date or time, such as 2026-11-18 or 2026-11-18T12:00:00Z") from None
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return aware.timestamp()


def said_time(seconds: float | None) -> str:
    """A time of the store, for people."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
