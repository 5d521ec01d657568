"""`agentmark signing-key` and `agentmark check-report`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, EXIT_NOT_ATTRIBUTED, new_command, printable
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.errors import SettingError
from agentmark.files import read_small_file, write_text_file

# A report lists 2000 steps at most, in some megabytes.
MAX_SIGNED_SIZE = 1 << 26
PUBLIC_KEY_DIGITS = 64


def add_parser(commands: Any) -> None:
    maker = new_command(
        commands,
        "signing-key",
        "Write a new Ed25519 key for signing to a file that only you can read, and print its public key.",
        "example:\n  agentmark signing-key signing.json",
    )
    maker.add_argument("file", type=Path, help="the file to create; never overwritten")
    maker.set_defaults(run=make_key)
    checker = new_command(
        commands,
        "check-report",
        "Check the signature of a report.",
        "exit status: 0 signed; 1 altered, or not by that key: do not rely on it; 2 not a signed report\n"
        "examples:\n  agentmark check-report report.signed.json --public-key 64-HEX-DIGITS\n"
        "  agentmark check-report report.signed.json --public-key 64-HEX-DIGITS --page report.html",
    )
    checker.add_argument("file", type=Path, help="what `agentmark verify --signed` wrote")
    checker.add_argument("--public-key", metavar="HEX", help="who must have signed it; get it from them")
    checker.add_argument(
        "--page", type=Path, metavar="FILE", help="also write the page anew, from what is signed and nothing else"
    )
    checker.set_defaults(run=check)


def make_key(arguments: argparse.Namespace) -> int:
    from agentmark.keys.signing import SigningKey

    key = SigningKey.generate()
    key.save(arguments.file)
    print(f"signing key written to {printable(arguments.file)}; keep it secret. Its public key, to give away:")
    print(key.public_key)
    return EXIT_DONE


def check(arguments: argparse.Namespace) -> int:
    from agentmark.report.signature import SignatureOutcome, SignedReportError, judge_signature, report_digest

    try:
        signed = parse_json(read_small_file(arguments.file, MAX_SIGNED_SIZE))
    except StrictJsonError as error:
        raise SignedReportError(f"{arguments.file} {error.fault}") from None
    outcome, signer = judge_signature(signed, public_key=arguments.public_key)
    if outcome is not SignatureOutcome.SIGNED:
        print(printable(_NOT_SIGNED[outcome.name].format(signer=signer[:PUBLIC_KEY_DIGITS])))
        return EXIT_NOT_ATTRIBUTED
    report = signed["report"]
    if arguments.page is not None:
        _write_page(arguments, report, signer)
    print(f"Signed by {signer}.")
    if arguments.public_key is None:
        print("Whose key that is, the file cannot prove: compare it, or pass the one you trust with --public-key.")
    print(f"Report {report_digest(report)} of {printable(report['made_at'])}:")
    print(printable(report["verdict"]["sentence"] if "verdict" in report else report["sentence"]))
    return EXIT_DONE


# What is wrong, and what to do. An altered report is another matter than one by somebody else.
_NOT_SIGNED = {
    "ALTERED": (
        "ALTERED: what the file says is not what was signed with its key, or the signature was changed. Do not rely on "
        "it. Ask its author for the file again, and for its SHA-256 by another way."
    ),
    "OTHER_KEY": (
        "NOT BY THIS KEY: the report is as it was signed, but by {signer}, which is not the key that you gave. Do not "
        "rely on it before its author has told you, by another way than with the file, that this key is theirs."
    ),
    "NEITHER": (
        "NOT SIGNED: the file names {signer} as its key, which is not the key that you gave, and it is not what was "
        "signed with either. It was altered or made up. Do not rely on it. Ask its author for the file again."
    ),
}


def _write_page(arguments: argparse.Namespace, report: Any, signer: str) -> None:
    from agentmark.report import SignedFile, render_report
    from agentmark.report.roll_identity_page import render_identity
    from agentmark.report.roll_page import render_overview

    if arguments.page.exists() and arguments.page.samefile(arguments.file):
        raise SettingError(str(arguments.page), "is read by this command; it would be overwritten")
    of_rolls = {"agentmark_roll": render_overview, "agentmark_roll_identity": render_identity}
    render: Any = next((of_rolls[kind] for kind in of_rolls if kind in report), render_report)
    write_text_file(arguments.page, render(report, signed=SignedFile(name=arguments.file.name, public_key=signer)))
