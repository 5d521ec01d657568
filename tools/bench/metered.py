"""An audit of a cluster in one process, metered: what would run on a worker, and what would travel."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from agentmark.scale.cluster import Phase, Reader, Rows, Spreader

BATCH = 50_000


class Meter:
    """Processor time and bytes, by name."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.phases = 0
        self._since = 0.0

    def begin(self) -> None:
        self._since = time.process_time()

    def end(self, name: str) -> None:
        self.seconds[name] += time.process_time() - self._since


class MeteredCluster:
    """One process that does what an engine does, and measures what would run on a worker or travel."""

    def __init__(self, lines: Sequence[str], meter: Meter) -> None:
        self._lines = lines
        self.meter = meter

    def read(self, spread: Spreader, read: Reader) -> "MeteredBuckets":
        meter = self.meter
        pieces: dict[int, list[bytes]] = defaultdict(list)
        for i in range(0, len(self._lines), BATCH):
            table = pa.table({"text": self._lines[i : i + BATCH]})
            meter.begin()
            made = spread({"text": table.column("text")})
            meter.end("sort into buckets")
            for piece in made:
                pieces[piece.bucket].append(piece.content)
                meter.bytes["shuffled"] += len(piece.content)
        buckets = {}
        for bucket, contents in sorted(pieces.items()):
            meter.begin()
            logs, said = read(contents)
            meter.end("read under the keys")
            meter.bytes["kept"] += len(logs)
            meter.bytes["said"] += len(said)
            buckets[bucket] = logs, b"", said
        return MeteredBuckets(buckets, meter)


class MeteredBuckets:
    """Buckets in memory."""

    def __init__(self, buckets: dict[int, tuple[bytes, bytes, bytes]], meter: Meter) -> None:
        self._buckets = buckets
        self._meter = meter

    def apply(self, phase: Phase) -> "MeteredBuckets":
        done = {}
        self._meter.phases += 1
        for bucket, (logs, state, _) in self._buckets.items():
            self._meter.begin()
            after, said = phase(bucket, logs, state)
            self._meter.end("judge")
            # What pools and copies are compared by is sent up to the caps on both, and not beyond them.
            self._meter.bytes["said" if _goes_on(phase) else "said up to caps"] += len(said)
            done[bucket] = logs, after, said
        self._meter.bytes["verdicts"] = sum([len(state) for _, state, _ in done.values()])
        return MeteredBuckets(done, self._meter)

    def said(self) -> dict[int, bytes]:
        return {bucket: said for bucket, (_, _, said) in self._buckets.items()}

    def results(self, rows: Rows) -> list[dict[str, Any]]:
        self._meter.begin()
        made = [row for _, state, _ in self._buckets.values() for row in rows(state)]
        self._meter.end("judge")
        return made


def _goes_on(phase: Phase) -> bool:
    """Whether what a phase says grows with the number of logs, however many there are."""
    function = getattr(phase, "function", None)
    return getattr(function, "__name__", "") not in ("_gather_part", "_digests_of_part")
