"""Files that ask for more than they may: small on the disk, and large or busy once they are read.

Each of them is refused by one limit, with an error that names it. That memory stays low is measured in processes of
their own, which the system stops beyond their share of it.
"""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from log_shapes import FOREIGN, LINE, LINES, RUN, as_json_text, as_lines, inspect_eval, langfuse_row, verdict_of

from agentmark import LimitError, Limits, RecordError, SettingError, read_log
from agentmark.audit.case import Case
from agentmark.cli import main
from agentmark.log.read import meter
from agentmark.log.read.open import open_log

MIB = 1 << 20
RECORD = LINE.encode() + b"\n"
SPAN = as_lines([FOREIGN["langsmith"]])


def pack_zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    return bytes(zstandard.ZstdCompressor(level=3).compress(data))


def a_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return target.getvalue()


def a_sample(text: bytes) -> bytes:
    return b'{"epoch":1,"messages":[],"events":[{"event":"model","x":' + text + b"}]}"


# What is too much, by the limit that stops it: how the file is made, and which part of it the error names.
BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a line": ("held_bytes", lambda: gzip.compress(SPAN + b'{"a":"' + b"x" * (17 * MIB) + b'"}\n'), ":2: line"),
    "a first line": ("held_bytes", lambda: gzip.compress(b'{"a":"' + b"x" * (17 * MIB) + b'"}\n'), ": line"),
    "a line of ours": ("held_bytes", lambda: gzip.compress(RECORD + b'{"agentmark":"' + b"x" * (17 * MIB)), ":2: line"),
    "a plain line": ("held_bytes", lambda: RECORD + b"x" * (16 * MIB + 1), ":2: line"),
    "an item": (
        "held_bytes",
        lambda: gzip.compress(b"[" + SPAN + b',"' + b"x" * (17 * MIB) + b'"]'),
        " item 2: item",
    ),
    "a document": ("held_bytes", lambda: gzip.compress(b'{\n"a":"' + b"x" * (17 * MIB) + b'"}'), ": document"),
    "a member, deflated": (
        "held_bytes",
        lambda: a_zip({"samples/1.json": a_sample(b'"' + b"x" * (17 * MIB) + b'"')}),
        "samples/1.json: member",
    ),
    "a member, stored": (
        "held_bytes",
        lambda: a_zip({"samples/1.json": a_sample(b'"' + b"x" * (17 * MIB) + b'"')}, zipfile.ZIP_STORED),
        "samples/1.json: member",
    ),
    "brackets in a document": (
        "parsed_bytes",
        lambda: gzip.compress(b'{"data":\n[' + b"[]," * (5 * MIB) + b"0]}"),
        ": document would take some",
    ),
    "brackets in a line": (
        "parsed_bytes",
        lambda: gzip.compress(SPAN + b"[" + b"[]," * (5 * MIB) + b"0]\n"),
        ":2: line would take some",
    ),
    "brackets in a first line": (
        "parsed_bytes",
        lambda: gzip.compress(b'{"a":[' + b"[]," * (5 * MIB) + b"0]}"),
        ": line would take some",
    ),
    "brackets in an item": (
        "parsed_bytes",
        lambda: b"[" + SPAN + b",[" + b"{}," * (3 * MIB) + b"0]]",
        " item 2: item would take some",
    ),
    "brackets in a member": (
        "parsed_bytes",
        lambda: a_zip({"samples/1.json": a_sample(b"[" + b"[]," * (5 * MIB) + b"0]")}),
        "samples/1.json: member would take some",
    ),
    "blank lines": ("unpacked_ratio", lambda: gzip.compress(RECORD + b"\n" * (66 * MIB)), ": "),
    "spaces between items": ("unpacked_ratio", lambda: gzip.compress(b"[" + SPAN + b" " * (40 * MIB) + b"]"), ": "),
    "spaces behind an array": ("unpacked_ratio", lambda: gzip.compress(b"[" + SPAN + b"]" + b" " * (40 * MIB)), ": "),
    "members one over the other": ("unpacked_ratio", lambda: overlapping_members(300), ": "),
    "rows in lines": ("values_per_byte", lambda: gzip.compress(SPAN + b"{}\n" * (2 * MIB)), ": "),
    "rows in an array": ("values_per_byte", lambda: gzip.compress(b"[" + SPAN + b",0" * (4 * MIB) + b"]"), ": "),
    "rows in a page": ("values_per_byte", lambda: gzip.compress(b'{"data":\n[' + b"0," * MIB + b"0]}"), ": "),
    "objects in rows": (
        "values_per_byte",
        lambda: gzip.compress(SPAN + (b'{"a":[' + b'{"b":0},' * 20_000 + b"0]}\n") * 50),
        ": ",
    ),
    "bad lines": ("values_per_byte", lambda: gzip.compress(RECORD + b"{}\n" * (2 * MIB)), ": "),
    "a record again and again": ("records_per_kib", lambda: gzip.compress(RECORD * 3000), ": "),
    "a large record again and again": ("records_per_kib", lambda: gzip.compress(large_record() * 60), ": "),
    "a checkpoint again and again": ("records_per_kib", lambda: gzip.compress(RECORD + checkpoint() * 3000), ": "),
}


