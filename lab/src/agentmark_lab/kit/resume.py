"""How an interrupted run is taken up again: every chunk that is done is kept until the whole run is.

What a language model has said is another matter, and kept for good (`files.made_once`): asked again, it would say
something else.
"""

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
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
    """Where outcomes are kept, and under which code they were found: with another they count for nothing. Each begins
    with the digest of its code, so that what is passed over can be told."""

    folder: Path
    code: str

    def states(self, label: str, chunks: Sequence[object]) -> "KeptStates":
        """How many of these were done by this code, and how many by another."""
        found = [self._code_of(label, chunk) for chunk in chunks]
        return KeptStates(found.count(self.code), len(found) - found.count(self.code) - found.count(None))

    def found_or_done(self, function: Callable[[Chunk], Outcome], label: str, chunk: Chunk) -> Outcome:
        """What is kept of this chunk; else it is done now, and kept."""
        place = self._place(label, chunk)
        # Not asked for beforehand: another run of the same may end in between, and remove the folder.
        with suppress(FileNotFoundError):
            code, _, content = place.read_bytes().partition(b"\n")
            if code.decode("utf-8", "replace") == self.code:
                found: Outcome = pickle.loads(content)
                return found
        outcome = function(chunk)
        write_whole(place, f"{self.code}\n".encode() + pickle.dumps(outcome))
        return outcome

    def _code_of(self, label: str, chunk: object) -> str | None:
        with suppress(FileNotFoundError), self._place(label, chunk).open("rb") as file:
            return file.readline().decode("utf-8", "replace").rstrip("\n")
        return None

    def _place(self, label: str, chunk: object) -> Path:
        return self.folder / f"{sha256(repr((label, chunk)).encode()).hexdigest()[:32]}.pickle"


@dataclass(frozen=True, slots=True)
class KeptStates:
    """Of some chunks: how many were done by the same code, and how many by another, which are done again."""

    done: int
    stale: int


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
