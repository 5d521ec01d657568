"""Paths as servers read them, which is not always as they are written."""

import re
from urllib.parse import unquote

# What servers leave out of a path, or off its parts, before they look for a route.
_PARAMETERS = re.compile(r";[^/]*")
_NOTHING = re.compile(r"/(?:\.?/)+")


def as_servers_read(path: str) -> str:
    """A path without its escapes, parameters, empty parts and whatever stands at its end. Routes and rules go by it as
    well as by what was written, so that none is missed by another spelling; what is sent on is what was written."""
    plain = _PARAMETERS.sub("", unquote(path)).strip(" \t\0")
    return _NOTHING.sub("/", f"{plain}/").removesuffix("/") or "/"
