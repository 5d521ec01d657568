"""The experiments on verification: each notices what it is meant to notice. Their quick versions run in test_lab."""

import random
from functools import partial

import pytest
from agentmark_lab.catalogue import EXPERIMENTS
from agentmark_lab.experiments.attacks import attacks, splices
from agentmark_lab.experiments.attacks import perturbed_lists as rewriting
from agentmark_lab.experiments.verification import (
    evidence_power,
    identification,
    registry_scale,
    single_episode,
    validity,
    weaker_views,
)
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.stats import mean_interval, moments_interval, quantile, quantile_interval
from agentmark_lab.kit.worlds import ALFWORLD, TOOLBENCH, Agent, distribution_of
from scipy import stats as scipy_stats

from agentmark import Verifier
from agentmark.core import scheme_r
from agentmark.record import StepRecord


def silent(message: str) -> None:
    """Progress that nobody reads."""


quietly = partial(dict, quick=True, seed=1, workers=1, progress=silent)


def test_the_experiments_are_in_the_catalogue():
    modules = (
        validity, evidence_power, single_episode, rewriting, splices, registry_scale, weaker_views, attacks,
    )  # fmt: skip
    for module in modules:
        assert EXPERIMENTS[module.NAME] == module.__name__


# Statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "share"), [(500, 0.95), (100, 0.5), (60, 0.95)])
def test_order_statistics_cover_the_quantile(size, share):
    """The ranks against SciPy's binomial, and the coverage itself."""
    interval = quantile_interval(list(range(1, size + 1)), share)
    binomial = scipy_stats.binom(size, share)
    # Pr[the low rank exceeds the quantile] and Pr[the high one falls short of it] are both at most 2.5 %.
    assert binomial.cdf(interval.low - 1) <= 0.025 < binomial.cdf(interval.low)
    if interval.high <= size:
        assert binomial.sf(interval.high - 1) <= 0.025 < binomial.sf(interval.high - 2)
    rng = random.Random(1)
    covered = sum(share in quantile_interval([rng.random() for _ in range(size)], share) for _ in range(60))
    assert covered >= 50


def test_values_that_were_never_reached_are_beyond():
    values = [1.0] * 50 + [float("inf")] * 50
    assert quantile(values, 0.4) == 1
    assert quantile(values, 0.95) == float("inf")
    assert quantile_interval(values, 0.95).high == float("inf")


def test_moments_are_the_mean_interval():
    values = [random.Random(2).gauss(1, 2) for _ in range(400)]
    one, two = mean_interval(values), moments_interval(400, sum(values), sum(v * v for v in values))
    assert (one.low, one.high) == pytest.approx((two.low, two.high))


# Validity ------------------------------------------------------------------------------------------------------------


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
    return validity.check(method, **quietly())


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


# Steps and views -----------------------------------------------------------------------------------------------------


def test_crossings_are_counted_from_the_first_step():
    # Two bits a step without noise: 20 bits for L = 0 after ten, 28 after fourteen.
    times = evidence_power._crossings([4.0] * 30, (0.0,))
    assert times == [10, 14, 18, 26]


def test_the_gamma_test_is_calibrated():
    """Exponential values, as any other identity has, pass as rarely as the level says."""
    rng = random.Random(4)
    sums = []
    for _ in range(4000):
        total = 0.0
        sums.append([total := total + rng.expovariate(1) for _ in range(20)])
    passed = evidence_power._passing(sums, 20, 5.0)
    low, high = scipy_stats.binom(4000, 2.0**-5).interval(0.999)
    assert low <= passed <= high


def test_a_marked_step_has_a_late_uniform():
    """The chosen behavior's u tends to 1, so that its -ln(1 - u) exceeds the null's mean of 1."""
    rng = random.Random(5)
    key = random_key(rng)
    values = []
    for i in range(200):
        step_key = key.step_key(fresh_context("g", i), evidence_power.PAYLOAD_LEN)
        values.append(evidence_power._read_uniform("R", ALFWORLD.draw(rng), step_key, 77))
    assert sum(values) / len(values) > 1.5


def test_views_keep_the_choice_and_lose_what_they_say():
    rng = random.Random(6)
    record = Agent(ALFWORLD, random_key(rng), 3, 8, "R").log(rng, 1)[0]
    for name, view in weaker_views.VIEWS.items():
        seen = view(record, rng)
        assert seen.behavior == record.behavior
        assert (seen.distribution is None) == (name in weaker_views.PARTIAL)
        # It is a record that can be written and read.
        assert StepRecord.from_json(seen.to_json()).partial_weights == seen.partial_weights
    rounded = weaker_views.VIEWS["rounded to 2 decimals"](record, rng)
    assert len({weight % 2**20 for weight in distribution_of(rounded).weights}) <= len(distribution_of(rounded))


def test_no_noise_leaves_every_match():
    match = rewriting.measure_match(0.0, 100, 1)
    assert (match.behavior_f, match.bits_f, match.behavior_r, match.divergence) == (1, 1, 1, 0)
    assert rewriting.measure_match(3.0, 100, 1).behavior_f < 0.6


def test_worlds_have_the_entropies_of_the_paper():
    from agentmark.core.theory import entropy

    rng = random.Random(7)
    for world, expected in ((TOOLBENCH, 0.86), (ALFWORLD, 1.95)):
        mean = sum([entropy(world.draw(rng)) for _ in range(800)]) / 800
        assert mean == pytest.approx(expected, abs=0.12)


# Splices and attacks -------------------------------------------------------------------------------------------------


def test_a_spliced_log_is_judged_by_names_and_joint():
    case = splices.Case(splices.TWO, "F", 8, 1)
    rng = generator(1, "splice test")
    key = random_key(rng)
    records, truth, cuts = splices.spliced_log(case, key, rng)
    segments = Verifier(key, payload_len=8).segments(records)
    outcome = splices.judge(segments, truth, cuts)
    assert outcome.named
    assert outcome.error is not None
    assert not splices.judge(segments, truth[::-1], cuts).named
    assert splices.judge(segments, [1 << 9, 1 << 10], cuts).invented
    assert splices.judge(segments, truth, [cuts[0] + 30]).success is False


def test_the_oracle_is_asked_and_counted():
    outcome = attacks.carry_out(attacks.Job(attacks.ORACLE, "F", 1, 1))
    assert outcome.named == 1
    assert 10 < outcome.queries[0] < 200
    # Ten records of three bits pay for the threshold; none of them was made with the key.
    assert outcome.forged[0] >= 10


def test_every_attack_of_the_list_is_made():
    names = " ".join(attack.name for attack in attacks.ATTACKS)
    for word in (
        "context edits", "deletion", "truncation", "renumbering", "insertion", "dilution", "splice", "reordering",
        "duplication", "repeated contexts", "replay", "payload length", "key ids", "weights", "names",
    ):  # fmt: skip
        assert word in names


@pytest.mark.parametrize("view", ["exact", "chosen weight only", "action only"])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_verifier_names_an_identity_as_soon_as_its_evidence_suffices(view, seed):
    """The experiments count the evidence of the identity they know; a verifier has to find it first."""
    rng = generator(seed, "soon", view)
    key, payload = random_key(rng), rng.getrandbits(8)
    records = Agent(ALFWORLD, key, payload, 8, "R").log(rng, 120)
    records = [weaker_views.VIEWS[view](record, rng) for record in records]
    steps = int(identification.named_after(records, key, payload))
    verifier = Verifier(key, payload_len=8)
    assert verifier.verify(records[:steps]).payload == payload
    assert not verifier.verify(records[: steps - 1]).accepted
