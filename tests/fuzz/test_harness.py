"""The fuzzer itself: what it takes for a failure, and that its inputs are worth running."""

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentmark import RecordError
from fuzz import command_line, harness, json_trees
from fuzz.harness import Failure, run_one, target_of
from fuzz.mutate import MAX_INPUT, mutate
from fuzz.network import no_network
from fuzz.targets import TARGETS, Target


def raises(error: BaseException) -> Callable[[bytes, Path], None]:
    def run(_: bytes, __: Path) -> None:
        raise error

    return run


def spins(_: bytes, __: Path) -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:
            # As code does that goes on after errors: the timer must reach us all the same.
            continue


def test_a_typed_error_is_an_end_and_any_other_a_failure() -> None:
    assert run_one(Target("t", raises(RecordError("x", "y", "z"))), b"") is None
    for error in (ValueError("no"), KeyError(1), MemoryError(), RecursionError(), AssertionError("differs")):
        failure = run_one(Target("t", raises(error)), b"input")
        assert failure is not None
        assert failure.fault.startswith(type(error).__name__)
        assert failure.data == b"input"


def test_what_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "CPU_ALLOWANCE_S", 0.2)
    failure = run_one(Target("t", spins), b"")
    assert failure is not None
    assert "processor time" in failure.fault


def test_what_fills_the_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100, 3 << 30, 3 << 30])
    monkeypatch.setattr(harness, "_peak_bytes", lambda: next(peaks))
    failure = run_one(Target("t", lambda data, folder: None), b"")
    assert failure is not None
    assert "3072 MiB" in failure.fault


def test_a_kept_input_knows_its_target(tmp_path: Path) -> None:
    path = Failure("linear-system", "fault", "place", b"data").save(tmp_path)
    assert path.read_bytes() == b"data"
    assert target_of(path) is TARGETS["linear-system"]


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "command-line"])
def test_every_target_takes_what_is_whole(name: str) -> None:
    """Else a fuzzer would only ever see how an input is refused."""
    target = TARGETS[name]
    assert target.seeds
    for seed in target.seeds[:6]:
        assert len(seed) <= MAX_INPUT
        assert run_one(target, seed) is None


@pytest.mark.parametrize("name", ["read-lines", "read-inspect", "read-sqlite", "log-state"])
def test_mutations_change_something_and_stay_small(name: str) -> None:
    rng, seeds = random.Random(name), TARGETS[name].seeds
    changed = [mutate(rng, seeds[0], seeds) for _ in range(100)]
    assert len(set(changed)) > 90
    assert all(len(data) <= MAX_INPUT for data in changed)


def test_a_tree_is_written_as_it_was() -> None:
    text = '{"a":[1,2.50,1e400,null,true,"x"],"a":{"b":-0}}'
    assert json_trees.write(json_trees.parse(text)) == text


def case_of(words: list[str], **files: bytes) -> bytes:
    import base64
    import json

    encoded = {name: base64.b64encode(data).decode() for name, data in files.items()}
    return json.dumps({"words": words, "files": encoded, "stdin": "", "environment": {}}).encode()


def test_the_command_line_is_judged_by_its_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (Path.cwd(), sys.stdout, dict(os.environ))
    command_line.run(case_of(["--help"]), tmp_path)
    command_line.run(case_of(["inspect", "nowhere"]), tmp_path)
    assert (Path.cwd(), sys.stdout, dict(os.environ)) == before

    def ends_badly(words: list[str]) -> int:
        print("\x1b[31m" if words == ["steers"] else "fine")
        return 70 if words == ["fault"] else 0

    monkeypatch.setattr(command_line, "main", ends_badly)
    command_line.run(case_of(["fine"]), tmp_path)
    for words, fault in ((["steers"], "stdout holds"), (["fault"], "exit 70")):
        with pytest.raises(command_line.BadEndError, match=fault):
            command_line.run(case_of(words), tmp_path)


def test_every_command_is_drawn_and_none_reaches_the_network() -> None:
    import json
    import socket

    rng = random.Random(1)
    drawn = Counter(word for _ in range(300) for word in json.loads(command_line.make(rng))["words"][:1])
    assert set(command_line.commands()) - {"lab"} <= set(drawn)
    with no_network(), socket.socket() as connection, pytest.raises(ConnectionRefusedError):
        connection.connect(("127.0.0.1", 9))
