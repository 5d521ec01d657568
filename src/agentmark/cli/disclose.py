"""`agentmark disclose`."""

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_DONE,
    EXIT_NOTHING_USABLE,
    LOG_HELP,
    add_limit_option,
    file_path,
    limits_of,
    log_source,
    new_command,
    printable,
    text,
)
from agentmark.errors import SettingError
from agentmark.text import counted, listed

if TYPE_CHECKING:
    from agentmark.audit.progress import Progress
    from agentmark.record import StepRecord

# A file to which nothing was written for so long is taken for finished: no record says that a session is over.
QUIET_MINUTES = 60
# How often whoever watches is told, in records.
TOLD_EVERY = 100
# Files that are named where several are meant.
LISTED = 3
# Digests of files that are printed.
ANCHORS = 10


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "disclose",
        "Prove the steps of a log to those who have the public key: for ever, and bound to these records.",
        "Disclose your own logs alone, and of sessions that are over: whoever can have a context of his choice\n"
        "disclosed can forge there.\n"
        "No record says that a session is over. A file to which something was written within the last "
        f"{QUIET_MINUTES} minutes is\ntaken for one with open sessions (docs/public.md).\n"
        "exit status: 0 disclosed, 2 bad input, 3 nothing to disclose: no marked record of this key\n"
        "examples:\n"
        "  agentmark disclose run.jsonl --key marking.json -o run.disclosure.json\n"
        "  agentmark disclose logs/ --key marking.json --session 3f2a -o run.disclosure.json",
    )
    parser.add_argument(
        "log", type=log_source, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
    )
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the marking key: keygen --public")
    parser.add_argument(
        "-o", "--output", type=file_path, required=True, metavar="FILE", help="the disclosure; never overwritten"
    )
    parser.add_argument(
        "--session",
        type=text,
        action="append",
        metavar="ID",
        help="disclose this session alone; the beginning of its id will do; again for each",
    )
    parser.add_argument(
        "--open-sessions-too",
        action="store_true",
        help="disclose also what may still be written to. A step of a session that goes on must not be at a context "
        "that was disclosed before it was taken",
    )
    parser.add_argument("--skip-bad", action="store_true", help="pass over broken records, and files that are no logs")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.input import given_logs
    from agentmark.cli.progress import ProgressLine
    from agentmark.disclosure.make import disclose
    from agentmark.keys.marking import MarkingKey

    if arguments.output.exists():
        raise SettingError("--output", f"{arguments.output} exists already; choose another name")
    if not arguments.output.parent.is_dir():
        raise SettingError("--output", f"{arguments.output}: there is no such folder")
    key = MarkingKey.load(arguments.key)
    with given_logs(arguments.log, skip_bad=arguments.skip_bad) as found, ProgressLine() as progress:
        told = _Told(arguments, found.files, progress)
        if not arguments.open_sessions_too:
            told.refuse_open_sessions()
        # Records pass through one by one; what is kept of each is its proof.
        disclosure = disclose(told.records(), key)
        progress.clear()
    if not disclosure.entries:
        print(printable(f"nothing to disclose: {told.summary} holds no marked record of key {key.id}"))
        return EXIT_NOTHING_USABLE
    disclosure.save(arguments.output)
    anchors = told.digests(and_of=arguments.output)
    steps = len({entry.context for entry in disclosure.entries})
    for line in (
        f"{counted(len(disclosure.entries), 'record')} disclosed to {arguments.output}, of {told.summary}",
        f"  key           {key.id}, fingerprint {key.public.fingerprint}",
        f"  revealed      the step keys of {counted(steps, 'step')}, to everyone who gets this file, and for ever: "
        "what these steps say, and what this key would choose there. Of no other step, and nothing of the secret",
        "  from now on   anyone can make up records at these contexts. They count for nothing: those that were "
        "disclosed are listed by their digests",
        "  not revealed  prompts, arguments and other text: the disclosure holds digests and proofs",
        *[f"  SHA-256       {digest}  {name}" for name, digest in anchors[:ANCHORS]],
        *([f"  SHA-256       of {len(anchors) - ANCHORS:,} more files: sha256sum"] if len(anchors) > ANCHORS else []),
        "Put these on record where their time can be shown later, with the key's fingerprint: that the log was fixed "
        "before it was disclosed, no file shows.",
    ):
        print(printable(line))
    return EXIT_DONE


class _Told:
    """The records of the logs, streamed, with what there is to say of them."""

    def __init__(self, arguments: argparse.Namespace, files: Sequence[Path], progress: "Progress") -> None:
        self._arguments = arguments
        self._files = files
        self._progress = progress
        self._read: Counter[str] = Counter()
        self._chosen: frozenset[str] | None = None
        if arguments.session:
            from agentmark.audit.sessions import find_session

            there = {record.session for record in self._all()}
            self._chosen = frozenset(find_session(wanted, there) for wanted in arguments.session)

    def records(self) -> "Iterator[StepRecord]":
        for number, record in enumerate(self._all()):
            if number % TOLD_EVERY == 0:
                self._progress.count(number, None, "records proved")
            if self._chosen is None or record.session in self._chosen:
                self._read[record.session] += 1
                yield record

    @property
    def summary(self) -> str:
        return f"{counted(self._read.total(), 'record')} in {counted(len(self._read), 'session')}"

    def digests(self, *, and_of: Path) -> list[tuple[str, str]]:
        """The logs, by the names under which they were given, and a file more, with what stands for them on record."""
        from agentmark.log.read.files import shown
        from agentmark.report.provenance import describe_file

        files = [describe_file("log", path) | {"path": shown(path)} for path in self._files if self._concerns(path)]
        files.append(describe_file("log", and_of))
        return [(file["path"], file["sha256"]) for file in files if file["sha256"] is not None]

    def refuse_open_sessions(self) -> None:
        """Refuse files that may still be written to. A checkpoint at the end of a chain says what was written, and not
        that nothing follows: only time tells."""
        fresh = [path for path in self._files if _minutes_since(path) < QUIET_MINUTES and self._concerns(path)]
        if fresh:
            from agentmark.log.read.files import shown

            raise SettingError(
                "--open-sessions-too",
                f"was not given, and {listed([shown(path) for path in fresh], LISTED)} was written to within the last "
                f"{QUIET_MINUTES} minutes: its sessions may be open. Wait, or give it if you know that they are over",
            )

    def _concerns(self, path: Path) -> bool:
        """Whether a file holds any of the sessions that are chosen."""
        return self._chosen is None or any(record.session in self._chosen for record in self._of([path]))

    def _all(self) -> "Iterator[StepRecord]":
        return self._of(self._files)

    def _of(self, files: Iterable[Path]) -> "Iterator[StepRecord]":
        from agentmark.log.read.open import open_log

        for path in files:
            yield from open_log(path, skip_bad=self._arguments.skip_bad, limits=limits_of(self._arguments))


def _minutes_since(path: Path) -> float:
    """Since something was written to a log. What is new in a table of SQLite stands beside it at first."""
    beside = [other for other in (path, path.with_name(f"{path.name}-wal")) if other.exists()]
    return (time.time() - max([other.stat().st_mtime for other in beside])) / 60
