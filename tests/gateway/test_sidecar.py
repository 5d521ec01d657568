import asyncio
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from running import IDENTITY, KEY, gateway

from agentmark import Embedder, open_store
from agentmark.gateway.sidecar import MAX_BEHAVIORS, MAX_JUDGED_SIZE


def test_a_session_that_is_too_much_to_judge_at_once_is_refused(tmp_path: Path) -> None:
    """Long lists count as what they are: twenty thousand of them would be gigabytes."""
    session = Embedder(KEY, IDENTITY, keep_context=True).session("long")
    weights = {f"{number:04}" + "x" * 200: 1 for number in range(MAX_BEHAVIORS)}
    records = [session.choose(weights).record]
    records += [session.choose(weights).record for _ in range(MAX_JUDGED_SIZE // len(records[0].to_json()) + 1)]
    assert len(records) < 1000

    async def fill() -> None:
        async with open_store(tmp_path / "store.db") as store:
            for at in range(0, len(records), 100):
                await store.record(*records[at : at + 100])

    asyncio.run(fill())
    with gateway(tmp_path, "http://127.0.0.1:9") as running:
        refused = running.ask("/verify", {"session": "long"})
        assert (refused.status, refused.headers["x-agentmark-error"]) == (413, "too many records")
