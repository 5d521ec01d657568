import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
from fleet import make_fleet
from rolls import KEY
from support import marked_log

from agentmark.scale.cluster import Piece
from agentmark.scale.pieces import gather
from agentmark.scale.spreading import FileSpreader, LineSpreader, shard_rows
from agentmark.verify.roll import By


def spread_lines(columns: dict[str, list[Any]], *, by: By = By.SESSION, buckets: int = 4) -> list[Piece]:
    table = pa.table(columns)
    spread = LineSpreader(by=by, buckets=buckets)
    return list(spread({name: table.column(name) for name in table.column_names}))


def test_lines_become_records_and_what_is_broken_is_noted_with_its_place() -> None:
    good = [record.to_json() for record in marked_log(KEY, steps=3)]
    texts = [good[0], '{"agentmark": 1}', "", good[1], good[2][:40], good[2]]
    pieces = spread_lines({"text": texts, "file": ["a.jsonl"] * 6, "line": list(range(1, 7))}, buckets=1)
    gathered = gather([piece.content for piece in pieces])
    assert [gathered.columns.record(i).to_json() for i in range(3)] == good
    assert gathered.columns.line.tolist() == [1, 4, 6]
    (note,) = gathered.notes
    assert (note["records"], note["bad"], note["key_ids"]) == (3, 2, [KEY.id])
    assert note["notes"][0] == "a.jsonl:5: cut short"
    assert note["notes"][1].startswith("record a.jsonl:2: ")


def test_a_frame_may_hold_bytes_and_say_nothing_of_files() -> None:
    lines = [record.to_json().encode() for record in marked_log(KEY, steps=3)]
    gathered = gather([piece.content for piece in spread_lines({"text": [*lines, b"\xff\xfe", None]})])
    assert gathered.columns.files == ("",)
    assert gathered.columns.line.tolist() == [-1, -1, -1]
    assert gathered.notes[0]["bad"] == 1


def test_files_are_read_as_the_local_audit_reads_them(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, sessions=18)
    (fleet.logs / "broken.jsonl.gz").write_bytes(gzip.compress(b'{"agentmark": 1}\n' * 50)[:-20])
    found, rows = shard_rows([str(fleet.logs)])
    table = pa.Table.from_pylist(rows)
    pieces = FileSpreader(by=By.FILE, buckets=3)({name: table.column(name) for name in table.column_names})
    gathered = gather([piece.content for piece in pieces])
    (note,) = gathered.notes
    assert [outcome["name"] for outcome in note["outcomes"]] == [shard.name for shard in found.shards]
    assert sum(outcome["records"] for outcome in note["outcomes"]) == len(gathered.columns)
    assert set(gathered.columns.files) == {
        outcome["name"] for outcome in note["outcomes"] if outcome["records"] and outcome["failed"] is None
    }
    # A log of a file is whole in its bucket.
    for bucket in range(3):
        there = gather([piece.content for piece in pieces if piece.bucket == bucket]).columns
        elsewhere = gather([piece.content for piece in pieces if piece.bucket != bucket]).columns
        assert not set(there.files) & set(elsewhere.files)
