"""What a worker does with a bucket: reads its records under the keys, and judges its logs phase by phase."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentmark.audit.chunks import group_of
from agentmark.batch.columns import StepColumns
from agentmark.scale.pieces import gather
from agentmark.scale.worker_keys import WorkerKeys, keyring_of
from agentmark.verify.many import Group
from agentmark.verify.roll import By
from agentmark.verify.state import LogState, accumulate


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """Reads the records of a bucket under the keys, each log by itself."""

    keys: WorkerKeys
    by: By

    def __call__(self, pieces: Sequence[bytes]) -> tuple[bytes, bytes]:
        gathered = gather(pieces)
        columns = gathered.columns
        keys = keyring_of(self.keys)
        groups = []
        for name, rows in _groups(columns, self.by).items():
            records = [replace(columns.record(row), reason=None if columns.marked[row] else "?") for row in rows]
            files = sorted({columns.files[columns.file[row]] for row in rows})
            groups.append([name, files, accumulate(records, keys).to_bytes().hex()])
        return json.dumps(groups).encode(), json.dumps(gathered.notes).encode()


class HandOver:
    """Says all that there is."""

    def __call__(self, logs: bytes, state: bytes) -> tuple[bytes, bytes]:
        return state, logs


def groups_of(said: bytes) -> list[Group]:
    return [
        Group(name=name, files=tuple(files), state=LogState.from_bytes(bytes.fromhex(state)))
        for name, files, state in json.loads(said)
    ]


def _groups(columns: StepColumns, by: By) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in range(len(columns)):
        name = group_of(columns.record(row), columns.files[columns.file[row]], by)
        found.setdefault(name, []).append(row)
    return found
