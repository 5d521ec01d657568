"""Evidence is valid (mean at most 1 under both nulls), additive and mergeable; weaker views of a log still count."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf, log2, nan
from struct import pack

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import gamma
from support import dirichlet, marked_log

from agentmark import BehaviorDistribution, SharedKey, StepRecord, Verifier
from agentmark.core import scheme_r
from agentmark.core.errors import StateError
from agentmark.core.evidence import NOISE_PRIOR, NOISE_RATES, Evidence
from agentmark.core.theory import gamma_tail_bits
from agentmark.verify.intake import read_step

KEY = SharedKey(bytes(range(100, 132)))
E_VALUES = st.lists(st.floats(0, 300), max_size=30)


def evidence_of(e_values: list[float], **settings: object) -> Evidence:
    evidence = Evidence(**settings)  # type: ignore[arg-type]
    for value in e_values:
        evidence.update(value)
    return evidence


@given(E_VALUES)
def test_the_mixture_is_the_mean_of_the_products(e_values: list[float]) -> None:
    total = 0.0
    for rate, weight in zip(NOISE_RATES, NOISE_PRIOR, strict=True):
        product = 1.0
        for value in e_values:
            product *= (1 - rate) * value + rate
        total += weight * product
    bits = evidence_of(e_values).bits
    assert bits == pytest.approx(log2(total), abs=1e-6) if total > 0 else bits < -1000


@given(E_VALUES, st.integers(0, 30))
def test_parts_of_a_log_merge(e_values: list[float], cut: int) -> None:
    whole, part, rest = evidence_of(e_values), evidence_of(e_values[:cut]), evidence_of(e_values[cut:])
    part.merge(Evidence.from_bytes(rest.to_bytes()))
    assert part.bits == pytest.approx(whole.bits)
    assert part.steps == whole.steps
    assert part.likely_noise == whole.likely_noise


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: b"X" + d[1:], lambda d: d[:-1], lambda d: d + b"\0"])
def test_damaged_evidence_is_refused(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(StateError, match="evidence"):
        Evidence.from_bytes(damage(evidence_of([2.0]).to_bytes()))


@pytest.mark.parametrize(
    ("rate", "weight", "total"),
    [
        (nan, 1.0, 0.0),
        (-0.5, 1.0, 0.0),
        (0.1, nan, 0.0),
        (0.1, -1.0, 0.0),
        (0.1, 0.0, 0.0),
        # A prior of 2^20 would turn no evidence at all into 20 bits.
        (0.1, 2.0**20, 0.0),
        (0.1, inf, 0.0),
        (0.1, 1.0, nan),
        (0.1, 1.0, inf),
    ],
)
def test_bytes_that_would_bound_nothing_are_refused(rate: float, weight: float, total: float) -> None:
    head = Evidence((0.1,)).to_bytes()[:-24]
    assert Evidence.from_bytes(head + pack(">ddd", 0.1, 1.0, -inf)).bits == -inf
    with pytest.raises(StateError, match="evidence"):
        Evidence.from_bytes(head + pack(">ddd", rate, weight, total))


def test_evidence_under_other_rates_does_not_merge() -> None:
    with pytest.raises(ValueError, match="other noise rates"):
        Evidence().merge(Evidence((0.1,)))
    with pytest.raises(ValueError, match="noise rates"):
        Evidence((1.0,))


def as_logged(record: StepRecord) -> StepRecord:
    return record


def chosen_weight_only(record: StepRecord) -> StepRecord:
    assert record.distribution is not None
    return record.with_partial_weights({record.behavior: record.distribution.weight(record.behavior)})


def action_only(record: StepRecord) -> StepRecord:
    return record.with_partial_weights({})


def top_two(record: StepRecord) -> StepRecord:
    assert record.distribution is not None
    return record.with_partial_weights(dict(list(record.distribution.as_weights().items())[:2]))


VIEWS = [as_logged, chosen_weight_only, action_only, top_two]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_step_has_mean_evidence_one_without_our_key(scheme: str, view: Callable[[StepRecord], StepRecord]) -> None:
    """4,000 steps of an agent without the key: the mean e-value of a claim is 1 within five standard errors.

    Over all symbols of one step it is 1 exactly, by construction; that is checked as well.
    """
    rng = random.Random(f"{scheme} {view.__name__}")
    values = []
    for _ in range(4000 if scheme == "F" else 600):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, 4, 1.0))
        record = StepRecord(
            scheme=scheme,
            key_id=KEY.id,
            payload_len=8,
            session="null",
            step_index=0,
            context=rng.randbytes(32),
            distribution=distribution,
            behavior=distribution.at(rng.getrandbits(32)),
            marked=True,
        )
        reading = read_step(view(record), KEY, 8).reading
        if reading is None:
            continue
        table = reading.e_values()
        assert sum(table) / len(table) == pytest.approx(1.0)
        values.append(reading.e_value(rng.getrandbits(8)))
    if not values:
        assert scheme == "F"
        assert view is not as_logged
        return
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert abs(mean - 1) < 5 * spread / len(values) ** 0.5


@pytest.mark.parametrize(
    ("view", "steps"), [(as_logged, 60), (chosen_weight_only, 110), (action_only, 220), (top_two, 90)]
)
def test_r_names_the_identity_from_what_is_left_of_the_lists(
    view: Callable[[StepRecord], StepRecord], steps: int
) -> None:
    log = [view(record) for record in marked_log(KEY, scheme="R", payload=0xA6, payload_len=8, steps=steps)]
    log = [StepRecord.from_json(record.to_json()) for record in log]
    verdict = Verifier(KEY).verify(log)
    assert verdict.payload == 0xA6
    wrong = Verifier(SharedKey(bytes(range(200, 232))), any_key_id=True).verify(log)
    assert not wrong.accepted


def test_f_needs_the_whole_list_and_says_so() -> None:
    log = [action_only(record) for record in marked_log(KEY, scheme="F", steps=5)]
    verdict = Verifier(KEY).verify(log)
    assert verdict.counts == {"weights not logged": 5}


def test_a_whole_list_read_as_a_part_says_the_same() -> None:
    """With every rival known, nothing is left to the unseen: the soft reading is the set of symbols."""
    for record in marked_log(KEY, scheme="R", payload_len=8, payload=5, steps=20):
        assert record.distribution is not None
        hard = read_step(record, KEY, 8).reading
        soft = read_step(record.with_partial_weights(record.distribution.as_weights()), KEY, 8).reading
        assert hard is not None
        assert soft is not None
        assert soft.e_values() == pytest.approx(hard.e_values())


def test_partial_lists_are_checked_like_whole_ones() -> None:
    from agentmark import RecordError

    record = chosen_weight_only(marked_log(KEY, scheme="R", steps=1)[0])
    line = record.to_json()
    assert '"partial":true' in line
    assert StepRecord.from_json(line) == record
    content = record.as_dict()
    for weights in ({"a": -1}, {"a": 2**32 + 1}, {"a": 0.5}, [1]):
        with pytest.raises(RecordError, match="weights"):
            StepRecord.from_dict(content | {"weights": weights})


@pytest.mark.parametrize(("shape", "value"), [(1, 0.5), (1, 30.0), (10, 10.0), (50, 120.0), (400, 900.0), (5, 0.1)])
def test_the_gamma_tail(shape: int, value: float) -> None:
    assert gamma_tail_bits(shape, value) == pytest.approx(-gamma.logsf(value, shape) / 0.6931471805599453, rel=1e-9)


def test_the_gamma_statistic_of_actions_alone() -> None:
    """Sum of -ln(1 - u_b) over the logged actions: Gamma(T, 1) for a wrong identity, far out for the right one."""
    from math import log

    def bits(payload: int) -> float:
        total = 0.0
        for record in log_:
            step_key = KEY.step_key(record.context, 8)
            symbol = scheme_r.coded_symbol(step_key, payload=payload, payload_len=8)
            total -= log(1 - scheme_r.clock_draw(step_key, record.behavior).uniform(symbol))
        return gamma_tail_bits(len(log_), total)

    log_ = marked_log(KEY, scheme="R", payload=0xA6, payload_len=8, steps=100)
    assert bits(0xA6) > 28
    assert max(bits(payload) for payload in range(0, 0xA6, 5)) < 16


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_claim_pays_for_no_other_identity(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, payload=0xABCDEF01, payload_len=32, steps=26 if scheme == "F" else 16)
    open_verdict = Verifier(KEY).verify(log)
    claimed = Verifier(KEY).verify(log, claim=0xABCDEF01)
    assert not open_verdict.accepted
    assert claimed.accepted
    assert claimed.bits_paid == 0
    assert claimed.route == "claim"
    false = Verifier(KEY).verify(log, claim=0xABCDEF02)
    assert not false.accepted
    assert "for this claim" in false.sentence


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_ownership_counts_the_full_surprisal(scheme: str) -> None:
    """Whether a log is ours at all is answered from fewer steps than whose it is."""
    log = marked_log(KEY, scheme=scheme, steps=60)
    verdict = Verifier(KEY).verify(log)
    assert verdict.ownership_bits is not None
    surprisal = sum(-log2(r.distribution.probability(r.behavior)) for r in log if r.distribution is not None)
    assert verdict.ownership_bits == pytest.approx(surprisal - 1, abs=0.3)
    assert verdict.ownership_bits >= verdict.evidence_bits - 1


@pytest.mark.parametrize("scheme", ["F", "R"])
@pytest.mark.parametrize("payload_len", [8, 16, 32])
def test_one_foreign_record_in_ten_is_tolerated(scheme: str, payload_len: int) -> None:
    """Records of other agents, with our key id pasted on: named all the same, and counted."""
    rng = random.Random(9)
    log = marked_log(KEY, scheme=scheme, payload=0xA6, payload_len=payload_len, steps=130)
    for i in rng.sample(range(130), 13):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, 8, 0.6))
        log[i] = replace(log[i], distribution=distribution, behavior=distribution.at(rng.getrandbits(32)))
    verdict = Verifier(KEY).verify(log)
    assert verdict.payload == 0xA6
    assert verdict.consistent is False
    assert verdict.contradicting > 0
    assert "are another's or were altered" in verdict.sentence
    assert not Verifier(KEY, noise=0.0).verify(log).accepted
    assert not Verifier(KEY).control(log).accepted


@given(
    e_values=st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 8.0, 256.0]), max_size=40), needed=st.floats(0.5, 60)
)
def test_the_least_number_of_steps_is_what_its_definition_says(e_values: list[float], needed: float) -> None:
    """The smallest number of steps that, taken away where they say most, leave less than is needed."""
    mixture = evidence_of(e_values)
    ordered = sorted(e_values, reverse=True)
    left = [evidence_of(e_values)]
    for value in ordered:
        if value <= 1:
            break
        taken = evidence_of([value])
        fewer = evidence_of([])
        fewer.steps = left[-1].steps - 1
        fewer._sums = [total - gone for total, gone in zip(left[-1]._sums, taken._sums, strict=True)]
        left.append(fewer)
    assume(all(abs(evidence.bits - needed) > 1e-6 for evidence in left))
    expected = next((count for count, evidence in enumerate(left) if evidence.bits < needed), len(left) - 1)
    assert mixture.least_steps(Counter(e_values), needed) == expected


def test_no_set_of_steps_of_that_size_leaves_less_than_the_largest_do() -> None:
    """What the bound rests on: whichever steps are the payload's own, the others say at least so much."""
    rng = random.Random(3)
    for _ in range(50):
        e_values = [rng.choice([0.0, 0.7, 1.3, 2.0, 4.0, 32.0]) for _ in range(30)] + [64.0] * 6
        needed = rng.uniform(1, 40)
        least = evidence_of(e_values).least_steps(Counter(e_values), needed)
        for _ in range(20):
            own = set(rng.sample(range(len(e_values)), max(least - 1, 0)))
            others = [value for i, value in enumerate(e_values) if i not in own]
            if least:
                assert evidence_of(others).bits >= needed - 1e-9
