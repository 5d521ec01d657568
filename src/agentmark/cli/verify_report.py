"""The report of `agentmark verify`: where it is written, and the command in it that repeats the verdict."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import limits_of, text
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.files import FileError, read_small_file, write_file, write_text_file
from agentmark.text import shell_word, spelled_out_json
from agentmark.verify.defaults import DEFAULT_THRESHOLD

if TYPE_CHECKING:
    from agentmark.report import Report, StrangerReport

# What `--by` calls one verdict over everything.
ALL = "all"
# A note is a paragraph or two, not an expert's opinion.
MAX_NOTE_SIZE = 1 << 14


# Options that say what stands in a report, and are for nothing without one.
IN_A_REPORT = ("segments", "case_number", "author", "note", "browser")


def wants_report(arguments: argparse.Namespace) -> bool:
    written = ("report", "signed", "signing_key", "pdf")
    return any(getattr(arguments, name) for name in (*written, *IN_A_REPORT))


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """What its maker puts on a report; `named_by` is what was given."""
    parser.add_argument("--case-number", type=text, metavar="TEXT", help="in a report: the case it is for")
    parser.add_argument("--author", type=text, metavar="TEXT", help="in a report: who made it")
    parser.add_argument(
        "--note", type=text, metavar="TEXT", help="in a report: what its author adds; @FILE takes it from a file"
    )
    parser.add_argument(
        "--pdf",
        type=Path,
        metavar="FILE",
        help="write the report as PDF, with Chromium, Chrome or Edge if one is installed",
    )
    parser.add_argument(
        "--browser",
        metavar="PROGRAM",
        help="for --pdf: which browser prints (default: $AGENTMARK_BROWSER, or one that is found)",
    )


def named_by(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Case number, author and note, as the fields of an order for a report."""
    note = arguments.note
    if note is not None and note.startswith("@"):
        note = _note_in(Path(note[1:]))
    return {"case_number": arguments.case_number, "author": arguments.author, "note": note}


def _note_in(path: Path) -> str:
    try:
        return read_small_file(path, MAX_NOTE_SIZE).decode("utf-8").strip()
    except UnicodeDecodeError:
        raise FileError(path, "is not UTF-8 text") from None


class ReportFiles:
    """Where a report was asked for: refused before the work is done if it cannot be written there."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from agentmark.keys.signing import SigningKey

        if (arguments.signed is None) != (arguments.signing_key is None):
            raise SettingError("--signed", "goes together with --signing-key")
        self._page: Path | None = arguments.report
        self._signed: Path | None = arguments.signed
        self._pdf: Path | None = arguments.pdf
        outputs = [path for path in (self._page, self._signed, self._pdf) if path is not None]
        if not outputs:
            name = next(_option(name) for name in IN_A_REPORT if getattr(arguments, name))
            raise SettingError(name, "goes into a report: give --report, --pdf or --signed")
        if len({path.resolve() for path in outputs}) < len(outputs):
            raise SettingError(str(outputs[-1]), "is named twice: page, PDF and signed report are files of their own")
        for path in outputs:
            check_output(path, inputs_of(arguments))
        self._signing_key = SigningKey.load(arguments.signing_key) if arguments.signing_key is not None else None
        self._browser = None
        if self._pdf is not None:
            from agentmark.report import find_browser

            self._browser = find_browser(arguments.browser)

    def write(self, report: "Report | StrangerReport") -> None:
        from agentmark.report import SignedFile, print_to_pdf, render_report, sign_report

        signed = None
        if self._signed is not None and self._signing_key is not None:
            write_text_file(self._signed, as_json(sign_report(report, self._signing_key)))
            signed = SignedFile(name=self._signed.name, public_key=self._signing_key.public_key)
        if self._page is not None:
            as_data = self._page.suffix == ".json"
            write_text_file(self._page, as_json(report) if as_data else render_report(report, signed=signed))
        # Last: if the browser fails, everything else is there.
        if self._pdf is not None:
            page = render_report(report, signed=signed, unfolded=True)
            write_file(self._pdf, print_to_pdf(page, browser=self._browser))


def inputs_of(arguments: argparse.Namespace) -> list[Path]:
    """The files that the command reads."""
    given = [
        *arguments.log,
        *(arguments.key or []),
        *(arguments.disclosure or []),
        arguments.registry,
        arguments.signing_key,
    ]
    return [path for path in given if path is not None]


def check_output(path: Path, inputs: list[Path]) -> None:
    """Refuse to write where nothing can be, or over what is read."""
    if not path.parent.is_dir():
        raise SettingError(str(path), "there is no such folder")
    if path.is_dir():
        raise SettingError(str(path), "is a folder: name a file in it")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise SettingError(str(path), "is read by this command; it would be overwritten")


def as_json(content: Any) -> str:
    import json

    # A file too may be looked at in a terminal.
    return spelled_out_json(json.dumps(content, ensure_ascii=False, indent=1)) + "\n"


def repeating_command(arguments: argparse.Namespace) -> str:
    """The command that gives this verdict again. Keys appear as file names, never as secrets."""
    words = ["agentmark", "verify", *[_path(path) for path in arguments.log]]
    words += [word for option in repeating_options(arguments) for word in option]
    words.append("--for-stranger" if arguments.for_stranger else "--control")
    # File names need not print, nor be UTF-8: as they are typed, they do and are.
    return " ".join(map(shell_word, words))


def repeating_options(arguments: argparse.Namespace) -> list[list[str]]:
    """The options that make a difference to the verdict, each with its value."""
    options = [["--key", _path(path)] for path in arguments.key or []]
    if arguments.registry:
        options.append(["--registry", _path(arguments.registry)])
    if arguments.claim is not None:
        options.append([f"--claim={arguments.claim}"])
    options += [[_option(name)] for name in ("find_offset", "pool") if getattr(arguments, name)]
    options += [[f"--session={session}"] for session in arguments.session or []]
    if arguments.by is not None:
        options.append(["--by", str(arguments.by)])
    for name, default in _NUMBERS.items():
        value = getattr(arguments, name)
        options += [] if value == default else [[_option(name), f"{value!r}"]]
    options += [["--disclosure", _path(path)] for path in arguments.disclosure or []]
    options += [["--public-key", public_key] for public_key in arguments.public_key or []]
    options += [["--claimed-by-holder"]] if arguments.claimed_by_holder else []
    options += [["--drawn-from", arguments.drawn_from]] if arguments.drawn_from is not None else []
    options += [["--limit", setting] for setting in limits_of(arguments).as_settings()]
    options += [[_option(name)] for name in ("any_key_id", "skip_bad") if getattr(arguments, name)]
    return options


# Options that are a number, with their defaults.
_NUMBERS = {
    "payload_len": None,
    "threshold": DEFAULT_THRESHOLD,
    "noise": None,
    "offsets": None,
    "work_limit": DEFAULT_WORK_LIMIT,
    "fdr": None,
    "keys_registered": None,
}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _path(path: Path) -> str:
    from agentmark.cli.input import SHOWN_AS, STANDARD_INPUT
    from agentmark.log.read.files import shown

    text = str(path)
    if shown(path) != text:
        # Kept in a file that is gone by then: standard input, or a store, which is named without user and password.
        return str(STANDARD_INPUT) if shown(path) == SHOWN_AS else shown(path)
    return f"./{text}" if text.startswith("-") else text
