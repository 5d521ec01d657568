"""Inspect's `.eval` files, cut and lying."""

import struct
import zipfile
from pathlib import Path

import pytest
from log_shapes import LINES, RUN, inspect_eval

from agentmark import RecordError
from agentmark.log.read.open import open_log


def test_a_cut_eval_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    content = inspect_eval(LINES)
    path.write_bytes(content[: len(content) * 3 // 4])
    source = open_log(path)
    assert list(source) == RUN[: len(RUN) // 2]
    assert "has no table of contents" in source.summary.passed_over[0]


def test_a_zip_whose_table_lies_is_an_error(tmp_path: Path) -> None:
    content = bytearray(inspect_eval(LINES))
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[place + 42 : place + 46] = struct.pack("<I", 5)
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="not where the table of contents says"):
        list(open_log(path))


def test_a_zip_member_packed_in_another_way_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(inspect_eval(LINES, zipfile.ZIP_BZIP2))
    with pytest.raises(RecordError, match="packed by method 12"):
        list(open_log(path))
