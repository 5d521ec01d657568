"""Sessions by what somebody typed: an id, or its beginning."""

from collections.abc import Iterable

from agentmark.errors import SettingError

# Sessions that are named where several, or none, are meant.
LISTED = 5


def find_session(wanted: str, there: Iterable[str]) -> str:
    """The session that is called so, or the only one whose id begins so."""
    known = sorted(there)
    if wanted in known:
        return wanted
    found = [session for session in known if session.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    among = found or known
    named = ", ".join([repr(session) for session in among[:LISTED]])
    more = f" and {len(among) - LISTED:,} more" if len(among) > LISTED else ""
    if found:
        raise SettingError("session", f"{len(found):,} sessions begin with {wanted!r}: {named}{more}")
    there_are = f"those there are: {named}{more}" if known else "there is none at all"
    raise SettingError("session", f"no session here begins with {wanted!r}; {there_are}")
