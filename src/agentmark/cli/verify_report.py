"""The report of `agentmark verify`: where it is written, and the command in it that repeats the verdict."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from agentmark.cli.common import limits_of, text
from agentmark.core.costs import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.files import FileError, read_small_file, write_text_file
from agentmark.keys.signing import SigningKey
from agentmark.report import Report, StrangerReport, render_report, sign_report
from agentmark.text import spelled_out_json
from agentmark.verify.verdict import DEFAULT_THRESHOLD

# A note is a paragraph or two, not an expert's opinion.
MAX_NOTE_SIZE = 1 << 14


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """What its maker puts on a report; `named_by` is what was given."""
    parser.add_argument("--case-number", type=text, metavar="TEXT", help="in a report: the case it is for")
    parser.add_argument("--author", type=text, metavar="TEXT", help="in a report: who made it")
    parser.add_argument(
        "--note", type=text, metavar="TEXT", help="in a report: what its author adds; @FILE takes it from a file"
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
        if (arguments.signed is None) != (arguments.signing_key is None):
            raise SettingError("--signed", "goes together with --signing-key")
        self._page: Path | None = arguments.report
        self._signed: Path | None = arguments.signed
        outputs = [path for path in (self._page, self._signed) if path is not None]
        if not outputs:
            raise SettingError("--segments", "goes into a report: give --report or --signed")
        inputs = [*arguments.log, *(arguments.key or []), arguments.registry, arguments.signing_key]
        for path in outputs:
            _check_output(path, [source for source in inputs if source is not None])
        self._signing_key = SigningKey.load(arguments.signing_key) if arguments.signing_key is not None else None

    def write(self, report: Report | StrangerReport) -> None:
        if self._page is not None:
            as_data = self._page.suffix == ".json"
            write_text_file(self._page, _as_json(report) if as_data else render_report(report))
        if self._signed is not None and self._signing_key is not None:
            write_text_file(self._signed, _as_json(sign_report(report, self._signing_key)))


def _check_output(path: Path, inputs: list[Path]) -> None:
    if not path.parent.is_dir():
        raise SettingError(str(path), "there is no such folder")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise SettingError(str(path), "is read by this command; it would be overwritten")


def _as_json(content: Any) -> str:
    # A file too may be looked at in a terminal.
    return spelled_out_json(json.dumps(content, ensure_ascii=False, indent=1)) + "\n"


def repeating_command(arguments: argparse.Namespace) -> str:
    """The command that gives this verdict again. Keys appear as file names, never as secrets."""
    words = ["agentmark", "verify", *[_path(path) for path in arguments.log]]
    for path in arguments.key or []:
        words += ["--key", _path(path)]
    if arguments.registry:
        words += ["--registry", _path(arguments.registry)]
    if arguments.claim is not None:
        words.append(f"--claim={arguments.claim}")
    if arguments.find_offset:
        words += ["--find-offset", f"--session={arguments.session}"]
    for name, default in _NUMBERS.items():
        value = getattr(arguments, name)
        words += [] if value == default else [_option(name), f"{value!r}"]
    for public_key in arguments.public_key or []:
        words += ["--public-key", public_key]
    for setting in limits_of(arguments).as_settings():
        words += ["--limit", setting]
    words += [_option(name) for name in ("any_key_id", "skip_bad") if getattr(arguments, name)]
    joined = shlex.join([*words, "--for-stranger" if arguments.for_stranger else "--control"])
    # File names need not be UTF-8; the report is.
    return joined.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# Options that are a number, with their defaults.
_NUMBERS = {
    "payload_len": None,
    "threshold": DEFAULT_THRESHOLD,
    "noise": None,
    "offsets": None,
    "work_limit": DEFAULT_WORK_LIMIT,
}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _path(path: Path) -> str:
    text = str(path)
    return f"./{text}" if text.startswith("-") else text
