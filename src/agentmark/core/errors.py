"""Typed errors. Each constructor owns its message, so callers name the fault and never format it."""


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


class PayloadError(AgentMarkError, ValueError):
    """An identity that does not fit the payload length, or has no bits."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"payload: {fault}")
        self.fault = fault


class SettingError(AgentMarkError, ValueError):
    """An argument or option that cannot be meant."""

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(f"{name}: {fault}")
        self.name = name
        self.fault = fault


class KeyFileError(AgentMarkError, ValueError):
    """A secret that is missing, weak, readable by others, or not the one asked for."""

    def __init__(self, source: str, fault: str) -> None:
        super().__init__(f"key {source}: {fault}")
        self.source = source
        self.fault = fault


class RecordError(AgentMarkError, ValueError):
    """A step record that is broken. `where` is a line number or a session and step."""

    def __init__(self, where: str, field: str, fault: str) -> None:
        super().__init__(f"record {where}: {field}: {fault}")
        self.where = where
        self.field = field
        self.fault = fault


class RecordVersionError(RecordError):
    """A record of a version or scheme that this build does not read."""

    def __init__(self, where: str, field: str, found: object, known: str) -> None:
        super().__init__(where, field, f"found {found!r}, this build reads {known}")
        self.found = found
        self.known = known


class RegistryError(AgentMarkError, ValueError):
    """A registry whose entries contradict each other, or an entry that cannot be used."""

    def __init__(self, entry: str, fault: str) -> None:
        super().__init__(f"registry: {entry}: {fault}")
        self.entry = entry
        self.fault = fault


class ElicitationError(AgentMarkError):
    """No usable list could be had from the model: the upstream failed, or what it said cannot be used.

    `fault` may quote the provider or the reply, which may hold private text; `logged` never does.
    """

    def __init__(self, method: str, fault: str, *, logged: str | None = None) -> None:
        super().__init__(f"elicitation ({method}): {fault}")
        self.method = method
        self.fault = fault
        self.logged = logged or fault


class UpstreamError(ElicitationError):
    """A provider that answered with an error, or not at all (`status` is then None).

    `parameter` is the part of the request that it names as the cause, if it names one.
    """

    def __init__(
        self,
        method: str,
        fault: str,
        status: int | None = None,
        *,
        parameter: str | None = None,
        logged: str | None = None,
    ) -> None:
        in_short = "the provider did not answer as it should" if status is None else f"HTTP {status}"
        super().__init__(method, fault if status is None else f"HTTP {status}: {fault}", logged=logged or in_short)
        self.status = status
        self.parameter = parameter


class UnsupportedError(ElicitationError):
    """A way of eliciting that this provider or model does not have; `always`, or for this situation only."""

    def __init__(self, method: str, fault: str, *, always: bool, logged: str | None = None) -> None:
        super().__init__(method, fault, logged=logged)
        self.always = always


class MissingExtraError(AgentMarkError, ImportError):
    """A part of AgentMark whose package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'agentmark[{extra}]'")
        self.package = package
        self.extra = extra
