from dataclasses import replace

from agentmark import Embedder, SharedKey
from agentmark.verify.tamper import tamper_findings

KEY = SharedKey(bytes(range(32)))


def test_two_requests_at_one_step_are_no_tampering_where_their_contexts_say_so() -> None:
    embedder = Embedder(KEY, "acme", keep_context=True)
    records = [
        embedder.session("run").choose({"a": 1, "b": 1}, context={"request": name}).record for name in ("one", "two")
    ]
    assert tamper_findings(records) == []
    # Without the raw context nobody can tell, and one that is not that of its digest is not believed.
    assert "different contexts" in tamper_findings([replace(record, raw_context=None) for record in records])[0]
    altered = replace(records[1], raw_context={**(records[1].raw_context or {}), "request": "three"})
    assert "not that of the digest" in tamper_findings([records[0], altered])[0]
