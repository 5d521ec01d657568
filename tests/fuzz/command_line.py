"""The command line as a target: every command, with arguments drawn from what its own parser says it takes.

An input is JSON: {"words": [...], "files": {name: base64}, "stdin": base64, "environment": {...}}.
"""

import argparse
import base64
import contextlib
import io
import json
import os
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from chained_logs import SIGNER
from log_run import PAYLOAD
from support import command_parsers

from agentmark.cli import main
from fuzz import seeds, values
from fuzz.mutate import mutate
from fuzz.network import no_network

# What the help documents: attributed or done, not attributed or findings, bad input, nothing usable.
EXITS = (0, 1, 2, 3)
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Would wait for a file to grow, for ever.
NEVER = ("follow",)
# How much work a command does is its caller's to say: these stay small.
SMALL = ("-1", "0", "1", "2", "3", "10")
EDGES = (*SMALL, "64", "4096", "4097", "-9007199254740993", "9" * 30, "9" * 5000, "0x10", "1_0", "٣", "1e3", "")
SHARES = ("0", "0.5", "1", "-1", "1e-6", "1e-320", "1e308", "nan", "inf", "-inf", "2", "", "x")
WANTS_EDGES = ("payload_len", "seed", "first_step", "steps")
SENSIBLE = {
    "payload_len": "16",
    "first_step": "0",
    "threshold": "1e-6",
    "noise": "0.05",
    "alpha": "0.5",
    "power": "0.9",
}
# Most commands refuse the one without the other, and would then not come far.
PAIRS = (
    ("offsets", "find_offset"), ("find_offset", "session"), ("session", "find_offset"), ("session", "first_step"),
    ("first_step", "session"), ("segments", "report"), ("signed", "signing_key"), ("signing_key", "signed"),
    ("signing_key", "chain"), ("chain", "log"), ("n", "alpha"), ("alpha", "n"), ("master", "tenant"),
    ("tenant", "master"),
)  # fmt: skip
# How often an option is given: a command that is given everything refuses most of it.
USUAL = {"key": 0.95, "skip_bad": 0.6, "registry": 0.3, "json": 0.3, "control": 0.2, "report": 0.2, "public_key": 0.2}
UNUSUAL = 0.06
# What reads files of others is drawn more often than what only writes.
READERS = ("verify", "inspect", "convert", "chain", "monitor", "check-report", "identity", "embed")
# Without one of these the demonstration would run, for ten seconds.
MODELS = (["--model", "local"], ["--gguf", "model.gguf"], ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"])
# A simulation of the usual size takes seconds, whatever it is given.
FEW_TRIALS = ["--trials", "10", "--max-steps", "20"]
FEW_PLACES = ["--work-limit", "50000"]


class BadEndError(AssertionError):
    """A command that ended as its help does not say, or wrote what steers a terminal; `place` tells faults apart."""

    def __init__(self, fault: str, place: str) -> None:
        super().__init__(fault)
        self.place = place


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """The commands there are, each with its parser."""
    return command_parsers()


# Making an input -----------------------------------------------------------------------------------------------------


def make(rng: random.Random) -> bytes:
    """A command with some of its options, and the files that it names, most of them changed."""
    names = sorted(commands())
    name = rng.choice([*names, *[name for name in READERS if name in names] * 2])
    maker = _CaseMaker(rng, name)
    words = [name]
    for action in _drawn(rng, commands()[name]):
        words += maker.words_for(action)
    words += rng.choice(MODELS) if name == "demo" else FEW_TRIALS if name == "power" else []
    # Every place is a question of its own, and people wait for them.
    words += FEW_PLACES if "--find-offset" in words else []
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), _word(values.text(rng)))
    if rng.random() < 0.05:
        words.pop(rng.randrange(len(words)))
    stdin = mutate(rng, rng.choice(seeds.weight_lines()), seeds.weight_lines()) if rng.random() < 0.8 else b""
    environment = {}
    if rng.random() < 0.5:
        environment["AGENTMARK_KEY"] = rng.choice((bytes(range(100, 132)).hex(), "00" * 32, _word(values.text(rng))))
    case = {"words": words, "files": maker.files, "stdin": seeds.encoded(stdin), "environment": environment}
    return json.dumps(case).encode()


