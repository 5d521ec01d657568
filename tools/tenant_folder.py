"""Make a folder of three tenants' sessions, some badly damaged, judge it with one command, and compare with the truth.

    python tools/tenant_folder.py                    300 sessions of F, with a registry
    python tools/tenant_folder.py --scheme R --no-registry
    python tools/tenant_folder.py --keep FOLDER      also keep the folder, the answers and the reports

The exit status is 1 if anybody is named wrongly, if fewer sessions are named than could be, or if the command takes
more than 20 s of processor time. The lists are random (Dirichlet, twelve options); the seed makes lists and damage the
same again, keys and sessions are new each time.
"""

import argparse
import gzip
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentmark import Embedder, Registry, SharedKey, StepRecord
from agentmark.verify.verdict import Standing

TENANTS = ("acme", "initech", "umbrella")
OPTIONS = tuple([f"tool-{number}" for number in range(12)])
MOST_CPU_S = 20.0
# Kinds of damage that leave nobody to be named.
RUINED = ("cut to three steps", "unmarked", "of another key", "overwritten", "empty")
# Of these, nobody may be named at all.
NOT_OURS = ("unmarked", "of another key", "empty")
# The least share of the lightly damaged that must be named, alone or together with others. Without a registry, naming
# anybody takes 29 bits more.
LEAST_NAMED, LEAST_NAMED_OPEN = 0.9, 0.8
POOLED = "pooled"


