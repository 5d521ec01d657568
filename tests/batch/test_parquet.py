"""Parquet of our own layout: the plain reader, the columns, and the lines that it was made of say the same."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from both_ways import check_alike, in_chunks, plainly, valid_lines
from one_record import a_record

from agentmark import Limits, StepRecord, read_log
from agentmark.batch import parquet as columns_of_tables
from agentmark.batch.chunks import read_chunks
from agentmark.files import FileError
from agentmark.log.parquet import GROUP_ENTRIES, LAYOUT, ParquetRecords, row_of
from agentmark.log.read.limits import LimitError
from agentmark.record import RecordError

RECORDS = [StepRecord.from_json(line) for line in valid_lines()]


def a_table(path: Path, records: list[StepRecord]) -> Path:
    with ParquetRecords(path) as table:
        for record in records:
            table.write(record)
    return path


def rewritten(path: Path, rows: list[dict[str, Any]], **kinds: Any) -> Path:
    """A table as somebody else would write it: the same columns, with what they put in."""
    schema = pyarrow.parquet.read_schema(path)
    for name, kind in kinds.items():
        schema = schema.set(schema.get_field_index(name), pyarrow.field(name, kind))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), path)
    return path


@pytest.fixture
def plain_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that were left to the plain reader."""
    seen: list[int] = []
    read = columns_of_tables.read_batch

    def watched(batch: Any, first: int, *more: Any) -> Any:
        seen.extend(range(first, first + batch.num_rows))
        return read(batch, first, *more)

    monkeypatch.setattr(columns_of_tables, "read_batch", watched)
    return seen


def test_a_table_holds_the_records_that_were_written(tmp_path: Path, plain_rows: list[int]) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS)
    assert read_log(path).records == RECORDS
    told = check_alike(path)
    assert len(told.records) == len(RECORDS)
    assert plain_rows == []


def test_row_groups_are_bounded_and_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark.log.parquet.GROUP_ROWS", 50)
    path = a_table(tmp_path / "steps.parquet", RECORDS * 4)
    groups = pyarrow.parquet.ParquetFile(path).metadata
    assert groups.num_row_groups > 3
    assert max(groups.row_group(i).num_rows for i in range(groups.num_row_groups)) == 50
    assert read_log(path).records == RECORDS * 4
    assert [len(columns) for columns in read_chunks(path, rows=100)][:2] == [100, 100]
    check_alike(path)
    assert GROUP_ENTRIES >= 4096


def test_a_table_is_never_written_over_another_file(tmp_path: Path) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS)
    with pytest.raises(FileError, match="File exists"):
        ParquetRecords(path)
    assert read_log(path).records == RECORDS


def test_a_table_that_another_tool_wrote_anew_is_read(tmp_path: Path) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS)
    bare = pyarrow.parquet.read_table(path).replace_schema_metadata(None)
    kinds = {"payload_len": pyarrow.int16(), "context": pyarrow.binary()}
    for name, kind in kinds.items():
        place = bare.schema.get_field_index(name)
        bare = bare.set_column(place, name, bare.column(name).cast(kind))
    pyarrow.parquet.write_table(bare.select(list(reversed(bare.column_names))), path, use_dictionary=False)
    assert read_log(path).records == RECORDS
    check_alike(path)


