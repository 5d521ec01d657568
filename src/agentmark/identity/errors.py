"""What can be wrong with a registry."""

from agentmark.core.errors import AgentMarkError


class RegistryError(AgentMarkError, ValueError):
    """A registry whose entries contradict each other, or an entry that cannot be used."""

    def __init__(self, entry: str, fault: str) -> None:
        super().__init__(f"registry: {entry}: {fault}")
        self.entry = entry
        self.fault = fault
