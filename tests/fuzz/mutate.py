"""One input made into another: bytes, JSON, and what is packed inside gzip, zstd, zip and SQLite."""

import contextlib
import gzip
import io
import random
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzz import json_trees, values

# Inputs up to this size are what the allowances of the harness are stated for.
MAX_INPUT = 64 * 1024
_UNPACK_LIMIT = 4 * MAX_INPUT


def mutate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A few changes to an input. `others` are inputs that parts may be taken from."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        data = _changed(rng, data, others)[:MAX_INPUT]
    return data


def _changed(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """By what it is: mostly inside of what is packed, and in the structure of what is JSON."""
    kind = rng.random()
    if kind < 0.7:
        inside = _unpacked_change(rng, data, others)
        if inside is not None:
            return inside
        if data[:1] in (b"{", b"["):
            return _json_change(rng, data)
    if kind > 0.97:
        return _packed(rng, data)
    return rng.choice(_BYTE_CHANGES)(rng, data, others)


# JSON ----------------------------------------------------------------------------------------------------------------


def _json_change(rng: random.Random, data: bytes) -> bytes:
    """Bend a document, or one line of many; move, repeat or cut lines."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        return _utf8(json_trees.write(json_trees.bend(rng, json_trees.parse(text))))
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    kind = rng.random()
    if kind < 0.7:
        with contextlib.suppress(ValueError, RecursionError):
            lines[at] = json_trees.write(json_trees.bend(rng, json_trees.parse(lines[at])))
    elif kind < 0.8:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 20))
    elif kind < 0.9:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    else:
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return _utf8("\n".join(lines))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# What is packed ------------------------------------------------------------------------------------------------------


def _unpacked_change(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes | None:
    """Change what is inside, and pack it again; None where nothing is packed, or it cannot be opened."""
    for magic, change in _PACKINGS.items():
        if data.startswith(magic):
            try:
                return change(rng, data, others)
            except Exception:
                # Too damaged already for the packages that would open it, each with errors of its own.
                return None
    return None


def _gzip_change(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    inside = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, _UNPACK_LIMIT)
    return gzip.compress(_changed(rng, inside, others), mtime=0)


def _zstd_change(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    import zstandard

    inside = zstandard.ZstdDecompressor().decompressobj().decompress(data)[:_UNPACK_LIMIT]
    return zstandard.ZstdCompressor().compress(_changed(rng, inside, others))


def _zip_change(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        members = [(entry.filename, source.read(entry)) for entry in source.infolist() if entry.file_size < MAX_INPUT]
    at = rng.randrange(len(members))
    name, content = members[at]
    if rng.random() < 0.8:
        members[at] = (name, _changed(rng, content, others))
    else:
        members[at] = (rng.choice(("samples/", "samples/../x", "\x1b[31m", name * 2, "samples/" + "a" * 500)), content)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


_STATEMENTS = (
    "PRAGMA application_id = 0",
    "PRAGMA user_version = 99",
    "PRAGMA encoding = 'UTF-16le'",
    "DROP TRIGGER IF EXISTS records_stay_as_they_are; UPDATE {table} SET {column} = x'ff00fe'",
    "DROP TRIGGER IF EXISTS records_stay_as_they_are; UPDATE {table} SET {column} = 9223372036854775807",
    "DROP TRIGGER IF EXISTS records_stay_as_they_are; UPDATE {table} SET {column} = 1e308",
    "DROP TRIGGER IF EXISTS records_stay_as_they_are; UPDATE {table} SET {column} = {column} || char(27) || '[31m'",
    "ALTER TABLE {table} RENAME TO gone",
    "ALTER TABLE {table} RENAME TO gone; CREATE VIEW {table} AS SELECT * FROM gone",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "ALTER TABLE {table} ADD COLUMN more TEXT AS (hex(zeroblob(100000)))",
    "DROP TABLE {table}; CREATE TABLE {table} (a)",
)


def _database_change(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change a cell of text as any text, or the schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database"
        path.write_bytes(data)
        database = sqlite3.connect(path)
        try:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            table = rng.choice([row[0] for row in database.execute(named)] or ["records"])
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            column = rng.choice(columns or ["id"])
            if rng.random() < 0.5:
                database.executescript(rng.choice(_STATEMENTS).format(table=f'"{table}"', column=f'"{column}"'))
            else:
                _change_cell(rng, database, table, column)
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            database.close()
        return path.read_bytes()


def _change_cell(rng: random.Random, database: sqlite3.Connection, table: str, column: str) -> None:
    database.execute("DROP TRIGGER IF EXISTS records_stay_as_they_are")
    rows = database.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
    if not rows:
        return
    row, cell = rng.choice(rows)
    value: object = values.text(rng).encode("utf-8", "replace").decode()
    if isinstance(cell, str) and rng.random() < 0.7:
        value = _changed(rng, cell.encode(), [b"x"]).decode("utf-8", "replace")
    database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))


_PACKINGS: dict[bytes, Callable[[random.Random, bytes, Sequence[bytes]], bytes]] = {
    b"\x1f\x8b": _gzip_change,
    b"\x28\xb5\x2f\xfd": _zstd_change,
    b"PK\x03\x04": _zip_change,
    b"SQLite format 3\0": _database_change,
}


def _packed(rng: random.Random, data: bytes) -> bytes:
    """In gzip or zstd, in one piece or in two, whole or cut."""
    half = rng.randrange(len(data) + 1)
    pieces = rng.choice(([data], [data[:half], data[half:]], [data, b""], [data] * 3))
    if rng.random() < 0.5:
        packed = b"".join([gzip.compress(piece, mtime=0) for piece in pieces])
    else:
        try:
            import zstandard
        except ImportError:
            return data
        packed = b"".join([zstandard.ZstdCompressor().compress(piece) for piece in pieces])
    return packed if rng.random() < 0.7 else packed[: rng.randrange(len(packed) + 1)]


# Bytes ---------------------------------------------------------------------------------------------------------------


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((1, 1, 4, 16, 64, 500, 5000)))


def _flip(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _take_out(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def _double(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 2, 50, 1000)) + data[end:]


def _insert(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    put = rng.choice(values.BYTES) if rng.random() < 0.6 else _utf8(values.text(rng))
    return data[:at] + put + data[at:]


def _overwrite(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """For instance a length: what stood there is gone, and the rest is where it was."""
    at = rng.randrange(len(data) + 1)
    put = rng.choice(values.BYTES)
    return data[:at] + put + data[at + len(put) :]


def _splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _number(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Another number where digits stand."""
    digits = [at for at in range(len(data)) if data[at : at + 1].isdigit()]
    if not digits:
        return _insert(rng, data, others)
    start = end = rng.choice(digits)
    while data[end : end + 1].isdigit():
        end += 1
    return data[:start] + rng.choice(values.NUMBERS).encode() + data[end:]


_BYTE_CHANGES: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _flip, _flip, _cut, _take_out, _double, _insert, _insert, _overwrite, _overwrite, _splice, _number,
)  # fmt: skip
