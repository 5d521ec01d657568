"""The experiment on validity notices a verifier that counts wrongly."""

import random

import pytest
from agentmark_lab.experiments.verification import (
    validity,
)
from agentmark_lab.kit.draws import fresh_context, random_key
from agentmark_lab.kit.options import Options
from lab_support import silent

from agentmark.core import scheme_r


def test_readings_of_all_behaviors_are_those_of_the_reader():
    """The last behavior's symbols are taken as the rest: it must be what reading it gives."""
    rng = random.Random(3)
    key = random_key(rng)
    lists = validity.Lists(rng)
    for i, size in enumerate([2, 2, 3, 4] * 5):
        distribution = lists.pick(size, 2.0)
        step_key = key.step_key(fresh_context("x", i), validity.PAYLOAD_LEN)
        for name, reading in validity.read_all("R", distribution, step_key).items():
            assert reading == scheme_r.decode(distribution, step_key, name, payload_len=validity.PAYLOAD_LEN)


def count_copies(records, key):
    """Wrong: a step counts as often as it is copied."""
    kept = {record.context for record in validity.shipped_sort(records, key)}
    return [record for record in records if record.context in kept]


def keep_the_lucky_copy(reading, payload):
    """Wrong: a step that disagrees is left out instead of counted."""
    return max(1.0, reading.e_value(payload))


def forget_the_share(reading, payload):
    """Wrong: what a step says is taken from the payload's own symbols, not from all."""
    return 1.5 * reading.e_value(payload)


def claims_only(method, monkeypatch, logs=500):
    monkeypatch.setattr(validity, "QUICK", validity.Effort(claims=logs, views={}, open_f=0, open_r=0))
    monkeypatch.setattr(validity, "SIZES", {"F": validity.SIZES["F"], "R": (2, 2, 2, 2)})
    return validity.check(method, Options(quick=True), silent)


def test_validity_holds_for_the_shipped_method(monkeypatch):
    assert claims_only(validity.SHIPPED, monkeypatch).passed


@pytest.mark.parametrize(
    "method",
    [
        validity.Method(count_copies, validity.shipped_e_value),
        validity.Method(validity.shipped_sort, keep_the_lucky_copy),
        validity.Method(validity.shipped_sort, forget_the_share),
    ],
    ids=["copies counted", "disagreement left out", "share forgotten"],
)
def test_validity_fails_for_a_wrong_one(method, monkeypatch):
    findings = claims_only(method, monkeypatch)
    assert not findings.passed
    assert any(claim.sentence.startswith("DOES NOT HOLD") for claim in findings.claims)
