"""What a format has to do, and how a JSON object finds the format that it is of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentmark.log.read.attributes import RECORD, LongTextError, to_record
from agentmark.log.read.events import BadEntry, Entry, Event, FormatKnown, NoRecord
from agentmark.log.read.json_text import CUT_MEMBER
from agentmark.log.read.meter import Meter
from agentmark.record import RecordError

# Where lists of rows stand in what an API returns.
PAGES = ("data", "runs", "spans", "observations", "items")


class UnknownFormatError(RecordError):
    """A file that is no log, or one of a format that is not read here."""

    def __init__(self, name: str, found: str, accepted: str) -> None:
        super().__init__(name, "format", f"not recognised: this is {found}. Accepted: {accepted}")
        # Without what is accepted, for a list of many.
        self.short = f"{self.where}: not recognised: this is {found}"
        self.args = (f"{self.short}. Accepted: {accepted}",)


class Format:
    """One format of logs. It is recognised in one of two ways, or in both, and answers for those alone.

    A file that is not text is known by its first bytes: give `magic` and `read_file`. A format of JSON is known by its
    objects, whether they come as lines, in an array or as a document: give `matches` and `records`.
    """

    # As `agentmark inspect` prints it.
    name: str
    # How the error about an unknown file describes it; None leaves it out there.
    accepted: str | None = None

    magic: tuple[bytes, ...] = ()

    def read_file(self, path: Path, table: "FormatTable", meter: Meter) -> Iterator[Event]:
        """Read a file that begins with `magic`. Rows of other formats in it are the table's to read.

        What is unpacked and what is parsed is for the meter to count; the bytes of the file itself it knows.
        """
        raise NotImplementedError

    def matches(self, content: Mapping[str, Any]) -> bool:
        """Whether a JSON object is of this format."""
        return False

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """For each entry in such an object: its place in it, and what stands there for a record, None for nothing."""
        raise NotImplementedError


class FormatTable:
    """The formats, in the order in which they are asked: the first that matches is the one."""

    def __init__(self, formats: Sequence[Format]) -> None:
        self.formats = tuple(formats)
        listed = [known.accepted for known in self.formats if known.accepted is not None]
        self.accepted = "; ".join([*listed, "text also packed with gzip or zstd"])

    def with_magic(self, head: bytes) -> Format | None:
        """The format of a file that begins so, if it is one of those that are not text."""
        return next((known for known in self.formats if known.magic and head.startswith(known.magic)), None)

    def unknown(self, name: str, found: str) -> UnknownFormatError:
        """The error about a file that is none of these."""
        return UnknownFormatError(name, found, self.accepted)

    def knows(self, content: object) -> bool:
        """Whether this is an object of one of the formats, or a page of such."""
        return self._format_of(content) is not None or _page_of(content) is not None

    def read_row(self, content: object, where: str) -> Iterator[Event]:
        """What a JSON object holds: a row, a page of rows, or a whole document."""
        if self._format_of(content) is None and (page := _page_of(content)):
            # A row of a page is never a page itself: nothing nests without end.
            for number, row in enumerate(page, start=1):
                yield from self._read_object(row, f"{where} item {number}")
        else:
            yield from self._read_object(content, where)

    def _read_object(self, content: object, where: str) -> Iterator[Event]:
        if not isinstance(content, dict) or (known := self._format_of(content)) is None:
            yield NoRecord()
            return
        yield FormatKnown(known.name)
        try:
            yield from read_found(known.records(content), where)
        except RecursionError:
            yield BadEntry(RecordError(where, known.name, "is nested too deeply"))
        except LongTextError as error:
            yield BadEntry(RecordError(where, RECORD, error.fault))

    def _format_of(self, content: object) -> Format | None:
        if not isinstance(content, dict):
            return None
        return next((known for known in self.formats if known.matches(content)), None)


def read_found(found: Iterable[tuple[str, object]], where: str) -> Iterator[Event]:
    """Entries of an object, each as its place and what stands there for a record."""
    for place, raw in found:
        if raw is None:
            yield NoRecord()
        elif isinstance(raw, dict) and CUT_MEMBER in raw:
            # Half a record, at the end of a document of which it was said that it is cut.
            continue
        else:
            yield read_entry(raw, f"{where} {place}".strip())


def read_entry(raw: object, where: str) -> Entry | BadEntry:
    """What stands in the place of a record, as a record if it is one."""
    try:
        return Entry(to_record(raw, where))
    except RecordError as error:
        return BadEntry(error)
    except RecursionError:
        return BadEntry(RecordError(where, RECORD, "is nested too deeply"))
    except LongTextError as error:
        return BadEntry(RecordError(where, RECORD, error.fault))


def _page_of(content: object) -> list[Any] | None:
    """The rows of a page, as an API returns them."""
    if not isinstance(content, dict):
        return None
    return next((content[name] for name in PAGES if isinstance(content.get(name), list)), None)
