"""What can be wrong with a secret."""

from agentmark.core.errors import AgentMarkError


class KeyFileError(AgentMarkError, ValueError):
    """A secret that is missing, weak, readable by others, or not the one asked for."""

    def __init__(self, source: str, fault: str) -> None:
        super().__init__(f"key {source}: {fault}")
        self.source = source
        self.fault = fault
