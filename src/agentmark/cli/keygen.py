"""`agentmark keygen`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, new_command, printable, text
from agentmark.errors import SettingError
from agentmark.keys.shared import SharedKey

if TYPE_CHECKING:
    from agentmark.keys.marking import MarkingKey

PUBLIC_SUFFIX = ".pub.json"


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "keygen",
        "Write a new secret key to a file that only you can read.",
        "examples:\n"
        "  agentmark keygen key.json\n"
        "  agentmark keygen acme.json --from master.json --tenant acme\n"
        "  agentmark keygen --public marking.json",
    )
    parser.add_argument("file", type=Path, help="the key file to create; never overwritten")
    parser.add_argument(
        "--public",
        action="store_true",
        help="a key with a public half, which others can check verdicts with and mark nothing (docs/public.md): "
        f"FILE.json is the secret, FILE{PUBLIC_SUFFIX} is for everyone. Needs the extra `public`",
    )
    parser.add_argument(
        "--from", dest="master", type=Path, metavar="MASTER", help="derive a tenant's key from this key"
    )
    parser.add_argument("--tenant", type=text, metavar="NAME", help="with --from: whose key to derive")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if (arguments.master is None) != (arguments.tenant is None):
        raise SettingError("--from", "goes together with --tenant")
    if arguments.public:
        return _make_pair(arguments)
    key = SharedKey.generate() if arguments.master is None else _master(arguments).derive(arguments.tenant)
    key.save(arguments.file)
    file = printable(arguments.file)
    print(f"key {key.id} written to {file}; keep it secret, and keep a copy: without it no log can be read")
    return EXIT_DONE


def _make_pair(arguments: argparse.Namespace) -> int:
    from agentmark.keys.marking import MarkingKey

    public_file = public_file_of(arguments.file)
    if public_file.exists():
        # Seen before the secret is written: a pair of which one half is another key's would be found out too late.
        raise SettingError(str(public_file), "exists already; choose another name")
    key = MarkingKey.generate() if arguments.master is None else _master_pair(arguments).derive(arguments.tenant)
    key.save(arguments.file)
    key.public.save(public_file)
    for line in _about(key, arguments.file, public_file):
        print(printable(line))
    return EXIT_DONE


def _about(key: "MarkingKey", secret_file: Path, public_file: Path) -> list[str]:
    return [
        f"key {key.id}",
        f"  secret        {secret_file}: marks, reads and discloses; keep it secret, and keep a copy",
        f"  public        {public_file}: for everyone who is to check what you disclose; marks and reads nothing",
        f"  fingerprint   {key.public.fingerprint}",
        "Put the fingerprint on record where its time can be shown later (a transparency log, a time stamp, a letter):",
        "a claim on what others made counts only for keys that were there before it (docs/public.md).",
    ]


def public_file_of(secret_file: Path) -> Path:
    """Beside it, with .pub.json in place of .json."""
    name = secret_file.name.removesuffix(".json")
    return secret_file.with_name(name + PUBLIC_SUFFIX)


def _master(arguments: argparse.Namespace) -> SharedKey:
    from agentmark.keys.load import load_key

    key = load_key(arguments.master)
    if not isinstance(key, SharedKey):
        raise SettingError("--from", f"{arguments.master} has a public half: give --public for a tenant's pair")
    return key


def _master_pair(arguments: argparse.Namespace) -> "MarkingKey":
    from agentmark.keys.load import load_key
    from agentmark.keys.marking import MarkingKey

    key = load_key(arguments.master)
    if not isinstance(key, MarkingKey):
        raise SettingError("--from", f"{arguments.master} has no public half: its tenants have shared keys")
    return key
