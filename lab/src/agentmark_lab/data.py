"""Where benchmark data is: AGENTMARK_DATA, else the cache folder, else ../shared/data beside a checkout."""

import os
from pathlib import Path

from agentmark.core.errors import AgentMarkError

ENVIRONMENT_VARIABLE = "AGENTMARK_DATA"


class MissingError(AgentMarkError):
    """Data or a package that an experiment needs; the message names the command that gets it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} is missing: {remedy}")


def data_folders() -> list[Path]:
    """Where data is looked for, in this order."""
    stated = os.environ.get(ENVIRONMENT_VARIABLE)
    if stated:
        return [Path(stated)]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentmark" / "data"
    checkout = Path(__file__).parents[3]
    return [cache, checkout.parent / "shared" / "data"]


def find_data(relative: str, *, remedy: str) -> Path:
    """The file or folder of this name, or an error that says where to put it and how to get it."""
    for folder in data_folders():
        if (folder / relative).exists():
            return folder / relative
    looked = ", ".join([str(folder) for folder in data_folders()])
    raise MissingError(f"{relative} (looked in {looked})", f"{remedy}, or set {ENVIRONMENT_VARIABLE} to its folder")


def work_folder() -> Path:
    """Where long runs keep what they have done so far, and data is unpacked."""
    return Path(os.environ.get("AGENTMARK_WORK") or "lab-work")
