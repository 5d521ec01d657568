"""`agentmark signing-key` and `agentmark check-report`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, EXIT_NOT_ATTRIBUTED, new_command, printable
from agentmark.cli.judging_options import add_work_limit_option, check_work_limit
from agentmark.cli.public_options import is_signer
from agentmark.core.errors import AgentMarkError
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.files import read_small_file, write_text_file
from agentmark.text import counted
from agentmark.version import __version__

if TYPE_CHECKING:
    from agentmark.disclosure.tenants import Tenant
    from agentmark.report.page_data import SignedFile

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
        "Check a report: its signature, and of a verdict by a disclosure the verdict itself.",
        "A report of a verdict by a disclosure carries its records, the proofs and the public key: its page, its JSON\n"
        "and its signed file can each be judged again, without the secret and without any other file "
        "(docs/public.md).\n"
        "exit status: 0 it holds; 1 altered, contradicted by its own records, or not by that key: do not rely on it;\n"
        "2 not a report that can be checked\n"
        "examples:\n  agentmark check-report report.signed.json --public-key 64-HEX-DIGITS\n"
        "  agentmark check-report report.signed.json --public-key 64-HEX-DIGITS --page report.html\n"
        "  agentmark check-report report.html --public-key marking.pub.json",
    )
    checker.add_argument(
        "file",
        type=Path,
        help="what `agentmark verify --signed` wrote; or, of a verdict by a disclosure, what --report wrote",
    )
    checker.add_argument(
        "--public-key",
        action="append",
        metavar="HEX|FILE",
        help="64 hex digits: who must have signed it. A file: the public key of who must have disclosed, or a registry "
        "of such keys; again for each. Get them from their holders, not from the report",
    )
    checker.add_argument(
        "--registry",
        type=Path,
        metavar="FILE",
        help="the registry of identities that the report was made with, to compare names and the price as well",
    )
    add_work_limit_option(
        checker,
        f"how much work a verdict may ask for (default: {DEFAULT_WORK_LIMIT:,} operations); the report says how "
        "much its own took",
    )
    checker.add_argument(
        "--page", type=Path, metavar="FILE", help="also write the page anew, from what was checked and nothing else"
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
    check_work_limit(arguments)
    content, of_page = _read(arguments.file)
    signers, key_files = _who_is_meant(arguments.public_key or [])
    if isinstance(content, dict) and "report" not in content and "agentmark_report" in content:
        return _check_unsigned(arguments, content, of_page, signers, key_files)
    return _check_signed(arguments, content, signers, key_files)


def _read(path: Path) -> tuple[Any, "_OfPage | None"]:
    """What a file holds: JSON, or a page with the data inside."""
    from agentmark.report.page_data import page_data
    from agentmark.report.signature import SignedReportError

    data = read_small_file(path, MAX_SIGNED_SIZE)
    if data.lstrip()[:1] == b"<":
        try:
            page = data.decode("utf-8")
        except UnicodeDecodeError:
            raise SignedReportError(f"{path} is not UTF-8 text") from None
        report, signed = page_data(page)
        return report, _OfPage(page, signed)
    try:
        return parse_json(data), None
    except StrictJsonError as error:
        raise SignedReportError(f"{path} {error.fault}") from None


@dataclass(frozen=True, slots=True)
class _OfPage:
    """The page that a report was read from, and the signed file that it names."""

    page: str
    signed: "SignedFile | None"


def _who_is_meant(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Signers, by their digits; and files with public keys."""
    signers = [word for word in words if is_signer(word)]
    if len(signers) > 1:
        raise SettingError("--public-key", "a report has one signer: give one key of 64 digits")
    files = [Path(word) for word in words if not is_signer(word)]
    for path in files:
        if not path.exists():
            fault = f"{str(path)!r} is neither a public key of {PUBLIC_KEY_DIGITS} hex digits nor a file"
            raise SettingError("--public-key", fault)
    return signers, files


