"""New files of records, whose ending says what they are. Half a file is never left under the name asked for."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from agentmark.errors import SettingError
from agentmark.files import FileError
from agentmark.record import StepRecord

LINES, PACKED_LINES, TABLE = ".jsonl", ".jsonl.gz", ".parquet"

Write = Callable[[StepRecord], None]


@contextmanager
def new_record_file(out: Path) -> Iterator[Write]:
    """What takes the records, one by one. The file is there when all of them were taken, and not if that failed."""
    new_writer = _writer_for(out)
    _check_new(out)
    kept = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with new_writer(kept) as write:
            yield write
        _check_new(out)
        kept.rename(out)
    except OSError as error:
        if error.filename is not None and os.fspath(kept) != os.fsdecode(error.filename):
            raise
        raise FileError(out, f"cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            kept.unlink()


def check_record_file(out: Path) -> None:
    """Refuse a name that no such file has, or that is taken, before anything is done for it."""
    _writer_for(out)
    _check_new(out)


def _check_new(out: Path) -> None:
    if out.exists():
        raise SettingError("--out", f"{out} exists; nothing is written over")


def _writer_for(out: Path) -> Callable[[Path], AbstractContextManager[Write]]:
    for ending, writer in ((LINES, _lines), (PACKED_LINES, _packed_lines), (TABLE, _table)):
        if out.name.endswith(ending) and out.name != ending:
            return writer
    raise SettingError("--out", f"{out} does not end in {LINES}, {PACKED_LINES} or {TABLE}")


@contextmanager
def _lines(path: Path) -> Iterator[Write]:
    with path.open("xb") as file:
        yield lambda record: _write_line(file, record)


@contextmanager
def _packed_lines(path: Path) -> Iterator[Write]:
    # Without a name or a time in it: the same records make the same file.
    with path.open("xb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        yield lambda record: _write_line(packed, record)


def _write_line(file: Any, record: StepRecord) -> None:
    file.write(record.to_json().encode("utf-8") + b"\n")


@contextmanager
def _table(path: Path) -> Iterator[Write]:
    from agentmark.log.parquet import ParquetRecords

    with ParquetRecords(path) as table:
        yield table.write
