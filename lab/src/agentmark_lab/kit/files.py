"""Files and folders that appear all at once, and what is made once and kept in them for good."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ATTEMPTS = 10


def write_whole(place: Path, content: bytes) -> None:
    """Whoever finds the file finds all of it, though the writer be killed, or another process write the same. The
    folder is made if it is missing."""
    draft = place.with_suffix(f".partial-{os.getpid()}")
    for attempt in range(1, _ATTEMPTS + 1):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(content)
            draft.replace(place)
        except FileNotFoundError:
            # Another run that has come to its end may remove the folder between any two of these lines.
            if attempt == _ATTEMPTS:
                raise
        else:
            return


def folder_made_once(place: Path, fill: Callable[[Path], None]) -> None:
    """A folder that appears with all that is in it, or not at all; of several that make it at once, one counts."""
    if place.exists():
        return
    draft = place.with_suffix(f".partial-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    fill(draft)
    try:
        draft.rename(place)
    except OSError:
        # Another process was faster: its folder is as good.
        shutil.rmtree(draft)
        if not place.is_dir():
            raise


def made_once(place: Path, make: Callable[[], Any]) -> Any:
    """What the file holds, as JSON; where there is none it is made now, and kept. Either way it is what JSON makes of
    it, so that the first run sees what later ones see."""
    if not place.exists():
        write_whole(place, json.dumps(make(), ensure_ascii=False).encode("utf-8"))
    return json.loads(place.read_text(encoding="utf-8"))