def _check_signed(arguments: argparse.Namespace, signed: Any, signers: Sequence[str], key_files: Sequence[Path]) -> int:
    from agentmark.report.page_data import SignedFile
    from agentmark.report.signature import SignatureOutcome, judge_signature, report_digest

    outcome, signer = judge_signature(signed, public_key=signers[0] if signers else None)
    if outcome is not SignatureOutcome.SIGNED:
        print(printable(_NOT_SIGNED[outcome.name].format(signer=signer[:PUBLIC_KEY_DIGITS])))
        return EXIT_NOT_ATTRIBUTED
    report = signed["report"]
    lines = _repeated_lines(arguments, report, key_files) if report.get("disclosed") is not None else []
    if lines is None:
        return EXIT_NOT_ATTRIBUTED
    if key_files and not lines:
        raise SettingError("--public-key", "a file goes with a report of a verdict by a disclosure, and this is none")
    if arguments.page is not None:
        _write_page(arguments, report, SignedFile(name=arguments.file.name, public_key=signer))
    print(f"Signed by {signer}.")
    if not signers:
        print("Whose key that is, the file cannot prove: compare it, or pass the one you trust with --public-key.")
    print(f"Report {report_digest(report)} of {printable(report['made_at'])}:")
    print(printable(report["verdict"]["sentence"] if "verdict" in report else report["sentence"]))
    print("".join(f"{printable(line)}\n" for line in lines), end="")
    return EXIT_DONE


def _check_unsigned(
    arguments: argparse.Namespace,
    report: Any,
    of_page: "_OfPage | None",
    signers: Sequence[str],
    key_files: Sequence[Path],
) -> int:
    """A report of a verdict by a disclosure needs no signature: what it says follows from what it carries."""
    from agentmark.report.parts import Report
    from agentmark.report.shape import shape_fault
    from agentmark.report.signature import SignedReportError, check_version, report_digest

    check_version(report)
    fault = shape_fault(report, Report, "report")
    if fault is not None:
        raise SignedReportError(fault)
    if report["disclosed"] is None:
        raise SignedReportError(
            "it has neither a signature nor a disclosure, so that nothing of it can be checked; ask its author for the "
            "signed file"
        )
    if signers:
        print(printable(_NOT_SIGNED["UNSIGNED"]))
        return EXIT_NOT_ATTRIBUTED
    lines = _repeated_lines(arguments, report, key_files)
    if lines is None or not _page_is_its_data(of_page, report):
        return EXIT_NOT_ATTRIBUTED
    if arguments.page is not None:
        _write_page(arguments, report, None if of_page is None else of_page.signed)
    print(f"Report {report_digest(report)} of {printable(report['made_at'])}, which nobody signed:")
    print(printable(report["verdict"]["sentence"]))
    if of_page is not None:
        lines.insert(0, "  page          every word of it is what the data in it come to")
    print("".join(f"{printable(line)}\n" for line in lines), end="")
    return EXIT_DONE


def _repeated_lines(arguments: argparse.Namespace, report: Any, key_files: Sequence[Path]) -> list[str] | None:
    """What judging its records again has shown, as lines; None, and said, if it does not hold."""
    from agentmark.audit.repeat import NAMES_NOT_CHECKED, repeat
    from agentmark.cli.public_options import public_keys_in, tenants_in
    from agentmark.identity.registry import Registry

    registry = Registry.load(arguments.registry) if arguments.registry is not None else None
    repeated = repeat(report, registry=registry, work_limit=arguments.work_limit)
    if repeated.differences:
        print(_CONTRADICTED)
        for difference in repeated.differences:
            print(printable(f"  {difference}"))
        return None
    trusted = {key.id for path in key_files for key in public_keys_in(path)}
    for key in repeated.public_keys:
        if key_files and key.id not in trusted:
            print(printable(_OTHER_HOLDER.format(key=key.id, fingerprint=key.fingerprint)))
            return None
    assert repeated.basis is not None
    on_record = [tenant for path in key_files for tenant in tenants_in(path)]
    holders = {tenant.public_key.id: tenant for tenant in on_record}
    for said in repeated.basis.tenants:
        held = holders.get(said.public_key.id)
        if held is not None and (held.name, held.registered_at) != (said.name, said.registered_at):
            print(printable(_OTHER_NAME.format(key=said.public_key.id, said=said.name, held=held.name)))
            return None
    lines = [
        f"  judged again  the {counted(repeated.records, 'record')} in it, by the disclosure and the public key in it, "
        "without the secret: verdict, evidence, bounds, every step and signs of tampering are as it says",
        f"  rests on      {repeated.basis.sentence}",
    ]
    for key in repeated.public_keys:
        whose = (
            "which is the one you gave" if key_files else "whose it is, the file cannot prove: pass --public-key FILE"
        )
        lines.append(f"  public key    {key.id}, fingerprint {key.fingerprint}; {whose}")
        if key.id in holders:
            lines.append(f"  registered    {_on_record(holders[key.id])}")
    named = {tenant.public_key.id for tenant in repeated.basis.tenants}
    lines += [
        f"  not checked   {sentence}"
        for sentence in repeated.not_repeated
        if sentence != NAMES_NOT_CHECKED or not named <= holders.keys()
    ]
    return lines