def _word(text: str) -> str:
    """As an argument can be: no zero byte, surrogates only for bytes that are not UTF-8; and inside of the folder."""
    kept = [c for c in text if c not in "\0/" and not "\ud800" <= c <= "\udc7f" and not "\udd00" <= c <= "\udfff"]
    return "".join(kept).replace("..", "")[:6000]


def _drawn(rng: random.Random, parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and arguments that are given, with those that go together."""
    given = {action.dest for action in parser._actions if rng.random() < _chance(action)}
    for one, other in PAIRS:
        if one in given and rng.random() < 0.9:
            given.add(other)
    return [action for action in parser._actions if action.dest in given]


def _chance(action: argparse.Action) -> float:
    if isinstance(action, argparse._HelpAction):
        return 0.01
    if action.dest in NEVER:
        return 0.0
    return 0.97 if action.required or not action.option_strings else USUAL.get(action.dest, UNUSUAL)


class _CaseMaker:
    """Words for the actions of one parser, and the files that come with them."""

    def __init__(self, rng: random.Random, command: str) -> None:
        self._rng = rng
        self._command = command
        self.files: dict[str, str] = {}

    def words_for(self, action: argparse.Action) -> list[str]:
        """The option, if it is one, with its values."""
        option = action.option_strings[-1:]
        if action.nargs == 0:
            return option
        count = self._rng.choice((1, 1, 2)) if action.nargs in ("+", "*") else 1
        return [*option, *[self._value(action) for _ in range(count)]]

    def _value(self, action: argparse.Action) -> str:
        rng = self._rng
        if rng.random() < 0.04:
            return _word(values.text(rng))
        if action.choices is not None:
            return str(rng.choice(list(action.choices)))
        if action.dest in SENSIBLE and rng.random() < 0.6:
            return SENSIBLE[action.dest]
        if action.type is Path:
            return self._file(action.dest)
        if action.type in (int, float):
            return rng.choice(SHARES if action.type is float else EDGES if action.dest in WANTS_EDGES else SMALL)
        return self._text(action.dest)

    def _text(self, dest: str) -> str:
        rng = self._rng
        known = {
            "public_key": [SIGNER.public_key, "00" * 32, "ff" * 32],
            "anchor": ["00" * 32, "x"],
            "claim": ["0x5eed", str(PAYLOAD), "tenant-0042", "the agent", "42", "-1", "0x" + "f" * 5000, "9" * 5000],
            "payload": ["0x5eed", "tenant-0042", "text", "-1", "9" * 5000],
            "session": ["F 5eed 16 0 0", "odd names"],
            "base_url": ["http://127.0.0.1:9/v1", "x", "http://", "ftp://127.0.0.1:9"],
            "issue": ["new", "tenant-0042"],
            "revoke": ["tenant-0042", "nobody"],
        }.get(dest, ["x"])
        return rng.choice(known) if rng.random() < 0.7 else _word(values.text(rng))

    def _file(self, dest: str) -> str:
        """The name of a file of the kind that is meant, with its content; or of one to be written."""
        rng = self._rng
        if dest in _OUTPUTS or (dest == "file" and self._command != "check-report"):
            return rng.choice(("out.html", "out.html", "out.json", "out.svg", "out", "missing/out.html", "."))
        kind = dest if rng.random() < 0.95 else rng.choice(sorted(_CONTENTS))
        originals = _CONTENTS.get(kind, seeds.logs)()
        data = rng.choice(originals)
        # A command needs its keys to come far: they are changed less often than what it reads.
        if rng.random() < (0.1 if dest in ("key", "master", "signing_key") else 0.8):
            data = mutate(rng, data, originals)
        if kind == "file" and rng.random() < 0.7:
            data = seeds.signed_again(rng, data)
        name = f"{dest}{len(self.files)}" + rng.choice(("", ".jsonl", ".db", ".json"))
        if rng.random() < 0.05:
            name = _word(values.text(rng))[:40].strip() or name
        self.files[name] = seeds.encoded(data)
        return name


_OUTPUTS = ("report", "signed", "plot", "out")
_CONTENTS: dict[str, Callable[[], list[bytes]]] = {
    "log": seeds.logs,
    "key": seeds.key_files,
    "master": seeds.key_files,
    "registry": lambda: [*seeds.registry_files(), *seeds.registry_tables()],
    "signing_key": seeds.signing_key_files,
    "file": seeds.signed_reports,
    "weights": seeds.weight_lines,
    "situations": seeds.situations,
    "gguf": seeds.native_logs,
}


# Running one ---------------------------------------------------------------------------------------------------------


def run(data: bytes, folder: Path) -> None:
    """Run the command in a folder of its own; BadEndError unless it ends as it should."""
    case = json.loads(data)
    for name, content in case["files"].items():
        _write(folder / name, base64.b64decode(content))
    with _process(folder, case) as (out, err):
        try:
            status: Any = main(case["words"])
        except SystemExit as end:
            # How argparse ends: after the help, or for arguments that it does not take.
            status = 0 if end.code is None else end.code
        sys.stdout.flush()
    command = next(iter(case["words"]), "")
    _judge(command, status, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"))


def _write(path: Path, content: bytes) -> None:
    # A name that the file system does not take is one that the command will not find.
    with contextlib.suppress(OSError, ValueError):
        path.write_bytes(content)
        path.chmod(0o600)


@contextlib.contextmanager
def _process(folder: Path, case: dict[str, Any]) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard streams, working folder and environment as a process of its own would have them."""
    out, err = io.BytesIO(), io.BytesIO()
    stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(case["stdin"])), encoding="utf-8")
    before = Path.cwd()
    environment = {"PATH": os.environ.get("PATH", ""), "COLUMNS": "80", **case["environment"]}
    try:
        os.chdir(folder)
        with (
            mock.patch.object(sys, "stdin", stdin),
            mock.patch.object(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True)),
            mock.patch.object(
                sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
            ),
            mock.patch.dict(os.environ, environment, clear=True),
            no_network(),
        ):
            yield out, err
            # Both streams live on in those who hold them; what they wrote is here already.
            sys.stdout.detach()
            sys.stderr.detach()
    finally:
        os.chdir(before)


