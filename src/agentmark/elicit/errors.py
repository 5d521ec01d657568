"""Why no list could be had from a model."""

from agentmark.core.errors import AgentMarkError


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
    """A provider that answered with an error, with what is no answer, or not at all (`status` is then None).

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
    """A way of eliciting that this provider or model does not have; `always`, or for this situation only. `status` is
    that of the provider's refusal, if it was asked."""

    def __init__(
        self, method: str, fault: str, *, always: bool, logged: str | None = None, status: int | None = None
    ) -> None:
        super().__init__(method, fault, logged=logged)
        self.always = always
        self.status = status
