"""The `agentmark` command, one file for each subcommand."""

from agentmark.cli.main import main

__all__ = ["main"]
