"""A gateway in a process of its own, as people start it, and what its store and counts say afterwards."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentmark import SharedKey, StepRecord, Verifier, open_log

ROOT = Path(__file__).parents[2]
KEY = SharedKey(bytes(range(32)))
IDENTITY = "acme"


@dataclass
class Running:
    """A gateway that runs: where, since when, and what it wrote."""

    process: "subprocess.Popen[str]"
    root_url: str
    folder: Path
    output: list[str] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def log_text(self) -> str:
        return (self.folder / "stderr.txt").read_text(encoding="utf-8")

    def connect(self, timeout: float = 20) -> HTTPConnection:
        return HTTPConnection(urlsplit(self.root_url).netloc, timeout=timeout)

    def ask(
        self, path: str, body: object = None, *, method: str | None = None, headers: dict[str, str] | None = None
    ) -> "Answered":
        """One request on a connection of its own."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        said = {"content-type": "application/json", "anthropic-version": "2023-06-01"} if content else {}
        connection = self.connect()
        try:
            connection.request(method or ("POST" if content else "GET"), path, content, {**said, **(headers or {})})
            return Answered.of(connection.getresponse())
        finally:
            connection.close()

    def records(self) -> list[StepRecord]:
        return list(open_log(self.store))

    def counts(self) -> dict[str, float]:
        """The counts of /metrics, by name and labels."""
        page = self.ask("/metrics").content.decode()
        lines = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def count(self, name: str, **labels: str) -> float:
        """The sum of what is counted under a name with these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            [value for key, value in self.counts().items() if key.startswith(name) and all(w in key for w in wanted)]
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=40)

    def is_attributed(self) -> bool:
        return Verifier(KEY).verify(self.records(), claim=IDENTITY).accepted


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    content: bytes

    @classmethod
    def of(cls, response: HTTPResponse) -> "Answered":
        return cls(response.status, {key.lower(): value for key, value in response.getheaders()}, response.read())

    @property
    def body(self) -> Any:
        return json.loads(self.content)


@contextmanager
def gateway(folder: Path, upstream: str, *options: str, environment: dict[str, str] | None = None) -> Iterator[Running]:
    """A gateway at a free port with its key, store and output in a folder; stopped at the end."""
    if not (folder / "key.json").exists():
        KEY.save(folder / "key.json")
    words = [sys.executable, "-m", "agentmark", "gateway", "--upstream", upstream, "--key", str(folder / "key.json")]
    words += ["--store", str(folder / "store.db"), "--port", "0", *options]
    if "--tenants" not in options:
        words += ["--identity", IDENTITY]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})}
    with (folder / "stderr.txt").open("a") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=own)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://[^,\s]+", line)
            assert found, (line, (folder / "stderr.txt").read_text(encoding="utf-8"))
            yield Running(process, found[0], folder, [line])
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            process.stdout.close()


def eventually(condition: Any, *, within_s: float = 10) -> bool:
    """Whether something comes true soon: what a gateway does after its answer went out."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
