"""What the gateway costs: latency it adds, requests it serves per second of a core, and memory over many requests.

    python tools/bench_gateway.py                          a few minutes
    python tools/bench_gateway.py --requests 100000        memory over as many
    python tools/bench_gateway.py --write                  into docs/bench-gateway.md

An upstream on the loopback answers in microseconds, so all that is left is what stands in between: nothing (a direct
call), a bare proxy, or the gateway. Rounds of all of them are interleaved. Machines are shared:
what a core serves is stated as requests by second of the process's own processor time.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.loopback import Load, chat_request, load, messages_request
from bench.measure import Spread

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "bench-gateway.md"
CLIENTS = 32
START_S = 60
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


@dataclass(frozen=True)
class Way:
    """Something between the clients and the upstream, and what is asked through it."""

    name: str
    port: int
    # The process that stands in between; None: none does.
    pid: int | None
    path: str
    body_of: Callable[[int], bytes]


@dataclass
class Seen:
    """What was measured of one way, a value a round."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    per_core: list[float] = field(default_factory=list)
    busy_p50_ms: list[float] = field(default_factory=list)
    busy_p99_ms: list[float] = field(default_factory=list)
    # What the gateway says it added to requests of one client, by the upper edges of its buckets (seconds).
    added: Counter[float] = field(default_factory=Counter)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(words: list[str], port: int, folder: Path) -> Iterator[int]:
    """A process that listens on a port."""
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tools'}", "PYTHONDONTWRITEBYTECODE": ""}
    with (folder / f"output-{port}").open("wb") as output:
        process = subprocess.Popen([sys.executable, *words], cwd=folder, env=variables, stdout=output, stderr=output)
    try:
        end = time.monotonic() + START_S
        while True:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{words}: {(folder / f'output-{port}').read_text('utf-8', 'replace')}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def asked(way: Way, requests: int, clients: int, each: Callable[[int], None] | None = None) -> Load:
    seen = asyncio.run(load(way.port, way.path, way.body_of, requests=requests, clients=clients, each=each))
    if seen.statuses != {200: requests}:
        raise RuntimeError(f"{way.name}: {seen.statuses}")
    return seen


def measure(way: Way, seen: Seen, alone: int, together: int) -> None:
    is_gateway = way.name.startswith("gateway")
    already = added_buckets(way.port) if is_gateway else Counter()
    quiet = asked(way, alone, 1)
    if is_gateway:
        seen.added.update(added_buckets(way.port) - already)
    seen.p50_ms.append(quiet.quantile(0.5) * 1000)
    seen.p99_ms.append(quiet.quantile(0.99) * 1000)
    before = cpu_s(way.pid) if way.pid is not None else 0.0
    busy = asked(way, together, CLIENTS)
    seen.busy_p50_ms.append(busy.quantile(0.5) * 1000)
    seen.busy_p99_ms.append(busy.quantile(0.99) * 1000)
    if way.pid is not None:
        seen.per_core.append(together / (cpu_s(way.pid) - before))


def gateway_words(upstream: int, port: int, mode: str, store: str | None = None) -> list[str]:
    return [
        *("-m", "agentmark", "gateway", "--upstream", f"http://127.0.0.1:{upstream}", "--key", "key.json"),
        *(
            "--identity",
            "42",
            "--payload-len",
            "16",
            "--mode",
            mode,
            "--store",
            store or f"{mode}.db",
            "--port",
            str(port),
        ),
    ]


