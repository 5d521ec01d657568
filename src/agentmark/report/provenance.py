"""Where a report comes from: when, by whom, by which command, with which keys, and the files with their digests."""

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict


class InputFile(TypedDict):
    """A file that was read. Neither size nor digest if it was a pipe."""

    kind: str
    path: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: when, by which command, with which keys and files; for which case, by whom, and what
    they add in their own words."""

    made_at: datetime
    command: str
    key_ids: Sequence[str] = ()
    inputs: Sequence[InputFile] = ()
    case_number: str | None = None
    author: str | None = None
    note: str | None = None

    @property
    def made_at_text(self) -> str:
        """When, in UTC, as a report states it."""
        return self.made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def describe_file(kind: str, path: str | os.PathLike[str]) -> InputFile:
    """Size and SHA-256 of a file. A pipe can be read once only, and not by this."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    if not stat.S_ISREG(Path(path).stat().st_mode):
        return InputFile(kind=kind, path=shown, size=None, sha256=None)
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return InputFile(kind=kind, path=shown, size=file.tell(), sha256=digest)
