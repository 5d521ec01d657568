"""Exports, databases and archives that are more than they seem."""

import io
import json
import sqlite3
import zipfile
import zlib
from pathlib import Path
from typing import Any

from agentmark import SqliteLog, StepRecord
from agentmark.log.sqlite_file import LOG
from hostile.files import MAX_SIZE, HostileFile, Maker
from hostile.records import forged, line_of


def lists_document(maker: Maker, path: Path) -> None:
    path.write_bytes(b"[" + b"[]," * ((MAX_SIZE - 10) // 3))


def tiny_items(maker: Maker, path: Path) -> None:
    first = json.dumps(forged(maker.rng("items"), maker.key_id, 0)).encode()
    path.write_bytes(b"[" + first + b",0" * ((MAX_SIZE - len(first) - 10) // 2) + b"]")


def deep_document(maker: Maker, path: Path) -> None:
    path.write_bytes(b'{"resourceSpans":' + b"[" * (MAX_SIZE - 100))


def open_objects(maker: Maker, path: Path) -> None:
    path.write_bytes(b'{"resourceSpans":[' + b'{"a":[{},' * ((MAX_SIZE - 100) // 9))


def many_spans(maker: Maker, path: Path) -> None:
    span = b'{"attributes":[{"key":"agentmark.record","value":{"stringValue":"{"}}]}'
    spans = b",".join([span] * ((MAX_SIZE - 100) // (len(span) + 1)))
    path.write_bytes(b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + spans + b"]}]}]}")


def nested_text(maker: Maker, path: Path) -> None:
    """JSON in text in JSON, each level as text of the next: every level doubles its escapes."""
    text = json.dumps(forged(maker.rng("text"), maker.key_id, 0))
    while len(row := json.dumps({"run_type": "chain", "extra": text})) < MAX_SIZE // 2:
        text = json.dumps({"metadata": text})
    path.write_text(row + "\n")


def _database(path: Path, statements: str) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(statements)
        database.execute(f"PRAGMA application_id = {LOG.application_id}")
        database.execute(f"PRAGMA user_version = {LOG.version}")
    database.close()


ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'x' AS line FROM n"


def recursive_view(maker: Maker, path: Path) -> None:
    _database(path, f"CREATE VIEW records AS {ENDLESS};")


def computed_column(maker: Maker, path: Path) -> None:
    _database(
        path,
        "CREATE TABLE records (id INTEGER PRIMARY KEY, line TEXT AS (hex(zeroblob(8000000))));"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) "
        "INSERT INTO records SELECT i FROM n;",
    )


def huge_cell(maker: Maker, path: Path) -> None:
    _database(path, "CREATE TABLE records (id INTEGER PRIMARY KEY, line TEXT);")
    line = json.dumps({"agentmark": 1, "meta": {"a": "a" * 900_000}})
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO records (line) VALUES (?)", (line,))
    database.close()


def many_cells(maker: Maker, path: Path) -> None:
    """No index on what is sorted by, and as many rows as fit."""
    _database(
        path,
        "CREATE TABLE records (id, line);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 70000) "
        "INSERT INTO records SELECT -i, '{' FROM n;",
    )


def damaged_database(maker: Maker, path: Path) -> None:
    """Pages that point in circles, as they fall."""
    rng = maker.rng("damaged")
    with SqliteLog(path) as log:
        for step in range(600):
            log.write(StepRecord.from_dict(forged(rng, maker.key_id, step)))
    data = bytearray(path.read_bytes())
    for at in rng.sample(range(8192, len(data)), 200):
        data[at] = rng.randrange(256)
    path.write_bytes(data)


def _zip(path: Path, entries: list[tuple[str, bytes]], count: int, *, shared: bool) -> None:
    """A zip file whose table of contents lists `count` members; with `shared`, all of them are the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in entries:
            file.writestr(name, content)
        if shared:
            (first,) = file.infolist()
            for number in range(count):
                copy = zipfile.ZipInfo(f"samples/{number}_epoch_1.json")
                copy.compress_type, copy.header_offset = first.compress_type, first.header_offset
                copy.compress_size, copy.file_size, copy.CRC = first.compress_size, first.file_size, first.CRC
                file.filelist.append(copy)
                file.NameToInfo[copy.filename] = copy
            file._didModify = True
    path.write_bytes(target.getvalue())


def _sample(filling: bytes, size: int) -> bytes:
    head, tail = b'{"epoch":1,"events":[{}', b"]}"
    return head + filling * (size // len(filling)) + tail


def overlapping_members(maker: Maker, path: Path) -> None:
    sample = _sample(b",{}", 50_000_000)
    _zip(path, [("samples/0.json", sample)], 2000, shared=True)


def many_members(maker: Maker, path: Path) -> None:
    entries = [(f"samples/{number}.json", b'{"epoch":1,"events":[]}') for number in range(6500)]
    _zip(path, entries, 0, shared=False)


def stored_size_lies(maker: Maker, path: Path) -> None:
    """A member that says it is small, and unpacks to 200 MB."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(_sample(b",0", 200_000_000)) + packer.flush()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        file.writestr("samples/1.json", packed)
        file.infolist()[0].compress_type = zipfile.ZIP_DEFLATED
    path.write_bytes(target.getvalue())


def rotated_names(maker: Maker, path: Path) -> None:
    """A page of rows, each of which names another page."""
    row = b'{"data":[{"data":[]}]}\n'
    path.write_bytes(row * (MAX_SIZE // len(row)))


def phoenix_columns(maker: Maker, path: Path) -> None:
    """Rows with thousands of dotted names each."""
    row = {f"attributes.a{i}.b.c": i for i in range(2000)} | {"context.span_id": "1"}
    line = line_of(row)
    path.write_bytes(line * (MAX_SIZE // len(line)))


def _one_value(text: str, count: int) -> Any:
    """A table of one column that holds the same text in every row, once."""
    import pyarrow

    places = pyarrow.nulls(count, pyarrow.int32()).fill_null(0)
    return pyarrow.table({"context.span_id": pyarrow.DictionaryArray.from_arrays(places, pyarrow.array([text]))})


def parquet_repeats(maker: Maker, path: Path) -> None:
    """One value, 40 million times: a dictionary and a run length."""
    import pyarrow.parquet

    count = 2_000_000
    table = _one_value("1" * 2000, count)
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False) as writer:
        for _ in range(20):
            writer.write_table(table, row_group_size=count)


def parquet_large_value(maker: Maker, path: Path) -> None:
    """One value of 60 MB, in a dictionary, for every row of a batch."""
    import pyarrow.parquet

    table = _one_value("1" * 60_000_000, 1000)
    pyarrow.parquet.write_table(table, path, compression="zstd", compression_level=9)


FILES = (
    HostileFile("lists-document", "json", "[[],[],[], ... without an end", lists_document),
    HostileFile("tiny-items", "json", "an array of a record and 500,000 numbers", tiny_items),
    HostileFile("deep-document", "json", "brackets in brackets, a million deep", deep_document),
    HostileFile("open-objects", "json", "objects in lists in objects, none closed", open_objects),
    HostileFile("spans", "json", "13,000 spans, each with a broken record", many_spans),
    HostileFile("nested-text", "jsonl", "JSON as text in JSON as text, 14 levels", nested_text),
    HostileFile("pages", "jsonl", "pages of rows that name pages", rotated_names),
    HostileFile("columns", "jsonl", "rows of 2,000 dotted names", phoenix_columns),
    HostileFile("sqlite-view", "db", "a recursive view named records", recursive_view),
    HostileFile("sqlite-computed", "db", "20,000 rows of a computed column of 16 MB", computed_column),
    HostileFile("sqlite-cell", "db", "one cell of 900,000 characters", huge_cell),
    HostileFile("sqlite-cells", "db", "70,000 broken rows, unsorted", many_cells),
    HostileFile("sqlite-damaged", "db", "a database with 200 bytes changed", damaged_database),
    HostileFile("zip-overlapping", "eval", "2,000 members of 50 MB that are the same bytes", overlapping_members),
    HostileFile("zip-members", "eval", "6,500 samples without events", many_members),
    HostileFile("zip-large-member", "eval", "a member of 200 MB", stored_size_lies),
    HostileFile("parquet-repeats", "parquet", "one text of 2,000 characters, 40 million times", parquet_repeats),
    HostileFile("parquet-value", "parquet", "one text of 60 MB, in 1,000 rows", parquet_large_value),
)
