"""Small files that unpack to hundreds of megabytes."""

import gzip
import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hostile.files import MAX_SIZE, UNPACKED, HostileFile, Maker
from hostile.records import forged, line_of, peaked_weights, unmarked


def _gzip_file(path: Path, portions: Iterable[bytes], *, level: int = 9) -> None:
    with gzip.GzipFile(path, "wb", compresslevel=level, mtime=0) as file:
        for portion in portions:
            file.write(portion)


def _repeated(portion: bytes, size: int = UNPACKED) -> Iterator[bytes]:
    block = portion * (1 + (1 << 20) // len(portion))
    return itertools.repeat(block, size // len(block))


def _first_line(maker: Maker, name: str, **members: Any) -> bytes:
    return line_of(forged(maker.rng(name), maker.key_id, 0, **members))


def newlines(maker: Maker, path: Path) -> None:
    _gzip_file(path, [_first_line(maker, "newlines"), *_repeated(b"\n")])


def gzip_endless_line(maker: Maker, path: Path) -> None:
    _gzip_file(path, [b'{"agentmark":1,"meta":{"a":"', *_repeated(b"a")])


def _cut(path: Path, portions: Iterable[bytes], *, by: int) -> None:
    _gzip_file(path, portions)
    path.write_bytes(path.read_bytes()[:-by])


def cut_in_string(maker: Maker, path: Path) -> None:
    """Cut inside a string of 60 million backslashes and quotes, each of which could be its end."""
    portions = _repeated(b'\\"', 60_000_000)
    _cut(path, [_first_line(maker, "cut"), b'{"agentmark":1,"meta":{"a":"', *portions], by=100)


def cut_document(maker: Maker, path: Path) -> None:
    _cut(path, [b'{"resourceSpans":[{"a":"', *_repeated(b'\\"', 60_000_000)], by=100)


def document_of_lists(maker: Maker, path: Path) -> None:
    _gzip_file(path, [b'{"resourceSpans":[[]', *_repeated(b",[]", 60_000_000), b"]}"])


def document_of_objects(maker: Maker, path: Path) -> None:
    """Never closed: what is left of it has to be found, and closed."""
    _gzip_file(path, [b'{"resourceSpans":[{}', *_repeated(b",{}", 60_000_000)])


def zstd_repeated(maker: Maker, path: Path) -> None:
    import zstandard

    packed = io.BytesIO()
    with zstandard.ZstdCompressor(level=3).stream_writer(packed, closefd=False) as writer:
        for portion in _repeated(_first_line(maker, "zstd", scheme="R")):
            writer.write(portion)
    path.write_bytes(packed.getvalue())


def gzip_repeated_export(maker: Maker, path: Path) -> None:
    _gzip_file(path, _repeated(b'{"run_type":"chain","extra":{}}\n'), level=6)


def gzip_array(maker: Maker, path: Path) -> None:
    _gzip_file(path, [b'[{"run_type":"chain"}', *_repeated(b",0"), b"]"], level=6)


def gzip_empty_objects(maker: Maker, path: Path) -> None:
    _gzip_file(path, [_first_line(maker, "gzip objects"), *_repeated(b"{}\n")], level=6)


def gzip_unmarked(maker: Maker, path: Path) -> None:
    rng = maker.rng("unmarked")
    _gzip_file(path, (line_of(unmarked(rng, maker.key_id, step)) for step in range(10_000)))


def gzip_many_options(maker: Maker, path: Path) -> None:
    rng, weights = maker.rng("options"), peaked_weights()
    lines = (line_of(forged(rng, maker.key_id, step, scheme="R", weights=weights)) for step in range(1000))
    _gzip_file(path, lines, level=6)


def gzip_in_gzip(maker: Maker, path: Path) -> None:
    inner = io.BytesIO()
    with gzip.GzipFile(fileobj=inner, mode="wb", mtime=0) as file:
        for portion in _repeated(b"\n"):
            file.write(portion)
    _gzip_file(path, [inner.getvalue()])


def many_gzip_members(maker: Maker, path: Path) -> None:
    empty = gzip.compress(b"", mtime=0)
    first = gzip.compress(_first_line(maker, "members"), mtime=0)
    path.write_bytes(first + empty * ((MAX_SIZE - len(first)) // len(empty)))


FILES = (
    HostileFile("gzip-newlines", "jsonl.gz", "a record, then 400 MB of line feeds", newlines),
    HostileFile("gzip-endless-line", "jsonl.gz", "one line of 400 MB", gzip_endless_line),
    HostileFile("gzip-cut-in-string", "jsonl.gz", "cut inside a string of 60 MB of escaped quotes", cut_in_string),
    HostileFile("gzip-cut-document", "json.gz", "a document cut inside such a string", cut_document),
    HostileFile("gzip-lists", "json.gz", "a document of 20 million empty lists", document_of_lists),
    HostileFile("gzip-open-document", "json.gz", "a document of 20 million objects, never closed", document_of_objects),
    HostileFile("zstd-repeated", "jsonl.zst", "one forged record, 400 MB of it", zstd_repeated),
    HostileFile("gzip-export", "jsonl.gz", "runs of an export without records, 400 MB", gzip_repeated_export),
    HostileFile("gzip-array", "json.gz", "an array of 200 million numbers", gzip_array),
    HostileFile("gzip-objects", "jsonl.gz", "133 million lines of {}", gzip_empty_objects),
    HostileFile("gzip-unmarked", "jsonl.gz", "10,000 unmarked steps", gzip_unmarked),
    HostileFile("gzip-r-options", "jsonl.gz", "R, 1,000 forged steps of 4,096 options", gzip_many_options),
    HostileFile("gzip-in-gzip", "jsonl.gz", "a gzip file in a gzip file", gzip_in_gzip),
    HostileFile("gzip-members", "jsonl.gz", "a record, then 50,000 empty gzip members", many_gzip_members),
)
