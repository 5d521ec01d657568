"""Packed logs, and the limit that keeps a small file from filling the memory."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, Any

from agentmark.errors import MissingExtraError
from agentmark.record import RecordError

MIB = 1 << 20
# What is held at once, unpacked: a line, an item of an array, a document, a member of a zip file.
# Parsed, JSON takes up to some thirty times as much: this is what keeps a hostile file below two GiB.
MAX_HELD = 64 * MIB

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class DamagedError(EOFError):
    """A packed file ends here, too early or broken; what came before could be read."""


def too_large(where: str, what: str) -> RecordError:
    return RecordError(where, what, f"is larger than {MAX_HELD // MIB} MiB, unpacked")


class Stream(io.BufferedReader):
    """Bytes to read, and whether they ended because what they were packed in is damaged."""

    @property
    def damaged(self) -> bool:
        return bool(getattr(self.raw, "damaged", False))


def unpacked(file: io.BufferedReader) -> Stream:
    """The content of a gzip or zstd stream; that of any other as it is."""
    magic = file.peek(len(ZSTD_MAGIC))
    if magic.startswith(GZIP_MAGIC):
        return Stream(_Unpacked(gzip.GzipFile(fileobj=file), (EOFError, gzip.BadGzipFile, zlib.error)), MIB)
    if magic.startswith(ZSTD_MAGIC):
        return Stream(_Unpacked(*zstd_stream(file)), MIB)
    return Stream(_Unpacked(file, ()), MIB)


def rewound(head: bytes, stream: Stream) -> Stream:
    """The stream as it was before its head was taken."""
    return Stream(_Rewound(head, stream), MIB)


def zstd_stream(file: IO[bytes]) -> tuple[Any, tuple[type[Exception], ...]]:
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
    def __init__(self, stream: Any, faults: tuple[type[Exception], ...]) -> None:
        self._stream = stream
        self._faults = faults
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


def lines_of(stream: Stream, name: str) -> Iterator[bytes]:
    """Lines with their line feeds. Damage behind a whole line is raised; within a line, the line shows it."""
    number, line = 0, b"\n"
    while following := stream.readline(MAX_HELD + 1):
        number, line = number + 1, following
        if len(line) > MAX_HELD:
            raise too_large(f"{name}:{number}", "line")
        yield line
    if stream.damaged and line.endswith(b"\n"):
        raise DamagedError


def read_document(stream: IO[bytes], name: str) -> bytes:
    """All of a stream, up to the limit."""
    parts, size = [], 0
    while part := stream.read(MIB):
        parts.append(part)
        size += len(part)
        if size > MAX_HELD:
            raise too_large(name, "document")
    return b"".join(parts)
