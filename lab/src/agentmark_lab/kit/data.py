"""Where benchmark data is: AGENTMARK_DATA, else the cache folder, else ../shared/data beside a checkout."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from agentmark.core.errors import AgentMarkError

DATA_VARIABLE = "AGENTMARK_DATA"
# What brings OASIS, torch, transformers and the small model.
GET_OASIS = "run `make lab-oasis`, then `.venvs/oasis/bin/agentmark lab run ...`"


class MissingError(AgentMarkError):
    """Data or a package that an experiment needs; the message names the command that gets it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} is missing: {remedy}")


def data_folders() -> list[Path]:
    """Where data is looked for, in this order."""
    stated = os.environ.get(DATA_VARIABLE)
    if stated:
        return [Path(stated)]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentmark" / "data"
    checkout = Path(__file__).parents[4]
    return [cache, checkout.parent / "shared" / "data"]


def find_data(relative: str, *, remedy: str) -> Path:
    """The file or folder of this name, or an error that says where to put it and how to get it."""
    for folder in data_folders():
        if (folder / relative).exists():
            return folder / relative
    looked = ", ".join([str(folder) for folder in data_folders()])
    raise MissingError(f"{relative} (looked in {looked})", f"{remedy}, or set {DATA_VARIABLE} to its folder")


def imported(name: str, *, remedy: str) -> Any:
    """A package that an experiment needs, or an error that says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingError(f"the package {error.name}", remedy) from None
