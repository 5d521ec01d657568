"""A log of any format that is read here, as one object: iterate it, then see what it passed over."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentmark.chain.checkpoint import CHECKPOINT_MEMBER, Checkpoint
from agentmark.errors import SettingError
from agentmark.log.lines import LINE_BEGINNING, is_torn
from agentmark.log.read import archive, inspect_log, langfuse, langsmith, otlp, parquet, phoenix, sqlite_log
from agentmark.log.read.found import to_record
from agentmark.log.read.json_text import CUT_MEMBER, ArrayItems, JsonFaultError, completed, parse
from agentmark.log.read.jsonl import LogReader
from agentmark.log.read.packing import MAX_HELD, DamagedError, Stream, lines_of, read_document, rewound, unpacked
from agentmark.record import RecordError, StepRecord

NATIVE = "AgentMark JSON lines"
ARRAY, DOCUMENT = "array", "document"
# In this order: what matches first, it is.
SHAPES = (otlp, inspect_log, langsmith, phoenix, langfuse)
ACCEPTED = (
    f"{NATIVE}; {sqlite_log.NAME} ({sqlite_log.HOW}); "
    + "; ".join(f"{shape.NAME} ({shape.HOW})" for shape in SHAPES)
    + f"; {parquet.HOW}; text also packed with gzip or zstd"
)
# Where lists of rows stand in what an API returns.
PAGES = ("data", "runs", "spans", "observations", "items")
# How far to look for a line that tells what the file is.
LOOK_LINES, LOOK_BYTES = 100, 1 << 20


def open_log(path: str | os.PathLike[str], skip_bad: bool = False) -> "LogSource":
    """A log of any format. It is opened and recognised when it is iterated."""
    return LogSource(path, skip_bad=skip_bad)


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Folders replaced by the files in them, in the order of their names; what writers leave beside them left out."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = [file for file in sorted(path.iterdir()) if file.is_file() and not _is_beside(file)]
        if not inside:
            raise SettingError(str(path), "is a folder without any file in it")
        files += inside
    return files


def _is_beside(file: Path) -> bool:
    return file.name.startswith(".") or file.name.endswith((".lock", ".tmp", "-wal", "-shm"))


@dataclass(slots=True)
class LogSource:
    """Streams the records of a log. The lists and `format` are those of the last time it was iterated."""

    path: str | os.PathLike[str]
    skip_bad: bool = False
    format: str = ""
    # Spans, observations, runs or events that hold no record.
    skipped: int = 0
    record_count: int = 0
    torn_lines: list[int] = field(default_factory=list)
    bad_lines: list[RecordError] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    bad_checkpoints: list[RecordError] = field(default_factory=list)
    # Where a file that has no lines could not be read on.
    damage: list[str] = field(default_factory=list)
    # The line of the record that was read last; its number, where there are no lines.
    line: int = 0

    @property
    def passed_over(self) -> list[str]:
        """What was not read, in sentences."""
        said = [f"{self.path}:{line}: cut short by a crash" for line in self.torn_lines] + self.damage
        said += [str(error) for error in (*self.bad_lines, *self.bad_checkpoints)]
        if self.skipped and not self.record_count:
            said.append(f"{self.path}: {self.format}: none of {self.skipped} entries holds an agentmark.record")
        return said

    def __iter__(self) -> Iterator[StepRecord]:
        for passed_over in (self.torn_lines, self.bad_lines, self.checkpoints, self.bad_checkpoints, self.damage):
            passed_over.clear()
        self.format, self.skipped, self.record_count, self.line = "", 0, 0, 0
        # Opened once and looked into, so that a pipe can be read as well.
        with Path(self.path).open("rb") as file:
            try:
                for record in self._records(file):
                    self.record_count += 1
                    yield record
            except RecursionError:
                raise self._too_deep() from None

    @property
    def _name(self) -> str:
        return Path(self.path).name

    def _records(self, file: io.BufferedReader) -> Iterator[StepRecord]:
        magic = file.peek(16)
        if magic.startswith(sqlite_log.MAGIC):
            return self._of_database()
        if magic.startswith((archive.MAGIC, archive.EMPTY_MAGIC)):
            return self._of_archive()
        if magic.startswith(parquet.MAGIC):
            return self._of_parquet()
        return self._of_text(unpacked(file))

    # Files that are not text.

    def _of_database(self) -> Iterator[StepRecord]:
        self.format = sqlite_log.NAME
        rows = sqlite_log.SqliteRows(self._regular())
        for row, line in rows:
            self.line = row
            with self._bad_ones():
                yield to_record(line, f"{self._name} row {row}")
        self.damage += rows.damage

    def _of_archive(self) -> Iterator[StepRecord]:
        self.format = inspect_log.NAME
        members = archive.Archive(self._regular(), inspect_log.SAMPLES)
        samples = 0
        for member in members:
            where = f"{self._name} {member.name}"
            with self._bad_ones():
                sample = self._document(members.content(member), where)
                if not inspect_log.is_sample(sample):
                    raise RecordError(where, "member", "is not a sample of an Inspect log")
                samples += 1
                yield from self._found(inspect_log.sample_records(sample), where)
        self.damage += members.damage
        if not samples and not self.damage and not self.bad_lines:
            raise RecordError(self._name, "zip file", f"holds no samples of an Inspect log. Accepted: {ACCEPTED}")

    def _of_parquet(self) -> Iterator[StepRecord]:
        self.format = "Parquet"
        for number, row in enumerate(parquet.rows(self._regular()), start=1):
            self.line = number
            yield from self._of_object(row, f"{self._name} row {number}")

    def _regular(self) -> Path:
        path = Path(self.path)
        if not path.is_file():
            raise RecordError(self._name, self.format, "has to be a file: a pipe cannot be read to and fro")
        return path

    # Text.

    def _of_text(self, packed: Stream) -> Iterator[StepRecord]:
        head = packed.read(LOOK_BYTES)
        kind = _kind_of_head(head, whole=len(head) < LOOK_BYTES)
        if kind is None:
            # One long line: it has to be read to be known.
            head += packed.readline(MAX_HELD)
            kind = _kind_of_head(head, whole=True)
        stream = rewound(head, packed)
        if kind == NATIVE:
            self.format = NATIVE
            return self._of_native(lines_of(stream, self._name))
        if kind == ARRAY:
            return self._of_array(ArrayItems(stream, self._name))
        if kind == DOCUMENT:
            return self._of_document(stream)
        if kind:
            return self._of_lines(lines_of(stream, self._name))
        raise self._unknown(f"a file that begins with {head.lstrip()[:16]!r}")

    def _of_native(self, lines: Iterable[bytes]) -> Iterator[StepRecord]:
        reader = LogReader(
            self.path, self.skip_bad, self.torn_lines, self.bad_lines, self.checkpoints, self.bad_checkpoints
        )
        for record in reader.read(lines):
            self.line = reader.line
            yield record

    def _of_lines(self, lines: Iterable[bytes]) -> Iterator[StepRecord]:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                stripped = line.strip()
                if not stripped:
                    continue
                self.line = number
                with self._bad_ones():
                    try:
                        content = parse(_decoded(stripped, f"{self._name}:{number}"))
                    except JsonFaultError as fault:
                        if is_torn(stripped, ended=line.endswith(b"\n")):
                            self.torn_lines.append(number)
                            continue
                        raise RecordError(f"{self._name}:{number}", "line", str(fault)) from None
                    yield from self._of_object(content, f"{self._name}:{number}")
        except DamagedError:
            self.torn_lines.append(number + 1)

    def _of_document(self, stream: Stream) -> Iterator[StepRecord]:
        text = read_document(stream, self._name)
        content = self._document(text, self._name, whole=not stream.damaged)
        if not _is_known(content):
            raise self._unknown(f"an object with {_some(content)}")
        yield from self._of_object(content, self._name)

    def _of_array(self, items: ArrayItems) -> Iterator[StepRecord]:
        with self._bad_ones():
            for item in items:
                if items.count == 1 and not _is_known(item):
                    raise self._unknown(f"an array whose first item has {_some(item)}")
                self.line = items.count
                yield from self._of_object(item, f"{self._name} item {items.count}")
        if items.cut:
            self.damage.append(f"{self.path}: cut short after item {items.count}; read up to there")

    def _document(self, content: bytes, where: str, *, whole: bool = True) -> Any:
        text = _decoded(content, where, cut=not whole)
        try:
            return parse(text)
        except JsonFaultError as fault:
            rest = completed(text)
            if rest is None:
                raise RecordError(where, "document", str(fault)) from None
            try:
                closed = parse(rest)
            except JsonFaultError:
                raise RecordError(where, "document", str(fault)) from None
            self.damage.append(f"{Path(self.path).parent / where}: cut short; read up to its last whole entry")
            return closed

    # Rows, whatever they came in.

    def _of_object(self, content: object, where: str) -> Iterator[StepRecord]:
        """The records of a row, of a page of rows, or of a whole document."""
        shape = _shape_of(content) if isinstance(content, dict) else None
        if not isinstance(content, dict):
            self.skipped += 1
        elif _is_record(content):
            self.format = self.format or f"{NATIVE.removesuffix(' lines')} records"
            yield from self._found([("", content)], where)
        elif shape is not None:
            self.format = self.format or shape.NAME
            yield from self._found(shape.records(content), where)
        elif phoenix.is_by_column(content):
            self.format = self.format or phoenix.NAME
            for number, row in enumerate(phoenix.rows_by_column(content), start=1):
                yield from self._found(phoenix.records(row), f"{where} row {number}")
        elif page := next((content[name] for name in PAGES if isinstance(content.get(name), list)), None):
            for number, row in enumerate(page, start=1):
                yield from self._of_row(row, f"{where} item {number}")
        else:
            self.skipped += 1

    def _of_row(self, row: object, where: str) -> Iterator[StepRecord]:
        """A row of a page is never a page itself: nothing nests without end."""
        if isinstance(row, dict) and (_is_record(row) or _shape_of(row) is not None):
            yield from self._of_object(row, where)
        else:
            self.skipped += 1

    def _found(self, found: Iterable[tuple[str, object]], where: str) -> Iterator[StepRecord]:
        for place, raw in found:
            if raw is None:
                self.skipped += 1
                continue
            if isinstance(raw, dict) and CUT_MEMBER in raw:
                # Half a record, at the end of a document of which it was said that it is cut.
                continue
            with self._bad_ones():
                yield to_record(raw, f"{where} {place}".strip())

    @contextmanager
    def _bad_ones(self) -> Iterator[None]:
        try:
            yield
        except RecordError as error:
            self._pass_over(error)
        except RecursionError:
            self._pass_over(self._too_deep())

    def _pass_over(self, error: RecordError) -> None:
        if not self.skip_bad:
            raise error from None
        self.bad_lines.append(error)

    def _too_deep(self) -> RecordError:
        return RecordError(self._name, self.format or "file", "is nested too deeply")

    def _unknown(self, found: str) -> RecordError:
        return RecordError(self._name, "format", f"not recognised: this is {found}. Accepted: {ACCEPTED}")


def _kind_of_head(head: bytes, *, whole: bool) -> str | None:
    """What the beginning of a file says it is. Empty: nothing that is known; None: more is needed to say."""
    start = head.lstrip()
    # An empty log, or the little that a crash has left of a first line.
    if LINE_BEGINNING.startswith(start.rstrip()) and whole:
        return NATIVE
    lines = start.split(b"\n", LOOK_LINES)
    complete = lines if whole else lines[:-1]
    kinds = [_kind_of(line.strip()) for line in complete[:LOOK_LINES]]
    # The lines of an array end in commas, and say nothing by themselves.
    if start.startswith(b"[") and (lines[0].strip() == b"[" or NATIVE not in kinds):
        return ARRAY
    if kind := next(filter(None, kinds), ""):
        return kind
    if not start.startswith(b"{"):
        return ""
    if start.startswith(LINE_BEGINNING):
        return NATIVE
    return DOCUMENT if complete else None


def _kind_of(line: bytes) -> str:
    """What a line by itself says the file is; empty if it says nothing."""
    if not line.startswith(b"{"):
        return ""
    try:
        content = parse(line.decode("utf-8"))
    except (JsonFaultError, UnicodeDecodeError):
        return NATIVE if line.startswith(LINE_BEGINNING) and not line.endswith(b",") else ""
    if "agentmark" in content or CHECKPOINT_MEMBER in content:
        return NATIVE
    shape = _shape_of(content)
    if shape is None:
        # A page of rows, or a data frame: read alike, whether they are lines or a document.
        return "rows" if _is_known(content) else ""
    return str(shape.NAME)


def _is_known(content: object) -> bool:
    if not isinstance(content, dict):
        return False
    is_page = any(isinstance(content.get(name), list) for name in PAGES)
    return is_page or phoenix.is_by_column(content) or _is_record(content) or _shape_of(content) is not None


def _shape_of(content: dict[str, Any]) -> Any:
    return next((shape for shape in SHAPES if shape.matches(content)), None)


def _is_record(content: dict[str, Any]) -> bool:
    return "agentmark" in content and "scheme" in content


def _decoded(content: bytes, where: str, *, cut: bool = False) -> str:
    try:
        # A cut may fall inside a character.
        return content.decode("utf-8", "ignore" if cut else "strict")
    except UnicodeDecodeError:
        raise RecordError(where, "text", "is not UTF-8") from None


def _some(content: object) -> str:
    if not isinstance(content, dict):
        return f"a {type(content).__name__}"
    names: Sequence[str] = sorted(map(str, content))[:6]
    return "the members " + ", ".join(names) if names else "no members"
