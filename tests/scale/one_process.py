"""The buckets of a cluster in one process: what every engine is compared with. Whatever would travel is pickled."""

import pickle
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from agentmark.scale.cluster import Phase, Reader, Rows, Spreader


class OneProcess:
    """Batches of rows; pieces arrive in an order of chance."""

    def __init__(self, rows: Sequence[dict[str, Any]], *, batch: int, seed: int = 0) -> None:
        self._batches = [rows[i : i + batch] for i in range(0, len(rows), batch)]
        self._seed = seed
        # What was shuffled, in bytes, and the largest message that a phase sent.
        self.shuffled = 0

    def read(self, spread: Spreader, read: Reader) -> "Buckets":
        spread, read = pickle.loads(pickle.dumps((spread, read)))
        pieces: dict[int, list[bytes]] = defaultdict(list)
        for batch in self._batches:
            table = pa.Table.from_pylist(list(batch))
            for piece in spread({name: table.column(name) for name in table.column_names}):
                pieces[piece.bucket].append(piece.content)
                self.shuffled += len(piece.content)
        rng = random.Random(self._seed)
        return Buckets({bucket: (*read(rng.sample(mine, len(mine))), b"") for bucket, mine in pieces.items()})


class Buckets:
    def __init__(self, buckets: dict[int, tuple[bytes, bytes, bytes]]) -> None:
        self._buckets = buckets

    def apply(self, phase: Phase) -> "Buckets":
        made = {}
        for bucket, (logs, _, state) in self._buckets.items():
            after, said = pickle.loads(pickle.dumps(phase))(bucket, logs, state)
            made[bucket] = logs, said, after
        return Buckets(made)

    def said(self) -> dict[int, bytes]:
        return {bucket: said for bucket, (_, said, _) in self._buckets.items()}

    def results(self, rows: Rows) -> list[dict[str, Any]]:
        made = [row for _, _, state in self._buckets.values() for row in rows(state)]
        return sorted(made, key=lambda row: str(row["group"]))