def _judge(command: str, status: object, out: str, err: str) -> None:
    if status not in EXITS or "Traceback (most recent call last)" in err:
        place = _last_frame(err)
        raise BadEndError(f"exit {status}: {place}: {err.strip().splitlines()[-1:]}", place)
    for stream, text in (("stdout", out), ("stderr", err)):
        steering = sorted({c for c in text if steers(c)})
        if steering:
            line = next(line for line in text.split("\n") if steering[0] in line)
            raise BadEndError(f"{stream} holds {steering!r}: {line[:200]!r}", f"{command!a}: {stream} steers")


def steers(character: str) -> bool:
    """Whether it would steer a terminal, or turn the order of its letters."""
    return character != "\n" and (
        character in BIDI or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character == "\ufeff"
    )


def _last_frame(err: str) -> str:
    """Where of ours a traceback ends, and with what kind of error."""
    lines = err.strip().splitlines()
    frames = [line.strip() for line in lines if "agentmark" in line and line.strip().startswith("File ")]
    where = frames[-1].split("agentmark/")[-1].replace('"', "") if frames else "?"
    return f"{where}: {lines[-1].split(':')[0] if lines else ''}"[:300]


def shown(data: bytes) -> str:
    """The command of an input, for a person to read."""
    case: dict[str, Sequence[str]] = json.loads(data)
    return " ".join(["agentmark", *[ascii(word) for word in case["words"]]])[:300]
