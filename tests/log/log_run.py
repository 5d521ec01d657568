"""One marked run with records of every kind, for the round trips through sinks and readers."""

from dataclasses import replace

from support import marked_log

from agentmark import Embedder, SharedKey, StepRecord
from agentmark.chain.writer import ChainWriter

KEY = SharedKey(bytes(range(100, 132)))
PAYLOAD, PAYLOAD_LEN = 0x5EED, 16


def the_run() -> list[StepRecord]:
    """F and R, unmarked, disobeyed, in part, chained, with odd names: the same records in every run."""
    first = marked_log(KEY, scheme="F", steps=30)
    second = marked_log(KEY, scheme="R", steps=30)
    first[3] = first[3].with_enforced(False)
    first[4] = first[4].with_enforced(True)
    weights = second[5].distribution
    assert weights is not None
    top = dict(list(weights.as_weights().items())[:1])
    second[5] = second[5].with_partial_weights(top)
    second[6] = second[6].with_partial_weights({})
    session = Embedder(KEY, PAYLOAD, payload_len=PAYLOAD_LEN, keep_context=True).session("odd names")
    odd = [
        session.choose(
            {"Zürich 😀": 3, 'quote " and \\': 2, "10": 1, "2": 1}, meta={"note": "line\nfeed", "n": 7}
        ).record,
        session.unmarked("gave up", reason="elicitation failed: no list").record,
        session.choose({"attachment://x": 1, "a" * 300: 1}, context={"observation": "öü"}).record,
    ]
    return _linked(first) + second + odd


def _linked(records: list[StepRecord]) -> list[StepRecord]:
    chain = ChainWriter()
    linked = []
    for record in records:
        line = chain.link(replace(record))
        linked.append(line.record)
        chain.appended(line)
    return linked