def large_record() -> bytes:
    return replace(RUN[0], meta={"lists": [[]] * 1000}).to_json().encode() + b"\n"


def checkpoint() -> bytes:
    content = {
        "agentmark_checkpoint": 1,
        "sessions": {"s": {"count": 1, "head": "0" * 64}},
        "total": 1,
        "previous": None,
        "time": "2026-01-01T00:00:00Z",
        "public_key": "0" * 64,
        "signature": "0" * 128,
    }
    return as_json_text(content) + b"\n"


def overlapping_members(count: int) -> bytes:
    """A zip file whose table names one member many times: each unpacks to megabytes, none to more than is allowed."""
    made = a_zip({"samples/1.json": a_sample(b'"' + b"x" * (4 * MIB) + b'"')})
    start = made.index(b"PK\x01\x02")
    end = made.index(b"PK\x05\x06")
    entry = made[start:end]
    tail = bytearray(made[end:])
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = (len(entry) * count).to_bytes(4, "little")
    return made[:start] + entry * count + bytes(tail)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_asks_for_too_much_is_refused_by_a_limit_that_it_names(tmp_path: Path, bomb: str) -> None:
    limit, make, place = BOMBS[bomb]
    path = tmp_path / "log"
    path.write_bytes(make())
    # To pass over bad records is not to pass over this: the rest would be taken for the whole.
    for skip_bad in (True, False):
        log = open_log(path, skip_bad=skip_bad)
        if bomb == "bad lines" and not skip_bad:
            continue
        with pytest.raises(LimitError) as caught:
            for _ in log:
                pass
        assert caught.value.limit == limit
        said = str(caught.value)
        assert said.startswith(str(path))
        assert place in said
        assert f"--limit {limit}=N" in said
        with pytest.raises(Exception, match="was not read to its end"):
            _ = log.summary


@pytest.mark.parametrize("bomb", ["a line of ours", "bad lines", "blank lines", "a record again and again"])
def test_the_limits_hold_for_a_chain_too(tmp_path: Path, bomb: str, capsys: pytest.CaptureFixture[str]) -> None:
    limit, make, _ = BOMBS[bomb]
    (tmp_path / "log").write_bytes(make())
    assert main(["chain", str(tmp_path / "log")]) == 2
    assert f"--limit {limit}=N" in capsys.readouterr().err


