import pytest

pytest.importorskip("httptools")

from agentmark import SharedKey
from agentmark.gateway.events import EventReader
from agentmark.gateway.headers import for_client, for_upstream
from agentmark.gateway.sessions import Retry, session_of, step_of

KEY, OTHER = SharedKey(bytes(range(32))), SharedKey(bytes(range(1, 33)))
USER = {"role": "user", "content": "hello"}
MODEL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "a", "arguments": "{}"}]}
TOOL = {"role": "tool", "content": "x", "tool_call_id": "1"}


def test_a_session_is_what_the_agent_says_or_the_api_or_how_it_began() -> None:
    assert session_of([(b"x-agentmark-session", b"run 7")], {}, [USER], KEY) == "run 7"
    by_id = session_of([], {"conversation": {"id": "c"}}, [USER], KEY)
    assert by_id == session_of([], {"conversation": "c"}, [USER, MODEL], KEY)
    begun = session_of([], {}, [USER], KEY)
    assert begun == session_of([], {}, [USER, MODEL, TOOL], KEY)
    assert len({by_id, begun, session_of([], {}, [{**USER, "content": "bye"}], KEY)}) == 3
    # Nobody without the key can try conversations against a record.
    assert begun != session_of([], {}, [USER], OTHER)
    assert "user_1" not in session_of([], {"metadata": {"user_id": "user_1"}}, [USER], KEY)
    for strange in (b"a\x1b[2J", b"x" * 500, b"\xff\xfe\x00"):
        assert session_of([(b"x-agentmark-session", strange)], {}, [USER], KEY).isprintable()


def test_a_step_is_a_turn_of_the_model() -> None:
    assert step_of([USER]) == 0
    assert step_of([USER, MODEL, TOOL]) == 1
    assert step_of([USER, MODEL, MODEL, TOOL, MODEL, USER]) == 2


def test_a_retry_is_named_or_says_so() -> None:
    first, again, none = (
        Retry(headers, b"{}", "/x", KEY)
        for headers in ([(b"x-stainless-retry-count", b"0")], [(b"x-stainless-retry-count", b"2")], [])
    )
    assert (first.is_one, again.is_one, none.is_one) == (False, True, False)
    assert first.key == again.key is not None
    assert none.key is None
    named = Retry([(b"idempotency-key", b"k")], b"{}", "/x", KEY)
    assert named.is_one
    assert named.key != first.key
    assert b"k" not in (named.key or "").encode()


def test_headers_for_one_hop_go_one_hop() -> None:
    sent = [
        (b"host", b"gateway"),
        (b"connection", b"close, X-Mine"),
        (b"x-mine", b"1"),
        (b"te", b"trailers"),
        (b"authorization", b"Bearer amk_1"),
        (b"x-api-key", b"amk_1"),
        (b"anthropic-beta", b"a"),
        (b"x-agentmark-session", b"s"),
        (b"accept-encoding", b"br, gzip, zstd"),
    ]
    assert for_upstream(sent, is_read=False) == [sent[4], sent[5], sent[6], sent[8]]
    assert for_upstream(sent, is_read=True, credential="sk-1") == [
        (b"authorization", b"Bearer sk-1"),
        (b"x-api-key", b"sk-1"),
        (b"anthropic-beta", b"a"),
        (b"accept-encoding", b"gzip"),
    ]
    assert for_upstream([(b"accept-encoding", b"br")], is_read=True) == [(b"accept-encoding", b"identity")]
    came = [(b"Transfer-Encoding", b"chunked"), (b"X-Request-Id", b"r"), (b"Connection", b"X-Hop"), (b"X-Hop", b"1")]
    assert for_client(came) == [(b"x-request-id", b"r")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_events_are_read_from_pieces_of_any_size(size: int, end: bytes) -> None:
    lines = [
        b": comment",
        b"",
        b"event: a",
        b'data: {"a":',
        b"data: 1}",
        b"",
        b'data: ["no object"]',
        b"",
        b"data:",
        b"",
        b"data:[DONE]",
        b"",
    ]
    stream = end.join([*lines, b""])
    reader = EventReader()
    found = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    assert found == [{"a": 1}]
    assert reader.is_done


def test_an_event_that_is_no_json_is_not_passed_over() -> None:
    for data in (b"no json", b'{"a": NaN}', b'{"a": "\\ud800"}', b'{"a": "\xff"}'):
        with pytest.raises(ValueError, match="no JSON"):
            list(EventReader().feed(b"data: " + data + b"\n\n"))
