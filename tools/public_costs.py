"""What public mode costs for each step, beside a shared key: CPU microseconds of one run on this machine.

    python tools/public_costs.py [STEPS]

Needs the extra `public`. Ratios within a run mean more than the numbers: all rows are of the same lists. Then the size
of a disclosure, and of a report that carries one.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agentmark import (
    DisclosedSteps,
    Disclosure,
    Embedder,
    LogWriter,
    MarkingKey,
    SharedKey,
    StepRecord,
    Verifier,
    disclose,
)
from agentmark.audit.case import Case, ReportOrder
from agentmark.cli.verify_report import as_json
from agentmark.core import ecvrf
from agentmark.core.public_step import step_input
from agentmark.core.statistics import dirichlet, named
from agentmark.disclosure.basis import PublicBasis
from agentmark.report import render_report

STEPS = 300
OPTIONS = 6
REPORTED = 120
WORK_LIMIT = 200_000
T = TypeVar("T")


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    rng = random.Random(1)
    lists = [named(dirichlet(rng, 1.0, OPTIONS)) for _ in range(steps)]
    shared, marking = SharedKey.generate(), MarkingKey.generate()
    print(f"{steps} steps of {OPTIONS} options, payload of 16 bits; CPU microseconds a step\n")
    print("| | shared key | marking key |\n|---|---|---|")
    for scheme in ("F", "R"):
        disclosure = _print_scheme(scheme, lists, shared, marking)
    entry = disclosure.entries[0]
    alpha = step_input(entry.context, entry.payload_len)
    _, plain = _timed(lambda: ecvrf.proof_output(marking.public.point, alpha, entry.proof), 1)
    print(f"| check one proof in plain Python | - | {plain:.0f} |")
    size = len(json.dumps(disclosure.as_dict())) / len(disclosure.entries)
    as_data, page = _report_sizes(_log(marking, "R", lists[:REPORTED]), marking)
    print(f"\nA disclosure has {size:.0f} bytes a record; a report of {len(lists[:REPORTED])} records that carries its")
    print(f"disclosure has {as_data:.0f} bytes a record as data, and {page:.0f} as a page.")


def _report_sizes(log: Sequence[StepRecord], key: MarkingKey) -> tuple[float, float]:
    """Bytes a record of a report that can be judged again, as data and as a page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        with LogWriter(path) as writer:
            for record in log:
                writer.write(record)
        case = Case(
            logs=[path],
            keys=[DisclosedSteps(disclose(log, key))],
            basis=PublicBasis.of((key.public,)),
            work_limit=WORK_LIMIT,
            report=ReportOrder(command="agentmark verify log.jsonl"),
        )
        report = case.answer().report
    assert report is not None
    return len(as_json(report).encode()) / len(log), len(render_report(report).encode()) / len(log)


def _print_scheme(scheme: str, lists: Sequence[dict[str, float]], shared: SharedKey, marking: MarkingKey) -> Disclosure:
    steps = len(lists)
    log, by_shared = _timed(lambda: _log(shared, scheme, lists), steps)
    proved, by_marking = _timed(lambda: _log(marking, scheme, lists), steps)
    print(f"| choose, {scheme} | {by_shared:.0f} | {by_marking:.0f} |")
    _, by_shared = _timed(lambda: Verifier(shared, work_limit=WORK_LIMIT).verify(log, claim=42), steps)
    _, by_marking = _timed(lambda: Verifier(marking, work_limit=WORK_LIMIT).verify(proved, claim=42), steps)
    print(f"| verify by the holder, {scheme} | {by_shared:.0f} | {by_marking:.0f} |")
    disclosure, spent = _timed(lambda: disclose(proved, marking), steps)
    print(f"| disclose, {scheme} | - | {spent:.0f} |")
    read_back = DisclosedSteps(disclosure)
    _, spent = _timed(lambda: Verifier(read_back, work_limit=WORK_LIMIT).verify(proved, claim=42), steps)
    print(f"| verify by the disclosure, {scheme} | - | {spent:.0f} |")
    return disclosure


def _log(key: SharedKey | MarkingKey, scheme: str, lists: Sequence[dict[str, float]]) -> list[StepRecord]:
    session = Embedder(key, 42, payload_len=16, scheme=scheme).session()
    return [session.choose(weights).record for weights in lists]


def _timed(work: Callable[[], T], steps: int) -> tuple[T, float]:
    """What the work comes to, and CPU microseconds for each of so many steps."""
    began = time.process_time()
    done = work()
    return done, (time.process_time() - began) / steps * 1e6


if __name__ == "__main__":
    main()
