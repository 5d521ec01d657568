"""Text files: how their JSON is laid out (lines, an array, a document), and the rows in it."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from pathlib import Path

from agentmark.core.strict_json import StrictJsonError
from agentmark.log.lines import LINE_BEGINNING, is_torn
from agentmark.log.read.events import BadEntry, Damage, Event, TornLine
from agentmark.log.read.files import shown
from agentmark.log.read.format import FormatTable
from agentmark.log.read.json_lines import is_own, read_record_line, read_record_lines
from agentmark.log.read.json_text import CutShortError, array_items, decode_utf8, parse_document, parse_row
from agentmark.log.read.meter import Meter
from agentmark.log.read.packing import DamagedError, Stream, lines_of, read_document, rewound
from agentmark.record import RecordError

# How far to look for a line that tells what the file is.
LOOK_LINES, LOOK_BYTES = 100, 1 << 20


class Layout(Enum):
    """How the JSON of a text file is laid out."""

    # AgentMark's own lines, each a record or a checkpoint.
    RECORD_LINES = auto()
    ROW_LINES = auto()
    ARRAY = auto()
    DOCUMENT = auto()
    UNKNOWN = auto()


def read_text(packed: Stream, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
    """Read a text file of any layout."""
    layout, stream = laid_out(packed, path, table, meter)
    match layout:
        case Layout.RECORD_LINES:
            return read_record_lines(stream, shown(path), meter)
        case Layout.ROW_LINES:
            return _read_row_lines(stream, path, table, meter)
        case Layout.ARRAY:
            return _read_array(stream, path, table, meter)
    return _read_document(stream, path, table, meter)


def laid_out(packed: Stream, path: Path, table: FormatTable, meter: Meter) -> tuple[Layout, Stream]:
    """How a text file is laid out, and its content from the beginning on. One of no known layout raises."""
    head = packed.read(LOOK_BYTES)
    layout = _layout_of(head, table, whole=len(head) < LOOK_BYTES)
    if layout is None:
        # One long line: it has to be read to be known.
        head += packed.readline(meter.limits.held_bytes)
        meter.check(head, shown(path), "line")
        layout = _layout_of(head, table, whole=True)
    if layout is None or layout is Layout.UNKNOWN:
        raise table.unknown(shown(path), f"a file that begins with {head.lstrip()[:16]!r}")
    return layout, rewound(head, packed)


def is_record_lines(head: bytes, table: FormatTable) -> bool:
    """Whether a file that begins so, and is longer, is read as AgentMark's own lines."""
    return _layout_of(head, table, whole=False) is Layout.RECORD_LINES


def _layout_of(head: bytes, table: FormatTable, *, whole: bool) -> Layout | None:
    """What the beginning of a file says. None: more is needed to say."""
    start = head.lstrip()
    # An empty log, a blank one, or the little that a crash has left of a first line.
    if LINE_BEGINNING.startswith(start.rstrip()) and (whole or not start):
        return Layout.RECORD_LINES
    lines = start.split(b"\n", LOOK_LINES)
    complete = lines if whole else lines[:-1]
    told: Iterable[Layout | None] = (_layout_told_by(line.strip(), table) for line in complete[:LOOK_LINES])
    if start.startswith(b"["):
        told = list(told)
        # The lines of an array end in commas, all but its last, and say nothing by themselves.
        if told.count(Layout.RECORD_LINES) <= (1 if lines[0].strip() == b"[" else 0):
            return Layout.ARRAY
    # The first line that says something is enough: most files need no second.
    if layout := next(filter(None, told), None):
        return layout
    if not start.startswith(b"{"):
        return Layout.UNKNOWN
    if start.startswith(LINE_BEGINNING):
        return Layout.RECORD_LINES
    return Layout.DOCUMENT if complete else None


def _layout_told_by(line: bytes, table: FormatTable) -> Layout | None:
    """What a line by itself says of the file; None if it says nothing."""
    if not line.startswith(b"{"):
        return None
    try:
        content = parse_row(line.decode("utf-8"))
    except (StrictJsonError, UnicodeDecodeError):
        return Layout.RECORD_LINES if line.startswith(LINE_BEGINNING) and not line.endswith(b",") else None
    if is_own(content):
        return Layout.RECORD_LINES
    # A page of rows, or a data frame, is read alike, whether it is a line or a document.
    return Layout.ROW_LINES if table.knows(content) else None


def _read_row_lines(stream: Stream, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
    try:
        for number, line in lines_of(stream, shown(path), meter):
            where = f"{shown(path)}:{number}"
            meter.parse(line, where, "line")
            yield from _read_row_line(line, number, where, table)
    except DamagedError as damage:
        yield TornLine(damage.line)


def _read_row_line(line: bytes, number: int, where: str, table: FormatTable) -> Iterator[Event]:
    stripped = line.strip()
    try:
        content = parse_row(decode_utf8(stripped, where))
    except StrictJsonError as error:
        if is_torn(stripped, ended=line.endswith(b"\n")):
            yield TornLine(number)
        else:
            yield BadEntry(RecordError(where, "line", error.fault))
        return
    except RecordError as error:
        yield BadEntry(error)
        return
    if is_own(content):
        # A foreign line above them must not make records of ours lose their lines, or their checkpoints.
        yield read_record_line(line, where, number)
    else:
        yield from table.read_row(content, where)


def _read_array(stream: Stream, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
    number = 0
    try:
        for number, item in enumerate(array_items(stream, shown(path), meter), start=1):
            if number == 1 and not table.knows(item):
                raise table.unknown(shown(path), f"an array whose first item has {_some(item)}")
            yield from table.read_row(item, f"{shown(path)} item {number}")
    except CutShortError:
        yield Damage(f"{shown(path)}: cut short after item {number}; read up to there")
    except RecordError as error:
        # Behind a broken item nobody knows where the next one begins.
        yield BadEntry(error)


def _read_document(stream: Stream, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
    data = read_document(stream, shown(path), meter)
    meter.parse(data, shown(path), "document")
    document = parse_document(data, shown(path), damaged=stream.damaged)
    del data
    if document.cut:
        yield Damage(f"{shown(path)}: cut short; read up to its last whole entry")
    if not table.knows(document.content):
        raise table.unknown(shown(path), f"an object with {_some(document.content)}")
    yield from table.read_row(document.content, shown(path))


def _some(content: object) -> str:
    if not isinstance(content, dict):
        return f"a {type(content).__name__}"
    names: Sequence[str] = sorted(map(str, content))[:6]
    return "the members " + ", ".join(names) if names else "no members"
