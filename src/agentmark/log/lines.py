"""One line of a JSON-lines log: a record, a checkpoint, or the beginning of one that a crash cut short."""

import io
import json
import os
from collections.abc import Iterator

from agentmark.chain.checkpoint import CHECKPOINT_MEMBER, Checkpoint
from agentmark.record import StepRecord

# What a writer takes in at once of a log that others write as well. A chained record is never longer.
MAX_CHAINED_LINE = 16 << 20


def reader_of(descriptor: int, begin: int) -> io.BufferedReader:
    """The open file from this byte on. The descriptor stays open; where it stands in the file changes."""
    file: io.BufferedReader = io.BufferedReader(io.FileIO(os.dup(descriptor)), 1 << 20)
    file.seek(begin)
    return file


def bounded_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """The lines of a log; those above the limit are passed over, and never held."""
    while line := file.readline(MAX_CHAINED_LINE + 1):
        if len(line) <= MAX_CHAINED_LINE:
            yield line
        elif not line.endswith(b"\n"):
            _pass_line(file)


def _pass_line(file: io.BufferedReader) -> None:
    while (part := file.peek()) and (end := part.find(b"\n")) < 0:
        file.read(len(part))
    if part:
        file.read(end + 1)


def parse_line(line: bytes, *, where: str, number: int | None = None) -> StepRecord | Checkpoint:
    if is_checkpoint(line):
        return Checkpoint.from_json(line, where=where, line=number)
    return StepRecord.from_json(line, where=where)


def is_checkpoint(line: bytes) -> bool:
    """Whether the line means to be a checkpoint. Only one that holds the name at all is looked into."""
    name = f'"{CHECKPOINT_MEMBER}"'.encode()
    if name not in line:
        return False
    try:
        # Leniently: a checkpoint that names a member twice is a broken checkpoint, and no record.
        content = json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(b"{" + name)
    return isinstance(content, dict) and CHECKPOINT_MEMBER in content and "agentmark" not in content


LINE_BEGINNING = b'{"agentmark'


def is_torn(line: bytes, *, ended: bool) -> bool:
    """True for the beginning of a record: the text ends before its JSON object does.

    A last line without its line feed may be cut anywhere; one that was closed later must begin as our records do.
    """
    ours = line.startswith(LINE_BEGINNING) or LINE_BEGINNING.startswith(line)
    if not (ours or (not ended and line.startswith(b"{"))):
        return False
    # A cut may fall inside a character; the bytes before it still show where the JSON ends.
    text = line.decode("utf-8", errors="ignore")
    try:
        # Python's own parser, for the place at which it gave up.
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string") or not text.endswith("}")
    except (ValueError, RecursionError):
        return False
    return False
