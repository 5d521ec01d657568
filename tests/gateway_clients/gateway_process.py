"""The gateway as its users run it: `agentmark gateway` in a process of its own, with a key, an identity and a store."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from plain_agent import Answer, ask

from agentmark import StepRecord, open_log

IDENTITY = "courier-7"
# Others that might have decided: each is paid for.
OTHERS = ("courier-8", "courier-9", "courier-10")
MODES = ("proposals", "stated")
START_S = 60
STOP_S = 30
# Where the source is that these tests stand beside.
SOURCE = Path(__file__).parents[2] / "src"


def agentmark(*words: str | Path, folder: Path, status: Sequence[int] = (0,)) -> str:
    """What a command prints. It exits with one of these."""
    done = subprocess.run(
        [sys.executable, "-m", "agentmark", *map(str, words)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in status, f"agentmark {' '.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "", **(more or {})}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def credentials(folder: Path) -> None:
    """A key and a registry with an identity, made once in a folder."""
    if not (folder / "key.json").exists():
        agentmark("keygen", "key.json", folder=folder)
        issued = [word for name in (IDENTITY, *OTHERS) for word in ("--issue", name)]
        agentmark("identity", "registry.jsonl", *issued, folder=folder)


class Gateway:
    """One gateway; used in a `with` block, or started and stopped by hand. What it says is in `said`."""

    def __init__(
        self,
        folder: Path,
        upstream: str,
        *,
        mode: str = "proposals",
        identity: str | None = IDENTITY,
        store: str = "gateway.db",
        port: int | None = None,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        limited_to: Mapping[int, int] | None = None,
    ) -> None:
        """`limited_to`: limits of the process (`resource.setrlimit`), by their numbers."""
        credentials(folder)
        self.folder, self.store = folder, store
        self.port = port or free_port()
        self.output = folder / f"gateway-{self.port}.log"
        self._variables = variables
        self._limits = dict(limited_to or {})
        self.command = [
            *(sys.executable, "-m", "agentmark", "gateway"),
            *("--upstream", upstream, "--key", "key.json", "--registry", "registry.jsonl"),
            *(() if identity is None else ("--identity", identity)),
            *("--mode", mode, "--store", store, "--port", str(self.port)),
            *options,
        ]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, wait: bool = True) -> None:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=environment(self._variables),
                stdout=output,
                stderr=output,
                preexec_fn=self._limit if self._limits else None,
            )
        if wait:
            self.wait_until_ready()

    def _limit(self) -> None:
        import resource

        for name, most in self._limits.items():
            resource.setrlimit(name, (most, most))

    def wait_until_ready(self) -> None:
        assert self.process is not None
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                pytest.fail(f"the gateway exited with {self.process.returncode}: {self.said}")
            if ask(self.url, "/readyz", method="GET", timeout=5).status == 200:
                return
            time.sleep(0.02)
        pytest.fail(f"the gateway was not ready within {START_S} s: {self.said}")

    def stop(self) -> int:
        """End it as a service manager does."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"the gateway did not end within {STOP_S} s: {self.said}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        return self.output.read_text("utf-8", "replace") if self.output.exists() else ""

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return ask(self.url, path, headers=headers, method="GET")

    # --- what it left behind ---

    def export(self, name: str = "exported.jsonl") -> Path:
        """All records of the store as JSON lines."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        agentmark("export", self.store, "-o", path.name, folder=self.folder)
        return path

    def records(self) -> list[StepRecord]:
        return list(open_log(self.export()))

    def verdict(self, log: Path | None = None) -> dict[str, Any]:
        """What `agentmark verify` says of the exported log, as one agent's."""
        path = log or self.export()
        options = ("--key", "key.json", "--registry", "registry.jsonl", "--by", "all", "--json")
        found: dict[str, Any] = json.loads(
            agentmark("verify", *options, path.name, folder=self.folder, status=(0, 1, 3))
        )
        return found


def unique_contexts(records: Sequence[StepRecord]) -> int:
    """How many contexts were decided in; one that was decided in twice fails. A record that says what became of a step
    has the context of that step."""
    decided = [record.context for record in records if record.enforced is None]
    assert len(decided) == len(set(decided)), "a context was used twice"
    return len(decided)


def is_evidence(record: StepRecord) -> bool:
    return record.marked and record.enforced is not False
