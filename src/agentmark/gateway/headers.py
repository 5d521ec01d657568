"""Headers on their way through: what is said from end to end passes, what is said to the next hop does not."""

from collections.abc import Iterable, Sequence

Headers = list[tuple[bytes, bytes]]

# What HTTP says to the next hop only (RFC 9110, section 7.6.1), with the older names that proxies still see.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# Said anew for the upstream: its host, the length of what is sent, and no waiting for leave to send it.
_SAID_ANEW = frozenset({b"host", b"content-length", b"expect"})
# What is for the gateway alone.
OWN_PREFIX = b"x-agentmark-"
SESSION_HEADER = b"x-agentmark-session"
# Where clients say who they are.
AUTHORIZATION, API_KEY = b"authorization", b"x-api-key"
_CREDENTIALS = frozenset({AUTHORIZATION, API_KEY, b"api-key"})
# With which a tenant's keys begin.
API_KEY_BEGINNING = b"amk_"
IDEMPOTENCY_KEY = b"idempotency-key"
# Encodings of replies of which a copy can be read here.
_READABLE = (b"gzip", b"deflate", b"identity")


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first value under a name, in lower case as ASGI has them."""
    for key, value in headers:
        if key == name:
            return value
    return None


def for_upstream(headers: Sequence[tuple[bytes, bytes]], *, is_read: bool, credential: str | None = None) -> Headers:
    """A client's headers for the upstream. `is_read`: a copy of the reply will be read, so it must not come in an
    encoding that nobody here knows. `credential` takes the place of the client's own."""
    named = _named_in_connection(headers)
    passed: Headers = []
    for key, value in headers:
        if key in _HOP_BY_HOP or key in _SAID_ANEW or key in named or key.startswith(OWN_PREFIX):
            continue
        if key == b"accept-encoding" and is_read:
            value = _readable(value)  # noqa: PLW2901
        if credential is not None and key in _CREDENTIALS:
            value = _replaced(key, credential)  # noqa: PLW2901
        elif credential is not None and API_KEY_BEGINNING in value:
            # A key of the gateway's own in another place, a cookie say: no upstream sees one.
            continue
        passed.append((key, value))
    return passed


def for_client(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The upstream's headers for the client."""
    lowered = [(key.lower(), value) for key, value in headers]
    named = _named_in_connection(lowered)
    return [(key, value) for key, value in lowered if key not in _HOP_BY_HOP and key not in named]


def bearer(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """The key that a client shows, in the place of either vendor."""
    said = first(headers, AUTHORIZATION)
    if said is not None and said[:7].lower() == b"bearer ":
        return said[7:].strip().decode("latin-1")
    shown = first(headers, API_KEY) or first(headers, b"api-key")
    return None if shown is None else shown.strip().decode("latin-1")


def without(headers: Headers, name: bytes) -> Headers:
    return [(key, value) for key, value in headers if key != name]


def _replaced(key: bytes, credential: str) -> bytes:
    value = credential.encode("latin-1", "replace")
    return b"Bearer " + value if key == AUTHORIZATION else value


def _named_in_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Headers that the client says are for this hop only."""
    return {name.strip().lower() for key, value in headers if key == b"connection" for name in value.split(b",")}


def _readable(accepted: bytes) -> bytes:
    kept = [part for part in accepted.split(b",") if part.partition(b";")[0].strip().lower() in _READABLE]
    return b",".join(kept).strip() or b"identity"