def added_buckets(port: int) -> Counter[float]:
    """What the gateway counted beyond the upstream's time to the first byte, cumulated by the edges of its buckets."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        lines = response.read().decode().splitlines()
    buckets: Counter[float] = Counter()
    for line in lines:
        if line.startswith("agentmark_added_seconds_bucket"):
            edge = float(line.partition('le="')[2].partition('"')[0].replace("+Inf", "inf"))
            buckets[edge] += int(float(line.rpartition(" ")[2]))
    return buckets


def below_ms(buckets: Counter[float], share: float) -> str:
    """Below which edge so many of them are."""
    total = max(buckets.values(), default=0)
    edges = [edge for edge, seen in buckets.items() if total and seen >= share * total]
    return f"{min(edges) * 1000:g}" if edges else ""


def disk_ms(folder: Path, times: int = 50) -> float:
    """What a bare write of 4 KiB through to the disk takes."""
    spent = []
    with (folder / "probe").open("wb") as file:
        for _ in range(times):
            begun = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - begun) * 1000)
    return sorted(spent)[times // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", type=int, default=500, help="requests of one client in each round")
    parser.add_argument("--together", type=int, default=2000, help=f"requests of {CLIENTS} clients in each round")
    parser.add_argument("--requests", type=int, default=20000, help="requests over which memory is watched")
    parser.add_argument("--seed", type=int, default=0, help="of the upstream's choices")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = bench(Path(folder), given)
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        PAGE.write_text(text, encoding="utf-8")


def bench(folder: Path, given: argparse.Namespace) -> list[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-m", "agentmark", "keygen", "key.json"], cwd=folder, env=variables, check=True)
    upstream, proxy, four, sampled, stated, diskless = [free_port() for _ in range(6)]
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        start(running(["-m", "bench.loopback", str(upstream), str(given.seed)], upstream, folder))
        proxy_pid = start(running(["-m", "bench.bare_proxy", str(proxy), str(upstream)], proxy, folder))
        four_pid = start(running(["-m", "bench.bare_proxy", str(four), str(upstream), "4"], four, folder))
        sampled_pid = start(running(gateway_words(upstream, sampled, "proposals"), sampled, folder))
        stated_pid = start(running(gateway_words(upstream, stated, "stated"), stated, folder))
        in_memory = start(tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        words = gateway_words(upstream, diskless, "proposals", f"{in_memory}/store.db")
        diskless_pid = start(running(words, diskless, folder))
        ways = [
            Way("direct call", upstream, None, CHAT, whole),
            Way("bare proxy", proxy, proxy_pid, CHAT, whole),
            Way("bare proxy that asks 4 times", four, four_pid, CHAT, whole),
            Way("gateway, nothing to decide", sampled, sampled_pid, CHAT, without_tools),
            Way("gateway, a stated list", stated, stated_pid, CHAT, whole),
            Way("gateway, 4 samples", sampled, sampled_pid, CHAT, whole),
            Way("gateway, 4 samples, store in memory", diskless, diskless_pid, CHAT, whole),
            Way("gateway, 4 samples, streamed", sampled, sampled_pid, CHAT, streamed),
            Way("gateway, 4 samples, Messages", sampled, sampled_pid, MESSAGES, of_messages),
        ]
        seen = {way.name: Seen() for way in ways}
        for way in ways:
            asked(way, 200, 4)  # Connections are open, and what is compiled is compiled.
        for _ in range(given.rounds):
            for way in ways:
                measure(way, seen[way.name], given.alone, given.together)
        disk = disk_ms(folder)
        grown = memory(next(way for way in ways if way.name == "gateway, 4 samples"), given.requests)
    return page(seen, disk, grown, given)


def memory(way: Way, requests: int) -> list[tuple[int, float]]:
    """The memory of the process after every tenth of the requests."""
    assert way.pid is not None
    pid = way.pid
    found = [(0, memory_mb(pid))]
    tenth = max(1, requests // 10)

    def each(count: int) -> None:
        if count % tenth == 0:
            found.append((count, memory_mb(pid)))

    asked(way, requests, CLIENTS, each)
    return found


def whole(number: int) -> bytes:
    return chat_request(f"Buy a lamp, order {number}.")


def streamed(number: int) -> bytes:
    return chat_request(f"Buy a lamp, order {number}.", stream=True)


def of_messages(number: int) -> bytes:
    return messages_request(f"Buy a lamp, order {number}.")


def without_tools(number: int) -> bytes:
    body = json.loads(whole(number))
    del body["tools"]
    return json.dumps(body).encode()


def page(seen: dict[str, Seen], disk: float, grown: list[tuple[int, float]], given: argparse.Namespace) -> list[str]:
    direct = Spread(seen["direct call"].p50_ms).middle
    rows = []
    for name, found in seen.items():
        cells = [
            name,
            Spread(found.p50_ms).text(2),
            f"{Spread(found.p50_ms).middle - direct:.2f}",
            below_ms(found.added, 0.5),
            Spread(found.p99_ms).text(2),
            Spread(found.busy_p50_ms).text(1),
            Spread(found.busy_p99_ms).text(1),
            Spread(found.per_core).text(0) if found.per_core else "",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return [
        "# What the gateway costs",
        "",
        "Written by `make bench-gateway`. An upstream on the loopback answers in microseconds; between it and clients"
        " stands nothing, a bare proxy (uvicorn, aiohttp's client), or the gateway with an SQLite"
        " store. The rounds are interleaved. Of each number: the middle of the rounds, and the least and the most.",
        "",
        "| between client and upstream | p50, ms | more than direct, ms | of it not the upstream's, below, ms | p99, ms"
        f" | p50 with {CLIENTS} clients, ms | p99 with {CLIENTS} clients, ms | requests by second of a core |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"The first four columns of numbers are of one client that asks {given.alone:,} times a round, the others of"
        f" {CLIENTS} clients that ask {given.together:,} times together; {given.rounds} rounds, seed {given.seed}. A"
        " marked request of 4 samples is four to the upstream; clients, upstream and gateway share the machine."
        " The last column is requests by second of the gateway's own processor time, all its threads together.",
        "",
        "Not the upstream's is what the gateway counts itself (`agentmark_added_seconds`): the time to the first byte"
        " less that in which a request to the upstream was under way. Half of the requests of one client are below it."
        f" It holds the write to the disk: a bare one of 4 KiB took {disk:.1f} ms here; a store in memory has none.",
        "",
        f"## Memory over {grown[-1][0]:,} marked requests",
        "",
        "| requests | resident memory, MB |",
        "|---|---|",
        *[f"| {count:,} | {size:.1f} |" for count, size in grown],
        "",
        f"Machine: {os.cpu_count()} processors, {platform.machine()}, Linux {platform.release().partition('-')[0]},"
        f" Python {platform.python_version()}.",
    ]


if __name__ == "__main__":
    main()
