"""What a verdict says of itself: where the question stands, and whom it has found."""

import re
from dataclasses import replace

import pytest
from support import marked_log

from agentmark import Embedder, Identity, Registry, SharedKey, Verifier
from agentmark.verify.verdict import Standing

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
NAMES = Registry(16, [Identity("acme", 0x5EED, revoked_at="2026-01-01"), Identity("globex", 0x1234)])
WRONG_PLURAL = re.compile(
    r"(?<![.\d,])1 (usable |more )?(step|record|bit|context|session)s\b|\bstep (carry|are|contradict|were)\b"
)
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


def test_a_log_that_holds_nothing_usable_says_which_keys_it_was_made_with() -> None:
    third = SharedKey(bytes(range(150, 182)))
    log = marked_log(KEY, steps=40)
    assert Verifier(KEY).verify([]).sentence == "Not attributed: the log is empty: it holds no record."
    assert Verifier(OTHER).verify(log).sentence == (
        "Not attributed: none of the 40 records can be used (40 other key): they were made with key "
        f"{KEY.id}, and the key given is {OTHER.id}."
    )
    assert Verifier([OTHER, third]).verify(log[:1]).sentence == (
        "Not attributed: the one record cannot be used (1 other key): it was made with key "
        f"{KEY.id}, and the keys given are {OTHER.id} and {third.id}."
    )
    unmarked = [replace(record, marked=False, reason="near tie") for record in marked_log(OTHER, steps=2)]
    assert Verifier(OTHER).verify([log[0], *unmarked]).sentence == (
        "Not attributed: none of the 3 records can be used (2 unmarked, 1 other key): 1 was made with key "
        f"{KEY.id}, and the key given is {OTHER.id}."
    )
    assert Verifier(OTHER).verify(log).as_dict()["keys_given"] == [OTHER.id]


def test_key_ids_of_others_are_cut_and_counted() -> None:
    log = [replace(record, key_id=f"{i:02}" + "x" * 1000) for i, record in enumerate(marked_log(KEY, steps=9))]
    sentence = Verifier(OTHER).verify(log).sentence
    assert "and 4 more, and the key given is" in sentence
    assert len(sentence) < 400


def test_steps_of_others_are_said_to_be_so_many_at_the_least() -> None:
    """Those that contradict are others'; others' that agree by chance are not counted, so that there may be more."""
    mine = marked_log(KEY, steps=100)
    one = marked_log(KEY, payload=0x1234, steps=60, seed=1)
    contradicting = [record for record in one if Verifier(KEY).verify([record], claim=0x5EED).contradicting]
    verdict = Verifier(KEY).verify([*mine, *contradicting[:3]])
    assert (verdict.contradicting, verdict.unexplained) == (3, 3)
    assert verdict.sentence.endswith("; at least 3 of the 103 steps are another's or were altered.")
    verdict = Verifier(KEY).verify([*mine, contradicting[0]])
    assert verdict.sentence.endswith("; at least 1 of the 101 steps is another's or was altered.")


def test_steps_that_say_nothing_settle_nothing() -> None:
    """A list of one option carries no bit: every payload explains it, which does not make the log consistent."""
    session = Embedder(KEY, 0x5EED, payload_len=16).session("quiet")
    verdict = Verifier(KEY).verify([session.choose({"only": 1}).record for _ in range(20)])
    assert verdict.counts["used"] == 20
    assert verdict.potential_bits == 0
    assert verdict.consistent is None
    assert Verifier(KEY).verify([]).consistent is None
    assert verdict.standing is Standing.TOO_SHORT


@pytest.mark.parametrize("noise", [None, 0.0, 0.2])
@SCHEMES
def test_one_is_one_in_every_sentence(scheme: str, noise: float | None) -> None:
    log = marked_log(KEY, scheme=scheme, steps=60)
    for record in log[:12]:
        for claim in (None, 0x5EED, 0x1234):
            for verifier in (Verifier(KEY, noise=noise), Verifier(OTHER, noise=noise, any_key_id=True)):
                verdict = verifier.verify([record], claim=claim)
                for sentence in (verdict.sentence, *verdict.tampering):
                    assert not WRONG_PLURAL.search(sentence), sentence


def test_the_stranger_is_told_everyone_in_an_order_that_says_nothing() -> None:
    logs = {payload: marked_log(KEY, payload=payload, steps=150, seed=payload) for payload in (0x5EED, 0x1234)}
    few = {payload: log[:110] for payload, log in logs.items()}
    verdicts = [
        Verifier(KEY, registry=NAMES).verify([*logs[0x5EED], *few[0x1234]]),
        Verifier(KEY, registry=NAMES).verify([*few[0x5EED], *logs[0x1234]]),
    ]
    assert [verdict.identity for verdict in verdicts] == ["acme", "globex"]
    assert len({verdict.for_stranger() for verdict in verdicts}) == 1
    view = verdicts[0].for_stranger()
    assert view.sentence == (
        "2 identities found: 'globex' (payload 0x1234) and 'acme' (payload 0x5eed, revoked 2026-01-01): one that "
        "the log does not carry is named with probability at most 1e-06."
    )
    said = view.as_dict()
    assert said["payload"] is said["identity"] is said["payload_len"] is None
    assert [identity["identity"] for identity in said["found"]] == ["globex", "acme"]
