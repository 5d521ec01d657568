"""`agentmark identity`."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, new_command, printable, text
from agentmark.errors import SettingError

if TYPE_CHECKING:
    from agentmark.identity.registry import Identity, Registry

STANDARD_INPUT = Path("-")
# A million names of a hundred letters.
MAX_NAMES_SIZE = 1 << 27


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "identity",
        "Issue, revoke or list the identities of a registry: a file of lines, or a SQLite table.",
        "examples:\n  agentmark identity registry.jsonl --issue tenant-0042 --issue tenant-0043\n"
        "  agentmark identity registry.jsonl --issue-from names.txt\n"
        "  agentmark identity registry.jsonl\n"
        "  agentmark identity registry.db --issue tenant-0042\n"
        "  agentmark identity tenants.jsonl --register acme --public-key acme.pub.json",
    )
    parser.add_argument(
        "registry",
        type=Path,
        help="the registry; --issue creates it, as a table if the name ends in .db, .sqlite or .sqlite3",
    )
    parser.add_argument(
        "--issue",
        type=text,
        action="append",
        default=[],
        metavar="NAME",
        help="give this name a random free payload; again for each. All of them are issued, or none",
    )
    parser.add_argument(
        "--issue-from", type=Path, metavar="FILE", help="issue the names in this file, one a line; - is standard input"
    )
    parser.add_argument(
        "--revoke",
        type=text,
        action="append",
        default=[],
        metavar="NAME",
        help="mark this name as no longer in use; again for each",
    )
    parser.add_argument(
        "--register",
        type=text,
        metavar="NAME",
        help="in a registry of public keys (docs/public.md): put the key of --public-key on record for this name, now",
    )
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="for --register: NAME's public key file")
    parser.add_argument(
        "--list", action="store_true", help="print the whole registry (the default, if nothing is issued or revoked)"
    )
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="of a new registry (default 32)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.identity.registry import Registry

    if (arguments.register is None) != (arguments.public_key is None):
        raise SettingError("--register", "goes together with --public-key")
    if arguments.register is not None or _is_of_public_keys(arguments.registry):
        return _run_tenants(arguments)
    names = [*arguments.issue, *(_names_in(arguments.issue_from) if arguments.issue_from is not None else [])]
    _check_once(names, "--issue")
    _check_once(arguments.revoke, "--revoke")
    changed: list[Identity] = []
    if names or arguments.revoke:
        if arguments.registry.exists() and not arguments.registry.is_file():
            raise SettingError(str(arguments.registry), "is not a file, and cannot be changed")
        with Registry.locked(arguments.registry):
            registry = _opened(arguments, create=bool(names))
            # Nothing is saved unless all of it went well.
            changed += [registry.issue(name) for name in names]
            changed += [registry.revoke(name) for name in arguments.revoke]
            registry.save(arguments.registry)
    else:
        registry = Registry.load(arguments.registry)
    _print(registry, registry if arguments.list or not changed else changed)
    return EXIT_DONE


def _opened(arguments: argparse.Namespace, *, create: bool) -> "Registry":
    from agentmark.identity.registry import Registry

    if create and not arguments.registry.exists():
        return Registry(32 if arguments.payload_len is None else arguments.payload_len)
    registry = Registry.load(arguments.registry)
    if arguments.payload_len not in (None, registry.payload_len):
        fault = f"{arguments.registry} is there already, with payloads of {registry.payload_len} bits"
        raise SettingError("--payload-len", fault)
    return registry


def _names_in(path: Path) -> list[str]:
    """Names, one a line; blank lines are none."""
    from agentmark.files import read_small_file

    shown = "standard input" if path == STANDARD_INPUT else str(path)
    data = _standard_input() if path == STANDARD_INPUT else read_small_file(path, MAX_NAMES_SIZE)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise SettingError("--issue-from", f"{shown} is not UTF-8 text, of one name a line") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise SettingError("--issue-from", f"{shown} holds no name")
    return names


def _standard_input() -> bytes:
    stream: Any = sys.stdin
    if stream is None:
        raise SettingError("standard input", "is closed")
    return bytes(stream.buffer.read(MAX_NAMES_SIZE))


def _check_once(names: list[str], option: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise SettingError(option, f"{name!r} is given twice")
        seen.add(name)


def _print(registry: "Registry", identities: "Iterable[Identity]") -> None:
    width = -(-registry.payload_len // 4)
    for identity in identities:
        revoked = f"  revoked {identity.revoked_at}" if identity.revoked_at else ""
        print(printable(f"{identity.payload:0{width}x}  {identity.issued_at or '-':<25}  {identity.name}{revoked}"))


# Public keys ---------------------------------------------------------------------------------------------------------


def _is_of_public_keys(path: Path) -> bool:
    from agentmark.disclosure.tenants import is_tenants_file

    return path.is_file() and is_tenants_file(path)


def _run_tenants(arguments: argparse.Namespace) -> int:
    """Register, revoke or list the public keys of tenants."""
    from agentmark.disclosure.tenants import Tenants
    from agentmark.identity.registry import Registry
    from agentmark.keys.public import PublicKey

    for name in ("issue", "issue_from", "payload_len"):
        if getattr(arguments, name):
            raise SettingError(f"--{name.replace('_', '-')}", "is for registries of identities, and not of public keys")
    changed = []
    if arguments.register is not None or arguments.revoke:
        with Registry.locked(arguments.registry):
            tenants = Tenants.load(arguments.registry) if arguments.registry.exists() else Tenants()
            changed += [tenants.revoke(name) for name in arguments.revoke]
            if arguments.register is not None:
                changed.append(tenants.register(arguments.register, PublicKey.load(arguments.public_key)))
            tenants.save(arguments.registry)
    else:
        tenants = Tenants.load(arguments.registry)
    for tenant in tenants if arguments.list or not changed else changed:
        revoked = f"  revoked {tenant.revoked_at}" if tenant.revoked_at else ""
        print(printable(f"{tenant.public_key.id}  {tenant.registered_at:<25}  {tenant.name}{revoked}"))
        print(f"  fingerprint {tenant.public_key.fingerprint}")
    return EXIT_DONE
