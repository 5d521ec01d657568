"""Real clients, unchanged: each does errands of many steps through the gateway, and its identity is in the log.

What a client needs is in an environment of its own (`make test-gateway-clients`); one that is not there is left out,
and said. A client knows the gateway by the variables that its vendor's SDK reads, and by nothing else.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from gateway_process import IDENTITY, MODES, SOURCE, Gateway, is_evidence, unique_contexts

from agentmark.testing import Errand, RefusingProvider

AGENTS = Path(__file__).with_name("programs")
VENVS = Path(__file__).parents[2] / ".venvs"
PATIENCE_S = 600
ERRANDS = 8
PROVIDER_KEY = "sk-of-the-agents-own"


@dataclass(frozen=True)
class Client:
    """A program of an environment (`.venvs/gateway-NAME`), and the ways it can go."""

    program: str
    environment: str
    ways: tuple[str, ...]
    errands: int = ERRANDS


CLIENTS = (
    Client("openai_chat.py", "gateway-clients", ("sync", "stream", "async", "async-stream")),
    Client("openai_responses.py", "gateway-clients", ("sync", "stream", "async", "async-stream")),
    Client("anthropic_messages.py", "gateway-clients", ("sync", "stream", "async", "async-stream")),
    Client("langchain_agent.py", "gateway-clients", ("openai", "responses", "anthropic", "stream")),
    Client("openai_agents_agent.py", "gateway-clients", ("responses", "chat", "stream")),
    Client("claude_agent.py", "gateway-clients", ("errands",)),
    Client("ag2_agent.py", "gateway-ag2", ("whole", "stream")),
    Client("vercel/agent.mjs", "gateway-vercel", ("chat", "responses", "stream", "responses-stream", "anthropic")),
)

each_client = pytest.mark.parametrize(
    ("client", "way"),
    [
        pytest.param(client, way, id=f"{client.program.partition('.')[0].partition('/')[0]}-{way}")
        for client in CLIENTS
        for way in client.ways
    ],
)


def command_of(client: Client) -> list[str]:
    """How to start a client; skips where its environment is not made."""
    place = VENVS / client.environment
    if client.program.endswith(".mjs"):
        node = shutil.which("node")
        if node is None or not (place / "node_modules").is_dir():
            pytest.skip(f"no {place.name}: make test-gateway-clients")
        # Node looks for packages beside the program.
        shutil.copy2(AGENTS / client.program, place / "agent.mjs")
        return [node, str(place / "agent.mjs")]
    python = place / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {place.name}: make test-gateway-clients")
    return [str(python), str(AGENTS / client.program)]


def orders(count: int) -> str:
    """The errands for a client that has no Errand of its own."""
    errands = [Errand(seed) for seed in range(count)]
    lines = [
        {"task": errand.task, "items": errand.order.items, "city": errand.order.city, "answer": errand.answer}
        for errand in errands
    ]
    return "".join([json.dumps(line) + "\n" for line in lines])


def run_client(client: Client, way: str, url: str, home: Path) -> list[dict[str, object]]:
    """What the client says of its errands."""
    home.mkdir(exist_ok=True)
    is_vercel = client.program.endswith(".mjs")
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(SOURCE),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": PROVIDER_KEY,
        # Vercel's client wants the version in it, Anthropic's own does not.
        "ANTHROPIC_BASE_URL": f"{url}/v1" if is_vercel else url,
        "ANTHROPIC_API_KEY": PROVIDER_KEY,
    }
    done = subprocess.run(
        [*command_of(client), way, str(client.errands)],
        env=variables,
        input=orders(client.errands),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@each_client
@pytest.mark.parametrize("mode", MODES)
def test_a_client_does_its_errands_and_its_identity_is_in_the_log(
    client: Client, way: str, mode: str, tmp_path: Path
) -> None:
    command_of(client)
    with (
        RefusingProvider(api_key=PROVIDER_KEY) as provider,
        Gateway(tmp_path, provider.root_url, mode=mode) as gateway,
    ):
        said = run_client(client, way, gateway.url, tmp_path / "home")
    assert [errand["finished"] for errand in said] == [True] * client.errands, said
    assert min([int(str(errand["calls"])) for errand in said]) >= 3
    assert provider.refused == []
    records = gateway.records()
    steps = unique_contexts(records)
    verdict = gateway.verdict()
    print(
        f"{client.program} {way}, {mode}: {len(said)} errands, {sum([int(str(one['calls'])) for one in said])} calls,"
        f" {steps} steps, {sum(map(is_evidence, records))} marked, {len(provider.requests)} requests upstream;"
        f" {verdict['sentence']}"
    )
    assert verdict["accepted"]
    assert verdict["identity"] == IDENTITY
