"""Step records: one line each, and what is wrong with a broken one."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_record import KEY, a_record
from support import TICKET_WEIGHTS

from agentmark import Embedder, RecordError, RecordVersionError, StepRecord


def test_a_record_is_one_line_of_json_without_floats_or_secrets() -> None:
    record = a_record()
    line = record.to_json()
    assert "\n" not in line
    content = json.loads(line, parse_float=lambda text: pytest.fail(f"float {text} in a record"))
    assert set(content) == {
        "agentmark",
        "scheme",
        "key_id",
        "payload_len",
        "session",
        "step",
        "context",
        "weights",
        "choice",
        "marked",
    }
    step_key = KEY.step_key(record.context, 8)
    assert step_key.hex() not in line
    assert StepRecord.from_json(line) == record


@given(st.permutations(list(range(10))), st.permutations(list(range(5))))
def test_the_order_of_members_means_nothing(members: list[int], weights: list[int]) -> None:
    record = a_record()
    content = record.as_dict()
    content["weights"] = dict([list(content["weights"].items())[i] for i in weights])
    shuffled = dict([list(content.items())[i] for i in members])
    assert StepRecord.from_json(json.dumps(shuffled)) == record


def broken(change: Callable[[dict[str, Any]], Any]) -> str:
    content = a_record().as_dict()
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("{nonsense", "line"),
        ("[1]", "record"),
        ("{}", "agentmark"),
        (broken(lambda c: c.pop("weights")), "weights"),
        (broken(lambda c: c.update(colour="red")), "colour"),
        (broken(lambda c: c.update(weights={"a": 1})), "weights"),
        (broken(lambda c: c["weights"].update(Search=0.5)), "weights['Search']"),
        (broken(lambda c: c["weights"].update(Search=-1)), "weights['Search']"),
        (broken(lambda c: c.update(weights=[1, 2])), "weights"),
        (broken(lambda c: c.update(weights=None)), "weights"),
        (broken(lambda c: c.update(choice="Fly")), "choice"),
        (broken(lambda c: c.update(choice=7)), "choice"),
        (broken(lambda c: c.update(marked="yes")), "marked"),
        (broken(lambda c: c.update(marked=False)), "reason"),
        (broken(lambda c: c.update(step=-1)), "step"),
        (broken(lambda c: c.update(step=True)), "step"),
        (broken(lambda c: c.update(session="")), "session"),
        (broken(lambda c: c.update(context="ab")), "context"),
        (broken(lambda c: c.update(context=c["context"].upper() + "")), "context"),
        (broken(lambda c: c.update(payload_len=-1)), "payload_len"),
        (broken(lambda c: c.update(payload_len=True)), "payload_len"),
        (broken(lambda c: c.update(enforced="no")), "enforced"),
        (broken(lambda c: c.update(raw_context=[])), "raw_context"),
        (broken(lambda c: c.update(meta={"t": 0.5})), "meta.t"),
        (a_record().to_json().replace('"choice":', '"step":1,"choice":'), "step"),
        (a_record().to_json().replace('"Book":', '"Search":'), "Search"),
    ],
)
def test_a_broken_record_names_itself_and_its_field(line: str, field: str) -> None:
    with pytest.raises(RecordError) as caught:
        StepRecord.from_json(line, where="log.jsonl:17")
    assert caught.value.field == field
    assert str(caught.value).startswith("record log.jsonl:17: ")


@pytest.mark.parametrize(
    ("change", "found"),
    [({"agentmark": 2}, "2"), ({"agentmark": "1"}, "'1'"), ({"scheme": "Q"}, "'Q'"), ({"scheme": {}}, "{}")],
)
def test_an_unknown_version_or_scheme_names_both(change: dict[str, Any], found: str) -> None:
    with pytest.raises(RecordVersionError, match=f"found {found}, this build reads .*version 1"):
        StepRecord.from_json(broken(lambda c: c.update(change)))


def test_optional_members_may_be_null() -> None:
    line = broken(lambda c: c.update(reason=None, enforced=None, raw_context=None, meta=None))
    assert StepRecord.from_json(line) == a_record()


def test_a_raw_context_shows_whether_it_was_touched() -> None:
    record = Embedder(KEY, 5, payload_len=8, keep_context=True).session().choose(TICKET_WEIGHTS).record
    assert record.context_matches() is True
    assert replace(record, raw_context={"session": "x", "step": 0}).context_matches() is False
    assert a_record().context_matches() is None


ODD_LISTS = [{"a": 1 << 32}, {"a": 1, "b": (1 << 32) - 1}, {"a": True}, {"": 1 << 32}, {"a": 1}, {"x": {"y": 1.5}}, {}]
ODD_TEXTS = ["", "F", "R", "é", "\ud800", "0" * 64, "A" * 64, "a" * 63]
ODD = st.sampled_from([None, True, False, 0, 1, -1, 2**60, 1.0, [], [1], *ODD_TEXTS, *ODD_LISTS])
MEMBERS = [*a_record().as_dict(), "partial", "reason", "enforced", "raw_context", "meta", "prev", "further"]


@given(st.dictionaries(st.sampled_from(MEMBERS), ODD, max_size=3), st.sets(st.sampled_from(MEMBERS), max_size=1))
def test_what_is_checked_in_one_go_is_what_is_checked_field_by_field(changes: dict[str, Any], less: set[str]) -> None:
    content = {name: value for name, value in (a_record().as_dict() | changes).items() if name not in less}

    def outcome() -> StepRecord | str:
        try:
            return StepRecord.from_dict(content, where="here")
        except RecordError as error:
            return str(error)

    found = outcome()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StepRecord, "_of_usual", classmethod(lambda cls, content: None))
        assert outcome() == found


def test_what_is_the_same_in_record_after_record_is_kept_once() -> None:
    line = a_record().to_json()
    first, second = StepRecord.from_json(line), StepRecord.from_json(line)
    assert first.distribution is not None
    assert second.distribution is not None
    for mine, other in zip(first.distribution.behaviors, second.distribution.behaviors, strict=True):
        assert mine is other
    assert first.behavior in first.distribution.behaviors
    assert any(name is first.behavior for name in first.distribution.behaviors)
    assert first.session is second.session
    assert first.key_id is second.key_id
