"""The options of public mode: verdicts by what the holder of a marking key disclosed, in place of the key."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from agentmark.errors import SettingError

if TYPE_CHECKING:
    from agentmark.disclosure.basis import PublicBasis
    from agentmark.disclosure.check import DisclosedSteps
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
        help="with --disclosure: the public key file of who must have disclosed. 64 hex digits: who must have signed "
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
        help="with --claimed-by-holder: how many public keys the claimant had on record (default: those given)",
    )


def check_public_options(arguments: argparse.Namespace) -> None:
    """Options that only make sense together."""
    files = _key_files(arguments)
    if not arguments.disclosure:
        if files:
            raise SettingError(
                "--public-key", f"{files[0]} is no 64 hex digits; a file goes together with --disclosure"
            )
        for name in ("claimed_by_holder", "keys_registered"):
            if getattr(arguments, name):
                raise SettingError(f"--{name.replace('_', '-')}", "goes together with --disclosure")
        return
    if not files:
        raise SettingError("--disclosure", "whose it must be is said with --public-key FILE: get it from them")
    if arguments.keys_registered is not None and not arguments.claimed_by_holder:
        raise SettingError("--keys-registered", "goes together with --claimed-by-holder")
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
    return [word for word in arguments.public_key or [] if _is_signer(word)] or None


def public_question(arguments: argparse.Namespace) -> "tuple[list[DisclosedSteps], PublicBasis]":
    """What stands in the place of keys, and what a verdict by it rests on."""
    from agentmark.disclosure.basis import PublicBasis, Statement
    from agentmark.disclosure.check import disclosed_steps
    from agentmark.disclosure.document import Disclosure

    public_keys = _public_keys(arguments)
    steps = disclosed_steps([Disclosure.load(path) for path in arguments.disclosure], public_keys)
    claimed = arguments.claimed_by_holder
    registered = len(public_keys) if arguments.keys_registered is None else arguments.keys_registered
    basis = PublicBasis(
        public_keys=tuple(public_keys),
        statement=Statement.CLAIMED_BY_HOLDER if claimed else Statement.STRANGERS,
        keys_registered=registered,
    )
    return steps, basis


def _public_keys(arguments: argparse.Namespace) -> "list[PublicKey]":
    from agentmark.keys.public import PublicKey

    by_id = {key.id: key for key in map(PublicKey.load, _key_files(arguments))}
    return list(by_id.values())


def _key_files(arguments: argparse.Namespace) -> list[Path]:
    return [Path(word) for word in arguments.public_key or [] if not _is_signer(word)]


def _is_signer(word: str) -> bool:
    return len(word) == SIGNER_DIGITS and set(word.lower()) <= set("0123456789abcdef")
