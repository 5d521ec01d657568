"""The peak memory of a process that audits one bucket, as a worker holds it.

python -m bench.bucket_memory FOLDER              in tools, with what `hand_over` has left in the folder
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from agentmark import Registry, SharedKey
from agentmark.scale.audit import ClusterAudit
from agentmark.scale.cluster import Reader, Spreader
from agentmark.scale.spreading import LineSpreader
from agentmark.scale.worker_keys import CarriedKeys
from agentmark.verify.roll import By
from bench.metered import BATCH, Meter, MeteredBuckets

SPREAD = LineSpreader(by=By.SESSION, buckets=1)
KEY, REGISTRY, PIECES = "key.json", "registry.jsonl", "pieces"


class OneBucket:
    """A cluster of one bucket, whose pieces have arrived."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self.peak_mb = 0.0

    def read(self, spread: Spreader, read: Reader) -> MeteredBuckets:
        logs, said = read(self._pieces)
        self.peak_mb = peak_mb()
        return MeteredBuckets({0: (logs, b"", said)}, Meter())


def peaks_mb(lines: Sequence[str], key: SharedKey, registry: Registry, folder: Path) -> tuple[float, float]:
    """Of a process of its own that reads these lines as one bucket: when they are read, and to the end."""
    hand_over(lines, key, registry, folder)
    words = [sys.executable, "-m", "bench.bucket_memory", str(folder)]
    printed = subprocess.run(words, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True).stdout
    read, whole = json.loads(printed)
    return read, whole


def hand_over(lines: Sequence[str], key: SharedKey, registry: Registry, folder: Path) -> None:
    batches = [lines[i : i + BATCH] for i in range(0, len(lines), BATCH)]
    pieces = [
        piece.content for batch in batches for piece in SPREAD({"text": pa.table({"text": batch}).column("text")})
    ]
    folder.mkdir(mode=0o700)
    key.save(folder / KEY)
    registry.save(folder / REGISTRY)
    (folder / PIECES).write_bytes(pickle.dumps(pieces))


def peak_mb() -> float:
    """Of this process since it began: unlike what `getrusage` tells, without what the one that started it held."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    folder = Path(sys.argv[1])
    cluster = OneBucket(pickle.loads((folder / PIECES).read_bytes()))
    keys = CarriedKeys(SharedKey.load(folder / KEY))
    ClusterAudit(keys=keys, registry=Registry.load(folder / REGISTRY)).run(cluster, SPREAD)
    print(json.dumps([cluster.peak_mb, peak_mb()]))


if __name__ == "__main__":
    main()
