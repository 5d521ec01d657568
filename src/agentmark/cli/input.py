"""The logs that a command is given: files, folders, and - for standard input."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentmark.cli.common import show_progress
from agentmark.errors import SettingError
from agentmark.log.read.files import FoundLogs, find_logs, show_as
from agentmark.log.read.format import UnknownFormatError

STANDARD_INPUT = Path("-")
SHOWN_AS = "standard input"


@contextmanager
def given_logs(paths: Sequence[Path], *, skip_bad: bool = False) -> Iterator[FoundLogs]:
    """The files to read. Standard input is kept in a file while the command runs, so that it can be read in any order,
    twice, and in every format."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise SettingError("-", "is standard input, which can be read once; it was given twice")
    if STANDARD_INPUT not in paths:
        try:
            yield find_logs(paths, skip_bad=skip_bad)
        except UnknownFormatError as error:
            if any(path.is_dir() for path in paths):
                error.args = (f"{error.short}; --skip-bad passes over what is no log",)
            raise
        return
    import tempfile

    # A folder that only its owner can enter; it goes with the command.
    with tempfile.TemporaryDirectory(prefix="agentmark-") as folder:
        kept = Path(folder) / SHOWN_AS
        _keep_standard_input(kept)
        show_as(kept, SHOWN_AS)
        yield find_logs([kept if path == STANDARD_INPUT else path for path in paths], skip_bad=skip_bad)


def _keep_standard_input(kept: Path) -> None:
    stream: Any = sys.stdin
    if stream is None:
        raise SettingError(SHOWN_AS, "is closed")
    if stream.isatty():
        show_progress("reading a log from standard input; end it with Ctrl-D")
    with kept.open("wb") as file:
        shutil.copyfileobj(stream.buffer, file)
