"""The stranger's view of a verdict holds nothing that moves with a single record.

What forgers learn from each view is attacked in the lab: lab/tests/experiments/attacks/test_forgers.py.
"""

import random
from dataclasses import fields, replace

import pytest
from support import dirichlet, marked_log

from agentmark import Embedder, Identity, Registry, SharedKey, StepRecord, StrangerView, Verifier
from agentmark.verify.stranger import NamedIdentity

KEY = SharedKey(bytes(range(100, 132)))
STRANGER = SharedKey(bytes(range(200, 232)))
NAMES = Registry(16, [Identity("acme-eu", 0x5EED), Identity("globex", 0x1234, revoked_at="2026-01-01T00:00:00+00:00")])
L = 16


def unaccepted_logs() -> list[list[StepRecord]]:
    """Logs that are not accepted for every reason there is."""
    log = marked_log(KEY, steps=60)
    short = log[:9]
    rng = random.Random(1)
    assert short[0].distribution is not None
    other = next(name for name in short[0].distribution.behaviors if name != short[0].behavior)
    foreign = [replace(r, key_id=KEY.id) for r in marked_log(STRANGER, steps=60)]
    session = Embedder(KEY, 5, payload_len=8).session("odd")
    return [
        [],
        short,
        short[:3],
        [*short, replace(short[0], behavior=other)],
        [*short, short[1].with_enforced(False)],
        foreign,
        foreign + short,
        marked_log(STRANGER, steps=9),
        [replace(record, payload_len=12) for record in log],
        [session.choose(dirichlet(rng, 4, 1.0)).record for _ in range(3)],
        [session.unmarked("a", reason="broken").record],
        marked_log(KEY, steps=9, payload=0x1234),
        [replace(record, session="elsewhere") for record in short],
        [record.with_partial_weights({}) for record in marked_log(KEY, scheme="R", steps=9)],
    ]


@pytest.mark.parametrize("settings", [{}, {"noise": 0.0}, {"registry": NAMES}])
@pytest.mark.parametrize("claim", [None, 0x5EED])
def test_all_logs_that_are_not_accepted_look_the_same(settings: dict[str, object], claim: int | None) -> None:
    verifier = Verifier(KEY, payload_len=L, **settings)  # type: ignore[arg-type]
    verdicts = [verifier.verify(log, claim=claim) for log in unaccepted_logs()]
    assert len({verdict.sentence for verdict in verdicts}) > 5, "the key holder is told what each of them shows"
    assert {verdict.for_stranger() for verdict in verdicts} == {StrangerView(accepted=False, threshold=1e-6)}
    assert len({verdict.for_stranger().sentence for verdict in verdicts}) == 1
    assert len({str(verdict.for_stranger().as_dict()) for verdict in verdicts}) == 1


def test_the_length_that_the_log_states_does_not_show() -> None:
    """Without a pinned length the verdict has that of the log; the view of a log that is not accepted has none."""
    verdicts = [Verifier(KEY).verify(log) for log in unaccepted_logs()]
    assert len({verdict.payload_len for verdict in verdicts}) > 2
    assert len({verdict.for_stranger() for verdict in verdicts}) == 1


def test_all_logs_accepted_for_one_identity_look_the_same() -> None:
    log = marked_log(KEY, steps=80)
    assert log[0].distribution is not None
    other = next(name for name in log[0].distribution.behaviors if name != log[0].behavior)
    logs = [log, log[:50], [*log, replace(log[0], behavior=other)], [*log[5:], *log[10:20]], log + unaccepted_logs()[5]]
    views = {Verifier(KEY, registry=NAMES).verify(part).for_stranger() for part in logs}
    assert views == {StrangerView(accepted=True, threshold=1e-6, found=(NamedIdentity(0x5EED, 16, "acme-eu"),))}


def test_an_accepted_identity_is_named_with_the_threshold_as_its_bound() -> None:
    log = marked_log(KEY, payload=0x1234)
    view = Verifier(KEY, registry=NAMES, threshold=1.4e-6).verify(log).for_stranger()
    assert view.sentence == (
        "Attributed to 'globex' (payload 0x1234, revoked 2026-01-01T00:00:00+00:00): a log made without this key, or "
        "for another identity, is named so with probability at most 1.4e-06."
    )
    assert view.as_dict() == {
        "accepted": True,
        "sentence": view.sentence,
        "payload": "1234",
        "payload_len": 16,
        "identity": "globex",
        "revoked_at": "2026-01-01T00:00:00+00:00",
        "text": None,
        "found": [view.found[0].as_dict()],
        "threshold": 1.4e-6,
    }
    unknown = Verifier(KEY).verify(marked_log(KEY, payload=0x6F6B)).for_stranger()
    assert unknown.found[0].text == "ok"
    assert unknown.sentence.startswith("Attributed to payload 0x6f6b (as text: 'ok'):")
    nobody = Verifier(KEY).verify(marked_log(KEY, payload=0, payload_len=0)).for_stranger()
    assert "the holder of this key" in nobody.sentence


def test_the_view_has_no_other_members() -> None:
    """A member that is added here is one more thing that strangers see: think about what it says of single records."""
    members = {field.name for field in fields(StrangerView)}
    assert members == {"accepted", "threshold", "found"}
    assert {field.name for field in fields(NamedIdentity)} == {"payload", "payload_len", "identity", "revoked_at"}
