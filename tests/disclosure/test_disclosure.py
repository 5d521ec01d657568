"""Disclosures: what they prove, and that nothing near one passes for it."""

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.core.strict_json import parse_json
from agentmark.disclosure.check import DisclosedSteps, Proved
from agentmark.disclosure.digest import record_digest
from agentmark.disclosure.document import Disclosure, DisclosureError, Entry, signed_bytes
from agentmark.disclosure.make import disclose
from agentmark.embed.embedder import Embedder
from agentmark.keys.marking import MarkingKey
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord

KEY = MarkingKey(bytes(range(7, 39)))
OTHER = MarkingKey(bytes(range(160, 192)))
WEIGHTS = {"search": 0.5, "book": 0.3, "pay": 0.2}


def steps(key: MarkingKey | SharedKey, count: int, *, scheme: str = "R", payload_len: int = 16) -> list[StepRecord]:
    session = Embedder(key, 42, payload_len=payload_len, scheme=scheme).session()
    return [session.choose(WEIGHTS).record for _ in range(count)]


LOG = steps(KEY, 5)
DISCLOSURE = disclose(LOG, KEY)


def again(content: Any) -> Disclosure:
    return Disclosure.from_dict(parse_json(json.dumps(content)))


def signed(key: MarkingKey, entries: tuple[Entry, ...]) -> Disclosure:
    return Disclosure(key.public, entries, key.prove(signed_bytes(key.public, entries)))


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_every_disclosed_record_is_proved_with_its_step_key(scheme: str) -> None:
    log = steps(KEY, 4, scheme=scheme)
    found = DisclosedSteps(again(disclose(log, KEY).as_dict()))
    for record in log:
        proof = found.proof_of(record)
        assert proof.proved is Proved.YES
        assert proof.step_key == KEY.step_key(record.context, record.payload_len)


def test_a_disclosure_comes_back_from_its_json() -> None:
    assert again(DISCLOSURE.as_dict()) == DISCLOSURE


def test_what_is_unmarked_or_states_another_key_is_not_disclosed() -> None:
    unmarked = replace(LOG[0], marked=False, reason="tool failed")
    assert disclose([unmarked, *steps(OTHER, 2), *steps(SharedKey.generate(), 2)], KEY).entries == ()


def test_copies_are_listed_once_and_so_are_proofs_of_one_step() -> None:
    later = LOG[0].with_enforced(False)
    other_choice = replace(LOG[0], behavior="pay" if LOG[0].behavior != "pay" else "book")
    disclosed = disclose([LOG[0], LOG[0], later, other_choice], KEY)
    # A copy is listed once; one that says the agent did not obey, or chose otherwise, is another record.
    assert len(disclosed.entries) == 3
    assert len({entry.proof for entry in disclosed.entries}) == 1


def test_records_that_are_not_listed_are_told_apart_from_those_that_were_altered() -> None:
    found = DisclosedSteps(disclose(LOG[:3], KEY))
    assert found.proof_of(LOG[4]).proved is Proved.NOT_DISCLOSED
    forged = replace(LOG[1], behavior="pay" if LOG[1].behavior != "pay" else "book")
    assert found.proof_of(forged).proved is Proved.ALTERED
    assert found.proof_of(replace(LOG[1], step_index=99)).proved is Proved.ALTERED
    assert found.proof_of(LOG[1].with_partial_weights({})).proved is Proved.ALTERED


def test_a_proof_moved_to_another_record_does_not_hold() -> None:
    """The holder himself lists a record with the proof of another context."""
    first, second = DISCLOSURE.entries[:2]
    swapped = Entry(first.digest, first.context, first.payload_len, second.proof)
    moved = Entry(second.digest, first.context, first.payload_len, first.proof)
    found = DisclosedSteps(again(signed(KEY, (swapped, moved)).as_dict()))
    assert found.proof_of(LOG[0]).proved is Proved.NOT_PROVED
    assert found.proof_of(LOG[1]).proved is Proved.NOT_PROVED


def test_a_proof_of_another_length_does_not_hold() -> None:
    record = LOG[0]
    entry = Entry(record_digest(record), record.context, 16, KEY.prove_step(record.context, 17))
    assert DisclosedSteps(signed(KEY, (entry,))).proof_of(record).proved is Proved.NOT_PROVED


def _altered(**changes: Any) -> dict[str, Any]:
    return DISCLOSURE.as_dict() | changes


def _entry_altered(**changes: Any) -> dict[str, Any]:
    records = DISCLOSURE.as_dict()["records"]
    return _altered(records=[records[0] | changes, *records[1:]])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([], "is not an AgentMark disclosure"),
        (_altered(agentmark_disclosure=2), "the version"),
        (_altered(agentmark_disclosure=True), "the version"),
        (_altered(more=1), "members that are none"),
        (_altered(public_key=KEY.public.as_dict() | {"note": "unsigned"}), "public_key has members that are none"),
        ({name: value for name, value in DISCLOSURE.as_dict().items() if name != "proof"}, "has no proof"),
        (_altered(public_key=OTHER.public.as_dict()), "was altered, or is not by the holder"),
        (_altered(public_key=OTHER.public.as_dict() | {"id": KEY.id}), "its id is not"),
        (_altered(proof=OTHER.prove(b"").hex()), "was altered, or is not by the holder"),
        (_altered(proof="00"), "is not 160 lower-case"),
        (_altered(records={}), "records is not a list"),
        (_altered(records=[1]), "is not an object"),
        (_altered(records=DISCLOSURE.as_dict()["records"][:-1]), "was altered"),
        (_altered(records=DISCLOSURE.as_dict()["records"][::-1]), "was altered"),
        (_altered(records=[*DISCLOSURE.as_dict()["records"], DISCLOSURE.as_dict()["records"][0]]), "listed twice"),
        (_entry_altered(digest="00" * 32), "was altered"),
        (_entry_altered(digest="XY"), "digest is not 64"),
        (_entry_altered(payload_len=17), "was altered"),
        (_entry_altered(payload_len=5000), "payload_len"),
        (_entry_altered(payload_len=True), "payload_len"),
        (_entry_altered(extra=None), "members that are none"),
    ],
)
def test_damaged_and_altered_disclosures_are_refused(content: object, fault: str) -> None:
    with pytest.raises(DisclosureError, match=fault):
        Disclosure.from_dict(content)


def test_what_tools_drop_or_add_is_not_part_of_the_digest() -> None:
    record = LOG[0]
    assert record_digest(record) == record_digest(replace(record, meta={"tool": "x"}, reason="why", prev="0" * 64))
    changed = [
        replace(record, session="other"),
        replace(record, key_id="other"),
        replace(record, payload_len=17),
        replace(record, scheme="F"),
        replace(record, context=bytes(32)),
        replace(record, marked=False, reason="x"),
        record.with_partial_weights({}),
        record.with_partial_weights(record.distribution.as_weights() if record.distribution else {}),
    ]
    assert len({record_digest(other) for other in [record, *changed]}) == 1 + len(changed)