# What a row may not hold, and which field the error names.
BROKEN = {
    "no scheme": ({"scheme": None}, "scheme"),
    "another scheme": ({"scheme": "Q"}, "scheme"),
    "no session": ({"session": None}, "session"),
    "an empty session": ({"session": ""}, "session"),
    "no key": ({"key_id": None}, "key_id"),
    "no payload length": ({"payload_len": None}, "payload_len"),
    "a payload that is too long": ({"payload_len": 5000}, "payload_len"),
    "no step": ({"step": None}, "step"),
    "a step below zero": ({"step": -1}, "step"),
    "a step beyond 2^53": ({"step": 1 << 53}, "step"),
    "no context": ({"context": None}, "context"),
    "no choice": ({"choice": None}, "choice"),
    "a choice outside the list": ({"choice": "x"}, "choice"),
    "nobody says whether it is marked": ({"marked": None}, "marked"),
    "unmarked and no reason": ({"marked": False}, "reason"),
    "an empty reason": ({"reason": ""}, "reason"),
    "marked and no list": ({"names": None, "weights": None}, "weights"),
    "names without weights": ({"weights": None}, "weights"),
    "weights without names": ({"names": None}, "weights"),
    "a weight too few": ({"weights": [1 << 32]}, "weights"),
    "an empty list": ({"names": [], "weights": []}, "weights"),
    "weights that do not sum up": ({"names": ["a", "b"], "weights": [1, 2], "choice": "a"}, "weights"),
    "a weight below zero": ({"names": ["a", "b"], "weights": [(1 << 32) + 1, -1], "choice": "a"}, "weights['a']"),
    "a weight that is null": ({"names": ["a", "b"], "weights": [1 << 32, None], "choice": "a"}, "weights['b']"),
    "a name that is null": ({"names": ["a", None], "weights": [1 << 32, 0], "choice": "a"}, "weights"),
    "a name twice": ({"names": ["a", "a"], "weights": [1 << 31, 1 << 31], "choice": "a"}, "a"),
    "an empty name": ({"names": ["a", ""], "weights": [1 << 32, 0], "choice": "a"}, "weights"),
    "a part that is too much": ({"partial": True, "names": ["a", "b"], "weights": [1 << 32, 1]}, "weights"),
    "meta that is no JSON": ({"meta": "{"}, "meta"),
    "meta that is no object": ({"meta": "[1]"}, "meta"),
    "a fraction in meta": ({"meta": '{"a":1.5}'}, "meta.a"),
    "a name twice in meta": ({"meta": '{"a":1,"a":2}'}, "a"),
    "a raw context that is no object": ({"raw_context": "1"}, "raw_context"),
}


@pytest.mark.parametrize(("changes", "field"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_row_is_named_in_the_words_of_the_record(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    good = row_of(a_record())
    path = a_table(tmp_path / "steps.parquet", [a_record()])
    told = check_alike(rewritten(path, [good, good | changes, good]))
    assert len(told.records) == 2
    with pytest.raises(RecordError) as caught:
        read_log(path)
    assert caught.value.field == field
    assert caught.value.where == f"{path} row 2"


UNUSUAL = {
    "a list in another order": {"names": ["b", "a", "c"], "weights": [0, 1 << 32, 0], "choice": "a"},
    "meta that says null": {"meta": "null"},
    "nobody says whether it is a part": {"partial": None},
    "empty objects": {"meta": "{}", "raw_context": "{}"},
}


@pytest.mark.parametrize("changes", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_what_a_line_may_say_a_row_may_say(tmp_path: Path, plain_rows: list[int], changes: dict[str, Any]) -> None:
    path = a_table(tmp_path / "steps.parquet", [a_record()])
    told = check_alike(rewritten(path, [row_of(a_record()) | changes] * 3))
    assert len(told.records) == 3
    assert plain_rows == []


def test_other_columns_are_named(tmp_path: Path) -> None:
    whole = pyarrow.parquet.read_table(a_table(tmp_path / "good.parquet", RECORDS))
    for name in LAYOUT:
        path = tmp_path / f"without-{name}.parquet"
        pyarrow.parquet.write_table(whole.drop_columns([name]), path)
        check_alike(path)
        with pytest.raises(RecordError, match=f"{name}: is missing"):
            read_log(path)
    path = tmp_path / "more.parquet"
    pyarrow.parquet.write_table(whole.append_column("more", whole.column("step")), path)
    check_alike(path)
    with pytest.raises(RecordError, match="more: is not a field of version 1"):
        read_log(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("step", pyarrow.string()), ("payload_len", pyarrow.float64()), ("marked", pyarrow.int8())],
)
def test_columns_of_another_type_are_named(tmp_path: Path, name: str, kind: Any) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS[:3])
    whole = pyarrow.parquet.read_table(path)
    place = whole.schema.get_field_index(name)
    pyarrow.parquet.write_table(whole.set_column(place, name, whole.column(name).cast(kind)), path)
    check_alike(path)
    with pytest.raises(RecordError, match=f"{name}: holds {kind}, not "):
        read_log(path)


def test_another_version_of_the_layout_is_refused(tmp_path: Path) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS[:3])
    whole = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(whole.replace_schema_metadata({"agentmark_steps": "2"}), path)
    check_alike(path)
    with pytest.raises(RecordError, match="found '2', this build reads version 1"):
        read_log(path)


LIMITS = [
    Limits(parsed_bytes=3000),
    Limits(unpacked_bytes=10_000),
    Limits(held_bytes=100),
    Limits(records_per_kib=1),
    Limits(values_per_byte=1),
]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: limits.as_settings()[0])
def test_limits_stop_both_ways_with_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    for name in ("FREE_VALUES", "FREE_RECORDS", "FREE_UNPACKED"):
        monkeypatch.setattr(f"agentmark.log.read.meter.{name}", 100)
    monkeypatch.setattr("agentmark.log.read.meter.TABLE_FOLD", 1)
    told = check_alike(a_table(tmp_path / "steps.parquet", RECORDS * 3), limits=limits)
    assert isinstance(told.ending, tuple)
    assert told.ending[0] is LimitError


