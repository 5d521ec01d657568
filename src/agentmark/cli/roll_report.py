"""The report on many sessions: a folder with an overview, a page for each identity, and the same as data."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentmark.cli.verify_report import as_json, check_output, inputs_of
from agentmark.errors import SettingError
from agentmark.files import FileError, write_text_file
from agentmark.keys.signing import SigningKey

if TYPE_CHECKING:
    from agentmark.report.roll_content import RollReport


def is_folder(given: str | None) -> bool:
    """Whether a report was asked for in a folder: one that is there, or a name that ends like one."""
    return given is not None and (given.endswith(("/", os.sep)) or Path(given).is_dir())


class RollReportFiles:
    """Where the report on many sessions goes: refused before the work is done if it cannot be written there."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        if (arguments.signed is None) != (arguments.signing_key is None):
            raise SettingError("--signed", "goes together with --signing-key")
        for name in ("segments", "pdf", "browser"):
            if getattr(arguments, name, None):
                raise SettingError(f"--{name}", f"is for the report on one log: {ONE_LOG}")
        self._folder: Path | None = arguments.report
        self._signed: Path | None = arguments.signed
        if self._folder is not None and self._folder.exists() and not self._folder.is_dir():
            raise SettingError(str(self._folder), f"is a file; {FOLDER_NEEDED}")
        if self._folder is not None and not arguments.report_in_folder:
            raise SettingError("--report", FOLDER_NEEDED)
        if self._folder is None and self._signed is None:
            raise SettingError("--report", "what goes into a report needs one: give --report FOLDER/ or --signed FILE")
        inputs = inputs_of(arguments)
        if self._folder is not None and any(path.parent.resolve() == self._folder.resolve() for path in inputs):
            # The next run would take the pages for logs, or they would stand in the place of one.
            raise SettingError(str(self._folder), "holds files that this command reads: give the report a folder alone")
        if self._signed is not None:
            check_output(self._signed, inputs)
        self._signing_key = SigningKey.load(arguments.signing_key) if arguments.signing_key is not None else None

    def write(self, report: "RollReport") -> None:
        """The pages and the data of each, signed too if there is a key for it; and the whole where --signed says."""
        from agentmark.report import roll_files, sign_report

        key = self._signing_key
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(self._folder, f"cannot be made: {error.strerror}") from None
            for name, content in roll_files(report, signing_key=key).items():
                write_text_file(self._folder / name, content)
        if self._signed is not None and key is not None:
            write_text_file(self._signed, as_json(sign_report(report, key)))


ONE_LOG = "choose a session with --session, or pool all of them with --pool"
FOLDER_NEEDED = (
    "a report on several sessions is a folder of pages: give --report FOLDER/ (with the slash), choose one session "
    "with --session, or pool all of them with --pool"
)
