"""One line of a JSON-lines log: a record, a checkpoint, or the beginning of one that a crash cut short."""

import errno
import io
import os
from collections.abc import Iterator

from agentmark.chain.checkpoint import CHECKPOINT_MEMBER, Checkpoint
from agentmark.core.strict_json import Pairs, StrictJsonError, parse_json_pairs
from agentmark.log.json_beginning import begins_json_object
from agentmark.log.sizes import MAX_LINE, MAX_PARSED
from agentmark.record import StepRecord

# As much of a line as is read before it is looked at.
_PART = 1 << 16


def reader_of(descriptor: int, begin: int) -> io.BufferedReader:
    """The open file from this byte on. The descriptor stays open; where it stands in the file changes."""
    file: io.BufferedReader = io.BufferedReader(io.FileIO(os.dup(descriptor)), 1 << 20)
    file.seek(begin)
    return file


def bounded_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """The lines of a log that can be lines of ours; those beyond the limits are passed over, and never held."""
    while line := _read_line(file):
        if len(line) <= MAX_LINE and not line.isspace() and parsed_size(line) <= MAX_PARSED:
            yield line


def _read_line(file: io.BufferedReader) -> bytes:
    """The next line; an empty one in the place of one that is too long, or that runs into a hole of the file."""
    line = file.readline(_PART)
    while line and not line.endswith(b"\n"):
        # JSON has no zero bytes, and a hole nothing else.
        if len(line) > MAX_LINE or line.endswith(b"\0"):
            _pass_line(file)
            return b"\n"
        part = file.readline(min(len(line), MAX_LINE + 1 - len(line)))
        if not part:
            break
        line += part
    return line


def _pass_line(file: io.BufferedReader) -> None:
    while (part := file.peek()) and (end := part.find(b"\n")) < 0:
        file.read(len(part))
        if part.endswith(b"\0"):
            _pass_hole(file)
    if part:
        file.read(end + 1)


def _pass_hole(file: io.BufferedReader) -> None:
    """Go on behind the hole that we are in, if any: a file can have terabytes of zeros that are on no disk."""
    if not hasattr(os, "SEEK_DATA"):
        return
    here, raw = file.tell(), file.raw.tell()
    try:
        data = os.lseek(file.fileno(), here, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            return
        # Nothing follows but the hole.
        data = os.fstat(file.fileno()).st_size
    finally:
        # The buffer remembers where the file stood.
        os.lseek(file.fileno(), raw, os.SEEK_SET)
    file.seek(max(here, data))


def parse_line(line: bytes, *, where: str, number: int | None = None) -> StepRecord | Checkpoint:
    if is_checkpoint(line):
        return Checkpoint.from_json(line, where=where, line=number)
    return StepRecord.from_json(line, where=where)


_QUOTED_MEMBER = f'"{CHECKPOINT_MEMBER}"'.encode()


def is_checkpoint(line: bytes) -> bool:
    """Whether the line means to be a checkpoint. Only one that holds the name at all is looked into."""
    if _QUOTED_MEMBER not in line:
        return False
    try:
        # A checkpoint that names a member twice is a broken checkpoint, and no record.
        members = parse_json_pairs(line, allow_constants=False)
    except StrictJsonError:
        return line.startswith(b"{" + _QUOTED_MEMBER)
    names = {name for name, _ in members} if isinstance(members, Pairs) else set()
    return CHECKPOINT_MEMBER in names and "agentmark" not in names


LINE_BEGINNING = b'{"agentmark'


def is_torn(line: bytes, *, ended: bool) -> bool:
    """True for a line that a crash cut short: the beginning of a JSON object, and of no more than that.

    A last line without its line feed may be cut anywhere; one that was closed later must begin as our records do.
    """
    ours = line.startswith(LINE_BEGINNING) or LINE_BEGINNING.startswith(line)
    return (ours or not ended) and begins_json_object(line)


def parsed_size(text: bytes | str) -> int:
    """About how many bytes JSON takes as objects of Python, beside its text. Short of parsing it, this is counting."""
    if isinstance(text, str):
        return 200 * text.count("{") + 90 * text.count("[") + 100 * text.count(",") + 25 * text.count('"')
    return 200 * text.count(b"{") + 90 * text.count(b"[") + 100 * text.count(b",") + 25 * text.count(b'"')
