"""What the tests of the gateway as a process share."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from gateway_process import environment, free_port

# These take minutes, and want a gateway with all that it can have. Where that is, none of them may be missing.
MISSING = [name for name in ("uvicorn", "psycopg") if find_spec(name) is None]
if MISSING:
    if Path(sys.prefix).name == "gateway":
        raise RuntimeError(f"the environment of make test-gateway lacks {', '.join(MISSING)}")
    collect_ignore_glob = ["test_*.py"]

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="session")
def fast_upstream() -> Iterator[int]:
    """The port of an upstream that answers in microseconds, in a process of its own."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.loopback", str(port)], cwd=TOOLS, env=environment())
    try:
        while True:
            assert process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()
