"""What `agentmark monitor` does: a monitor, where its state is kept, and what is printed of it."""

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
    EXIT_NOTHING_USABLE,
    EXIT_TERMINATED,
    limits_of,
    load_keys,
    print_json,
    printable,
)
from agentmark.cli.weight_lines import parse_payload
from agentmark.core.payload import PayloadLike
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.log.read.files import find_logs
from agentmark.log.read.follow import GrowingLog, Lines, Note
from agentmark.log.read.limits import Limits
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark.text import counted
from agentmark.verify.arrivals import Arrival
from agentmark.verify.monitor import Alarm, Monitor, MonitorStatus

STANDARD_INPUT = Path("-")
# Of the keys that records state, so many are kept for a message.
LISTED_KEYS = 20


def watch(arguments: argparse.Namespace) -> int:
    """Watch until the logs end, an alarm is enough, or somebody stops it."""
    if STANDARD_INPUT in arguments.log and len(arguments.log) > 1:
        raise SettingError("log", "- stands alone")
    watching = Watch(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        watching.go_on(_arriving(arguments))
    except KeyboardInterrupt:
        watching.finish("interrupted")
        return EXIT_INTERRUPTED
    except _TerminatedError:
        watching.finish("terminated")
        return EXIT_TERMINATED
    watching.finish(None)
    if watching.monitor.alarm is not None:
        return EXIT_ATTRIBUTED
    if watching.monitor.status().steps or arguments.for_stranger:
        return EXIT_NOT_ATTRIBUTED
    watching.say_nothing_usable()
    return EXIT_NOTHING_USABLE


class _TerminatedError(Exception):
    """Asked to stop, as services are."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _TerminatedError


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
        self._key_ids = [key.id for key in keys]
        self._stated: set[str] = set()
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
            if len(self._stated) < LISTED_KEYS:
                self._stated.add(item.key_id)
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

    def say_nothing_usable(self) -> None:
        """Which keys the records state, and which were given: what a wrong key looks like."""
        stated = ", ".join(sorted(self._stated)) or "none"
        _say(f"nothing usable: the records state these keys: {stated}; given: {', '.join(self._key_ids)}")

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
    found = find_logs(paths, skip_bad=True)
    yield from map(Note, found.passed_over)
    for path in found.files:
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
