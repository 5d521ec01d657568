"""`agentmark keygen`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, new_command, printable, text
from agentmark.errors import SettingError
from agentmark.keys.shared import SharedKey


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "keygen",
        "Write a new secret key to a file that only you can read.",
        "examples:\n  agentmark keygen key.json\n  agentmark keygen acme.json --from master.json --tenant acme",
    )
    parser.add_argument("file", type=Path, help="the key file to create; never overwritten")
    parser.add_argument(
        "--from", dest="master", type=Path, metavar="MASTER", help="derive a tenant's key from this key"
    )
    parser.add_argument("--tenant", type=text, metavar="NAME", help="with --from: whose key to derive")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if (arguments.master is None) != (arguments.tenant is None):
        raise SettingError("--from", "goes together with --tenant")
    if arguments.master is None:
        key = SharedKey.generate()
    else:
        key = SharedKey.load(arguments.master).derive(arguments.tenant)
    key.save(arguments.file)
    file = printable(arguments.file)
    print(f"key {key.id} written to {file}; keep it secret, and keep a copy: without it no log can be read")
    return EXIT_DONE
