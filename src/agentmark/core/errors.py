"""Typed errors of the core. Each constructor owns its message, so callers name the fault and never format it."""


class AgentMarkError(Exception):
    """Base of every error that AgentMark raises on purpose."""


class DistributionError(AgentMarkError, ValueError):
    """An elicited list of weights that cannot be used as it is."""

    def __init__(self, field: str, fault: str) -> None:
        super().__init__(f"distribution: {field}: {fault}")
        self.field = field
        self.fault = fault


class ContextError(AgentMarkError, ValueError):
    """A step context that has no canonical encoding."""

    def __init__(self, field: str, fault: str) -> None:
        super().__init__(f"context: {field}: {fault}")
        self.field = field
        self.fault = fault


class StateError(AgentMarkError, ValueError):
    """Bytes of something accumulated that are not what `to_bytes` writes."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


class PayloadError(AgentMarkError, ValueError):
    """An identity that does not fit the payload length, or has no bits."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"payload: {fault}")
        self.fault = fault
