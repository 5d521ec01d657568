"""Folders of logs, and what else is in them."""

import gzip
import json
import os
import socket
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from log_shapes import LINES, SHAPES, verdict_of

from agentmark import SettingError, open_log
from agentmark.cli import main
from agentmark.files import FileError
from agentmark.log.read.files import find_logs, log_files, show_as, shown


def written(path: Path, lines: list[str] = LINES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SHAPES["native"][0](lines))
    return path


def test_a_folder_of_several_formats_is_pooled(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    written(folder / "1.jsonl", LINES[:20])
    (folder / "2.json").write_bytes(SHAPES["otlp document"][0](LINES[20:40]))
    (folder / "3.gz").write_bytes(gzip.compress(SHAPES["langfuse array"][0](LINES[40:])))
    (folder / "run.jsonl.lock").write_bytes(b"1.0")
    assert [path.name for path in log_files([folder])] == ["1.jsonl", "2.json", "3.gz"]
    # The chain is judged file by file.
    verdict, native = json.loads(verdict_of(folder, key_file, capsys)), json.loads(native_verdict)
    assert verdict | {"chains": None} == native | {"chains": None}
    assert main(["power", "--log", str(folder), "--trials", "20", "--max-steps", "50"]) == 0
    assert "60 lists of" in capsys.readouterr().out


def test_folders_are_read_to_their_depths_in_the_order_of_paths(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "a/z/1.jsonl", "a/1.jsonl", "c.jsonl", "a.jsonl", ".git/x.jsonl", "a/.hidden.jsonl"):
        written(tmp_path / name)
    (tmp_path / "b" / "2.jsonl-wal").write_bytes(b"")
    found = [str(path.relative_to(tmp_path)) for path in log_files([tmp_path])]
    assert found == ["a/1.jsonl", "a/z/1.jsonl", "a.jsonl", "b/2.jsonl", "c.jsonl"]
    named = tmp_path / "a" / ".hidden.jsonl"
    assert log_files([named, tmp_path / "b"]) == [named, tmp_path / "b" / "2.jsonl"], "what is named is read"


def test_thousands_of_folders_in_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than Python's own recursion goes."""
    monkeypatch.chdir(tmp_path)
    deepest = Path()
    for _ in range(1500):
        deepest /= "d"
        deepest.mkdir()
    written(deepest / "log.jsonl")
    try:
        assert len(log_files([tmp_path])) == 1
    finally:
        # Python's own way of removing them does not go so deep.
        subprocess.run(["rm", "-r", "d"], check=True)


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none" / "deep" / ".hidden").mkdir(parents=True)
    with pytest.raises(SettingError, match="none: is a folder without any file in it or below it"):
        log_files([tmp_path / "none"])


# Links ---------------------------------------------------------------------------------------------------------------


def test_links_are_followed_and_lead_nowhere_twice(tmp_path: Path) -> None:
    logs, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
    written(logs / "a" / "1.jsonl")
    written(elsewhere / "2.jsonl")
    (logs / "linked").symlink_to(elsewhere)
    # Back up, to itself, to what is read anyway, and to the root of all.
    (logs / "a" / "up").symlink_to(logs)
    (elsewhere / "back").symlink_to(elsewhere)
    (logs / "again").symlink_to(logs / "a")
    (logs / "latest.jsonl").symlink_to(logs / "a" / "1.jsonl")
    (logs / "root").symlink_to("/")
    (logs / "home").symlink_to(tmp_path)
    found = [str(path.relative_to(logs)) for path in log_files([logs])]
    assert found == ["a/1.jsonl", "linked/2.jsonl"]


def test_links_that_multiply_are_each_read_once(tmp_path: Path) -> None:
    """Forty folders with two links to the next: 2^40 ways to the last one."""
    folders = [tmp_path / f"{i:02}" for i in range(40)]
    for folder, following in pairwise(folders):
        folder.mkdir()
        (folder / "x").symlink_to(following)
        (folder / "y").symlink_to(following)
    written(folders[-1] / "log.jsonl")
    assert [path.name for path in log_files([folders[0]])] == ["log.jsonl"]


# What is no file -----------------------------------------------------------------------------------------------------


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log among a pipe, a socket and a broken link."""
    folder = tmp_path / "strange"
    written(folder / "log.jsonl")
    os.mkfifo(folder / "pipe")
    (folder / "broken").symlink_to(folder / "nothing")
    # The name of a socket has to be short.
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    return folder


def test_what_is_no_file_is_named_and_never_opened(strange: Path) -> None:
    with pytest.raises(FileError, match="broken: is a link to nothing"):
        find_logs([strange])
    found = find_logs([strange], skip_bad=True)
    assert found.files == (strange / "log.jsonl",)
    assert found.passed_over == (
        f"{strange}/broken: is a link to nothing",
        f"{strange}/pipe: is a pipe in a folder, and is not opened",
        f"{strange}/socket: is a socket in a folder, and is not opened",
    )


@pytest.mark.parametrize("command", ["verify", "inspect", "chain"])
def test_commands_pass_over_it_and_say_so(
    strange: Path, key_file: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (strange / "scan.pdf").write_bytes(b"%PDF-1.7\n")
    words = [command, str(strange), *(["--key", str(key_file)] if command == "verify" else [])]
    assert main(words) == 2
    assert "strange/broken: is a link to nothing" in capsys.readouterr().err
    assert main([*words, "--skip-bad"]) == (1 if command == "chain" else 0)
    said = capsys.readouterr()
    for name in ("broken", "pipe", "socket", "scan.pdf"):
        assert f"strange/{name}" in said.out + said.err, name
    main([*words, "--skip-bad", "--json"])
    said = capsys.readouterr()
    assert f"{strange}/pipe" in (said.err if command == "chain" else said.out)


def test_a_folder_of_nothing_else_is_an_error_that_names_it(strange: Path) -> None:
    (strange / "log.jsonl").unlink()
    with pytest.raises(SettingError, match=r"nothing is left to read: .*/broken: is a link to nothing; .*/pipe"):
        find_logs([strange], skip_bad=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    written(tmp_path / "logs" / "1.jsonl")
    closed = written(tmp_path / "logs" / "2.jsonl")
    closed.chmod(0)
    log = open_log(closed, skip_bad=True)
    assert list(log) == []
    assert log.summary.passed_over == [f"record {closed}: file: cannot be read: Permission denied"]
    (tmp_path / "logs" / "shut").mkdir(mode=0)
    assert "shut: cannot be read" in find_logs([tmp_path / "logs"], skip_bad=True).passed_over[0]


def test_a_file_that_is_no_log_is_passed_over_by_name(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(b"%PDF-1.7\n")
    log = open_log(path, skip_bad=True)
    assert list(log) == []
    assert (log.summary.format, log.summary.record_count) == ("", 0)
    assert log.summary.passed_over == [f"{path}: not recognised: this is a file that begins with b'%PDF-1.7\\n'"]


def test_records_before_the_fault_of_a_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    whole = gzip.compress(SHAPES["native"][0](LINES))
    path.write_bytes(whole[: len(whole) // 2])
    log = open_log(path, skip_bad=True)
    count = len(list(log))
    assert 0 < count < len(LINES)
    assert log.summary.passed_over == [f"{path}:{count + 1}: is cut short"]


def test_a_file_can_be_called_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    assert shown(path) == str(path)
    show_as(path, "standard input")
    path.write_bytes(b"{}\n{")
    log = open_log(path, skip_bad=True)
    list(log)
    assert all(line.startswith(("standard input", "record standard input")) for line in log.summary.passed_over)
