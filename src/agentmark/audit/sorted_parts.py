"""Parts of an audit, read under the keys and sorted out by group: a file each, of logs that are ready to be judged.

    logs-00007.sorted    the sorted logs of part 7, some hundred at a time, sealed with the keys
    said-00007-003       what was said of them in phase 3, sealed with the keys

A part is what `verify.many` judges: it fetches its logs from disk, and keeps its verdicts there. What is sealed can be
neither made nor altered by anybody who does not hold the keys, so that reading it back runs nobody else's code.
"""

import io
import os
import pickle
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from agentmark.audit.chunk_kinds import chunk_kind
from agentmark.audit.spill import SpillError, read_blocks
from agentmark.verify.keyring import SEAL_SIZE, Keyring
from agentmark.verify.packed import PackedReadings
from agentmark.verify.roll import By
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.verdict import Verdict

_LENGTH = struct.Struct(">Q")
# Logs that are sealed together.
BLOCK_LOGS = 256
# Of sorted logs, as they lie on the disk, that a process keeps at hand from one part to the next.
AT_HAND_BYTES = 48 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SortJob:
    """One part to be read under the keys, and where its sorted logs go."""

    part: int
    # The files of parts, in the order in which they are read.
    files: tuple[str, ...]
    engine: str
    by: By
    payload_len: int | None
    to: str


def sort_part(job: SortJob, keys: Keyring) -> None:
    """Read a part under the keys, sort it out by group, and write its logs in the order of their names."""
    kind = chunk_kind(job.engine)
    blocks = (block for path in job.files for block in read_blocks(Path(path), job.part))
    held = [kind.held(chunk, keys) for chunk in kind.of_blocks(blocks)]
    logs = iter(kind.sorted_out(held, keys, job.by, job.payload_len))
    temporary = Path(f"{job.to}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        while block := list(islice(logs, BLOCK_LOGS)):
            data = _packed(block)
            file.write(_LENGTH.pack(len(data)) + keys.seal(data))
            file.write(data)
    temporary.replace(job.to)


def read_logs(path: Path, keys: Keyring) -> Iterator[SortedLog]:
    """The logs of a part."""
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size + SEAL_SIZE):
            data = file.read(_LENGTH.unpack_from(head)[0]) if len(head) == _LENGTH.size + SEAL_SIZE else b""
            if head[_LENGTH.size :] != keys.seal(data):
                raise SpillError(path, "is not what was written with these keys")
            yield from pickle.loads(data)


def _packed(content: Any) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(content)
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Of readings that stand in arrays, the arrays that the others follow from."""
        if isinstance(value, PackedReadings):
            return type(value), (value._payload_len, value._columns)
        return NotImplemented


class DiskPart:
    """A part on disk. It can be sent to another process, which needs the keys to read what was said of it."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder = folder
        self._number = number

    @property
    def logs_file(self) -> Path:
        return Path(self._folder, f"logs-{self._number:05}.sorted")

    def logs(self) -> Sequence[SortedLog]:
        """Those of the parts that this process had last are still at hand: where there are few, each is read once."""
        path = str(self.logs_file)
        at_hand = PHASE.at_hand.pop(path, None)
        if at_hand is None:
            size = self.logs_file.stat().st_size
            PHASE.make_room(size)
            at_hand = size, list(read_logs(self.logs_file, PHASE.keys))
        PHASE.at_hand[path] = at_hand
        return at_hand[1]

    def verdicts(self) -> Sequence[Verdict]:
        """Those of the last phase before the one at hand: one that was stopped begins anew."""
        before = self._said(PHASE.number - 1)
        assert before, "nothing was said of the part before this phase"
        verdicts: list[Verdict] = load_sealed(before[0], PHASE.keys)
        return verdicts

    def keep(self, verdicts: Sequence[Verdict], /) -> None:
        save_sealed(self._said_in(PHASE.number), list(verdicts), PHASE.keys)
        # Those before the last are not needed, however this phase ends.
        for old in self._said(PHASE.number - 1)[1:]:
            old.unlink(missing_ok=True)

    def _said(self, last: int) -> list[Path]:
        """What was said up to this phase, the latest first."""
        return [path for phase in range(last, 0, -1) if (path := self._said_in(phase)).exists()]

    def _said_in(self, phase: int) -> Path:
        return Path(self._folder, f"said-{self._number:05}-{phase:03}")


@dataclass(slots=True)
class _Phase:
    """Which phase is at hand in this process, the keys that what is kept is sealed with, and the parts it had last."""

    number: int = 0
    held: Keyring | None = None
    # By their files: the size of each and its logs, the one that was asked for last at the end.
    at_hand: dict[str, tuple[int, Sequence[SortedLog]]] = field(default_factory=dict)

    def make_room(self, size: int) -> None:
        """For a part of this size, whatever it takes: parts that were asked for long ago go."""
        while self.at_hand and size + sum([held for held, _ in self.at_hand.values()]) > AT_HAND_BYTES:
            del self.at_hand[next(iter(self.at_hand))]

    @property
    def keys(self) -> Keyring:
        assert self.held is not None, "a phase runs where the keys are"
        return self.held


PHASE = _Phase()


def save_sealed(path: Path, content: Any, keys: Keyring) -> None:
    """Keep objects of ours, whole or not at all."""
    data = _packed(content)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(keys.seal(data) + data)
    temporary.replace(path)


def load_sealed(path: Path, keys: Keyring) -> Any:
    """The same objects; refused if it is not what was kept with these keys."""
    content = path.read_bytes()
    seal, data = content[:SEAL_SIZE], content[SEAL_SIZE:]
    if seal != keys.seal(data):
        raise SpillError(path, "is not what was written with these keys")
    return pickle.loads(data)
