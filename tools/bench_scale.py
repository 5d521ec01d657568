"""What an audit costs a cluster, measured phase by phase in one process, and projected to 10^9 and 10^12 steps.

    python tools/bench_scale.py                       200,000 steps of F and of R
    python tools/bench_scale.py --steps 1000000 --scheme F
    python tools/bench_scale.py --write               into docs/bench-scale.md

Costs are seconds of processor time, so that what else the machine does matters little. Sessions have 100 steps with six
options; one in ten is damaged (three steps in ten are somebody else's), one in ten is unmarked; 50 identities.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.bucket_memory import peaks_mb
from bench.measure import Spread
from bench.metered import Meter, MeteredCluster
from bench.pages import Table, measured_on, page_with, say

from agentmark import Embedder, Registry, SharedKey
from agentmark.scale.audit import ClusterAudit
from agentmark.scale.spreading import LineSpreader
from agentmark.scale.worker_keys import CarriedKeys
from agentmark.verify.many import MOST_COMPARED_STEPS
from agentmark.verify.pooling import MOST_POOLED_STEPS
from agentmark.verify.roll import By

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "bench-scale.md"
SESSION_STEPS = 100
IDENTITIES = 50
OPTIONS = tuple([f"tool-{number}" for number in range(6)])
# What one bucket has here, and what docs/scale.md advises.
BUCKET_STEPS = 50_000
ADVISED_STEPS = 200_000
# Buckets whose memory is compared: what Python takes by itself is in both.
HELD_STEPS = (20_000, 80_000)
PROJECTED = (10**9, 10**12)
# Bytes to the driver that end where there is too much to pool or to compare.
CAPPED = "said up to caps"
SORTED, READ, JUDGED = "sort into buckets", "read under the keys", "judge"
INTRODUCTION = """# What an audit costs a cluster

Written by `make bench-scale`. One process does what the workers of an engine do, phase by phase, and meters it; what
the engine itself costs comes on top. Sessions have 100 steps with six options (gamma 0.7) of 50 identities; a tenth has
three foreign steps in ten, and a tenth is unmarked.
"""


@dataclass
class Costs:
    """What audits of one scheme's logs cost: the same audit, a value a round where processor time is told."""

    steps: int
    sessions: int
    phases: int
    # Bytes a step: of the input as JSON lines, and of what travels or is kept.
    bytes: dict[str, float]
    # Microseconds: of the workers for each step, by phase, and of the driver for each session.
    worker_us: dict[str, list[float]] = field(default_factory=lambda: {SORTED: [], READ: [], JUDGED: []})
    driver_us: list[float] = field(default_factory=list)
    # Megabytes at the peak, by the number of steps of the bucket: when it is read, and to the end.
    peaks: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def all_us(self) -> list[float]:
        return [sum(each) for each in zip(*self.worker_us.values(), strict=True)]

    @property
    def held_kb(self) -> float:
        """What each further step of a bucket takes at the peak, to the end."""
        (few, (_, low)), (many, (_, high)) = sorted(self.peaks.items())
        return (high - low) * 1024 / (many - few)

    @property
    def python_mb(self) -> float:
        """What is left of the peak without steps."""
        few, (_, low) = min(self.peaks.items())
        return low - few * self.held_kb / 1024


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


def fleet(scheme: str, steps: int, seed: int) -> tuple[SharedKey, Registry, list[str]]:
    rng = random.Random(seed)
    key, registry = SharedKey(rng.randbytes(32)), Registry(payload_len=32)
    for number in range(IDENTITIES):
        registry.issue(f"tenant-{number}")
    lines = list(lines_of(scheme, steps, key, registry, seed))
    rng.shuffle(lines)
    return key, registry, lines


def measure(scheme: str, steps: int, seed: int, rounds: int) -> Costs:
    say(f"scheme {scheme}: {steps:,} steps")
    key, registry, lines = fleet(scheme, steps, seed)
    audited(lines[: 10 * SESSION_STEPS], key, registry, None)  # What is imported is imported.
    costs: Costs | None = None
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        costs = audited(lines, key, registry, costs)
    assert costs is not None
    say(f"  {costs.sessions:,} sessions, {costs.phases} phases")
    return costs