@pytest.mark.parametrize("pack", [gzip.compress, pack_zstd], ids=["gzip", "zstd"])
def test_packed_bytes_are_counted_as_they_are_read_from_a_pipe_too(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    content = pack(SPAN + b" " * (40 * MIB) + b"\n")
    (tmp_path / "log").write_bytes(content)
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        with (tmp_path / "pipe").open("wb") as pipe:
            try:
                pipe.write(content)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    for name in ("pipe", "log"):
        with pytest.raises(LimitError, match=rf"{name}: .* unpack to .* or more, beyond 200 times as much"):
            list(open_log(tmp_path / name))
    writer.join()


def test_python_has_its_own_zstd_from_3_14_on_and_is_counted_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is none yet, its shape: a module `compression.zstd` with a file that unpacks what it reads."""
    from types import ModuleType

    package, module = ModuleType("compression"), ModuleType("compression.zstd")

    class ZstdFile:
        def __init__(self, file: io.BufferedReader) -> None:
            self._file = file
            self._unpacker = zlib.decompressobj(wbits=31)

        def read1(self, size: int) -> bytes:
            while not self._unpacker.eof:
                packed = self._unpacker.unconsumed_tail or self._file.read(512)
                if part := self._unpacker.decompress(packed, size):
                    return part
            return b""

    module.__dict__.update(ZstdFile=ZstdFile, ZstdError=zlib.error)
    package.__dict__["zstd"] = module
    for name, found in (("compression", package), ("compression.zstd", module)):
        monkeypatch.setitem(sys.modules, name, found)
    # The stand-in unpacks gzip, behind the four bytes by which zstd is known and which it is spared.
    from agentmark.log.read import packing

    monkeypatch.setattr(packing, "GZIP_MAGIC", b"never")
    monkeypatch.setattr(packing, "ZSTD_MAGIC", b"\x1f\x8b\x08")
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(RECORD))
    assert list(open_log(path)) == RUN[:1]
    path.write_bytes(gzip.compress(RECORD + b"\n" * (40 * MIB)))
    with pytest.raises(LimitError, match="beyond 200 times"):
        list(open_log(path))


def test_what_a_file_unpacks_to_in_all_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(RECORD * 100)
    with pytest.raises(LimitError, match=r"log: unpacks to more than 9.766 KiB\. .* --limit unpacked_bytes=N"):
        list(open_log(path, limits=Limits(unpacked_bytes=10_000)))


@pytest.mark.parametrize(
    ("bomb", "limits", "count"),
    [
        ("a line", Limits(held_bytes=20 * MIB, unpacked_ratio=2000), 0),
        ("brackets in a document", Limits(parsed_bytes=2 << 30, values_per_byte=5000), 0),
        ("a record again and again", Limits(records_per_kib=4096), 3000),
    ],
)
def test_a_limit_that_is_raised_lets_the_file_through(tmp_path: Path, bomb: str, limits: Limits, count: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(BOMBS[bomb][1]())
    assert len(read_log(path, limits=limits).records) == count


def test_honest_logs_are_far_from_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the part that is free: a run in lines, packed well, each record twice, and half of each limit."""
    for name in ("FREE_UNPACKED", "FREE_VALUES", "FREE_RECORDS"):
        monkeypatch.setattr(meter, name, 10)
    half = Limits(unpacked_ratio=100, values_per_byte=8, records_per_kib=32)
    text = b"".join(line.encode() + b"\n" for line in LINES)
    rows = as_lines([langfuse_row({"agentmark.record": line}, input="a prompt " * 200) for line in LINES])
    for content in (text, gzip.compress(text), pack_zstd(text), gzip.compress(rows), inspect_eval(LINES)):
        path = tmp_path / "log"
        path.write_bytes(content)
        assert list(open_log(path, limits=half)) == RUN
    path.write_bytes(gzip.compress(b"".join(line.encode() + b"\n" + line.encode() + b"\n" for line in LINES)))
    assert len(list(open_log(path))) == 2 * len(RUN)


def test_no_plain_file_comes_near_what_is_counted_for_each_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The densest that there are: what is not packed is stopped by what has to be held, and by nothing else."""
    for name in ("FREE_UNPACKED", "FREE_VALUES", "FREE_RECORDS"):
        monkeypatch.setattr(meter, name, 10)
    # What is not packed is not counted, because of what is shown here.
    monkeypatch.setattr(meter.Meter, "nothing_is_packed", lambda self: None)
    path = tmp_path / "log"
    for content in (b"1\n" * 5000, b"{\n" * 5000, b"{}\n" * 5000, SPAN + b"{}\n" * 5000, SPAN + b"{\n" * 5000):
        path.write_bytes(content)
        read_log(path, skip_bad=True, as_json_lines=True)
        if content.startswith(SPAN):
            read_log(path, skip_bad=True)
    for content in (
        b"[" + SPAN + b",0" * 5000 + b"]",
        b"[" + SPAN + b",{}" * 5000 + b"]",
        b'{"data":[' + b"{}," * 5000,
    ):
        path.write_bytes(content)
        read_log(path, skip_bad=True)


def test_a_limit_that_was_lowered_holds_for_plain_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "FREE_VALUES", 10)
    path = tmp_path / "log"
    path.write_bytes(b"{}\n" * 5000)
    with pytest.raises(LimitError) as caught:
        read_log(path, skip_bad=True, as_json_lines=True, limits=Limits(values_per_byte=2))
    assert caught.value.limit == "values_per_byte"


# Settings


def test_limits_are_positive_numbers() -> None:
    for wrong in (0, -1, 1.5, True, "16"):
        with pytest.raises(SettingError, match=r"held_bytes: .* is not a limit"):
            Limits(held_bytes=wrong)  # type: ignore[arg-type]


def test_limits_are_given_as_text(tmp_path: Path) -> None:
    limits = Limits.from_settings(["held_bytes=64MiB", "unpacked_ratio=500"])
    assert limits == Limits(held_bytes=64 * MIB, unpacked_ratio=500)
    assert Limits.from_settings(limits.as_settings()) == limits
    assert Limits().as_settings() == []
    for wrong in (
        "ratio=5",
        "held_bytes",
        "held_bytes=",
        "held_bytes=1MB",
        "held_bytes=-1",
        "held_bytes=9" + "9" * 5000,
    ):
        with pytest.raises(
            SettingError, match=r"--limit: .* is not NAME=NUMBER with a name of held_bytes, parsed_bytes"
        ):
            Limits.from_settings([wrong])
    with pytest.raises(SettingError, match="is not a limit"):
        Limits.from_settings(["held_bytes=0"])


@pytest.mark.parametrize("command", ["inspect", "verify", "chain", "power"])
def test_every_command_that_reads_a_log_takes_limits(
    command: str, tmp_path: Path, key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(LINES) + "\n")
    words = {
        "inspect": ["inspect", str(path)],
        "verify": ["verify", str(path), "--key", str(key_file)],
        "chain": ["chain", str(path)],
        "power": ["power", "--trials", "20", "--max-steps", "50", "--log", str(path)],
    }[command]
    assert main([*words, "--limit", "unpacked_bytes=1KiB"]) == 2
    assert "log: unpacks to more than 1 KiB" in capsys.readouterr().err
    assert main([*words, "--limit", "unpacked_bytes=1MiB"]) in (0, 1)
    assert main([*words, "--limit", "nonsense=1"]) == 2
    assert "--limit: 'nonsense=1' is not NAME=NUMBER" in capsys.readouterr().err


def test_the_command_that_repeats_a_verdict_repeats_its_limits(
    tmp_path: Path, key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "log", tmp_path / "report.json"
    path.write_text("\n".join(LINES) + "\n")
    verdict_of(path, key_file, capsys, "--report", str(report), "--limit", "unpacked_ratio=300")
    assert "--limit unpacked_ratio=300" in report.read_text()


def test_a_case_has_limits(tmp_path: Path) -> None:
    from log_run import KEY

    path = tmp_path / "log"
    path.write_text("\n".join(LINES) + "\n")
    with pytest.raises(LimitError, match="unpacked_bytes"):
        Case(logs=[path], keys=[KEY], limits=Limits(unpacked_bytes=100)).answer()


# Memory


HUNGRY: dict[str, tuple[Callable[[], bytes], bool]] = {
    # A document that ends inside a string, which is looked for the end of its last whole item.
    "a cut string": (lambda: gzip.compress(b'{"data":\n[{},"' + b"a" * (15 * MIB)), False),
    "a cut string of an item": (lambda: gzip.compress(b"[" + SPAN + b',"' + b"a" * (15 * MIB)), False),
    "quotes without end": (lambda: b'{"data":\n[{},' + b'"\\"' * (MIB // 3), False),
    "the longest line, in wide letters": (
        lambda: gzip.compress(SPAN + '{"a":"\U0001f600'.encode() + b"a" * (15 * MIB) + b'"}\n') + os.urandom(100_000),
        False,
    ),
    "bad lines": (lambda: b"{}\n" * (MIB // 3), True),
    "bad lines that quote themselves": (
        lambda: gzip.compress(RECORD + (as_json_text({"agentmark": "\0" * 50_000}) + b"\n") * 100),
        False,
    ),
    "torn lines": (lambda: b'{"agentmark\n' * (MIB // 12), False),
    "JSON in a text in a text": (
        lambda: gzip.compress(
            as_lines(
                [
                    langfuse_row(
                        json.dumps(
                            {
                                "attributes": json.dumps(
                                    {"agentmark.record": json.dumps("\U0001f600" + LINE + "a" * 4_000_000)}
                                )
                            }
                        )
                    )
                ]
            )
        ),
        False,
    ),
    "a data frame of many rows and columns": (
        lambda: as_json_text(
            {"context.span_id": dict.fromkeys(map(str, range(30_000)), 0), "name": {}}
            | {f"c{i}": {} for i in range(30_000)}
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", HUNGRY)
def test_a_hostile_file_is_read_in_little_memory(tmp_path: Path, name: str) -> None:
    """In 400 MB of address space, of which Python itself takes some 50, and in twenty seconds of one core at most."""
    make, as_json_lines = HUNGRY[name]
    path = tmp_path / "log"
    path.write_bytes(make())
    script = (
        "import resource, sys; from agentmark.core.errors import AgentMarkError; from agentmark import read_log\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "try:\n"
        f"    log = read_log({str(path)!r}, skip_bad=True, as_json_lines={as_json_lines})\n"
        "    print('read', len(log.records), len(log.summary.passed_over) <= 2001)\n"
        "except AgentMarkError as error:\n"
        "    print('refused', len(str(error)) < 4000)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-400:]
    assert done.stdout in ("read 0 True\n", "read 1 True\n", "refused True\n")


def test_the_first_thousand_faults_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    torn = LINE[:60] + "\n"
    path.write_text(LINE + "\n" + "{}\n" * 1500 + torn * 1200 + '{"agentmark_checkpoint": 1}\n' * 1001)
    summary = read_log(path, skip_bad=True).summary
    assert (len(summary.bad_lines), len(summary.torn_lines), len(summary.bad_checkpoints)) == (1000, 1000, 1000)
    assert summary.unlisted == {"bad records": 500, "lines cut short": 200, "bad checkpoints": 1}
    assert f"{path}: and 500 more bad records" in summary.passed_over
    assert len(summary.passed_over) == 3003


def test_blank_lines_are_counted_in_the_numbers_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\n \n\t\r\n" + RECORD + b"\n" * 2_000_000 + b"  " + LINES[1].encode() + b"\n\n" + b"nonsense\n")
    log = read_log(path, skip_bad=True)
    assert log.lines == [4, 2_000_005]
    assert [error.where for error in log.summary.bad_lines] == [f"{path}:2000007"]


def test_a_record_error_quotes_a_part_of_what_it_is_about() -> None:
    error = RecordError("log:1", "x" * 5000, "\ud800" + "y" * 5000)
    assert len(str(error)) < 2100
    assert "(5,001 characters)" in error.fault
    assert str(error).encode()
