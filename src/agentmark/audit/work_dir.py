"""The working folder of a bulk audit: what it has done so far, so that it can go on after anything.

    settings.json    what was asked; fixed while the folder is there
    manifest.jsonl   a line for each file of parts that is finished: which shards it is of, and what they held
    parts/           the files of parts (`spill.py`)
    judged/          what later phases have finished
    lock             held by the audit that is at work here

It is its owner's alone. It holds no key; but what is read under one opens the steps in it, so keep the folder as
confidential as the keys.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from agentmark.core.errors import AgentMarkError
from agentmark.errors import SettingError
from agentmark.files import FileError

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind; there one audit at a time is the user's to see to.
    fcntl = None  # type: ignore[assignment]

VERSION = 1
SETTINGS, MANIFEST, LOCK, PARTS, JUDGED = "settings.json", "manifest.jsonl", "lock", "parts", "judged"
# Files that are written whole are first called so; one that was killed meanwhile leaves them.
_DRAFTS = (f"{SETTINGS}.tmp", f"{MANIFEST}.tmp")
_OWN = {SETTINGS, MANIFEST, LOCK, PARTS, JUDGED, *_DRAFTS}


class WorkDirError(AgentMarkError, ValueError):
    """A working folder that this audit cannot use."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"{path}: {fault}")
        self.path = path
        self.fault = fault


class WorkDir:
    """A working folder that is open, and locked. `close` leaves it for a later run, `remove` takes it away."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        """Make the folder, or take over one that an audit has left (with `resume`)."""
        self.path = path
        self._manifest: IO[str] | None = None
        self._lock: IO[str] | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _holds_others(path):
                raise WorkDirError(path, "holds other files: give the audit a folder of its own")
            path.chmod(0o700)
            # First: of one that is at work there, nobody is to be told to remove the folder.
            self._lock = self._locked()
            if not resume and {inside.name for inside in path.iterdir()} - {LOCK}:
                self.close()
                raise WorkDirError(
                    path, "holds an audit that was not finished: --resume goes on with it; else remove the folder"
                )
            for name in (PARTS, JUDGED):
                (path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self.close()
            raise FileError(path, f"cannot be the working folder: {error.strerror}") from None

    @property
    def parts(self) -> Path:
        return self.path / PARTS

    @property
    def judged(self) -> Path:
        return self.path / JUDGED

    def settle(self, settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Fix what is asked. A folder that has settings keeps them, and refuses others; `chosen` is what an audit
        decides by itself when it begins, and is handed back as it was decided then."""
        known = self._settings()
        if known is None:
            content = {"agentmark_audit": VERSION, "settings": dict(settings), "chosen": dict(chosen)}
            _write(self.path / SETTINGS, json.dumps(content, indent=1))
            return dict(chosen)
        if known.get("agentmark_audit") != VERSION:
            raise WorkDirError(self.path, "was written by another version of this program: remove it and begin anew")
        before, now = known["settings"], json.loads(json.dumps(dict(settings)))
        differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if differing:
            said = "; ".join([_difference(name, before.get(name), now.get(name)) for name in differing])
            raise WorkDirError(self.path, f"the audit that was begun here asked something else: {said}")
        return dict(known["chosen"])

    def _settings(self) -> dict[str, Any] | None:
        try:
            content = json.loads((self.path / SETTINGS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise WorkDirError(self.path, f"{SETTINGS} in it is damaged: remove the folder and begin anew") from None
        if isinstance(content, dict) and content.get("agentmark_audit") not in (None, VERSION):
            return content
        if not isinstance(content, dict) or not all(
            isinstance(content.get(name), dict) for name in ("settings", "chosen")
        ):
            raise WorkDirError(self.path, f"{SETTINGS} in it is damaged: remove the folder and begin anew")
        return content

    def manifest(self) -> list[dict[str, Any]]:
        """What is finished. A last line that was cut short is not."""
        try:
            lines = (self.path / MANIFEST).read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        found = []
        for line in lines[:-1]:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def rewrite_manifest(self, lines: list[dict[str, Any]]) -> None:
        """Keep these lines alone, and add to them from here on."""
        self._close_manifest()
        _write(self.path / MANIFEST, "".join([json.dumps(line) + "\n" for line in lines]))
        self._manifest = (self.path / MANIFEST).open("a", encoding="utf-8")

    def add_to_manifest(self, line: Mapping[str, Any]) -> None:
        assert self._manifest is not None, "rewrite_manifest opens it"
        self._manifest.write(json.dumps(line) + "\n")
        self._manifest.flush()

    def close(self) -> None:
        """Leave it as it is; a later run may go on."""
        self._close_manifest()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """Take away what is its own; the folder as well, if nothing else is in it."""
        self._close_manifest()
        for name in (PARTS, JUDGED):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (MANIFEST, SETTINGS, LOCK, *_DRAFTS):
            (self.path / name).unlink(missing_ok=True)
        self.close()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _close_manifest(self) -> None:
        if self._manifest is not None:
            self._manifest.close()
            self._manifest = None

    def _locked(self) -> IO[str] | None:
        file = (self.path / LOCK).open("a", encoding="utf-8")
        if fcntl is not None:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise WorkDirError(self.path, "another audit is at work there") from None
            if not _is_still(file, self.path / LOCK):
                file.close()
                raise WorkDirError(self.path, "another audit has just ended there, and removed it: try again")
        return file


def _holds_others(path: Path) -> bool:
    """Whether there is anything in a folder that no audit has left: without settings it has made empty folders at the
    most."""
    there = {inside.name for inside in path.iterdir()}
    if there - _OWN:
        return True
    if SETTINGS in there:
        return False
    return MANIFEST in there or any(any((path / name).iterdir()) for name in there & {PARTS, JUDGED})


def _is_still(file: IO[str], path: Path) -> bool:
    """Whether a file that is open is the one of this name: who removes a folder lets go of its lock last."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _difference(name: str, before: object, now: object) -> str:
    if name in _NOT_SHOWN:
        return f"{_NOT_SHOWN[name]} than those of before"
    return f"{name} was {_shown(before)} and is {_shown(now)}"


# Settings that are told to be others, and are not shown: what stands for them means nothing to a reader.
_NOT_SHOWN = {"keys": "the keys are others", "registry": "the names or payloads of the registry are others"}


def _shown(value: object) -> str:
    return "not given" if value is None else json.dumps(value)


def _write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def beside(out: Path) -> Path:
    """The working folder of an audit whose results go there."""
    if not out.name:
        raise SettingError("--out", "is no name of a file")
    return out.with_name(f"{out.name}.work")
