"""`agentmark monitor`."""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_INTERRUPTED,
    EXIT_NOT_ATTRIBUTED,
    LOG_HELP,
    add_key_option,
    add_limit_option,
    limits_of,
    load_keys,
    new_command,
    print_json,
    printable,
)
from agentmark.cli.weight_lines import parse_payload
from agentmark.core.payload import PayloadLike
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.log.read.files import log_files
from agentmark.log.read.follow import GrowingLog, Lines, Note
from agentmark.log.read.limits import Limits
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark.text import counted
from agentmark.verify.arrivals import Arrival
from agentmark.verify.monitor import Alarm, Monitor, MonitorStatus
from agentmark.verify.verdict import DEFAULT_THRESHOLD

STANDARD_INPUT = Path("-")
DEFAULT_EVERY = 1000
DEFAULT_POLL_S = 1.0
EXIT_TERMINATED = 143


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "monitor",
        "Watch a log that grows, and raise an alarm that is valid however often one looks (docs/monitor.md).",
        "exit status: 0 alarm (attributed), 1 no alarm, 2 bad input, 130 interrupted, 143 terminated\n"
        "examples:\n"
        "  agentmark monitor log.jsonl --key key.json --registry registry.jsonl --state watch.state\n"
        "  agentmark monitor log.jsonl --key key.json --claim 0x2a --payload-len 16 --follow --state watch.state\n"
        "  tail -F log.jsonl | agentmark monitor - --key key.json --registry registry.jsonl --json",
    )
    parser.add_argument(
        "log",
        type=Path,
        nargs="+",
        help=LOG_HELP + "; several, and folders of them, are read in turn; - is standard input, as JSON lines",
    )
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="watch for the identities in it, as it is now")
    parser.add_argument(
        "--claim",
        metavar="PAYLOAD",
        help="watch for this identity alone: a number, 0x..., or a name in the registry; without one also text",
    )
    parser.add_argument(
        "--payload-len",
        type=int,
        metavar="BITS",
        help="only records of this length count (default: each length that comes up, the later the dearer)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=DEFAULT_THRESHOLD,
        help="how probable a false alarm may be, over the whole life of the log (default %(default)g)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="RATE",
        help="share of foreign or altered steps to expect (default: a mixture of rates; 0 tolerates none)",
    )
    parser.add_argument(
        "--any-key-id", action="store_true", help="read all records with this key, whatever id they state"
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on as the files grow (JSON lines; they need not be there yet)"
    )
    parser.add_argument(
        "--poll",
        type=float,
        default=DEFAULT_POLL_S,
        metavar="SECONDS",
        help="with --follow: how often to look for more (default %(default)g)",
    )
    add_limit_option(parser)
    parser.add_argument("--until-alarm", action="store_true", help="stop at the first alarm")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="go on from this file if it is there, and keep what is known in it: a restart must not forget. As "
        "confidential as the key, and never to be replaced by an older copy",
    )
    parser.add_argument(
        "--every",
        type=int,
        default=DEFAULT_EVERY,
        metavar="N",
        help="print a status line, and keep the state, after every N records (default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    parser.add_argument(
        "--for-stranger",
        action="store_true",
        help="print only whether there is an alarm and for whom: those who write the log must see nothing more",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    watch = Watch(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        watch.go_on(_arriving(arguments))
    except KeyboardInterrupt:
        watch.finish("interrupted")
        return EXIT_INTERRUPTED
    except _TerminatedError:
        watch.finish("terminated")
        return EXIT_TERMINATED
    watch.finish(None)
    return EXIT_NOT_ATTRIBUTED if watch.monitor.alarm is None else EXIT_ATTRIBUTED


class _TerminatedError(Exception):
    """Asked to stop, as services are."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _TerminatedError


def _check(arguments: argparse.Namespace) -> None:
    if arguments.every < 1:
        raise SettingError("--every", f"{arguments.every} is not a number of records")
    if not 0 < arguments.poll < float("inf"):
        raise SettingError("--poll", f"{arguments.poll} is not a time to wait")
    if STANDARD_INPUT in arguments.log and len(arguments.log) > 1:
        raise SettingError("log", "- stands alone")


class Watch:
    """A monitor, where its state is kept, and what is printed of it."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        registry = Registry.load(arguments.registry) if arguments.registry else None
        question: dict[str, Any] = {
            "claim": _claim(arguments.claim, registry),
            "registry": registry,
            "payload_len": arguments.payload_len,
            "threshold": arguments.threshold,
            "noise": arguments.noise,
            "any_key_id": arguments.any_key_id,
        }
        keys = load_keys(arguments)
        self._state: Path | None = arguments.state
        self._arguments = arguments
        if self._state is not None and self._state.exists():
            self.monitor = Monitor.from_bytes(self._state.read_bytes(), keys, **question)
            _say(f"goes on from {self._state}: {self.monitor.records} records are known")
        else:
            self.monitor = Monitor(keys, **question)

    def go_on(self, arriving: Iterator[StepRecord | Note]) -> None:
        for item in arriving:
            if isinstance(item, Note):
                _say(item.sentence)
                continue
            alarm = self.monitor.update(item)
            if alarm is not None:
                # Kept before anything of it is shown: what was shown must not be forgotten.
                self._keep()
                self._print_alarm(alarm)
                if self._arguments.until_alarm:
                    return
            if self.monitor.records % self._arguments.every == 0:
                self._keep()
                self._print_status("status")

    def finish(self, why: str | None) -> None:
        self._keep()
        if why is not None:
            kept = f"; the state is in {self._state}" if self._state is not None else ""
            _say(f"{why} after {self.monitor.records} records{kept}")
        else:
            self._print_status("end")

    def _keep(self) -> None:
        if self._state is not None:
            _write_private(self._state, self.monitor.to_bytes())

    def _print_alarm(self, alarm: Alarm) -> None:
        status = self.monitor.status()
        if self._arguments.json:
            content = status.for_stranger() if self._arguments.for_stranger else {"new_alarm": alarm.as_dict()}
            _print_json({"event": "alarm", **content})
        elif self._arguments.for_stranger:
            _print(_stranger_line(status))
        else:
            found = f", found out at record {alarm.found_at}" if alarm.found_at != alarm.record else ""
            _print(
                f"ALARM at record {alarm.record}{found}: {alarm.named}, {alarm.evidence_bits:.1f} bits of evidence "
                f"less {alarm.bits_paid:.1f} for naming it (threshold {status.threshold:g})"
            )

    def _print_status(self, event: str) -> None:
        status = self.monitor.status()
        if self._arguments.json:
            content = status.for_stranger() if self._arguments.for_stranger else status.as_dict()
            _print_json({"event": event, **content})
        elif self._arguments.for_stranger:
            _print(_stranger_line(status))
        elif event == "status":
            _print(status_line(status))
        else:
            _print("\n".join(status_lines(status)))


def status_line(status: MonitorStatus) -> str:
    """Where it stands, in a line of a running log."""
    alarm = "no alarm" if status.alarm is None else f"alarm at record {status.alarm.record}: {status.alarm.named}"
    taken_back = f", {status.retractions} attempts to take a step back" if status.retractions else ""
    return (
        f"{status.records} records, {status.steps} count{taken_back}; surplus {status.surplus:.1f} bits, "
        f"highest {status.most_surplus:.1f}; {alarm}"
    )


def status_lines(status: MonitorStatus) -> list[str]:
    """Where it stands, in full, for a terminal."""
    others = [f"{count} {kind}" for kind, count in sorted(status.arrivals.items()) if kind is not Arrival.COUNTED]
    lengths = [f"{seen.payload_len} bits ({seen.steps} steps)" for seen in status.lengths]
    lines = [
        status.sentence,
        "",
        f"  records       {status.records}: {', '.join([f'{status.steps} counted', *others])}",
        f"  lengths       {', '.join(lengths) or '-'}",
        f"  evidence      {status.evidence_bits + 0.0:.1f} bits for the best payload less {status.bits_paid:.1f} for "
        "naming it, now",
        f"  highest       surplus of {status.most_surplus:.1f} bits: p = {status.p_value:.1e}, whenever one looks",
    ]
    if status.retractions:
        tried = counted(status.retractions, "record")
        lines.append(f"  taken back    nothing: {tried} tried to take a step back, in vain")
    lines += [f"  also          {alarm.named} at record {alarm.record}" for alarm in status.alarms[1:]]
    return lines


def _stranger_line(status: MonitorStatus) -> str:
    seen = status.for_stranger()
    return f"alarm: {', '.join(seen['identities'])}" if seen["alarm"] else "no alarm"


def _claim(text: str | None, registry: Registry | None) -> PayloadLike:
    """A name in the registry goes before a number: a tenant may be called 42."""
    if text is None or (registry is not None and text in registry):
        return text
    return parse_payload(text)


# Where records come from ---------------------------------------------------------------------------------------------


def _arriving(arguments: argparse.Namespace) -> Iterator[StepRecord | Note]:
    if arguments.log == [STANDARD_INPUT]:
        return _standard_input()
    return (
        _followed(arguments.log, arguments.poll) if arguments.follow else _present(arguments.log, limits_of(arguments))
    )


def _present(paths: list[Path], limits: Limits) -> Iterator[StepRecord | Note]:
    """What is there, in any format. A broken record is passed over and said: nobody may blind a monitor with one."""
    for path in log_files(paths):
        log = open_log(path, skip_bad=True, limits=limits)
        yield from log
        yield from map(Note, log.summary.passed_over)


def _standard_input() -> Iterator[StepRecord | Note]:
    lines = Lines("standard input")
    while data := os.read(sys.stdin.fileno(), 1 << 16):
        yield from lines.feed(data)
    yield from lines.end()


def _followed(paths: list[Path], poll_s: float) -> Iterator[StepRecord | Note]:
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(contextlib.closing(GrowingLog(path))) for path in paths]
        for log in logs:
            if log.path.is_dir():
                raise SettingError("--follow", f"{log.path} is a folder; name the files")
            if not log.path.exists():
                yield Note(f"{log.path}: is not there yet")
        while True:
            came = False
            for log in logs:
                for item in log.poll():
                    came = True
                    yield item
            if not came:
                time.sleep(poll_s)


# Out -----------------------------------------------------------------------------------------------------------------


def _print(text: str) -> None:
    print("\n".join(map(printable, text.split("\n"))), flush=True)


def _print_json(content: dict[str, Any]) -> None:
    print_json(content)


def _say(message: str) -> None:
    """What is no result goes to standard error."""
    print(f"agentmark monitor: {printable(message)}", file=sys.stderr, flush=True)


def _write_private(path: Path, data: bytes) -> None:
    """Whole or not at all, and for its owner alone."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise
