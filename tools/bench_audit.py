"""What bulk audits cost: rates, sessions judged apart, logs of millions of steps, workers, registries, rounding.

    python tools/bench_audit.py                       everything, with 10 million steps (hours on a small machine)
    python tools/bench_audit.py --size 1_000_000      the large log smaller (and the others, if they are larger than it)
    python tools/bench_audit.py rates rounding        these parts only
    python tools/bench_audit.py --write               also put the tables into docs/bench-audit.md, each in its place
    python tools/bench_audit.py --earlier DIR plain   plain `verify` beside that of another checkout, on logs of its own

Times are processor seconds of this machine, and say little of another. Ratios within one run say more: what is
compared is measured in turns. Every number is the median of the rounds, with the least and the most behind it.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from cProfile import Profile
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pstats import Stats

from bench.logs import PAYLOAD_LEN, Logs, Mix
from bench.measure import Cost, Spread, commit, interleaved, run
from bench.pages import Table, measured_on, page_with, say

from agentmark import BehaviorDistribution, Embedder, Registry, SharedKey, StepRecord, Verifier
from agentmark.audit.bulk import BulkAudit
from agentmark.core.distribution import WEIGHT_BITS
from agentmark.core.rounding import round_floats, round_masses
from agentmark.core.statistics import dirichlet, named
from agentmark.identity.registry import Identity
from agentmark.verify.roll import By
from agentmark.verify.verdict import Standing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "bench-audit.md"

# Engine, what makes it run, and how many steps its log has: a plain verdict needs no more to be measured.
ENGINES: Mapping[str, tuple[Sequence[str], Mapping[str, str], int]] = {
    "plain": (("--engine", "plain"), {}, 20_000),
    "batched": (("--engine", "fast"), {"AGENTMARK_NO_NATIVE": "1"}, 300_000),
    "native": (("--engine", "fast"), {}, 1_000_000),
}
# Longer lists, fewer steps: what is compared is held in memory.
MOST_OF_LONG_LISTS = 300_000
SESSIONS_OF_30 = 10_000
SESSION_STEPS = 100
IDENTITIES = 50
DAMAGED = UNMARKED = 0.1
# Of the log that is held against a million names.
FOREIGN = 0.2
MILLION = 1_000_000
# What one process still holds in memory: the hardest to beat.
WORKERS_STEPS = 3 * MILLION
CORRECTIONS: Mapping[str, Sequence[str]] = {"familywise": (), "FDR 0.05": ("--fdr", "0.05")}


@dataclass(frozen=True)
class Setting:
    """What was asked for."""

    work: Path
    seed: int
    rounds: int
    size: int
    earlier: Path | None = None

    def at_most(self, steps: int) -> int:
        """So many steps, or as many as were asked for."""
        return min(steps, self.size)

    def logs(self, name: str, mix: Mix, *, file_count: int = 1) -> Logs:
        """Logs of this mix, made in a folder of their own, a sample of them checked."""
        say(f"making {mix.step_count:,} steps of {mix.scheme}, n = {mix.options}: {name}")
        logs = Logs(self.work / name, mix).write(file_count=file_count)
        compared = logs.check()
        say(f"  {logs.written:,} written; {compared} compared with what the Embedder chooses")
        return logs


# The parts -----------------------------------------------------------------------------------------------------------


def rates(setting: Setting) -> Iterator[Table]:
    """File to verdict, one process."""
    table = Table(
        "Steps a second",
        "`agentmark audit --by all --workers 1`: from the file to one verdict, start of the process included. Steps "
        "for each second of processor time, and how many times as many as the plain engine's (on a shorter log).",
        "scheme",
        "n",
        "file",
        "engine",
        "steps",
        "steps a second",
        "times plain",
    )
    for scheme in ("F", "R"):
        for options in (6, 20):
            files: dict[str, Path] = {}
            logs: dict[str, Logs] = {}
            most = MILLION if options == 6 else MOST_OF_LONG_LISTS
            for count in sorted({setting.at_most(min(steps, most)) for _, _, steps in ENGINES.values()}):
                name = f"rates-{scheme}-{options}-{count}"
                mix = Mix(scheme, options, count // SESSION_STEPS, SESSION_STEPS, seed=setting.seed)
                made = setting.logs(name, mix)
                for kind, path in formats_of(made).items():
                    logs[f"{kind} {count}"], files[f"{kind} {count}"] = made, path
            measures: dict[str, Callable[[], float]] = {}
            for kind in ("JSONL", "Parquet"):
                for engine, (words, environment, steps) in ENGINES.items():
                    count = setting.at_most(min(steps, most))
                    if f"{kind} {count}" in files and engine_is_here(engine):
                        made, path = logs[f"{kind} {count}"], files[f"{kind} {count}"]
                        measures[f"{kind}|{engine}"] = partial(rate_of, made, path, words, environment)
            found = interleaved(measures, setting.rounds)
            for what, spread in found.items():
                kind, engine = what.split("|")
                plain = found[f"{kind}|plain"].middle
                steps = setting.at_most(min(ENGINES[engine][2], most))
                table.add(scheme, options, kind, engine, f"{steps:,}", spread.text(), f"{spread.middle / plain:.1f}")
            for made in logs.values():
                shutil.rmtree(made.root, ignore_errors=True)
    yield table


def formats_of(logs: Logs) -> dict[str, Path]:
    """The one log as JSON lines and, where it can be had, as Parquet."""
    (lines,) = logs.files
    parquet = logs.root / "log.parquet"
    done = run(["convert", lines, "-o", parquet])
    if done.status != 0:
        say(f"  no Parquet: {done.complaint.strip()[-200:]}")
        return {"JSONL": lines}
    return {"JSONL": lines, "Parquet": parquet}


def engine_is_here(engine: str) -> bool:
    if engine == "native":
        try:
            from agentmark.batch.native import built_kernel
        except ImportError:
            return False
        return built_kernel() is not None
    return engine == "plain" or all(find_spec(package) is not None for package in ("msgspec", "numpy"))


def rate_of(logs: Logs, path: Path, words: Sequence[str], environment: Mapping[str, str]) -> float:
    cost = audited(logs, [path], "--by", "all", "--workers", "1", *words, environment=environment)
    return logs.written / cost.cpu_s


def audited(
    logs: Logs,
    paths: Sequence[Path],
    *words: str,
    registry: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Cost:
    """`agentmark audit` of these files; a run that ends in an error ends the measurement."""
    given: list[str | Path] = ["audit", *paths, "--key", logs.key_file, *words]
    if registry:
        given += ["--registry", logs.registry_file]
    cost = run(given, environment)
    if cost.status not in (0, 1):
        sys.exit(f"agentmark {' '.join(map(str, given))} ended with {cost.status}: {cost.complaint}")
    return cost


# Run with the package of either checkout: a log of one session, whose lists are the same in both.
MAKE_A_LOG = """
import random, sys
from pathlib import Path
from agentmark import Embedder, LogWriter, SharedKey
folder, scheme, steps, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
key = SharedKey(rng.randbytes(32))
key.save(folder / "key.json")
session = Embedder(key, 0x5EED, payload_len=32, scheme=scheme).session("0" * 32)
with LogWriter(folder / "log.jsonl") as log:
    for _ in range(steps):
        masses = [rng.expovariate(1.0) for _ in range(6)]
        log.write(session.choose({f"tool {place}": mass for place, mass in enumerate(masses)}).record)
