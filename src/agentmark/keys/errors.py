"""What can be wrong with a secret."""

from agentmark.core.errors import AgentMarkError
from agentmark.keys.secret import without_secrets


class KeyFileError(AgentMarkError, ValueError):
    """A secret that is missing, weak, readable by others, or not the one asked for."""

    def __init__(self, source: str, fault: str) -> None:
        # Whoever gives the secret in place of its file must not find it in a log of errors.
        self.source = without_secrets(source)
        super().__init__(f"key {self.source}: {fault}")
        self.fault = fault