def audited(lines: Sequence[str], key: SharedKey, registry: Registry, costs: Costs | None) -> Costs:
    """One audit, told beside those before it."""
    meter = Meter()
    audit = ClusterAudit(keys=CarriedKeys(key), registry=registry)
    buckets = max(1, len(lines) // BUCKET_STEPS)
    begun = time.process_time()
    answer = audit.run(MeteredCluster(lines, meter), LineSpreader(by=By.SESSION, buckets=buckets))
    driver = time.process_time() - begun - sum(meter.seconds.values())
    if costs is None:
        found = {name: meter.bytes[name] / len(lines) for name in (*meter.bytes, CAPPED)}
        size = sum(map(len, lines)) + len(lines)
        costs = Costs(len(lines), answer.summary.rows, meter.phases, {"input": size / len(lines), **found})
    for name, seconds in meter.seconds.items():
        costs.worker_us[name].append(1e6 * seconds / len(lines))
    costs.driver_us.append(1e6 * driver / answer.summary.rows)
    return costs


def held(scheme: str, seed: int, folder: Path) -> dict[int, tuple[float, float]]:
    """The peak memory of buckets, by their steps."""
    found = {}
    for steps in HELD_STEPS:
        key, registry, lines = fleet(scheme, steps, seed)
        found[steps] = peaks_mb(lines, key, registry, folder / f"{scheme}-{steps}")
    return found


# The tables ----------------------------------------------------------------------------------------------------------


def time_table(costs: Mapping[str, Costs]) -> Table:
    one = next(iter(costs.values()))
    table = Table(
        "Processor time",
        f"Microseconds of one core's time for each step, and of the driver's for each session. {one.steps:,} steps in "
        f"{one.sessions:,} sessions and buckets of {BUCKET_STEPS:,}: the middle of the rounds, and the least and the "
        f"most. Phases: {', '.join([f'{each.phases} of {scheme}' for scheme, each in costs.items()])}.",
        "microseconds a step",
        *costs,
    )
    said = {
        SORTED: "lines into columns, sorted into buckets",
        READ: "read under the keys, sorted out by session",
        JUDGED: "judged, all phases",
    }
    for name, what in said.items():
        table.add(what, *[Spread(each.worker_us[name]).text(1) for each in costs.values()])
    table.add("in all", *[Spread(each.all_us).text(1) for each in costs.values()])
    table.add("the driver, a session", *[Spread(each.driver_us).text(1) for each in costs.values()])
    return table


def bytes_table(costs: Mapping[str, Costs]) -> Table:
    table = Table(
        "Bytes",
        f"For each step, of the same audits. To the driver goes, besides a few numbers of each session, what short "
        f"sessions are pooled by and copies are found by: up to {MOST_POOLED_STEPS:,} usable steps of short sessions "
        f"and {MOST_COMPARED_STEPS:,} usable steps in all, and nothing beyond.",
        "bytes a step",
        *costs,
    )
    said: dict[tuple[str, ...], tuple[str, int]] = {
        ("input",): ("as JSON lines", 0),
        ("shuffled",): ("shuffled, as columns", 0),
        ("kept",): ("kept between phases: sorted logs", 0),
        ("verdicts",): ("kept between phases: verdicts", 0),
        ("said", CAPPED): ("to the driver, over all phases, up to these caps", 1),
        ("said",): ("to the driver, over all phases, beyond them", 1),
    }
    for names, (what, digits) in said.items():
        table.add(what, *[f"{sum([each.bytes[name] for name in names]):.{digits}f}" for each in costs.values()])
    return table


def memory_table(costs: Mapping[str, Costs]) -> Table:
    table = Table(
        "Memory of a worker",
        "The peak of a process that reads and judges one bucket. What a step takes is the difference between both "
        "buckets, by their steps; the rest is Python's own.",
        "megabytes",
        *costs,
    )
    for steps in HELD_STEPS:
        table.add(f"a bucket of {steps:,} steps, read", *[f"{each.peaks[steps][0]:.0f}" for each in costs.values()])
        table.add("the same, to the end", *[f"{each.peaks[steps][1]:.0f}" for each in costs.values()])
    table.add("Python, without steps", *[f"{each.python_mb:.0f}" for each in costs.values()])
    table.add("kilobytes a step", *[f"{each.held_kb:.1f}" for each in costs.values()])
    advised = [each.python_mb + ADVISED_STEPS * each.held_kb / 1024 for each in costs.values()]
    table.add(f"so {ADVISED_STEPS:,} steps, with Python", *[f"{mb:.0f}" for mb in advised])
    return table


def projection(costs: Mapping[str, Costs]) -> Table:
    """Two digits are more than rates of one machine can promise of another."""
    columns = [(many, scheme) for many in PROJECTED for scheme in costs]
    table = Table(
        "The same rates at other sizes",
        "This is arithmetic: nothing of this size was run. The bytes of what is pooled and compared are left out, and "
        "the driver's time is that of the sessions above, in one process.",
        "",
        *[f"10^{len(str(many)) - 1} steps, {scheme}" for many, scheme in columns],
    )
    hours = [many * statistics.median(costs[scheme].all_us) / 1e6 / 3600 for many, scheme in columns]
    table.add("core-hours of the workers", *[f"{float(f'{each:.2g}'):,.0f}" for each in hours])
    driver = [many / SESSION_STEPS * statistics.median(costs[s].driver_us) / 1e6 / 3600 for many, s in columns]
    table.add("hours of the driver", *[f"{float(f'{each:.2g}'):,g}" for each in driver])
    said = {
        "read, as JSON lines": ("input",),
        "shuffled": ("shuffled",),
        "kept between phases": ("kept", "verdicts"),
        "to the driver": ("said",),
    }
    for what, names in said.items():
        sizes = [many * sum([costs[scheme].bytes[name] for name in names]) for many, scheme in columns]
        table.add(what, *map(in_words, sizes))
    table.add(f"buckets of {ADVISED_STEPS:,} steps", *[f"{many // ADVISED_STEPS:,}" for many, _ in columns])
    return table


def in_words(size: float) -> str:
    """Bytes, to two digits."""
    unit, name = (1e12, "TB") if size >= 1e10 else (1e9, "GB")
    return f"{float(f'{size / unit:.2g}'):g} {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--scheme", choices=("F", "R"), action="append")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the key, the lists and the damage")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}, of both schemes")
    given = parser.parse_args()
    if given.write and given.scheme:
        parser.error("the page has both schemes: leave out --scheme")
    below = measured_on(given.seed, given.rounds)
    costs = {scheme: measure(scheme, given.steps, given.seed, given.rounds) for scheme in given.scheme or ("F", "R")}
    with tempfile.TemporaryDirectory() as folder:
        for scheme, each in costs.items():
            each.peaks = held(scheme, given.seed, Path(folder))
    tables = [time_table(costs), bytes_table(costs), memory_table(costs), projection(costs)]
    sections = [table.section(below) for table in tables]
    print("\n".join(sections))
    if given.write:
        PAGE.write_text(page_with(INTRODUCTION, sections), encoding="utf-8")


if __name__ == "__main__":
    main()
