"""How an interrupted run is taken up again: every chunk that is done is kept until the whole run is.

What a language model has said is another matter, and kept for good (`files.made_once`): asked again, it would say
something else.
"""

import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import agentmark
import agentmark_lab
from agentmark_lab.kit.files import write_whole

Chunk = TypeVar("Chunk")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where outcomes are kept, and under which code they were found: with another they count for nothing."""

    folder: Path
    code: str

    def has(self, label: str, chunk: object) -> bool:
        return self._place(label, chunk).exists()

    def found_or_done(self, function: Callable[[Chunk], Outcome], label: str, chunk: Chunk) -> Outcome:
        """What is kept of this chunk; else it is done now, and kept."""
        place = self._place(label, chunk)
        # Not asked for beforehand: another run of the same may end in between, and remove the folder.
        with suppress(FileNotFoundError):
            found: Outcome = pickle.loads(place.read_bytes())
            return found
        outcome = function(chunk)
        write_whole(place, pickle.dumps(outcome))
        return outcome

    def _place(self, label: str, chunk: object) -> Path:
        return self.folder / f"{sha256(repr((self.code, label, chunk)).encode()).hexdigest()[:32]}.pickle"


_kept: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Within, chunks that are done are kept in this folder, so that the run can be interrupted and taken up again. Once
    it has come to its end the folder is removed: whoever runs it again, runs it anew."""
    token = _kept.set(Kept(folder, _code_digest()))
    try:
        yield
    finally:
        _kept.reset(token)
    shutil.rmtree(folder, ignore_errors=True)


def kept_here() -> Kept | None:
    """Where the run that is going on keeps its outcomes, if it keeps them."""
    return _kept.get()


def _code_digest() -> str:
    """Of the library and of the lab: a change in either may change an outcome."""
    digest = sha256()
    for package in (agentmark, agentmark_lab):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