"""
PLAIN_STEPS = 60_000


def plain(setting: Setting) -> Iterator[Table]:
    """Plain `verify`, and that of an earlier checkout."""
    steps = setting.at_most(PLAIN_STEPS)
    table = Table(
        "The plain reader, and an earlier one",
        f"`agentmark verify`, which reads records one by one, from a file of {steps:,} steps of one session (n = 6) to "
        "the verdict, in turns with the package of another commit, which reads a log of its own bytes with the same "
        "lists. Steps for each second of processor time; start of the process included.",
        "scheme",
        "commit",
        "steps a second",
        "times as many",
    )
    checkouts = {commit(): ROOT, **({setting.earlier.name: setting.earlier} if setting.earlier else {})}
    for scheme in ("F", "R"):
        measures: dict[str, Callable[[], float]] = {}
        for name, root in checkouts.items():
            folder = setting.work / f"plain-{scheme}-{name}"
            folder.mkdir(mode=0o700)
            environment = {"PYTHONPATH": str(root / "src")}
            words = [str(folder), scheme, str(steps), str(setting.seed)]
            making = [sys.executable, "-c", MAKE_A_LOG, *words]
            subprocess.run(making, env={**os.environ, **environment}, check=True)
            measures[name] = partial(verified, folder, steps, environment)
        found = interleaved(measures, setting.rounds)
        slowest = min(spread.middle for spread in found.values())
        for name, spread in found.items():
            table.add(scheme, name, spread.text(), f"{spread.middle / slowest:.1f}")
    yield table


def verified(folder: Path, steps: int, environment: Mapping[str, str]) -> float:
    words: list[str | Path] = ["verify", folder / "log.jsonl", "--key", folder / "key.json", "--payload-len", "32"]
    cost = run(words, environment)
    if cost.status != 0:
        sys.exit(f"agentmark verify ended with {cost.status}: {cost.complaint}")
    return steps / cost.cpu_s


# Of one audit in memory: what each part of the work is called, and the file and functions whose time it is.
PART_OF_IT = "of which: "
STAGES = {
    "records out of the file, checked": ("column_chunks.py", "chunks"),
    f"{PART_OF_IT}what reading them may cost": ("column_chunks.py", "reading_costs"),
    "read under the key": ("reading.py", "read_columns"),
    f"{PART_OF_IT}hashes, in C": ("native.py", "read_f", "read_r"),
    "sorted out: copies, conflicts, groups": ("groups.py", "sort_out"),
    "judged": ("many.py", "judge_parts"),
}


def stages(setting: Setting) -> Iterator[Table]:
    """Where the time of one audit goes."""
    steps = setting.at_most(MILLION)
    table = Table(
        "Where the time goes",
        f"One log of {steps:,} steps (n = 6), native, in one process, under Python's profiler, which adds little here: "
        "there are few calls. Shares of the processor time of the audit, without the start of the process.",
        "scheme",
        "file",
        *STAGES,
        "the rest",
    )
    for scheme in ("F", "R"):
        logs = setting.logs(
            f"stages-{scheme}", Mix(scheme, 6, steps // SESSION_STEPS, SESSION_STEPS, seed=setting.seed)
        )
        for kind, path in formats_of(logs).items():
            table.add(scheme, kind, *[f"{100 * share:.0f} %" for share in stage_shares(logs, path)])
        shutil.rmtree(logs.root)
    yield table


def stage_shares(logs: Logs, path: Path) -> list[float]:
    """The shares of STAGES, and of what is left."""
    audit = BulkAudit(
        paths=[str(path)], keys=[SharedKey.load(logs.key_file)], registry=logs.registry, by=By.ALL, workers=1
    )
    profile = Profile(time.process_time)
    profile.runcall(audit.run)
    stats = Stats(profile)
    seconds = {stage: cumulated(stats, file, functions) for stage, (file, *functions) in STAGES.items()}
    # What is part of another stage is not taken off twice.
    whole = [spent for stage, spent in seconds.items() if not stage.startswith(PART_OF_IT)]
    return [spent / stats.total_tt for spent in (*seconds.values(), stats.total_tt - sum(whole))]


def cumulated(stats: Stats, file: str, functions: Sequence[str]) -> float:
    """The seconds in these functions of a file, with all that they call."""
    return sum(
        [found[3] for (path, _, name), found in stats.stats.items() if Path(path).name == file and name in functions]
    )


def apart(setting: Setting) -> Iterator[Table]:
    """Sessions that are judged apart."""
    sessions = setting.at_most(30 * SESSIONS_OF_30) // 30
    table = Table(
        "Sessions judged apart",
        f"{sessions:,} sessions of 30 steps (n = 6) of {IDENTITIES} identities. In a tenth three choices are "
        "somebody else's, and a tenth was made without the mark. One process; the whole command, reading included.",
        "scheme",
        "registry",
        "processor seconds",
        "attributed",
        "wrongly",
    )
    for scheme in ("F", "R"):
        mix = Mix(scheme, 6, sessions, 30, identities=IDENTITIES, spliced=0.1, unmarked=UNMARKED, seed=setting.seed)
        logs = setting.logs(f"apart-{scheme}", mix)
        for registry in (True, False):
            costs = []
            for _ in range(setting.rounds):
                out = logs.root / "results.jsonl"
                costs.append(audited(logs, logs.files, "--workers", "1", "--out", str(out), registry=registry))
            answer = compared(logs, out)
            table.add(
                scheme,
                "of 50 names" if registry else "none",
                Spread([cost.cpu_s for cost in costs]).text(1),
                f"{answer.attributed:,} of {answer.marked:,} marked ones",
                answer.wrong,
            )
        shutil.rmtree(logs.root)
    yield table


@dataclass(frozen=True)
class Compared:
    """Answers beside the truth."""

    sessions: int
    marked: int
    attributed: int
    wrong: int
    by_kind: Mapping[str, str]


def compared(logs: Logs, results: Path) -> Compared:
    """What was said of each session, and what it is. Wrong is every name of another, and any name for no mark."""
    named_of: Counter[str] = Counter()
    wrong = 0
    with results.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            maker, kind = logs.maker[row["group"]], logs.kind[row["group"]]
            if row["standing"] != Standing.ATTRIBUTED:
                continue
            named_of[kind] += 1
            # Without a registry there are payloads and no names. Nobody shares a session here.
            truth = logs.registry.named(maker)
            is_true = int(row["payload"], 16) == truth.payload and row["identity"] in (None, truth.name)
            wrong += kind == "unmarked" or not is_true or bool(row["further"])
    kinds = Counter(logs.kind.values())
    by_kind = {kind: f"{named_of[kind]:,} of {kinds[kind]:,}" for kind in ("clean", "damaged", "spliced", "unmarked")}
    attributed = named_of.total() - named_of["unmarked"]
    return Compared(len(logs.kind), len(logs.kind) - kinds["unmarked"], attributed, wrong, by_kind)


def large(setting: Setting) -> Iterator[Table]:
    """A folder of millions of steps, and one of a tenth of them."""
    table = Table(
        "Millions of steps",
        f"Sessions of {SESSION_STEPS} steps of F (n = 6) of {IDENTITIES} identities in files of about 250,000 steps; a "
        "tenth damaged (one step in eight lost, every twentieth choice somebody else's), a tenth made without the "
        "mark. One worker. Memory is that of the largest process, and in brackets against the smaller folder.",
        "steps",
        "sessions",
        "correction",
        "processor seconds",
        "wall seconds",
        "peak memory",
        "attributed: clean",
        "damaged",
        "unmarked",
        "wrong names",
    )
    peaks: dict[str, float] = {}
    for size in (setting.size // 10, setting.size):
        logs = setting.logs(f"large-{size}", large_mix(setting, size), file_count=max(1, size // 250_000))
        for correction, words in CORRECTIONS.items():
            out = logs.root / f"{correction.split()[0]}.jsonl"
            cost = audited(logs, [logs.logs], "--workers", "1", "--out", str(out), *words)
            answer = compared(logs, out)
            smaller = peaks.setdefault(correction, cost.peak_mb)
            table.add(
                f"{logs.written:,}",
                f"{answer.sessions:,}",
                correction,
                f"{cost.cpu_s:,.1f}",
                f"{cost.wall_s:,.1f}",
                f"{cost.peak_mb:,.0f} MB ({cost.peak_mb / smaller:.2f})",
                answer.by_kind["clean"],
                answer.by_kind["damaged"],
                answer.by_kind["unmarked"],
                answer.wrong,
            )
            out.unlink()
        shutil.rmtree(logs.root)
    yield table


def large_mix(setting: Setting, size: int) -> Mix:
    return Mix(
        "F",
        6,
        size // SESSION_STEPS,
        SESSION_STEPS,
        identities=IDENTITIES,
        damaged=DAMAGED,
        unmarked=UNMARKED,
        seed=setting.seed,
    )


def workers(setting: Setting) -> Iterator[Table]:
    """Two workers against one."""
    size = setting.at_most(WORKERS_STEPS)
    table = Table(
        "Workers",
        f"The same kind of folder with {size:,} steps. Wall time says how much faster; processor time, what it costs.",
        "workers",
        "wall seconds",
        "processor seconds",
        "times as fast",
    )
    logs = setting.logs("workers", large_mix(setting, size), file_count=8)
    costs: dict[int, list[Cost]] = {1: [], 2: []}
    for _ in range(setting.rounds):
        for count, found in costs.items():
            out = logs.root / "results.jsonl"
            found.append(audited(logs, [logs.logs], "--workers", str(count), "--out", str(out)))
    one = Spread([cost.wall_s for cost in costs[1]]).middle
    for count, found in costs.items():
        wall = Spread([cost.wall_s for cost in found])
        table.add(count, wall.text(1), Spread([cost.cpu_s for cost in found]).text(1), f"{one / wall.middle:.2f}")
    shutil.rmtree(logs.root)
    yield table


def registry(setting: Setting) -> Iterator[Table]:
    """One log against a million identities."""
    table = Table(
        "A million identities",
        "A log of 1,000 steps (n = 6), a fifth of the choices somebody else's, judged against a registry of a million "
        "names: processor seconds from steps that are read to the verdict, in one process. What is made of the "
        "registry itself is made at the first verdict, and kept.",
        "scheme",
        "first verdict",
        "further verdicts",
        "named rightly",
    )
    rng = random.Random(setting.seed)
    payloads = rng.sample(range(1 << PAYLOAD_LEN), MILLION)
    names = Registry(PAYLOAD_LEN, [Identity(f"tenant {i}", payload) for i, payload in enumerate(payloads)])
    for scheme in ("F", "R"):
        key, maker = SharedKey(rng.randbytes(32)), rng.randrange(MILLION)
        session = Embedder(key, payloads[maker], payload_len=PAYLOAD_LEN, scheme=scheme).session()
        records = [session.choose(named(dirichlet(rng, 1.0, 6))).record for _ in range(1000)]
        records = [overwritten(record, rng) if rng.random() < FOREIGN else record for record in records]
        verifier = Verifier(key, registry=names)
        intake = verifier.take_in(records)
        seconds = []
        for _ in range(1 + setting.rounds):
            begun = time.process_time()
            verdict = verifier.judge.verdict(intake)
            seconds.append(time.process_time() - begun)
        table.add(scheme, f"{seconds[0]:.2f}", Spread(seconds[1:]).text(2), verdict.identity == f"tenant {maker}")
    yield table


def overwritten(record: StepRecord, rng: random.Random) -> StepRecord:
    assert record.distribution is not None
    return replace(record, behavior=rng.choice(record.distribution.behaviors))


def rounding(setting: Setting) -> Iterator[Table]:
    """Rounding a list of numbers to weights, and the whole of a choice."""
    table = Table(
        "A list of 1,000 options",
        "Microseconds for each call, in this process. Floats settle nearly every list, and long integers the others.",
        "what",
        "microseconds",
        "times rounding",
    )
    rng = random.Random(setting.seed)
    lists = [named(dirichlet(rng, 1.0, 1000)) for _ in range(20)]
    sessions = {scheme: Embedder(SharedKey.generate(), 7, payload_len=32, scheme=scheme).session() for scheme in "FR"}
    measures: dict[str, Callable[[], float]] = {
        "rounding (`quantise`)": partial(microseconds, BehaviorDistribution.quantise, lists),
        "of which in floats": partial(microseconds, rounded_quickly, lists),
        "the same in long integers": partial(microseconds, rounded_slowly, lists),
        "`Session.choose`, F": partial(microseconds, sessions["F"].choose, lists),
        "`Session.choose`, R": partial(microseconds, sessions["R"].choose, lists),
    }
    found = interleaved(measures, 3 * setting.rounds)
    base = next(iter(found.values())).middle
    for what, spread in found.items():
        table.add(what, spread.text(), f"{spread.middle / base:.2f}")
    yield table


def rounded_quickly(weights: Mapping[str, float]) -> list[int] | None:
    return round_floats(list(weights.values()), list(weights), WEIGHT_BITS)


def rounded_slowly(weights: Mapping[str, float]) -> list[int]:
    ratios = [value.as_integer_ratio() for value in weights.values()]
    common = max([denominator for _, denominator in ratios])
    masses = [numerator * (common // denominator) for numerator, denominator in ratios]
    return round_masses(masses, list(weights), WEIGHT_BITS)


def microseconds(call: Callable[[Mapping[str, float]], object], lists: Sequence[Mapping[str, float]]) -> float:
    begun = time.process_time()
    for weights in lists:
        call(weights)
    return (time.process_time() - begun) / len(lists) * 1e6


PARTS: Mapping[str, Callable[[Setting], Iterator[Table]]] = {
    "rates": rates,
    "plain": plain,
    "stages": stages,
    "apart": apart,
    "large": large,
    "workers": workers,
    "registry": registry,
    "rounding": rounding,
}

INTRODUCTION = """# What bulk audits cost

Written by `make bench-audit`. The logs are made for it (`tools/bench/logs.py`): real marks, lists drawn from a pool of
2,000 (Dirichlet 1), payloads of 32 bits. Processor seconds are those of the machine named below each table; ratios
within a row or a column were measured in turns. Numbers are medians, with the least and the most of the rounds in
brackets.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--size", type=int, default=10 * MILLION, help="steps of the large log (10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often what is compared is measured (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--earlier", type=Path, metavar="DIR", help="another checkout, named by its commit, for `plain`"
    )
    parser.add_argument("--work", type=Path, help="where the logs are made (a temporary folder)")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not a part; there are {', '.join(PARTS)}")
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        setting = Setting(
            work=Path(scratch), seed=options.seed, rounds=options.rounds, size=options.size, earlier=options.earlier
        )
        for name in options.parts or PARTS:
            measured = measured_on(options.seed, options.rounds)
            sections = [table.section(measured) for table in PARTS[name](setting)]
            print("\n".join(sections), flush=True)
            # Part by part: what follows may take hours.
            if options.write:
                before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else INTRODUCTION
                PAGE.write_text(page_with(before, sections), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
