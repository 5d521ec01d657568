"""Members of a zip file, also of one that was cut, and also packed with zstd, as Inspect packs them."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentmark.log.read.files import shown
from agentmark.log.read.meter import Meter
from agentmark.log.read.packing import zstd_stream
from agentmark.record import RecordError

_LOCAL_MAGIC = b"PK\x03\x04"
# How a zip file begins; the latter is an empty one.
MAGIC = (_LOCAL_MAGIC, b"PK\x05\x06")

_LOCAL = struct.Struct("<4s5H3I2H")
_DEFLATED, _ZSTD = 8, 93
_SIZE_FOLLOWS = 8


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    offset: int
    packed_size: int
    method: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The members of a zip file. One that was cut has no table of them: they are those that stand whole before it."""

    members: tuple[Member, ...]
    cut: bool


def members_of(path: Path, prefix: str) -> Contents:
    """The members whose names begin with the prefix."""
    with path.open("rb") as file:
        try:
            listed = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error, OverflowError):
            cut, members = True, list(_members_by_header(file, path.stat().st_size))
        else:
            cut = False
            members = [Member(i.filename, i.header_offset, i.compress_size, i.compress_type) for i in listed]
    return Contents(tuple([member for member in members if member.name.startswith(prefix)]), cut)


def _members_by_header(file: io.BufferedReader, size: int) -> Iterator[Member]:
    """The members that stand whole at the beginning of the file, by their own headers."""
    offset = 0
    while True:
        file.seek(offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(_LOCAL_MAGIC):
            return
        _, _, flags, method, _, _, _, packed_size, _, name_len, extra_len = _LOCAL.unpack(header)
        name = file.read(name_len).decode("utf-8", "replace")
        end = offset + _LOCAL.size + name_len + extra_len + packed_size
        if flags & _SIZE_FOLLOWS or end > size:
            return
        yield Member(name, offset, packed_size, method)
        offset = end


def unpack(path: Path, member: Member, meter: Meter) -> bytes:
    """The content of one member, up to the limit. What it says of its own size counts for nothing."""
    where = f"{shown(path)} {member.name}"
    most = meter.limits.held_bytes + 1
    with path.open("rb") as file:
        file.seek(max(0, member.offset))
        header = file.read(_LOCAL.size)
        if member.offset < 0 or len(header) < _LOCAL.size or not header.startswith(_LOCAL_MAGIC):
            raise RecordError(where, "member", "is not where the table of contents says")
        file.seek(sum(_LOCAL.unpack(header)[-2:]), io.SEEK_CUR)
        packed = file.read(max(0, min(member.packed_size, most)))
    # Members may lie over one another, each a copy of the last: what is read again counts as if it was unpacked.
    meter.unpack(len(packed))
    meter.hold(len(packed), where, "member")
    content = _unpacked(packed, member.method, where, most)
    meter.unpack(len(content))
    meter.hold(len(content), where, "member")
    return content


def _unpacked(packed: bytes, method: int, where: str, most: int) -> bytes:
    if method == 0:
        return packed
    if method == _DEFLATED:
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
        except zlib.error:
            raise RecordError(where, "member", "cannot be unpacked: it is damaged") from None
    if method == _ZSTD:
        stream, faults = zstd_stream(io.BytesIO(packed))
        try:
            return bytes(stream.read(most))
        except faults:
            raise RecordError(where, "member", "cannot be unpacked: it is damaged") from None
    raise RecordError(where, "member", f"is packed by method {method}, which is not read here")