class Folder:
    """300 files, and what each session in them is."""

    def __init__(self, root: Path, *, scheme: str, sessions: int, ruined: int, seed: int) -> None:
        self.root = root
        self._rng = random.Random(seed)
        self._scheme = scheme
        self.key = SharedKey.generate()
        self.registry = Registry(payload_len=32)
        for name in TENANTS:
            self.registry.issue(name)
        # Who made each session, and how it was ruined; None if it can still be named.
        self.maker: dict[str, str] = {}
        self.ruin: dict[str, str | None] = {}
        badly = set(self._rng.sample(range(sessions), ruined))
        for number in range(sessions):
            ruin = RUINED[number % len(RUINED)] if number in badly else None
            self._write(number, TENANTS[number % len(TENANTS)], ruin)
        (root / "notes.txt").write_text("What the operators wrote down.\n", encoding="utf-8")
        (root / "invoice.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)))

    def _write(self, number: int, tenant: str, ruin: str | None) -> None:
        key = SharedKey.generate() if ruin == "of another key" else self.key
        session = Embedder(key, tenant, registry=self.registry, scheme=self._scheme).session()
        self.maker[session.id], self.ruin[session.id] = tenant, ruin
        records = [session.choose(self._weights()).record for _ in range(self._rng.randint(15, 40))]
        lines = [record.to_json() for record in self._damaged(records, ruin)]
        if ruin == "empty":
            lines = []
        text = "".join([f"{line}\n" for line in lines])
        # A few files end in the middle of a line, and a few are packed.
        if number % 10 == 3 and len(lines) > 8:
            text = text[:-20]
        folder = self.root / f"host-{number % 7}" / f"day-{number % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        if number % 6 == 5:
            (folder / f"run-{number:03d}.jsonl.gz").write_bytes(gzip.compress(text.encode("utf-8")))
        else:
            (folder / f"run-{number:03d}.jsonl").write_text(text, encoding="utf-8")

    def _weights(self) -> dict[str, float]:
        return {name: self._rng.gammavariate(1.0, 1.0) for name in OPTIONS}

    def _damaged(self, records: Sequence[StepRecord], ruin: str | None) -> list[StepRecord]:
        if ruin == "cut to three steps":
            return list(records[:3])
        if ruin == "unmarked":
            return [self._altered(record, marked=False) for record in records]
        if ruin == "overwritten":
            # Nine choices in ten are somebody else's.
            return [self._altered(record) if self._rng.random() < 0.9 else record for record in records]
        # An eighth is lost, every twentieth choice is somebody else's, and the order is gone.
        kept = [record for record in records if self._rng.random() > 0.125]
        kept = [self._altered(record) if self._rng.random() < 0.05 else record for record in kept]
        self._rng.shuffle(kept)
        return kept

    def _altered(self, record: StepRecord, *, marked: bool = True) -> StepRecord:
        assert record.distribution is not None
        behavior = self._rng.choice(record.distribution.behaviors)
        reason = None if marked else "elicitation failed: no list"
        return replace(record, behavior=behavior, marked=marked, reason=reason)


@dataclass(frozen=True)
class Run:
    """One command: its answer for each session, the last line of it, and what it cost."""

    rows: dict[str, Mapping[str, Any]]
    summary: Mapping[str, Any]
    cpu_s: float


def judge(folder: Folder, *, registry: bool, out: Path) -> Run:
    """`agentmark verify FOLDER`, as an auditor calls it."""
    key, names = out / "key.json", out / "registry.jsonl"
    folder.key.save(key)
    folder.registry.save(names)
    words = [sys.executable, "-m", "agentmark", "verify", str(folder.root), "--key", str(key), "--skip-bad", "--json"]
    words += ["--csv", str(out / "sessions.csv"), "--report", f"{out / 'report'}/"]
    if registry:
        words += ["--registry", str(names)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"verify ended with {done.returncode}: {done.stderr}")
    *lines, last = map(json.loads, done.stdout.splitlines())
    rows = {line["session"]: line for line in lines}
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(rows, last["summary"], cpu_s)


def compare(folder: Folder, run: Run, *, registry: bool) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many sessions of which kind got which answer; and every answer that is wrong."""
    table: Counter[tuple[str, str]] = Counter()
    wrong = []
    for session, maker in folder.maker.items():
        kind = folder.ruin[session] or "lightly damaged"
        row = run.rows.get(session)
        standing = "no record left" if row is None else str(row["standing"])
        if row is not None and row["pool"] is not None:
            speaks_for = run.summary["pools"][row["pool"]]["payload"]
            right = int(speaks_for, 16) == folder.registry.named(maker).payload
            standing = POOLED if right else "pooled, for another"
        table[kind, standing] += 1
        for found in [] if row is None else row["found"]:
            truth = folder.registry.named(maker).payload
            name_fits = not registry or found["identity"] == maker
            if int(found["payload"], 16) != truth or not name_fits or folder.ruin[session] in NOT_OURS:
                wrong.append(f"{session} of {maker} ({kind}) was named {found}")
    return table, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheme", choices=("F", "R"), default="F")
    parser.add_argument("--no-registry", dest="registry", action="store_false", help="read the payloads themselves")
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--ruined", type=int, default=47)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        (out / "logs").mkdir()
        folder = Folder(
            out / "logs", scheme=options.scheme, sessions=options.sessions, ruined=options.ruined, seed=options.seed
        )
        run = judge(folder, registry=options.registry, out=out)
        pages = sorted(path.name for path in (out / "report").iterdir())
    table, wrong = compare(folder, run, registry=options.registry)
    print(f"scheme {options.scheme}, {'with' if options.registry else 'without'} registry, seed {options.seed}")
    print(
        f"{options.sessions} sessions: {run.cpu_s:.1f} s of processor time on {platform.machine()}, {sys.version[:6]}"
    )
    print(run.summary["sentence"])
    for (kind, standing), count in sorted(table.items()):
        print(f"  {kind:20} {standing:16} {count:5}")
    print(f"  pages: {', '.join(pages)}")
    faults = list(wrong)
    named = sum([count for (_, standing), count in table.items() if standing in (Standing.ATTRIBUTED, POOLED)])
    least = LEAST_NAMED if options.registry else LEAST_NAMED_OPEN
    if named < least * (options.sessions - options.ruined):
        faults.append(f"only {named} sessions were named, alone or together")
    if run.cpu_s > MOST_CPU_S:
        faults.append(f"it took more than {MOST_CPU_S:g} s")
    identity_pages = [name for name in pages if name.startswith("identity-") and name.endswith(".html")]
    if len(identity_pages) != len(TENANTS):
        faults.append(f"{len(identity_pages)} pages for {len(TENANTS)} identities")
    for fault in faults:
        print(f"WRONG: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
