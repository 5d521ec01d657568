"""Packed logs, their lines, and what they hold in all: counted as it comes out of them."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from agentmark.errors import MissingExtraError
from agentmark.log.read.limits import MIB
from agentmark.log.read.meter import Meter

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


_SPACE = ord(" ")
_BLANK = re.compile(rb"\s*")


class DamagedError(EOFError):
    """A packed file ends here, too early or broken; what came before could be read. `line` is the one that is lost."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


class Stream(io.BufferedReader):
    """Bytes to read, and whether they ended because what they were packed in is damaged."""

    @property
    def damaged(self) -> bool:
        return bool(getattr(self.raw, "damaged", False))


def unpacked(file: io.BufferedReader, meter: Meter) -> Stream:
    """The content of a gzip or zstd stream; that of any other as it is."""
    magic = file.peek(len(ZSTD_MAGIC))
    counted = _Counted(file, meter)
    if magic.startswith(GZIP_MAGIC):
        # What it takes is a file to read from, and nothing more of one.
        packed: Any = gzip.GzipFile(fileobj=counted)  # type: ignore[call-overload]
        return Stream(_Unpacked(packed, (EOFError, gzip.BadGzipFile, zlib.error), meter), MIB)
    if magic.startswith(ZSTD_MAGIC):
        return Stream(_Unpacked(*zstd_stream(counted), meter), MIB)
    return as_it_is(file, meter)


def as_it_is(file: io.BufferedReader, meter: Meter) -> Stream:
    """The bytes of a file that is known not to be packed, whatever they begin with."""
    meter.nothing_is_packed()
    return Stream(_Unpacked(_Counted(file, meter), (), meter), MIB)


def rewound(head: bytes, stream: Stream) -> Stream:
    """The stream as it was before its head was taken."""
    return Stream(_Rewound(head, stream), MIB)


def zstd_stream(file: Any) -> tuple[Any, tuple[type[Exception], ...]]:
    """Something to read from, and what it raises on broken input. Python has its own module from 3.14 on."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("zstandard", "zstd") from None
        return _Zstd(file), (zstandard.ZstdError, EOFError)
    return zstd.ZstdFile(file), (zstd.ZstdError, EOFError)


class _Counted:
    """A file, of which every byte that is read is counted."""

    def __init__(self, file: io.BufferedReader, meter: Meter) -> None:
        self._file = file
        self._meter = meter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._meter.read(len(data))
        return data

    def read1(self, size: int = -1) -> bytes:
        data = self._file.read1(size)
        self._meter.read(len(data))
        return data


class _Zstd:
    """Frames of zstd, one after the other. The package's own reader does not tell a cut stream from one that ended."""

    # What so few bytes unpack to is bounded: each block of four yields 128 KiB at most.
    PORTION = 512

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._new = zstandard.ZstdDecompressor(max_window_size=128 * MIB).decompressobj
        self._file = file
        self._frame: Any = None
        self._packed = b""
        self._ready = b""

    def read(self, size: int) -> bytes:
        parts = []
        while size > 0 and (part := self.read1(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def read1(self, size: int) -> bytes:
        """What is there, so that nothing is lost to a fault behind it."""
        while not self._ready:
            part = self._next()
            if part is None:
                return b""
            self._ready = part
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready

    def _next(self) -> bytes | None:
        packed = self._packed or self._file.read(self.PORTION)
        self._packed = b""
        if not packed:
            if self._frame is not None:
                raise EOFError("the last frame is cut short")
            return None
        self._frame = self._frame or self._new()
        part = bytes(self._frame.decompress(packed))
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None
        return part


class _Unpacked(io.RawIOBase):
    def __init__(self, stream: Any, faults: tuple[type[Exception], ...], meter: Meter) -> None:
        self._stream = stream
        self._faults = faults
        self._meter = meter
        self.damaged = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.damaged:
            return 0
        try:
            data = self._stream.read1(len(buffer))
        except self._faults:
            self.damaged = True
            return 0
        self._meter.unpack(len(data))
        buffer[: len(data)] = data
        return len(data)


class _Rewound(io.RawIOBase):
    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head = io.BytesIO(head)
        self._stream = stream

    @property
    def damaged(self) -> bool:
        return self._stream.damaged

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head.read(len(buffer)) or self._stream.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def lines_of(stream: Stream, name: str, meter: Meter) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers and line feeds.

    Damage behind a whole line is raised; within a line, the line shows it.
    """
    for number, block in blocks_of(stream, name, meter):
        yield from lines_in(block, number)


def lines_in(block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a block that are not blank, of which the first line has this number."""
    at, end = 0, len(block)
    while at < end:
        start = at
        if block[at] <= _SPACE:
            # However many blank lines there are, this passes over them at once.
            start = _end_of_blank(block, at)
            number += block.count(b"\n", at, start)
            if start == end:
                break
        at = block.find(b"\n", start) + 1 or end
        yield number, block[start:at]
        number += 1


def blocks_of(stream: Stream, name: str, meter: Meter) -> Iterator[tuple[int, bytes]]:
    """Whole lines, as many as come at once, with the number of the first. The last one may have no line feed."""
    number, held, searched, ended = 1, b"", 0, False
    while True:
        end = held.rfind(b"\n", searched) + 1
        if end:
            yield number, held[:end]
            number += held.count(b"\n", 0, end)
        held = held[_end_of_blank(held, end) :]
        meter.hold(len(held), f"{name}:{number}", "line")
        if ended:
            break
        more = stream.read(_read_on(len(held), meter))
        held, searched, ended = held + more, len(held), not more
    if held:
        yield number, held
    elif stream.damaged:
        raise DamagedError(number)


def _end_of_blank(text: bytes, start: int) -> int:
    blank = _BLANK.match(text, start)
    assert blank is not None
    return blank.end()


def _read_on(held: int, meter: Meter) -> int:
    """As much again as is held, but hardly more than may be."""
    return min(max(MIB, held), meter.limits.held_bytes + 1 - held)


def read_document(stream: IO[bytes], name: str, meter: Meter) -> bytes:
    """All of a stream, up to the limit."""
    held = bytearray()
    while more := stream.read(_read_on(len(held), meter)):
        held += more
        meter.hold(len(held), name, "document")
    return bytes(held)
