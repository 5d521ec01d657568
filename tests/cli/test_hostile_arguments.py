"""Every numeric option of every command with values that nobody means, and files and words that are none."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import command_parsers, marked_log

from agentmark import Identity, LogWriter, Registry, SharedKey, Verifier
from agentmark.cli import main
from agentmark.errors import SettingError

KEY = SharedKey(bytes(range(100, 132)))
SECRET = bytes(range(100, 132)).hex()
VALUES = ("nan", "inf", "-inf", "1e308", "1e-320", "-1", "0", "9" * 30, "9" * 100_000, "1e11", "100000000000", "", "x")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a folder with a key, a registry and a log: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    KEY.save("key.json")
    Registry(16, [Identity("acme", 0x5EED)]).save("registry.jsonl")
    with LogWriter("log.jsonl") as log:
        for record in marked_log(KEY, steps=3):
            log.write(record)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


# How each command is called for next to no work. An option that is given again takes the last value.
COMMANDS = {
    "identity": "identity new.jsonl --issue acme",
    "embed": "embed --key key.json --payload 1 --payload-len 8 --session s --first-step 0",
    "verify": "verify log.jsonl --key key.json --registry registry.jsonl --find-offset --session s --offsets 2",
    "audit": "audit log.jsonl --key key.json --registry registry.jsonl",
    "monitor": "monitor log.jsonl --key key.json --registry registry.jsonl",
    "inspect": "inspect log.jsonl",
    "check-report": "check-report log.jsonl",
    "power": "power --n 4 --alpha 1 --trials 3 --max-steps 20 --scheme F",
    # No port is opened: the key's file is not there.
    "gateway": "gateway --upstream fake: --key none.json --identity acme",
    # No endpoint is asked: the model's file is not there.
    "calibrate": "calibrate --model local --gguf none.gguf",
    "demo": "demo --model local --gguf none.gguf",
}


def numeric_options() -> Iterator[tuple[str, str]]:
    for command, parser in command_parsers().items():
        for action in parser._actions:
            if action.type in (int, float):
                yield command, action.option_strings[0]


def test_there_is_a_call_for_every_command_with_numbers() -> None:
    assert {command for command, _ in numeric_options()} == set(COMMANDS)


@pytest.mark.parametrize(("command", "option"), list(numeric_options()))
def test_no_number_is_a_fault_of_ours(run: Run, command: str, option: str) -> None:
    for value in VALUES:
        Path("new.jsonl").unlink(missing_ok=True)
        status, _, err = run(*COMMANDS[command].split(), f"{option}={value}", stdin='{"a": 1, "b": 1}\n')
        assert status in (0, 1, 2), (value, err[-500:])
        assert "Traceback" not in err
        assert len(err) < 5000, "an error does not repeat a number of a hundred thousand digits"


@pytest.mark.parametrize("payload", ["9" * 5000, "0x" + "f" * 100_000, "0b" + "1" * 100_000, "-1", "0o7_7", "²", "--"])
def test_no_payload_is_a_fault_of_ours(run: Run, payload: str) -> None:
    calls = (
        ["verify", "log.jsonl", "--key", "key.json", f"--claim={payload}"],
        ["verify", "log.jsonl", "--key", "key.json", "--registry", "registry.jsonl", f"--claim={payload}"],
        ["embed", "--key", "key.json", f"--payload={payload}", "--payload-len", "8"],
    )
    for call in calls:
        status, _, err = run(*call)
        assert status in (0, 1, 2)
        assert "Traceback" not in err
        assert len(err) < 5000


def test_places_are_bounded_before_they_are_listed(run: Run) -> None:
    command = ["verify", "log.jsonl", "--key", "key.json", "--find-offset", "--session", "s", "--offsets"]
    status, _, err = run(*command, "100000000000")
    assert status == 2
    assert "100000000000 is not a number of places from 1 to 1,000,000" in err
    with pytest.raises(SettingError, match="at most 1,000,000"):
        Verifier(KEY).locate("s", [], offsets=range(10**11))


@pytest.mark.parametrize("word", ["", "a\0b", "a\udcff"])
def test_words_that_are_no_text_are_refused(run: Run, word: str) -> None:
    calls = (
        ["identity", "registry.jsonl", "--issue", word],
        ["identity", "registry.jsonl", "--revoke", word],
        ["keygen", "tenant.json", "--from", "key.json", "--tenant", word],
        ["embed", "--key", "key.json", "--payload-len", "64", "--payload", word],
        ["embed", "--key", "key.json", "--payload-len", "8", "--payload", "1", "--first-step", "0", "--session", word],
        ["verify", "log.jsonl", "--key", "key.json", "--claim", word],
        ["verify", "log.jsonl", "--key", "key.json", "--find-offset", "--offsets", "1", "--session", word],
        ["verify", "log.jsonl", "--key", "key.json", "--public-key", word],
        ["chain", "log.jsonl", "--public-key", word],
        ["chain", "log.jsonl", "--anchor", word],
        ["check-report", "log.jsonl", "--public-key", word],
        ["demo", "--base-url", word, "--model", "x"],
        ["demo", "--base-url", "http://127.0.0.1:9/v1", "--model", word],
    )
    for call in calls:
        status, _, err = run(*call, stdin='{"a": 1}\n')
        assert status == 2, call
        assert "Traceback" not in err


FILE_ARGUMENTS = (
    ["identity", "FILE"],
    ["embed", "--payload", "1", "--payload-len", "8", "--key", "FILE"],
    ["embed", "--payload", "x", "--key", "key.json", "--registry", "FILE"],
    [
        "embed",
        "--payload",
        "1",
        "--payload-len",
        "8",
        "--key",
        "key.json",
        "--log",
        "l",
        "--chain",
        "--signing-key",
        "FILE",
    ],
    ["verify", "FILE", "--key", "key.json"],
    ["verify", "log.jsonl", "--key", "FILE"],
    ["verify", "log.jsonl", "--key", "key.json", "--registry", "FILE"],
    ["verify", "log.jsonl", "--key", "key.json", "--signed", "s", "--signing-key", "FILE"],
    ["keygen", "new.json", "--tenant", "acme", "--from", "FILE"],
    ["inspect", "FILE"],
    ["chain", "FILE"],
    ["check-report", "FILE"],
    ["power", "--weights", "FILE"],
    ["power", "--log", "FILE"],
    ["calibrate", "--situations", "FILE"],
)


@pytest.mark.parametrize("call", FILE_ARGUMENTS, ids=" ".join)
def test_a_file_that_is_none_is_bad_input(run: Run, call: list[str]) -> None:
    Path("folder").mkdir()
    Path("folder/file").write_bytes(b"\xff\x00")
    Path("nested").write_text("[" * 100_000)
    Path("nested").chmod(0o600)
    for file in ("none", "folder", "nested", "a\0b", "a\udcffb", "", "x" * 5000):
        status, _, err = run(*[file if word == "FILE" else word for word in call])
        assert status in (1, 2), file[:20]
        assert "Traceback" not in err
        assert len(err) < 8000


@pytest.mark.parametrize("call", FILE_ARGUMENTS, ids=" ".join)
def test_a_secret_is_repeated_nowhere(run: Run, call: list[str]) -> None:
    """Given in place of a file, and a key file given in place of another."""
    for file in (SECRET, SECRET.upper(), f"folder/{SECRET}", "key.json"):
        _, out, err = run(*[file if word == "FILE" else word for word in call])
        assert SECRET not in (out + err).lower(), file


def test_a_secret_among_the_words_is_not_repeated(run: Run) -> None:
    for call in (["verify", "--payload-len", SECRET], ["inspect", "log.jsonl", SECRET], [SECRET], [f"--{SECRET}"]):
        status, out, err = run(*call)
        assert status == 2
        assert SECRET not in out + err


@pytest.mark.parametrize(
    "call",
    [
        ["keygen", "OUT"],
        ["signing-key", "OUT"],
        ["identity", "OUT", "--issue", "acme"],
        ["embed", "--key", "key.json", "--payload", "1", "--payload-len", "8", "--log", "OUT"],
        # One verdict is one page; of several, a report is a folder.
        ["verify", "log.jsonl", "--key", "key.json", "--pool", "--report", "OUT"],
        ["verify", "log.jsonl", "--key", "key.json", "--signed", "OUT", "--signing-key", "signing.json"],
        ["power", "--n", "4", "--alpha", "1", "--trials", "3", "--plot", "OUT"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_bad_input(run: Run, call: list[str]) -> None:
    Path("folder.svg").mkdir()
    run("signing-key", "signing.json")
    files = ["none/file.svg", "/dev/full" if call[0] != "power" else "none/none/file.svg"]
    for file in [*files, "folder.svg"]:
        status, _, err = run(*[file if word == "OUT" else word for word in call], stdin='{"a": 1, "b": 1}\n')
        assert status == 2, (file, err)
        assert "Traceback" not in err
        assert file.split("/")[-1] in err


def test_a_demonstration_needs_a_folder(run: Run) -> None:
    for out in ("/dev/full", "key.json", "key.json/demo"):
        status, _, err = run("demo", "--out", out)
        assert status == 2
        assert out.split("/")[0] in err


def test_what_exists_is_not_overwritten(run: Run) -> None:
    before = Path("key.json").read_bytes()
    for call in (
        ["keygen", "key.json"],
        ["signing-key", "key.json"],
        ["demo", "--out", "."],
        ["verify", "log.jsonl", "--key", "key.json", "--report", "key.json"],
        ["verify", "log.jsonl", "--key", "key.json", "--report", "log.jsonl"],
    ):
        assert run(*call)[0] == 2
    assert Path("key.json").read_bytes() == before


def agentmark(*words: str | bytes, **settings: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable.encode(), b"-m", b"agentmark", *map(os.fsencode, words)]
    return subprocess.run(command, check=False, timeout=60, stderr=subprocess.PIPE, **settings)  # type: ignore[call-overload,no-any-return]


def test_a_full_disk_behind_standard_output_is_not_success(run: Run) -> None:
    with Path("/dev/full").open("wb") as full:
        done = agentmark("identity", "registry.jsonl", stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"agentmark: output: No space left on device\n"


def test_words_that_are_not_utf8_are_told_as_escapes(run: Run) -> None:
    for words in ([b"inspect", b"none\xff"], [b"verify", b"log.jsonl", b"--key", b"\xff"], [b"\xff"]):
        done = agentmark(*words, stdout=subprocess.DEVNULL)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
        assert b"\\udcff" in done.stderr
    Path(os.fsdecode(b"log\xff.jsonl")).write_bytes(Path("log.jsonl").read_bytes())
    assert agentmark(b"inspect", b"log\xff.jsonl", stdout=subprocess.DEVNULL).returncode == 0


def test_a_terminal_without_the_letters_gets_escapes(run: Run) -> None:
    Registry(16, [Identity("zürich", 1)]).save("letters.jsonl")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = agentmark("identity", "letters.jsonl", stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 0
    assert b"z\\xfcrich" in done.stdout
