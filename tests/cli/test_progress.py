"""The line that is rewritten in place, on a real terminal."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support import marked_log

from agentmark import LogWriter, SharedKey
from agentmark.audit.progress import Progress
from agentmark.cli.progress import ProgressLine
from agentmark.cli.streams import safe_streams

KEY = SharedKey(bytes(range(100, 132)))


class Screen(io.StringIO):
    """A terminal of eighty columns that keeps what was written to it."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What each rewriting showed."""
        return [shown.rstrip() for shown in self.getvalue().split("\r") if shown.strip()]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_it_says() -> None:
    screen, clock = Screen(), Clock()
    progress: Progress = ProgressLine(screen, clock=clock)
    for done in range(0, 10_001, 10):
        progress.count(done, 10_000, "records read")
        clock.now += 0.01
    assert "... 110 of 10,000 records read" in screen.lines()
    later = re.compile(r"\.\.\. 5,\d{3} of 10,000 records read, 1,0\d\d a second, [45] s left")
    assert any(map(later.fullmatch, screen.lines()))
    # A thousand counts in ten seconds: ten a second are shown.
    assert 90 <= len(screen.lines()) <= 101


def test_a_new_count_begins_its_own_rate() -> None:
    screen, clock = Screen(), Clock()
    with ProgressLine(screen, clock=clock) as progress:
        progress.count(1, None, "records read")
        clock.now = 50.0
        progress.count(0, 300, "sessions judged")
        for done in range(301):
            clock.now += 4.0
            progress.count(done, 300, "sessions judged")
        assert screen.lines()[-2].startswith("... 299 of 300 sessions judged, 4 s each, 4 s left")
        assert any("20 min left" in line for line in screen.lines())
        assert "records" not in screen.lines()[-1]


def test_the_line_is_taken_away_before_anything_else_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    screen, clock = Screen(), Clock()
    progress = ProgressLine(screen, clock=clock)
    clock.now = 1.0
    progress.count(5, 9, "files")
    shown = "... 5 of 9 files"
    progress.say("something begins")
    assert screen.getvalue() == f"\r{shown}\r{' ' * len(shown)}\r"
    assert capsys.readouterr().err == "... something begins\n"
    clock.now = 2.0
    progress.count(6, 9, "files")
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert screen.getvalue().endswith(f"\r{' ' * len('... 6 of 9 files, 1 a second, 3 s left')}\r")


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    screen, clock = Screen(), Clock()
    progress = ProgressLine(screen, clock=clock)
    clock.now = 1.0
    progress.count(100_000, 1_000_000, "records read")
    clock.now = 2.0
    progress.count(1, 3, "x")
    assert screen.getvalue().split("\r")[-1] == "... 1 of 3 x".ljust(len("... 100,000 of 1,000,000 records read"))


def test_names_of_others_do_not_steer() -> None:
    screen, clock = Screen(), Clock()
    progress = ProgressLine(screen, clock=clock)
    clock.now = 1.0
    progress.count(1, 2, "\x1b[2J\n\u202e")
    assert screen.getvalue() == "\r... 1 of 2 \\x1b[2J\\n\\u202e"


def test_nothing_moves_where_nobody_watches() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = ProgressLine(stream, clock=clock)
    for done in range(100):
        clock.now += 1.0
        progress.count(done, 100, "records read")
    progress.clear()
    assert stream.getvalue() == ""


def test_it_writes_past_the_stream_that_spells_out(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = Screen(), Clock()
    monkeypatch.setattr(sys, "stderr", screen)
    with safe_streams():
        progress = ProgressLine(clock=clock)
        clock.now = 1.0
        progress.count(1, 2, "files")
    assert screen.getvalue() == "\r... 1 of 2 files"


# A process on a terminal of its own ----------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as written:
        for record in marked_log(KEY, steps=3000):
            written.write(record)
    return path


# Shows a line for every count, however soon it comes.
EAGER = """
import sys
import agentmark.cli.progress as progress
progress.PAUSE_S = 0.0
from agentmark.__main__ import start
sys.argv = ["agentmark", *sys.argv[1:]]
sys.exit(start())
"""


def on_a_terminal(*words: str, columns: int = 80) -> tuple[int, str, str]:
    """Exit status, standard output, and what the terminal got on standard error."""
    leader, follower = pty.openpty()
    os.set_blocking(leader, True)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", EAGER, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:
                # How Linux says that nobody writes to a terminal any more.
                break
            if not part:
                break
            shown += part
        assert process.stdout is not None
        out = process.stdout.read().decode()
    os.close(leader)
    return process.returncode, out, shown.decode()


@pytest.mark.parametrize("columns", [80, 20])
def test_a_terminal_shows_it_and_is_clean_in_the_end(log: Path, columns: int) -> None:
    status, out, shown = on_a_terminal("inspect", str(log), "--json", columns=columns)
    assert status == 0
    assert out.startswith("{\n"), "the result is on standard output, and nothing else"
    parts = shown.split("\r")
    assert "... 500 records read"[: columns - 1] in [part.rstrip() for part in parts]
    assert max(map(len, parts)) < columns
    # The last thing written is blanks over the line, and the cursor back at its beginning.
    assert parts[-1] == ""
    assert parts[-2].isspace()
    assert "\x1b" not in shown


def test_an_error_stands_on_a_line_of_its_own(log: Path) -> None:
    with log.open("a") as file:
        file.write('{"agentmark":7}\n')
    status, out, shown = on_a_terminal("inspect", str(log))
    assert (status, out) == (2, "")
    assert shown.split("\r")[-2].startswith("agentmark: record ")


def test_verify_counts_on_a_terminal(log: Path, tmp_path: Path) -> None:
    KEY.save(tmp_path / "key.json")
    status, out, shown = on_a_terminal("verify", str(log), "--key", str(tmp_path / "key.json"), "--claim", "0x5eed")
    assert status == 0
    assert out.startswith("Attributed to")
    assert "records read" in shown
    assert shown.split("\r")[-1] == ""


def test_a_bar_with_steps_a_second_and_the_time_left() -> None:
    screen, clock = Screen(), Clock()
    progress: Progress = ProgressLine(screen, clock=clock)
    for done in range(0, 1001, 10):
        progress.bar(done * 10**6, 10**9, "bytes read", steps=2000 * done)
        clock.now += 0.1
    half = re.compile(r"\[#{5}\.{5}\]  5\d %  5\d0\.0 MB of 1\.0 GB read, 200,000 steps/s, [45] s left")
    assert any(map(half.fullmatch, screen.lines())), screen.lines()


def test_a_bar_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(io.StringIO())
    progress.bar(1, 2, "groups judged")
    assert capsys.readouterr().err == ""
