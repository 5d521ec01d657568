"""What an audit costs a cluster, measured phase by phase in one process, and projected to 10^9 and 10^12 steps.

    python tools/bench_scale.py                       200,000 steps of F and of R
    python tools/bench_scale.py --steps 1000000 --scheme F

Costs are seconds of processor time, so that what else the machine does matters little. Sessions have 100 steps with six
options; one in ten is damaged (three steps in ten are somebody else's), one in ten is unmarked; 50 identities.
"""

import argparse
import platform
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from agentmark import Embedder, Registry, SharedKey
from agentmark.scale.audit import ClusterAudit
from agentmark.scale.cluster import Phase, Reader, Rows, Spreader
from agentmark.scale.spreading import LineSpreader
from agentmark.scale.worker_keys import CarriedKeys
from agentmark.verify.roll import By

SESSION_STEPS = 100
OPTIONS = tuple([f"tool-{number}" for number in range(6)])
BATCH = 50_000
# What one bucket has, in steps: what docs/scale.md advises.
BUCKET_STEPS = 50_000
PROJECTED = (10**9, 10**12)


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
            # What pools and copies are compared by is sent as long as there is little of it.
            self._meter.bytes["said" if _goes_on(phase) else "said of few"] += len(said)
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


def lines_of(scheme: str, steps: int, key: SharedKey, registry: Registry, seed: int) -> Iterator[str]:
    """The lines of a fleet's logs, sessions mixed as several agents write them."""
    rng = random.Random(seed)
    names = [identity.name for identity in registry]
    for number in range(steps // SESSION_STEPS):
        session = Embedder(key, names[number % len(names)], registry=registry, scheme=scheme).session()
        for _ in range(SESSION_STEPS):
            record = session.choose({name: rng.gammavariate(0.7, 1.0) for name in OPTIONS}).record
            if number % 10 == 3 and rng.random() < 0.3:
                record = replace(record, behavior=rng.choice(OPTIONS))
            elif number % 10 == 7:
                record = replace(record, marked=False, reason="elicitation failed")
            yield record.to_json()


def measure(scheme: str, steps: int, seed: int) -> None:
    key, registry = SharedKey.generate(), Registry(payload_len=32)
    for number in range(50):
        registry.issue(f"tenant-{number}")
    lines = list(lines_of(scheme, steps, key, registry, seed))
    random.Random(seed).shuffle(lines)
    meter = Meter()
    audit = ClusterAudit(keys=CarriedKeys(key), registry=registry)
    buckets = max(1, steps // BUCKET_STEPS)
    begun = time.process_time()
    answer = audit.run(MeteredCluster(lines, meter), LineSpreader(by=By.SESSION, buckets=buckets))
    driver = time.process_time() - begun - sum(meter.seconds.values())
    size = sum(map(len, lines)) + len(lines)
    print(f"scheme {scheme}: {len(lines):,} steps in {answer.summary.rows:,} sessions, {buckets} buckets")
    print(f"  {answer.summary.sentence} {meter.phases} phases.")
    print(f"  input {size / len(lines):.0f} bytes a step")
    for name, count in meter.bytes.items():
        print(f"  {name:22} {count / len(lines):8.1f} bytes a step")
    for name, seconds in meter.seconds.items():
        print(f"  {name:22} {1e6 * seconds / len(lines):8.2f} us a step")
    each = sum(meter.seconds.values()) / len(lines)
    print(f"  {'workers in all':22} {1e6 * each:8.2f} us a step, {1 / each:,.0f} steps a second of one core")
    print(f"  {'driver':22} {1e6 * driver / answer.summary.rows:8.2f} us a session")
    for many in PROJECTED:
        shuffled = many * meter.bytes["shuffled"] / len(lines)
        kept = many * (meter.bytes["kept"] + meter.bytes["verdicts"]) / len(lines)
        said = many * meter.bytes["said"] / len(lines)
        print(
            f"  {many:.0e} steps: {many * each / 3600:,.0f} core-hours, {many * size / len(lines) / 1e12:.2f} TB read, "
            f"{shuffled / 1e12:.2f} TB shuffled, {kept / 1e12:.2f} TB kept, {said / 1e9:,.1f} GB to the driver"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--scheme", choices=("F", "R"), action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {sys.version.split()[0]}")
    for scheme in options.scheme or ("F", "R"):
        measure(scheme, options.steps, options.seed)


if __name__ == "__main__":
    main()
