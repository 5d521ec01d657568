"""Which files a command is to read."""

from collections.abc import Iterable
from pathlib import Path

from agentmark.errors import SettingError


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Folders replaced by the files in them, in the order of their names; what writers leave beside them left out."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = [file for file in sorted(path.iterdir()) if file.is_file() and not _is_beside(file)]
        if not inside:
            raise SettingError(str(path), "is a folder without any file in it")
        files += inside
    return files


def _is_beside(file: Path) -> bool:
    return file.name.startswith(".") or file.name.endswith((".lock", ".tmp", ".signer", "-wal", "-shm"))
