"""Errors that any room may raise. Those of one room live where they are raised."""

from agentmark.core.errors import AgentMarkError


class SettingError(AgentMarkError, ValueError):
    """An argument or option that cannot be meant."""

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(f"{name}: {fault}")
        self.name = name
        self.fault = fault


def how_to_install(extra: str) -> str:
    """What brings the packages of an extra, from where there is one: no package index has AgentMark."""
    return f"pip install '.[{extra}]' in a clone of AgentMark, or with its wheel in place of the dot"


class MissingExtraError(AgentMarkError, ImportError):
    """A part of AgentMark whose package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: {how_to_install(extra)}")
        self.package = package
        self.extra = extra
