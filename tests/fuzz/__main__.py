"""Fuzz for a while: python tests/fuzz --seconds 600. A failure is kept as a file: python tests/fuzz --repeat FILE."""

import argparse
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / folder) for folder in ("", "log", "log/read", "chain")]

from fuzz.command_line import shown  # noqa: E402
from fuzz.harness import Failure, run_one, target_of  # noqa: E402
from fuzz.targets import TARGETS, Target  # noqa: E402

FAILURES = Path("fuzz-failures")
# Far above what is allowed, so that what is beyond it shows as a failure and not as a dead machine.
ADDRESS_SPACE_BYTES = 3 << 30
# A worker that has not begun a new input for so long hangs where no signal reaches it.
HANGS_AFTER_S = 600.0
EXIT_FAILURES = 1
# Of a worker: told from Python's own exit for an error of the fuzzer itself.
EXIT_FOUND = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="in all, shared among the targets (default 600)")
    parser.add_argument("--seed", type=int, help="of all that is random (default: a new one, which is printed)")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this; give it again for more")
    parser.add_argument("--repeat", type=Path, nargs="+", metavar="FILE", help="only run kept inputs again")
    parser.add_argument("--failures", type=Path, default=FAILURES, metavar="FOLDER", help="(default %(default)s)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.repeat:
        return _repeat(arguments.repeat)
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    targets = [TARGETS[name] for name in arguments.target or TARGETS]
    if arguments.worker:
        return _work(targets[0], seed, arguments.seconds, arguments.failures)
    print(f"seed {seed}", flush=True)
    share = arguments.seconds / sum(target.weight for target in targets)
    failed = [target.name for target in targets if not _supervise(target, seed, share, arguments.failures)]
    print(f"failures in: {', '.join(failed)}" if failed else "no failure")
    return EXIT_FAILURES if failed else 0


def _repeat(paths: list[Path]) -> int:
    failures = []
    for path in paths:
        target = target_of(path)
        failure = run_one(target, path.read_bytes())
        print(f"{path}: {f'{failure.fault} ({failure.place})' if failure else 'ends as it should'}")
        failures += [failure] if failure else []
    return EXIT_FAILURES if failures else 0


# One target in a process of its own ----------------------------------------------------------------------------------


def _supervise(target: Target, seed: int, share: float, folder: Path) -> bool:
    """Run a worker to its end; whether nothing failed. What kills it is a failure of the input it was at."""
    seconds = share * target.weight
    words = [sys.executable, __file__, "--worker", "--target", target.name]
    words += ["--seed", str(seed), "--seconds", str(seconds), "--failures", str(folder)]
    current = _current(target, folder)
    worker = subprocess.Popen(words)
    while worker.poll() is None:
        time.sleep(0.2)
        if current.exists() and time.time() - current.stat().st_mtime > HANGS_AFTER_S:
            worker.kill()
            worker.wait()
    if worker.returncode not in (0, EXIT_FOUND):
        data = current.read_bytes() if current.exists() else b""
        ended = f"the process ended with {worker.returncode}"
        if worker.returncode < 0:
            ended = f"the process was ended by {signal.Signals(-worker.returncode).name}"
        _report(Failure(target.name, ended, "", data), seed, folder)
    current.unlink(missing_ok=True)
    return worker.returncode == 0


def _current(target: Target, folder: Path) -> Path:
    """Where a worker keeps the input that it is at."""
    return folder / f".{target.name}.current"


def _work(target: Target, seed: int, seconds: float, folder: Path) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(f"{seed} {target.name}")
    current = _current(target, folder)
    seen: dict[str, int] = {}
    count, slowest = 0, 0.0
    inputs = itertools.chain(target.seeds, iter(lambda: target.draw(rng), None))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = next(inputs)
        current.write_bytes(data)
        start = time.process_time()
        failure = run_one(target, data)
        count, slowest = count + 1, max(slowest, time.process_time() - start)
        if failure is not None:
            fault = failure.place or failure.fault
            seen[fault] = seen.get(fault, 0) + 1
            if seen[fault] == 1:
                _report(failure, seed, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{target.name}: {count} inputs, slowest {slowest:.1f} s, peak {peak} MiB, "
        f"{len(seen)} faults in {sum(seen.values())} inputs",
        flush=True,
    )
    return EXIT_FOUND if seen else 0


def _report(failure: Failure, seed: int, folder: Path) -> None:
    path = failure.save(folder)
    print(f"FAILURE {failure.target}: {failure.fault} ({failure.place})", flush=True)
    if failure.target == "command-line":
        print(f"  {shown(failure.data)}")
    print(f"  seed {seed}; again: {os.path.relpath(sys.executable)} tests/fuzz --repeat {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
