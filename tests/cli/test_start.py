"""Start-up: what is loaded for what was typed, and Ctrl-C while it is being loaded."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import marked_log

from agentmark import LogWriter, SharedKey
from agentmark.cli.main import SUMMARIES, load_command, main
from agentmark.cli.verify_options import BY
from agentmark.verify.roll import By

KEY = SharedKey(bytes(range(100, 132)))

# Prints, as the last line, which modules a command had loaded when it ended.
LOADED = """
import sys
from agentmark.__main__ import start
sys.argv = ["agentmark", *sys.argv[1:]]
try:
    start()
except SystemExit:
    pass
print(*sorted(sys.modules))
"""
# No command needs these to say what it takes.
NEVER_AT_FIRST = (
    "agentmark_lab",
    "agentmark.audit.case",
    "agentmark.chain.check",
    "agentmark.demo",
    "agentmark.elicit",
    "agentmark.log.read.open",
    "agentmark.report",
    "agentmark.verify.verdict",
    "agentmark.verify.verifier",
    "asyncio",
    "importlib.metadata",
    "numpy",
    "sqlite3",
    "tempfile",
)


# What the options themselves are made of.
WITHIN: dict[str, set[str]] = {"power": {"agentmark.verify.verdict", "agentmark.verify.verifier"}}


def loaded(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.splitlines()[-1].split())


def held_back(modules: set[str]) -> list[str]:
    """Those that should not be there, a room standing for all that is in it."""
    return [name for name in NEVER_AT_FIRST if any(f"{module}.".startswith(f"{name}.") for module in modules)]


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["no-such-command"]])
def test_the_help_of_the_whole_loads_no_command(words: list[str]) -> None:
    modules = loaded(*words)
    assert held_back(modules) == []
    assert not any(f"agentmark.cli.{name.replace('-', '_')}" in modules for name in SUMMARIES)
    # What the standard library takes longest to load of what commands use. An error may need some of it.
    if words in (["--version"], ["--help"]):
        assert not modules & {"dataclasses", "hashlib", "json", "inspect", "decimal", "secrets", "traceback"}


@pytest.mark.parametrize("name", [name for name in SUMMARIES if name != "lab"])
def test_a_command_says_what_it_takes_before_it_loads_what_it_needs(name: str) -> None:
    modules = loaded(name, "--help")
    assert set(held_back(modules)) - WITHIN.get(name, set()) == set()
    others = {"keygen", "identity", "embed", "verify", "monitor", "power", "chain", "calibrate", "demo"} - {name}
    assert not any(f"agentmark.cli.{other}" in modules for other in others)


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    import argparse

    for name, summary in SUMMARIES.items():
        commands = argparse.ArgumentParser().add_subparsers()
        if name != "lab":
            load_command(name, commands)
            assert commands.choices[name].description == summary


def test_what_may_be_judged_by_itself_is_what_there_is() -> None:
    """The options name it without loading it. Tenants are for bulk audits to tell apart."""
    assert tuple([by for by in By if by is not By.TENANT]) == BY


def test_a_verdict_without_a_report_loads_no_page(tmp_path: Path) -> None:
    """Of the room of reports, only what tells of files and chains."""
    key, logs = tmp_path / "key.json", tmp_path / "logs"
    KEY.save(key)
    logs.mkdir()
    for seed in (1, 2):
        with LogWriter(logs / f"{seed}.jsonl") as log:
            for record in marked_log(KEY, steps=30, seed=seed):
                log.write(record)
    for words in ([str(logs)], [str(logs), "--pool"]):
        modules = loaded("verify", *words, "--key", str(key))
        room = {name for name in modules if name.startswith("agentmark.report.")}
        assert room == {"agentmark.report.chain_part", "agentmark.report.provenance"}


# Ctrl-C --------------------------------------------------------------------------------------------------------------

# Tells when the first of our modules is looked for: what Python does before is not in our hands.
BEGUN = """
import os, sys
from agentmark.__main__ import start

