"""The logs that a command is given: files, folders, stores on a server, and - for standard input."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentmark.cli.common import StoreUrl, show_progress
from agentmark.errors import SettingError
from agentmark.log.read.files import FoundLogs, find_logs, show_as
from agentmark.log.read.format import UnknownFormatError

STANDARD_INPUT = Path("-")
SHOWN_AS = "standard input"


@contextmanager
def given_logs(sources: Sequence[Path | StoreUrl], *, skip_bad: bool = False) -> Iterator[FoundLogs]:
    """The files to read. What is no file is kept in one while the command runs, so that it can be read in any order,
    twice, and in every format."""
    if list(sources).count(STANDARD_INPUT) > 1:
        raise SettingError("-", "is standard input, which can be read once; it was given twice")
    with kept_in_files(sources) as paths:
        try:
            yield find_logs(paths, skip_bad=skip_bad)
        except UnknownFormatError as error:
            if any(path.is_dir() for path in paths):
                error.args = (f"{error.short}; --skip-bad passes over what is no log",)
            raise


@contextmanager
def kept_in_files(sources: Sequence[Path | StoreUrl]) -> Iterator[list[Path]]:
    """The same with standard input, and stores on a server, copied into files that go with the command."""
    if not any(source == STANDARD_INPUT or isinstance(source, StoreUrl) for source in sources):
        yield [Path(source) for source in sources]
        return
    # A folder that only its owner can enter.
    with tempfile.TemporaryDirectory(prefix="agentmark-") as folder:
        yield [_kept(source, Path(folder), number) for number, source in enumerate(sources)]


def _kept(source: Path | StoreUrl, folder: Path, number: int) -> Path:
    if isinstance(source, StoreUrl):
        return _keep_store(source, folder / f"store-{number}.jsonl")
    return _keep_standard_input(folder / SHOWN_AS) if source == STANDARD_INPUT else source


def _keep_store(url: StoreUrl, kept: Path) -> Path:
    from agentmark.store.open import open_store

    store = open_store(url)
    show_as(kept, store.name)
    show_progress(f"copying the records of {store.name} into a temporary file")
    with kept.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(f"{line}\n" for line in store.lines())
    return kept


def _keep_standard_input(kept: Path) -> Path:
    stream: Any = sys.stdin
    if stream is None:
        raise SettingError(SHOWN_AS, "is closed")
    if stream.isatty():
        show_progress("reading a log from standard input; end it with Ctrl-D")
    show_as(kept, SHOWN_AS)
    with kept.open("wb") as file:
        shutil.copyfileobj(stream.buffer, file)
    return kept
