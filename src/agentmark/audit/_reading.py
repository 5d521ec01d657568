"""Logs read whole."""

from dataclasses import dataclass
from pathlib import Path

from agentmark.log.read.source import NATIVE, LogSource, log_files, open_log
from agentmark.record import StepRecord

__all__ = ["ReadLog", "log_files", "read_log"]


@dataclass(frozen=True, slots=True)
class ReadLog:
    path: Path
    records: list[StepRecord]
    lines: list[int] | None
    summary: LogSource


def read_log(path: Path, *, skip_bad: bool) -> ReadLog:
    reader = open_log(path, skip_bad=skip_bad)
    numbered = [(record, reader.line) for record in reader]
    lines = [line for _, line in numbered] if reader.format == NATIVE else None
    return ReadLog(path, [record for record, _ in numbered], lines, reader)
