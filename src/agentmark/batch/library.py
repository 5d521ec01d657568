"""The library of what is done natively, if it was built.

It is built with the package where there is a compiler (`tools/build_kernel.py`). Without it, or with
AGENTMARK_NO_NATIVE=1, NumPy and msgspec do the same work.
"""

import os
from ctypes import CDLL
from functools import cache
from pathlib import Path

NO_NATIVE = "AGENTMARK_NO_NATIVE"
LIBRARY_FILE = Path(__file__).with_name("_kernel.so")
# What it is asked for, in this version.
FUNCTIONS = ("agentmark_read_f", "agentmark_read_r", "agentmark_scan")


@cache
def loaded(path: Path) -> CDLL | None:
    """The library in this file; None if it is not there, is none, or is of another version."""
    try:
        library = CDLL(os.fspath(path)) if path.exists() else None
    except OSError:
        # Built for another machine.
        return None
    return library if library is not None and all(hasattr(library, name) for name in FUNCTIONS) else None


def built_library() -> CDLL | None:
    """The library that was built with this package; None if there is none, or if it is turned off."""
    return None if os.environ.get(NO_NATIVE, "") not in ("", "0") else loaded(LIBRARY_FILE)
