"""`agentmark identity`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, new_command, printable, text
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "identity",
        "Issue, revoke or list the identities of a registry: a file of lines, or a SQLite table.",
        "examples:\n  agentmark identity registry.jsonl --issue tenant-0042\n  agentmark identity registry.jsonl\n"
        "  agentmark identity registry.db --issue tenant-0042",
    )
    parser.add_argument(
        "registry",
        type=Path,
        help="the registry; --issue creates it, as a table if the name ends in .db, .sqlite or .sqlite3",
    )
    parser.add_argument("--issue", type=text, metavar="NAME", help="give this name a random free payload")
    parser.add_argument("--revoke", type=text, metavar="NAME", help="mark this name as no longer in use")
    parser.add_argument("--payload-len", type=int, default=32, metavar="BITS", help="of a new registry (default 32)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.issue or arguments.revoke:
        if arguments.registry.exists() and not arguments.registry.is_file():
            raise SettingError(str(arguments.registry), "is not a file, and cannot be changed")
        with Registry.locked(arguments.registry):
            registry = _changed(arguments)
            registry.save(arguments.registry)
    else:
        registry = Registry.load(arguments.registry)
    width = -(-registry.payload_len // 4)
    for identity in registry:
        revoked = f"  revoked {identity.revoked_at}" if identity.revoked_at else ""
        print(printable(f"{identity.payload:0{width}x}  {identity.issued_at or '-':<25}  {identity.name}{revoked}"))
    return EXIT_DONE


def _changed(arguments: argparse.Namespace) -> Registry:
    create = arguments.issue and not arguments.registry.exists()
    registry = Registry(arguments.payload_len) if create else Registry.load(arguments.registry)
    if arguments.issue:
        registry.issue(arguments.issue)
    if arguments.revoke:
        registry.revoke(arguments.revoke)
    return registry
