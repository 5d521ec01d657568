"""Operations against microseconds: does `agentmark/core/costs.py` still say what things cost on this machine?

    python tools/measure_work.py

Each line is one part of verification: what its meter counts, what it takes, and the ratio. Ratios near 1 are right;
run it on a machine that has nothing else to do.
"""

import random
import time
from collections.abc import Callable
from functools import partial

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.schemes import SCHEMES
from agentmark.core.statistics import dirichlet, named
from agentmark.core.symbols import SymbolSet
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.verify.search.clean import eliminate
from agentmark.verify.search.information_sets import likely_payloads
from agentmark.verify.search.registry_scan import scan
from agentmark.verify.search.symbols import search_payloads
from agentmark.verify.search.walsh import likeliest_by_rate
from agentmark.verify.work import Work

ROUNDS = 5


def main() -> None:
    rng = random.Random(1)
    for size, alpha in ((2, 1.0), (6, 0.3), (20, 1.0), (1000, 0.1)):
        show_reading(f"{size} options, Dirichlet {alpha}", named(dirichlet(rng, alpha, size)), rng)
    light = {f"{number:x}": 1.0 for number in range(4095)}
    show_reading("4096 options, one of them usual", {"usual": float(TOTAL_WEIGHT - 4095)} | light, rng)
    for payload_len in (32, 128, 1024, 4096):
        rows = [equations(rng, payload_len) for _ in range(payload_len)]
        show(f"elimination of {payload_len} bits", partial(eliminate, rows, payload_len))
    for payload_len in (32, 64, 128):
        rows = [equations(rng, payload_len) for _ in range(600)]
        trials = partial(likely_payloads, rows, payload_len, rng=random.Random(0))
        show(f"information sets of {payload_len} bits, F", lambda work, trials=trials: list(trials(work=work)), 200_000)
    sets = [symbols(rng, 32, 40) for _ in range(200)]
    show(
        "information sets of 32 bits, R", lambda work: list(likely_payloads(sets, 32, rng=random.Random(0), work=work))
    )
    system = eliminate([], 32, Work()).system
    show("search over symbols, 32 bits", partial(search_payloads, system, sets))
    for payload_len in (16, 20, 24):
        readings = [symbols(rng, payload_len, 40) for _ in range(300)]
        search = partial(likeliest_by_rate, readings, payload_len, noise=(0.5,))
        show(f"transform of {payload_len} bits", lambda work, search=search: list(search(work=work)))
    for names in (100, 100_000):
        payloads = [rng.getrandbits(32) for _ in range(names)]
        search = partial(scan, payloads, sets, payload_len=32, noise=(0.1, 0.5, 0.8))
        show(f"registry of {names} names", lambda work, search=search: search(work=work))


def show_reading(what: str, weights: dict[str, float], rng: random.Random) -> None:
    distribution = BehaviorDistribution.quantise(weights)
    for scheme in SCHEMES.values():
        read = partial(scheme.read, distribution, rng.randbytes(32), distribution.behaviors[0], payload_len=32)
        cost = scheme.read_cost(distribution.behaviors, payload_len=32, whole=True)
        line(f"reading {scheme.name}, {what}", cost, fastest(lambda read=read: read()))


def show(what: str, search: Callable[[Work], object], limit: float = DEFAULT_WORK_LIMIT) -> None:
    work = Work(limit)
    search(work)
    line(what, work.spent, fastest(lambda: search(Work(limit))))


def fastest(call: Callable[[], object]) -> float:
    """Microseconds of this process, in its best round."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e6 * min(times)


def line(what: str, operations: float, microseconds: float) -> None:
    ratio = microseconds / max(operations, 1)
    print(f"{what:<48} {operations:>12.0f} operations {microseconds:>12.0f} us   {ratio:5.2f}", flush=True)


def equations(rng: random.Random, payload_len: int) -> SymbolSet:
    return SymbolSet((rng.getrandbits(payload_len), rng.getrandbits(payload_len)), 0, 1 << rng.randrange(4))


def symbols(rng: random.Random, payload_len: int, count: int) -> SymbolSet:
    rows = tuple([rng.getrandbits(payload_len) for _ in range(8)])
    return SymbolSet(rows, rng.getrandbits(8), sum([1 << symbol for symbol in rng.sample(range(256), count)]))


if __name__ == "__main__":
    main()
