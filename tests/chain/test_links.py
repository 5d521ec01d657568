"""Links are what docs/chain.md says, and every record has one."""

import json
from hashlib import blake2b
from typing import Any

from chained_logs import changed, judge, one_session, records_of, write_lines

from agentmark import RecordError, StepRecord
from agentmark.chain.links import link_digest, start_digest


def test_the_links_are_what_the_page_says() -> None:
    """Computed here from the words of docs/chain.md, and pinned."""
    first, second = records_of(one_session())[:2]
    start = blake2b(b"agentmark/1 chain start\0" + first.session.encode(), digest_size=32).hexdigest()
    canonical = json.dumps(first.as_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    link = blake2b(b"agentmark/1 chain\0" + canonical, digest_size=32).hexdigest()
    assert first.prev == start == start_digest(first.session)
    assert second.prev == link == link_digest(first)
    record = StepRecord.from_json(
        '{"agentmark":1,"choice":"a","context":"' + "00" * 32 + '","key_id":"k","marked":true,"payload_len":8,'
        f'"prev":"{start_digest("s")}","scheme":"F","session":"s","step":0,"weights":{{"a":2147483648,"b":2147483648}}}}'
    )
    assert record.prev == "85458c841d5f0702704a0a097aff8807f05ad9df3ec61b1876d977d1fc518eba"
    assert link_digest(record) == "16404cd5db2209b26ad5255105f54daf58fb0f6a6473ae03b6c84c430e993f44"


def test_every_record_that_can_be_read_can_be_linked() -> None:
    """A member may be nested as deeply as canonical JSON goes; the record around it is one level more."""
    record, meta = records_of(one_session())[0], dict[str, Any]()
    linked = set()
    while True:
        try:
            deeper = changed(record, meta=meta)
        except RecordError:
            break
        linked.add(link_digest(deeper))
        meta = {"a": meta}
    assert len(linked) > 60


def test_records_from_a_chained_log_join_another_chain() -> None:
    again = write_lines(records_of(one_session())[::-1])
    assert judge(again).findings == ()