class Tells:
    def find_spec(self, name, path=None, target=None):
        if name == "agentmark.cli":
            os.write(1, b"!")

sys.meta_path.insert(0, Tells())
sys.argv = ["agentmark", *sys.argv[1:]]
sys.exit(start())
"""


def test_nothing_is_loaded_before_an_interrupt_can_be_answered() -> None:
    code = "import os, sys; before = set(sys.modules); import agentmark.__main__; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == {"agentmark", "agentmark.__main__", "agentmark.version"}


def interrupted_after(delay_s: float, words: list[str]) -> tuple[int, bytes, bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGUN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"!"
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_ctrl_c_is_answered_at_any_moment_of_the_start(tmp_path: Path) -> None:
    """130 signals, spread over the time that one whole run takes on this machine."""
    log, key = tmp_path / "log.jsonl", tmp_path / "key.json"
    KEY.save(key)
    with LogWriter(log) as written:
        for record in marked_log(KEY, steps=60):
            written.write(record)
    words = ["verify", str(log), "--key", str(key)]
    began = time.monotonic()
    whole = subprocess.run([sys.executable, "-c", BEGUN, *words], capture_output=True, check=False, timeout=120)
    took = time.monotonic() - began
    rng = random.Random(5)
    delays = [rng.uniform(0.002, took) for _ in range(130)]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda delay: interrupted_after(delay, words), delays))
    answered = [outcome for outcome in outcomes if outcome[0] != whole.returncode]
    assert set(answered) == {(130, b"", b"agentmark: interrupted\n")}
    # The others had ended before the signal came, and are as if there had been none.
    assert all(outcome[1] == whole.stdout[1:] for outcome in outcomes if outcome[0] == whole.returncode)
    assert len(answered) >= 30


MEETS_A_CLASS = """
import sys
from agentmark.__main__ import start

class Interrupted:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            type("Made", (), {"attribute": Interrupted()})

module = sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
sys.exit(start())
"""


@pytest.mark.parametrize("module", ["agentmark.cli", "agentmark.cli.verify_options"])
def test_an_interrupt_that_meets_python_where_a_class_is_made_is_an_interrupt(module: str) -> None:
    """Before 3.12 Python makes a RuntimeError of it."""
    words = [sys.executable, "-c", MEETS_A_CLASS, module, "verify", "--help"]
    done = subprocess.run(words, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"agentmark: interrupted\n")


def test_an_interrupt_that_meets_python_in_a_finaliser_is_not_lost() -> None:
    """Python itself would print where it was, and go on."""
    code = """
import sys
import agentmark.__main__ as entry
import agentmark.cli.main
class Dropped:
    def __del__(self):
        raise KeyboardInterrupt
def work(argv=None):
    Dropped()
    print("went on")
    return 0
sys.modules["agentmark.cli.main"].main = work
sys.exit(entry.start())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "agentmark: interrupted\n")


# Usage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("verify log.jsonl --no-such-option", "unrecognized arguments: --no-such-option"),
        ("verify", "the following arguments are required: log"),
        ("verify log.jsonl --offsets 5", "--offsets: goes together with --find-offset"),
        ("inspect log.jsonl --steps x", "argument --steps: invalid int value: 'x'"),
        ("inspect log.jsonl --steps -1", "--steps: -1 is not a number of decisions"),
        ("monitor log.jsonl --every 0", "--every: 0 is not a number of records"),
    ],
)
def test_an_error_about_an_option_comes_with_the_usage_of_its_command(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = words.split(maxsplit=1)[0]
    try:
        status = main(words.split())
    except SystemExit as end:
        status = int(str(end.code))
    said = capsys.readouterr().err
    assert status == 2
    assert said.startswith(f"usage: agentmark {command} ")
    assert f"\nagentmark {command}: error: {message}\n" in said
    assert said.endswith(f"`agentmark {command} --help` says more.\n")


def test_the_exit_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert "  3    nothing to judge: the log is empty, of other keys, or all unmarked\n" in said