def _on_record(tenant: "Tenant") -> str:
    since = f"for {tenant.name!r} since {tenant.registered_at}, by the registry of public keys that you gave"
    return since if tenant.revoked_at is None else f"{since}, and revoked at {tenant.revoked_at}"


def _page_is_its_data(of_page: "_OfPage | None", report: Any) -> bool:
    """Whether a page says what its data say, to the letter; said if it does not."""
    from agentmark.report import render_report

    if of_page is None or _rendered(render_report, report, of_page.signed) == of_page.page:
        return True
    made_by = report["versions"].get("agentmark", "?")
    print(_OTHER_PAGE if made_by == __version__ else printable(_OLD_PAGE.format(made_by=made_by, this=__version__)))
    return False


_CONTRADICTED = (
    "ALTERED: what the report says is not what its own records, proofs and keys come to. Do not rely on it. Ask its "
    "author for the file again, or for the log and the disclosure, and judge them with `agentmark verify`."
)
_OTHER_HOLDER = (
    "NOT BY THIS KEY: the verdict follows from its records, but the disclosure is by key {key} (fingerprint "
    "{fingerprint}), which is none that you gave. Do not rely on it before the holder has told you, by another way "
    "than with the file, that this key is theirs."
)
_OTHER_NAME = (
    "NOT THIS NAME: the verdict follows from its records, but the report says that key {key} is of {said!r}, and by "
    "the registry that you gave it is of {held!r}, or was registered at another time. Do not rely on the name."
)
_OTHER_PAGE = (
    "ALTERED: the data inside the page hold, but the page shows something else. Do not rely on what it shows. Have the "
    "page written anew from its data: save them by the link on the page, and use --page on that file."
)
_OLD_PAGE = (
    "NOT THE SAME PAGE: the data inside the page hold, and the page is not what this version ({this}) makes of them. "
    "It was made by version {made_by}, which may be why. Save the data by the link on the page, and use --page on that "
    "file: do not rely on what the page shows."
)

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
    "UNSIGNED": (
        "NOT SIGNED: the file has no signature by anybody. Ask its author for the signed file (`agentmark verify "
        "--signed`). Without the 64 digits, the verdict in it can be checked all the same: it carries its disclosure."
    ),
}


def _write_page(arguments: argparse.Namespace, report: Any, signed: "SignedFile | None") -> None:
    from agentmark.report import render_report
    from agentmark.report.roll_identity_page import render_identity
    from agentmark.report.roll_page import render_overview

    if arguments.page.exists() and arguments.page.samefile(arguments.file):
        raise SettingError(str(arguments.page), "is read by this command; it would be overwritten")
    of_rolls = {"agentmark_roll": render_overview, "agentmark_roll_identity": render_identity}
    render: Any = next((of_rolls[kind] for kind in of_rolls if kind in report), render_report)
    write_text_file(arguments.page, _rendered(render, report, signed))


def _rendered(render: Any, report: Any, signed: "SignedFile | None") -> str:
    from agentmark.report.signature import SignedReportError

    try:
        return str(render(report, signed=signed))
    except (ArithmeticError, LookupError, ValueError) as error:
        if isinstance(error, AgentMarkError):
            raise
        # Anybody can sign anything: of the right shape, with members that contradict each other.
        raise SignedReportError("its members do not fit together: no page can be made of them") from None
