"""Text files: packed, cut, through a pipe, with rubbish at the head."""

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from log_shapes import LINE, LINES, RUN, SHAPES

from agentmark import RecordError
from agentmark.log.read.open import open_log


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
