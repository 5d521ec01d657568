"""A log in several files."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from log_run import the_run
from sink_helpers import read_folder, write_all

from agentmark import SettingError, open_log
from agentmark.chain.writer import ChainWriter
from agentmark.log.read.files import log_files
from agentmark.log.rotating import RotatingLog


@pytest.mark.parametrize("compress", [False, True])
def test_rotated_files_hold_every_record_in_the_order_of_their_names(tmp_path: Path, compress: bool) -> None:
    records = the_run()
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=4000, compress=compress) as log:
        write_all(log, records)
    names = [path.name for path in log_files([tmp_path])]
    assert len(names) > 5
    assert names[0] == ("run-000001.jsonl.gz" if compress else "run-000001.jsonl")
    assert names[-1] == "run.jsonl"
    assert all((tmp_path / name).stat().st_size <= 4000 for name in names)
    assert read_folder(tmp_path) == records


def test_a_file_rotates_by_age_even_across_restarts(tmp_path: Path) -> None:
    records, now = the_run(), [1000.0]
    for i in range(4):
        with RotatingLog(tmp_path / "run.jsonl", max_age_s=60, clock=lambda: now[0]) as log:
            log.write(records[i])
        now[0] += 30
    assert len(list(open_log(tmp_path / "run-000001.jsonl"))) == 2
    assert read_folder(tmp_path) == records[:4]


def test_only_the_newest_full_files_are_kept_and_numbers_go_on(tmp_path: Path) -> None:
    records = the_run()
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, keep=2) as log:
        write_all(log, records[:6])
    assert [path.name for path in log_files([tmp_path])] == ["run-000004.jsonl", "run-000005.jsonl", "run.jsonl"]
    assert read_folder(tmp_path) == records[3:6]


def test_numbers_go_on_when_full_files_are_moved_away(tmp_path: Path) -> None:
    records, archive = the_run(), tmp_path / "archive"
    archive.mkdir()
    for part in (records[:4], records[4:8], records[8:12]):
        with RotatingLog(tmp_path / "run.jsonl", max_bytes=1) as log:
            write_all(log, part)
        for full in tmp_path.glob("run-*.jsonl"):
            assert not (archive / full.name).exists()
            full.rename(archive / full.name)
    assert read_folder(archive) == records[:11]
    (tmp_path / "run.jsonl.lock").write_text("1000.000000\n")
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1) as log:
        write_all(log, records[12:14])
    assert (tmp_path / "run-000002.jsonl").exists(), "an older note, without a number"


def test_a_line_that_a_crash_tore_is_closed_not_grown_onto(tmp_path: Path) -> None:
    records = the_run()
    path = tmp_path / "run.jsonl"
    path.write_bytes(records[0].to_json().encode() + b"\n" + records[1].to_json().encode()[:50])
    with RotatingLog(path, max_bytes=10_000) as log:
        log.write(records[2])
    source = open_log(path)
    assert list(source) == [records[0], records[2]]
    assert source.summary.torn_lines == (2,)


def test_packing_that_was_cut_short_leaves_the_plain_file(tmp_path: Path) -> None:
    (tmp_path / "run-000007.jsonl").write_text(the_run()[0].to_json() + "\n")
    (tmp_path / "run-000007.jsonl.gz.tmp").write_bytes(b"\x1f\x8b")
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, keep=9) as log:
        write_all(log, the_run()[1:3])
    assert read_folder(tmp_path) == the_run()[:3]
    assert (tmp_path / "run-000008.jsonl").exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [({}, "max_bytes"), ({"max_bytes": 0}, "max_bytes"), ({"max_age_s": -1}, "max_age_s"),
     ({"max_bytes": 9, "keep": 0}, "keep"), ({"max_bytes": 9, "chain": ChainWriter()}, "chain")],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError) as caught:
        RotatingLog(tmp_path / "run.jsonl", **settings)
    assert caught.value.name == named


def test_gzip_of_a_rotated_file_is_plain_gzip(tmp_path: Path) -> None:
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, compress=True) as log:
        write_all(log, the_run()[:2])
    assert gzip.decompress((tmp_path / "run-000001.jsonl.gz").read_bytes()).decode() == the_run()[0].to_json() + "\n"
