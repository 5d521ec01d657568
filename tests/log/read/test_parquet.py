"""Parquet files that are small, and say much."""

from pathlib import Path
from typing import Any

import pytest
from log_shapes import LINES, RUN

from agentmark import LimitError
from agentmark.log.read.open import open_log

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path: Path, columns: dict[str, Any], **settings: Any) -> None:
    parquet.write_table(pyarrow.table(columns), path, compression="zstd", **settings)


def refused_by(path: Path) -> str:
    with pytest.raises(LimitError) as caught:
        for _ in open_log(path, skip_bad=True):
            pass
    return caught.value.limit


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_of_either_version_are_counted_and_read(tmp_path: Path, version: str, dictionary: bool) -> None:
    path = tmp_path / "log"
    record: Any
    for name, record in (
        ("attributes.agentmark.record", LINES),
        ("attributes.agentmark", [{"record": line} for line in LINES]),
    ):
        columns = {"context.span_id": ["1"] * len(LINES), name: record, "other": [[1, 2]] * len(LINES)}
        write(path, columns, data_page_version=version, use_dictionary=dictionary, row_group_size=7)
        assert list(open_log(path)) == RUN


def test_rows_without_number_are_refused(tmp_path: Path) -> None:
    """A million rows that are all the same take a few hundred bytes."""
    path = tmp_path / "log"
    write(path, {"context.span_id": ["1"] * 1_100_000, "attributes.agentmark.record": ["x"] * 1_100_000})
    assert path.stat().st_size < 10_000
    assert refused_by(path) == "values_per_byte"


def test_a_page_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, {"context.span_id": ["1"], "attributes.agentmark.record": ["x" * (40 << 20)]}, use_dictionary=False)
    assert refused_by(path) == "unpacked_ratio"


@pytest.mark.parametrize("nested", [False, True])
def test_one_long_text_that_many_rows_have_is_refused(tmp_path: Path, nested: bool) -> None:
    path = tmp_path / "log"
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5000, pyarrow.int32()), ["{" + "x" * 100_000])
    column = pyarrow.StructArray.from_arrays([texts], ["record"]) if nested else texts
    write(path, {"context.span_id": ["1"] * 5000, "attributes.agentmark" + ("" if nested else ".record"): column})
    assert refused_by(path) == "unpacked_ratio"
