"""`agentmark signing-key` and `agentmark check-report`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, EXIT_NOT_ATTRIBUTED, new_command, printable
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.files import read_small_file

# A report lists 2000 steps at most, in some megabytes.
MAX_SIGNED_SIZE = 1 << 26


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
        "exit status: 0 it is signed, 1 it is not (or not by that key), 2 not a signed report\n"
        "example:\n  agentmark check-report report.signed.json --public-key 64-HEX-DIGITS",
    )
    checker.add_argument("file", type=Path, help="what `agentmark verify --signed` wrote")
    checker.add_argument("--public-key", metavar="HEX", help="who must have signed it; get it from them")
    checker.set_defaults(run=check)


def make_key(arguments: argparse.Namespace) -> int:
    from agentmark.keys.signing import SigningKey

    key = SigningKey.generate()
    key.save(arguments.file)
    print(f"signing key written to {printable(arguments.file)}; keep it secret. Its public key, to give away:")
    print(key.public_key)
    return EXIT_DONE


def check(arguments: argparse.Namespace) -> int:
    from agentmark.report.signature import SignedReportError, check_report, report_digest

    try:
        signed = parse_json(read_small_file(arguments.file, MAX_SIGNED_SIZE))
    except StrictJsonError as error:
        raise SignedReportError(f"{arguments.file} {error.fault}") from None
    signer = check_report(signed, public_key=arguments.public_key)
    if signer is None:
        whose = "by this key" if arguments.public_key else "of this report"
        print(f"NOT SIGNED: the signature is not {whose}. Do not rely on what the file says.")
        return EXIT_NOT_ATTRIBUTED
    print(f"Signed by {signer}.")
    if arguments.public_key is None:
        print("Whose key that is, the file cannot prove: compare it, or pass the one you trust with --public-key.")
    report = signed["report"]
    print(f"Report {report_digest(report)} of {printable(report['made_at'])}:")
    print(printable(report["verdict"]["sentence"] if "verdict" in report else report["sentence"]))
    return EXIT_DONE
