"""Logs as they are handed in: each format is recognised by what it holds, not by its name (docs/logs.md)."""

from agentmark.log.read.source import ACCEPTED, NATIVE, LogSource, log_files, open_log

__all__ = ["ACCEPTED", "NATIVE", "LogSource", "log_files", "open_log"]
