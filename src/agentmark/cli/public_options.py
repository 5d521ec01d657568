"""The options of public mode: verdicts by what the holder of a marking key disclosed, in place of the key."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agentmark.errors import SettingError

if TYPE_CHECKING:
    from datetime import datetime

    from agentmark.disclosure.basis import PublicBasis
    from agentmark.disclosure.check import DisclosedSteps
    from agentmark.disclosure.tenants import Tenant, Tenants
    from agentmark.keys.public import PublicKey

# A signer of chains is named by its key itself, in so many digits; a marking key by its file.
SIGNER_DIGITS = 64


def add_public_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--disclosure",
        type=Path,
        action="append",
        metavar="FILE",
        help="in place of --key: what the holder of the key disclosed of this log (`agentmark disclose`), with "
        "--public-key; again for each. Needs no secret (docs/public.md)",
    )
    parser.add_argument(
        "--public-key",
        action="append",
        metavar="FILE|HEX",
        help="with --disclosure: the public key file of who must have disclosed, or a registry of such keys "
        "(`agentmark identity --register`). 64 hex digits: who must have signed "
        "the checkpoints of a chained log; the chain is reported and never part of the verdict. Again for each key",
    )
    parser.add_argument(
        "--claimed-by-holder",
        action="store_true",
        help="with --disclosure: the holder of the key claims records that others made. Every registered key is paid "
        "for, and the verdict names the conditions",
    )
    parser.add_argument(
        "--keys-registered",
        type=int,
        metavar="N",
        help="with --claimed-by-holder: how many public keys the claimant had on record (default: those given, or "
        "those of the registry)",
    )
    parser.add_argument(
        "--drawn-from",
        metavar="TIME",
        help="with --claimed-by-holder and a registry: when the first context was drawn (ISO 8601, UTC), if that "
        "is known. A key that was registered later is refused",
    )


def check_public_options(arguments: argparse.Namespace) -> None:
    """Options that only make sense together."""
    files = _key_files(arguments)
    if not arguments.disclosure:
        if files:
            fault = (
                f"{str(files[0])!r} is not a public key of {SIGNER_DIGITS} hex digits, and a file goes together with"
            )
            raise SettingError("--public-key", f"{fault} --disclosure")
        for name in ("claimed_by_holder", "keys_registered", "drawn_from"):
            if getattr(arguments, name):
                raise SettingError(f"--{name.replace('_', '-')}", "goes together with --disclosure")
        return
    if not files:
        raise SettingError("--disclosure", "whose it must be is said with --public-key FILE: get it from them")
    for name in ("keys_registered", "drawn_from"):
        if getattr(arguments, name) is not None and not arguments.claimed_by_holder:
            raise SettingError(f"--{name.replace('_', '-')}", "goes together with --claimed-by-holder")
    for name, reason in _NOT_WITH_A_DISCLOSURE.items():
        if getattr(arguments, name):
            raise SettingError(f"--{name.replace('_', '-')}", f"does not go with --disclosure: {reason}")


_NOT_WITH_A_DISCLOSURE = {
    "key": "it takes the place of the secret",
    "any_key_id": "records are proved with the key id that they state",
    "find_offset": "records are proved with the context that they state",
    "for_stranger": "whoever has the disclosure can see all that it shows",
}


def signers_of(arguments: argparse.Namespace) -> list[str] | None:
    """Who must have signed a chain; None if nobody is named."""
    return [word for word in arguments.public_key or [] if is_signer(word)] or None


def public_question(arguments: argparse.Namespace) -> "tuple[list[DisclosedSteps], PublicBasis]":
    """What stands in the place of keys, and what a verdict by it rests on."""
    from agentmark.disclosure.basis import PublicBasis
    from agentmark.disclosure.check import disclosed_steps
    from agentmark.disclosure.document import Disclosure

    disclosures = [Disclosure.load(path) for path in arguments.disclosure]
    registry = _registry(arguments)
    if arguments.drawn_from is not None and registry is None:
        raise SettingError("--drawn-from", "takes a registry of public keys, which says since when they are on record")
    public_keys = _public_keys(arguments, registry, {disclosure.public_key.id for disclosure in disclosures})
    basis = PublicBasis.of(
        tuple(public_keys),
        claimed_by_holder=arguments.claimed_by_holder,
        keys_registered=arguments.keys_registered,
        registry=registry,
        drawn_from=_time(arguments.drawn_from),
    )
    return disclosed_steps(disclosures, public_keys), basis


def _registry(arguments: argparse.Namespace) -> "Tenants | None":
    from agentmark.disclosure.tenants import Tenants, is_tenants_file

    files = [path for path in _key_files(arguments) if is_tenants_file(path)]
    if len(files) > 1:
        raise SettingError("--public-key", "one registry of public keys is enough")
    return Tenants.load(files[0]) if files else None


def _public_keys(arguments: argparse.Namespace, registry: "Tenants | None", disclosed: set[str]) -> "list[PublicKey]":
    """Those given one by one, and those of a registry that disclosed something."""
    from agentmark.disclosure.tenants import is_tenants_file
    from agentmark.keys.public import PublicKey

    keys = [PublicKey.load(path) for path in _key_files(arguments) if not is_tenants_file(path)]
    keys += [tenant.public_key for tenant in registry or () if tenant.public_key.id in disclosed]
    if not keys:
        raise SettingError("--public-key", "no key of the registry is that of a disclosure")
    return list({key.id: key for key in keys}.values())


def _time(text: str | None) -> "datetime | None":
    from agentmark.disclosure.tenants import parsed_time

    try:
        return None if text is None else parsed_time(text)
    except ValueError:
        raise SettingError("--drawn-from", f"{text!r} is not a time in ISO 8601") from None


def _key_files(arguments: argparse.Namespace) -> list[Path]:
    return [Path(word) for word in arguments.public_key or [] if not is_signer(word)]


def public_keys_in(path: Path) -> "list[PublicKey]":
    """The keys of a file: one, or those of a registry of public keys."""
    from agentmark.disclosure.tenants import Tenants, is_tenants_file
    from agentmark.keys.public import PublicKey

    if is_tenants_file(path):
        return [tenant.public_key for tenant in Tenants.load(path)]
    return [PublicKey.load(path)]


def tenants_in(path: Path) -> "list[Tenant]":
    """Who is in a file of keys by name: nobody, unless it is a registry of public keys."""
    from agentmark.disclosure.tenants import Tenants, is_tenants_file

    return list(Tenants.load(path)) if is_tenants_file(path) else []


def is_signer(word: str) -> bool:
    """Whether this is a key that signs, in its digits; a marking key is named by its file."""
    return len(word) == SIGNER_DIGITS and set(word.lower()) <= set("0123456789abcdef")
