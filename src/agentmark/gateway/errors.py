"""What goes wrong between an agent and its model, and how it is told in the words of the API that the agent speaks."""

import json
from dataclasses import dataclass

from agentmark.core.errors import AgentMarkError

# The kind of an error by its status, as the two vendors name them.
_OPENAI_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    501: "invalid_request_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


@dataclass(eq=False)
class GatewayError(AgentMarkError):
    """An answer of the gateway's own, in place of the upstream's. The message holds nothing of a request, a reply or a
    credential."""

    status: int
    message: str
    # For counts: what it was, in one word or two.
    reason: str
    retry_after_s: int | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def headers(self) -> list[tuple[bytes, bytes]]:
        content = [(b"content-type", b"application/json"), (b"x-agentmark-error", self.reason.encode("ascii"))]
        if self.retry_after_s is not None:
            content.append((b"retry-after", str(self.retry_after_s).encode("ascii")))
        if self.status == 401:
            content.append((b"www-authenticate", b"Bearer"))
        return content

    def body(self, *, is_anthropic: bool) -> bytes:
        """The error in the shape that the client's library reads."""
        said = f"agentmark gateway: {self.message}"
        if is_anthropic:
            kind = _ANTHROPIC_KINDS.get(self.status, "api_error")
            return json.dumps({"type": "error", "error": {"type": kind, "message": said}}).encode()
        kind = _OPENAI_KINDS.get(self.status, "server_error")
        error = {"message": said, "type": kind, "param": None, "code": self.reason.replace(" ", "_")}
        return json.dumps({"error": error}).encode()


def broken_off() -> GatewayError:
    """The upstream's reply did not come to its end."""
    return GatewayError(502, "the upstream's reply broke off", "upstream broke off")


class ClientGoneError(AgentMarkError):
    """Whoever asked has hung up. There is nobody to answer."""
