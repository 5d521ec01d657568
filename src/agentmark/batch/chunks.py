"""A log of any format as chunks of columns, with the summary that reading it record by record ends with."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from agentmark.batch.columns import StepColumns
from agentmark.batch.from_lines import read_line_chunks
from agentmark.core.errors import AgentMarkError
from agentmark.log.read.events import BadEntry
from agentmark.log.read.files import shown
from agentmark.log.read.formats import FORMATS
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.log.read.meter import Meter
from agentmark.log.read.open import UnreadLogError, open_log
from agentmark.log.read.packing import Stream, unpacked
from agentmark.log.read.parquet import Parquet, holds_steps, readable
from agentmark.log.read.summary import LogSummary, Tally
from agentmark.log.read.text import Layout, laid_out
from agentmark.record import RecordError

# How many rows a chunk has, or a few more: some 20 MB for lists of six.
CHUNK_ROWS = 65536


def read_chunks(
    path: str | os.PathLike[str],
    *,
    skip_bad: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    rows: int = CHUNK_ROWS,
) -> "ChunkedLog":
    """The records of a log as columns, chunk by chunk: those that `open_log` reads with these settings, in its order.

    Whatever `open_log` refuses is refused here in the same words, behind the chunks that came before it.
    """
    return ChunkedLog(path, skip_bad=skip_bad, limits=limits, rows=rows)


class ChunkedLog:
    """Streams a log in chunks. Each iteration reads it anew; `summary` is that of the last one to come to its end."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool, limits: Limits, rows: int) -> None:
        self.path = path
        self._skip_bad = skip_bad
        self._limits = limits
        self._rows = rows
        self._summary: LogSummary | None = None

    def __iter__(self) -> Iterator[StepColumns]:
        self._summary = None
        name = shown(self.path)
        meter, tally = Meter(name, self._limits), Tally(name)
        with ExitStack() as opened:
            lines = self._record_lines(meter, opened)
            if lines is not None:
                yield from read_line_chunks(lines, name, meter, tally, skip_bad=self._skip_bad, rows=self._rows)
                self._summary = tally.summary()
                return
        if self._is_table():
            yield from self._read_table()
        else:
            yield from self._read_plainly()

    @property
    def summary(self) -> LogSummary:
        """What the log held in all, and what was passed over. There is none before the log was read to its end."""
        if self._summary is None:
            raise UnreadLogError(shown(self.path))
        return self._summary

    def _record_lines(self, meter: Meter, opened: ExitStack) -> Stream | None:
        """The content of a file of our own lines. All others, and a pipe, which can be read but once, are left to the
        plain reader, and so is a file that cannot be read at all: it says why."""
        path = Path(self.path)
        if not path.is_file():
            return None
        try:
            file = opened.enter_context(path.open("rb"))
            if FORMATS.with_magic(file.peek(16)) is not None:
                return None
            layout, stream = laid_out(unpacked(file, meter), path, FORMATS, meter)
        except (AgentMarkError, OSError):
            return None
        return stream if layout is Layout.RECORD_LINES else None

    def _is_table(self) -> bool:
        """Whether this is a Parquet file of our own layout."""
        path = Path(self.path)
        if not path.is_file():
            return False
        try:
            with path.open("rb") as file:
                magic = file.peek(16)
            with readable(path):
                return magic.startswith(Parquet.magic) and holds_steps(path)
        except (AgentMarkError, OSError):
            # The plain reader says what it is.
            return False

    def _read_table(self) -> Iterator[StepColumns]:
        from agentmark.batch.parquet import read_parquet_chunks

        name = shown(self.path)
        tally, meter = Tally(name), Meter(name, self._limits)
        try:
            yield from read_parquet_chunks(Path(self.path), meter, tally, skip_bad=self._skip_bad, rows=self._rows)
        except RecordError as error:
            # A row that is broken, or the file as a whole.
            if not self._skip_bad:
                raise
            tally.count(BadEntry(error))
        self._summary = tally.summary()

    def _read_plainly(self) -> Iterator[StepColumns]:
        log = open_log(self.path, skip_bad=self._skip_bad, limits=self._limits)
        entries = log.entries()
        while chunk := list(islice(entries, self._rows)):
            yield StepColumns.of_records(
                [entry.record for entry in chunk], shown(self.path), [entry.line for entry in chunk]
            )
        self._summary = log.summary