def test_a_text_that_all_rows_have_is_not_held_for_each(tmp_path: Path) -> None:
    long = a_record(meta={"said": "x" * 100_000})
    path = a_table(tmp_path / "steps.parquet", [long] * 300)
    assert path.stat().st_size < 100_000
    with pytest.raises(LimitError):
        read_log(path)
    check_alike(path)


def test_a_row_that_names_one_long_behavior_again_and_again(tmp_path: Path) -> None:
    path = a_table(tmp_path / "steps.parquet", [a_record()])
    row = row_of(a_record()) | {"names": ["x" * 2000] * 100_000, "weights": [0] * 100_000}
    told = check_alike(rewritten(path, [row_of(a_record()), row]))
    assert isinstance(told.ending, tuple)
    assert told.ending[0] is LimitError


# In a process of its own: over some damaged tables of contents pyarrow ends the whole process.
DAMAGE = """
import random, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from both_ways import check_alike
good, path = Path({good!r}).read_bytes(), Path({path!r})
rng = random.Random(14)
for _ in range(150):
    damaged = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        at = rng.choice([rng.randrange(len(good)), len(good) - 1 - rng.randrange(min(len(good), 4000))])
        damaged[at] = rng.choice([0, 255, damaged[at] ^ 1 << rng.randrange(8)])
    if rng.random() < 0.2:
        del damaged[rng.randrange(len(damaged)) :]
    path.write_bytes(damaged)
    check_alike(path)
print("alike")
"""


def test_damage_is_read_alike_and_ends_no_process(tmp_path: Path) -> None:
    good = a_table(tmp_path / "good.parquet", RECORDS)
    tests = Path(__file__).parents[1]
    paths = [str(folder) for folder in (tests, tests / "batch", tests / "log", tests / "log" / "read")]
    code = DAMAGE.format(paths=[*paths, *sys.path], good=str(good), path=str(tmp_path / "damaged.parquet"))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "alike\n"), ended.stderr[-3000:]


def test_a_table_without_a_row(tmp_path: Path) -> None:
    path = a_table(tmp_path / "steps.parquet", [])
    assert plainly(path, skip_bad=False).records == in_chunks(path, skip_bad=False).records == []
    check_alike(path)


def test_random_rows_are_read_alike(tmp_path: Path) -> None:
    rng = random.Random(4)
    good = [row_of(record) for record in RECORDS]
    changes = [change for change, _ in BROKEN.values()] + list(UNUSUAL.values())
    path = a_table(tmp_path / "steps.parquet", RECORDS[:1])
    for _ in range(15):
        rows = [rng.choice(good) | (rng.choice(changes) if rng.random() < 0.1 else {}) for _ in range(60)]
        check_alike(rewritten(path, rows))


def test_the_layout_is_what_its_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "convert.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `")]
    assert [row for row in rows if row in LAYOUT] == list(LAYOUT)
    assert json.dumps("agentmark_steps") in page or "`agentmark_steps`" in page


def test_entries_of_lists_may_have_another_name(tmp_path: Path, plain_rows: list[int]) -> None:
    path = a_table(tmp_path / "steps.parquet", RECORDS)
    whole = pyarrow.parquet.read_table(path)
    items = whole.column("names").cast(pyarrow.list_(pyarrow.field("item", pyarrow.string())))
    whole = whole.set_column(whole.schema.get_field_index("names"), "names", items)
    pyarrow.parquet.write_table(whole, path, use_compliant_nested_type=False)
    leaves = pyarrow.parquet.ParquetFile(path).schema
    assert "names.list.element" not in [leaves.column(i).path for i in range(len(leaves))]
    assert read_log(path).records == RECORDS
    check_alike(path)
    assert plain_rows == []
