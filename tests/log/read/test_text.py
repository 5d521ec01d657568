"""Text files: packed, cut, through a pipe, with rubbish at the head."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from log_run import KEY
from log_shapes import FOREIGN, LINE, LINES, RUN, SHAPES
from support import marked_log

from agentmark import LogWriter, RecordError
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningKey
from agentmark.log.read.open import open_log, read_log


def pack_zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    half = len(data) // 2
    packer = zstandard.ZstdCompressor()
    return bytes(packer.compress(data[:half]) + packer.compress(data[half:]))


@pytest.mark.parametrize("pack", [gzip.compress, pack_zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("shape", ["native", "otlp lines", "langfuse array", "langfuse page", "inspect json"])
def test_packed_text_is_read_and_a_cut_is_said(tmp_path: Path, shape: str, pack: Callable[[bytes], bytes]) -> None:
    text = SHAPES[shape][0](LINES)
    path = tmp_path / "log"
    packed = pack(text)
    path.write_bytes(packed)
    assert list(open_log(path)) == RUN
    path.write_bytes(packed[: len(packed) * 4 // 5])
    source = open_log(path)
    read = list(source)
    # Inspect writes what its events refer to behind them: cut there, nothing is left.
    assert read == RUN[: len(read)]
    assert len(read) < len(RUN)
    assert read or shape == "inspect json"
    assert source.summary.passed_over


@pytest.mark.parametrize("shape", [name for name in SHAPES if "native" not in name and "eval" not in name])
def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path, shape: str) -> None:
    """Not one record is altered, whatever was cut off, and it is said that something is missing."""
    text = SHAPES[shape][0](LINES[:4])
    path = tmp_path / "log"
    known = {record.to_json() for record in RUN}
    for cut in range(len(text) // 3, len(text.rstrip()) - 1, 61):
        path.write_bytes(text[:cut])
        source = open_log(path)
        try:
            read = list(source)
        except RecordError as error:
            fault = str(error)
            assert "not recognised" in fault or "is not valid JSON" in fault, cut
            continue
        assert {record.to_json() for record in read} <= known, cut
        whole = text[:cut].endswith((b"\n", b"}")) and len(read) < 4
        assert source.summary.passed_over or whole, cut


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(SHAPES["phoenix array"][0](LINES)))
    writer.start()
    assert list(open_log(path)) == RUN
    writer.join()


def test_a_native_log_that_begins_with_rubbish_is_still_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for rubbish in ("free text", "[[[[", '{"agentmark":9}', LINE[:70]):
        path.write_text("\n".join([rubbish, *LINES]) + "\n")
        source = open_log(path, skip_bad=True)
        assert list(source) == RUN, rubbish
        assert len(source.summary.bad_lines) + len(source.summary.torn_lines) == 1


@pytest.mark.parametrize("head", ["otlp", "langfuse", "page", "bracket", "unknown"])
def test_a_foreign_line_at_the_head_hides_no_record_and_no_checkpoint(tmp_path: Path, head: str) -> None:
    """Whatever the file is then taken for, the lines of ours in it are read as they were written, with their places."""
    foreign = {
        "otlp": json.dumps(FOREIGN["otlp"]), "langfuse": json.dumps(FOREIGN["langfuse"]), "page": '{"data": []}',
        "bracket": "[", "unknown": '{"a": 1}',
    }  # fmt: skip
    path = tmp_path / "log"
    with LogWriter(path, chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=5)) as log:
        for record in marked_log(KEY, steps=12):
            log.write(record)
    whole = read_log(path)
    path.write_text(foreign[head] + "\n" + path.read_text() + '{"agentmark_checkpoint": 1}\n')
    read = read_log(path, skip_bad=True)
    assert read.records == whole.records
    assert read.summary.checkpoints == whole.summary.checkpoints
    assert len(read.summary.checkpoints) == 3
    assert len(read.summary.bad_checkpoints) == 1
    assert whole.lines is not None
    assert read.lines == [line + 1 for line in whole.lines]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_array_with_an_item_a_line_is_an_array(tmp_path: Path, count: int) -> None:
    path = tmp_path / "log"
    path.write_text("[\n" + ",\n".join(LINES[:count]) + "\n]\n")
    assert read_log(path).records == RUN[:count]


def test_a_row_that_is_no_object_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(json.dumps(FOREIGN["otlp"]) + '\n5\n"agentmark"\n["agentmark"]\n' + LINES[0] + "\n")
    assert read_log(path).records == RUN[:1]
