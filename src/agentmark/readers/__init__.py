"""Logs as they are handed in: each format is recognised by what it holds, not by its name (docs/logs.md)."""

from agentmark.readers.source import ACCEPTED, LogSource, log_files, open_log

__all__ = ["ACCEPTED", "LogSource", "log_files", "open_log"]
