"""What a verdict says of itself: where the question stands, and whom it has found."""

from dataclasses import replace

import pytest
from support import marked_log

from agentmark import Identity, Registry, SharedKey, Verifier
from agentmark.verify.verdict import Standing

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
NAMES = Registry(16, [Identity("acme", 0x5EED, revoked_at="2026-01-01"), Identity("globex", 0x1234)])
SCHEMES = pytest.mark.parametrize("scheme", ["F", "R"])


@SCHEMES
def test_an_accepted_identity_is_found_with_its_own_evidence(scheme: str) -> None:
    verdict = Verifier(KEY, registry=NAMES).verify(marked_log(KEY, scheme=scheme))
    assert verdict.standing is Standing.ATTRIBUTED
    (found,) = verdict.found
    assert (found.payload, found.payload_len) == (verdict.payload, 16)
    assert (found.identity, found.revoked_at) == ("acme", "2026-01-01")
    assert (found.evidence_bits, found.bits_paid) == (verdict.evidence_bits, verdict.bits_paid)
    assert found.false_positive_rate == verdict.false_positive_rate
    assert found.bound_text == verdict.bound_text
    assert found.name == "'acme' (payload 0x5eed, revoked 2026-01-01)"
    assert 1 <= found.at_least_steps <= 60
    assert verdict.as_dict()["found"] == [found.as_dict()]
    assert verdict.as_dict()["standing"] == "attributed"


@SCHEMES
def test_nobody_is_found_unless_accepted(scheme: str) -> None:
    verdict = Verifier(KEY, registry=NAMES).verify(marked_log(KEY, scheme=scheme, steps=4))
    assert verdict.candidate is not None
    assert verdict.found == ()
    assert verdict.standing is Standing.TOO_SHORT


@SCHEMES
def test_where_a_question_stands(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme)
    assert Verifier(KEY).verify([]).standing is Standing.NOTHING_USABLE
    assert Verifier(OTHER).verify(log).standing is Standing.NOTHING_USABLE
    assert Verifier(OTHER).verify(log, claim=0x5EED).standing is Standing.NOTHING_USABLE
    unmarked = [replace(record, marked=False, reason="near tie") for record in log]
    assert Verifier(KEY).verify(unmarked).standing is Standing.NOTHING_USABLE
    assert Verifier(OTHER, any_key_id=True).verify(log).standing is Standing.NOT_ATTRIBUTED
    assert Verifier(KEY).verify(log, claim=0x1234).standing is Standing.NOT_ATTRIBUTED
    assert Verifier(KEY).verify(log[:3], claim=0x5EED).standing is Standing.TOO_SHORT
    assert Verifier(KEY).verify(log[:3]).standing is Standing.TOO_SHORT


def test_steps_that_the_key_rules_out_are_judged() -> None:
    """They were made with the key's id and without the key: that is an answer, not a lack of records."""
    alien = Verifier(OTHER, any_key_id=True)
    log = [record for record in marked_log(KEY, steps=60) if not alien.verify([record]).counts["used"]]
    assert log
    assert alien.verify(log).standing is Standing.NOT_ATTRIBUTED
