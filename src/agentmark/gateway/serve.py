"""Running a gateway: one worker in this process, or several that share a socket and a store."""

import asyncio
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import uvicorn

from agentmark.errors import SettingError
from agentmark.gateway.app import Gateway
from agentmark.gateway.metrics import SHARED
from agentmark.gateway.protocol import client_protocol
from agentmark.gateway.settings import FAKE, Settings

logger = logging.getLogger("agentmark.gateway")

# How long requests that are being answered may take when the gateway is told to stop.
GRACE_S = 30
# A worker that ends so soon after its start will not do better the next time.
SHORT_LIFE_S = 5.0
BACKLOG = 2048
# What a fake upstream remembers of what it was asked.
KEPT_BY_FAKE = 100
SWITCH_S = 0.0005
# Objects between two collections of the young, and collections between two of the older.
GC_THRESHOLDS = (10_000, 10, 10)


def listen(settings: Settings) -> socket.socket:
    """The socket that all workers accept from."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise SettingError("port", f"{settings.host}:{settings.port}: {error.strerror}") from None
    listening.listen(BACKLOG)
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def fake_upstreams(settings: Settings) -> Iterator[Settings]:
    """The settings with every fake upstream started, and named by where it listens."""
    with ExitStack() as started:
        names = {}
        for upstream in settings.upstreams:
            if upstream.startswith(FAKE):
                from agentmark.testing.refusing.profiles import PROFILES
                from agentmark.testing.refusing.provider import RefusingProvider

                profile = upstream.removeprefix(FAKE) or "plain"
                if profile not in PROFILES:
                    raise SettingError("upstream", f"{profile!r} is none of the fakes: {', '.join(PROFILES)}")
                names[upstream] = started.enter_context(RefusingProvider(profile, keep=KEPT_BY_FAKE)).root_url
        yield settings.with_upstream(names)


def run_worker(settings: Settings, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until a signal says to stop; what is being answered is finished first."""
    import uvloop

    # The store writes in a thread of its own. The usual five milliseconds of one thread before the other has its turn
    # would be the better part of what a request takes.
    sys.setswitchinterval(SWITCH_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listening, ready))


async def _serve(settings: Settings, listening: socket.socket, ready: Callable[[], None]) -> None:
    gateway = Gateway(settings)
    await gateway.start()
    try:
        server = _Server(_config(gateway), ready)
        # What is here now stays; and requests at once hold more objects than the usual thresholds are made for.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.serve(sockets=[listening])
    finally:
        await gateway.close()


class _Server(uvicorn.Server):
    """Uvicorn, which says when it is ready and leaves signals to us: being told to stop is no failure."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _config(gateway: Gateway) -> uvicorn.Config:
    return uvicorn.Config(
        gateway,
        http=client_protocol(gateway.settings.receive_s),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_S,
    )


def run_workers(settings: Settings, listening: socket.socket, command: Sequence[str], ready: Callable[[], None]) -> int:
    """Start workers that inherit the socket, keep as many alive, and stop them when told to. `command` starts one; the
    number of the socket is added to it."""
    listening.set_inheritable(True)
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    with tempfile.TemporaryDirectory(prefix="agentmark-metrics-") as shared:
        environment = {**os.environ, SHARED: shared}
        workers = [_Worker(command, listening, environment) for _ in range(settings.workers)]
        try:
            ready()
            while not stopping:
                time.sleep(0.1)
                if any(not worker.is_alive_or_restarted() for worker in workers):
                    return workers[0].last_status or 1
        finally:
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.process.wait()
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


class _Worker:
    """One process that answers requests."""

    def __init__(self, command: Sequence[str], listening: socket.socket, environment: dict[str, str]) -> None:
        self._command = [*command, "--socket", str(listening.fileno())]
        self._listening = listening
        self._environment = environment
        self.last_status: int | None = None
        self._start()

    def _start(self) -> None:
        self._since = time.monotonic()
        self.process = subprocess.Popen(
            self._command, pass_fds=[self._listening.fileno()], env=self._environment, start_new_session=True
        )

    def is_alive_or_restarted(self) -> bool:
        """A worker that died is started again, unless it dies at once."""
        status = self.process.poll()
        if status is None:
            return True
        self.last_status = status
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(self.process.pid, self._environment[SHARED])  # type: ignore[no-untyped-call]
        if time.monotonic() - self._since < SHORT_LIFE_S:
            return False
        logger.error("a worker ended with status %s and is started again", status)
        self._start()
        return True


def inherited(number: int) -> socket.socket:
    """The socket that a worker was started with."""
    try:
        return socket.socket(fileno=number)
    except (OSError, OverflowError, ValueError):
        raise SettingError("socket", "is no socket that was handed over") from None


def worker_command(words: Sequence[str]) -> list[str]:
    """What starts another process of the same command."""
    return [sys.executable, "-m", "agentmark", *words]
