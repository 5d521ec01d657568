"""What a model says of its own accord stays out of the log, also where it is what is wrong."""

import json
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, chat_body
from raw_upstream import RawUpstream, http_answer
from running import gateway

from agentmark.testing import Errand

SAID = "Jane-Roe-has-measles"


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({SAID: 1}),
        json.dumps({"search": 0.5, SAID: 0.5}),
        '{"search": 1, "search": 1, "' + SAID + '": 1, "' + SAID + '": 1}',
        '{"search": "' + SAID + '"}',
        SAID,
    ],
)
def test_a_list_that_cannot_be_used_is_not_quoted(said: str, tmp_path: Path) -> None:
    reply = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}).encode()
    with (
        RawUpstream(lambda _: http_answer(reply, "Content-Type: application/json")) as upstream,
        gateway(tmp_path, upstream.root_url, "--mode", "stated") as running,
    ):
        for _ in range(5):
            assert running.ask(CHAT, chat_body(Errand(1))).status == 200
        page = running.ask("/metrics").content.decode()
        records = "".join([record.to_json() for record in running.records()])
    assert "no list" in running.log_text
    assert SAID not in running.log_text + page + records
