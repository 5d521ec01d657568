"""`agentmark store`."""

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, new_command, print_json, printable
from agentmark.cli.store_options import add_store_argument, in_store, said_time
from agentmark.errors import SettingError
from agentmark.text import counted

if TYPE_CHECKING:
    from agentmark.store.store import Store
    from agentmark.store.tables import Contents

DAY_S = 24 * 3600


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "store",
        "Make, describe or thin out the store of a gateway: SQLite, or PostgreSQL (docs/store.md).",
        "examples:\n"
        "  agentmark store init postgresql://owner@db.internal/agents\n"
        "  agentmark store show store.db\n"
        "  agentmark store expire store.db --keep-days 90",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = new_command(
        actions, "init", "Make the tables, if there are none. A gateway that may make tables does this by itself."
    )
    add_store_argument(init)
    init.set_defaults(run=_init)
    show = new_command(actions, "show", "Say what the store holds.")
    add_store_argument(show)
    show.add_argument("--json", action="store_true", help="the same as JSON; times are seconds since 1970")
    show.set_defaults(run=_show)
    expire = new_command(
        actions, "expire", "Delete what is older than a number of days, for good. The store keeps count of it."
    )
    add_store_argument(expire)
    expire.add_argument(
        "--keep-days", type=float, required=True, metavar="DAYS", help="records and calls that are older are deleted"
    )
    expire.set_defaults(run=_expire)


def _init(arguments: argparse.Namespace) -> int:
    async def init(store: "Store") -> str:
        return store.name

    print(printable(f"{in_store(arguments, init, make=True)}: the tables are there"))
    return EXIT_DONE


def _show(arguments: argparse.Namespace) -> int:
    async def look(store: "Store") -> "tuple[str, Contents]":
        return store.name, await store.contents()

    name, contents = in_store(arguments, look)
    if arguments.json:
        print_json({"store": name, **asdict(contents)}, indent=2)
        return EXIT_DONE
    print(printable(f"{name}: {counted(contents.records, 'record')}"))
    if contents.first is not None:
        print(f"  written from {said_time(contents.first)} to {said_time(contents.last)}")
    print(f"  {counted(contents.tenants, 'tenant')}, {counted(contents.calls, 'call')} in the audit log")
    print(
        f"  {counted(contents.decisions, 'decision')} remembered, {counted(contents.replies, 'reply', 'replies')} kept"
    )
    if contents.expired_before is not None:
        expired = counted(contents.expired, "record")
        print(f"  retention has deleted {expired}, the last from before {said_time(contents.expired_before)}")
    return EXIT_DONE


def _expire(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.keep_days < 1e6:
        raise SettingError("--keep-days", f"{arguments.keep_days:g} is not a number of days")
    before = time.time() - arguments.keep_days * DAY_S
    expired = in_store(arguments, lambda store: store.expire(before))
    print(
        f"deleted from before {said_time(before)}: {counted(expired.records, 'record')},"
        f" {counted(expired.decisions, 'decision')}, {counted(expired.calls, 'call')}"
    )
    return EXIT_DONE
