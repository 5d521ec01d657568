"""A real model behind the gateway: a GGUF file at llama.cpp's server, and OpenAI's own SDK before it.

`make test-gateway-model`, with the file in AGENTMARK_GGUF.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from gateway_process import IDENTITY, MODES, Gateway, is_evidence, unique_contexts
from local_agent import GGUF_VARIABLE, CallingModel, wants_model
from test_real_clients import AGENTS, VENVS

from agentmark.elicit.local import LocalModel

DAYS = 4
# As many as are needed; the verdict is asked for after each lot.
MOST_LOTS = 12
PYTHON = VENVS / "gateway-clients" / "bin" / "python"


@pytest.mark.slow
@wants_model
@pytest.mark.skipif(not PYTHON.exists(), reason="no client: make test-gateway-model")
@pytest.mark.parametrize("mode", MODES[:1])
def test_an_agent_on_a_real_model_is_marked(mode: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    gguf = os.environ[GGUF_VARIABLE].partition(os.pathsep)[0]
    options = ["--granularity", "call"]
    with (
        LocalModel(gguf) as model,
        CallingModel(model) as server,
        Gateway(tmp_path, server.root_url, mode=mode, options=options) as gateway,
    ):
        variables = {**os.environ, "OPENAI_BASE_URL": f"{gateway.url}/v1", "OPENAI_API_KEY": "none"}
        calls = 0
        for lot in range(MOST_LOTS):
            words = [str(PYTHON), str(AGENTS / "openai_day.py"), str(lot * DAYS), str(DAYS)]
            done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
            calls += sum([json.loads(line)["calls"] for line in done.stdout.splitlines()])
            verdict = gateway.verdict()
            if verdict["accepted"]:
                break
    records = gateway.records()
    print(
        f"{server.model}, {mode}: {(lot + 1) * DAYS} days, {calls} calls, {unique_contexts(records)} steps,"
        f" {sum(map(is_evidence, records))} marked, {server.asked} replies, {server.tokens} tokens,"
        f" {time.monotonic() - begun:.0f} s; {verdict['sentence']}"
    )
    assert verdict["accepted"]
    assert verdict["identity"] == IDENTITY
    assert verdict["contradicting"] == 0
