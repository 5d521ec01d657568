"""The verifying side under every kind of log: partial, shuffled, repeated, forged, foreign, empty."""

import random
import re
from dataclasses import replace
from math import log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import TICKET_WEIGHTS, dirichlet, marked_log, through_json

from agentmark import BehaviorDistribution, Embedder, Identity, Registry, SettingError, SharedKey, StepRecord, Verifier
from agentmark.core.theory import consistency_probability

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
SCHEMES = pytest.mark.parametrize("scheme", ["F", "R"])


@SCHEMES
@pytest.mark.parametrize("payload_len", [1, 8, 16, 32])
def test_the_identity_comes_back_from_a_damaged_log(scheme: str, payload_len: int) -> None:
    """40 % lost, the rest shuffled, from several sessions, through JSON."""
    rng = random.Random(payload_len)
    payload = rng.getrandbits(payload_len)
    log = marked_log(KEY, scheme=scheme, payload=payload, payload_len=payload_len, steps=40, sessions=4)
    left = rng.sample(log, int(0.6 * len(log)))
    verdict = Verifier(KEY, payload_len=payload_len).verify(through_json(left))
    assert verdict.accepted
    assert verdict.payload == payload
    assert verdict.false_positive_rate <= 1e-6
    assert verdict.schemes == (scheme,)


@SCHEMES
def test_order_and_copies_change_nothing(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, steps=60)
    verdict = Verifier(KEY).verify(log)
    rng = random.Random(1)
    jumbled = log + log[:20] + log[:20]
    rng.shuffle(jumbled)
    again = Verifier(KEY).verify(jumbled)
    assert again.payload == verdict.payload
    assert again.evidence_bits == pytest.approx(verdict.evidence_bits)
    assert again.rank == verdict.rank
    assert again.counts["duplicate"] == 40


@SCHEMES
def test_one_context_repeated_is_not_evidence(scheme: str) -> None:
    """Four copies of noise look like strong evidence to a verifier that counts copies."""
    few = marked_log(KEY, scheme=scheme, steps=8)
    once, often = Verifier(KEY).verify(few), Verifier(KEY).verify(few * 50)
    assert not once.accepted
    assert not often.accepted
    assert often.evidence_bits == pytest.approx(once.evidence_bits)


@SCHEMES
def test_another_key_gets_nothing(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, steps=80)
    plain = Verifier(OTHER).verify(log)
    assert not plain.accepted
    assert plain.counts == {"other key": 80}
    assert "80 other key" in plain.sentence
    forced = Verifier(OTHER, any_key_id=True).verify(log)
    assert not forced.accepted
    assert forced.payload is None
    assert forced.consistent is False
    control = Verifier(KEY).control(log)
    assert not control.accepted


def test_key_ids_that_were_rewritten_can_be_overlooked() -> None:
    log = [replace(record, key_id="0" * 16) for record in marked_log(KEY, steps=60)]
    assert not Verifier(KEY).verify(log).accepted
    assert Verifier(KEY, any_key_id=True).verify(log).payload == 0x5EED


def test_a_log_across_a_key_rotation_is_one_log() -> None:
    log = marked_log(KEY, steps=14, seed=1) + marked_log(OTHER, steps=14, seed=2)
    assert not Verifier(KEY).verify(log).accepted
    assert not Verifier(OTHER).verify(log).accepted
    assert Verifier([KEY, OTHER]).verify(log).payload == 0x5EED


def test_one_log_may_mix_both_schemes() -> None:
    """Neither half is enough alone."""
    log = marked_log(KEY, scheme="F", steps=18, seed=1) + marked_log(KEY, scheme="R", steps=14, seed=2)
    assert not Verifier(KEY).verify([r for r in log if r.scheme == "F"]).accepted
    assert not Verifier(KEY).verify([r for r in log if r.scheme == "R"]).accepted
    verdict = Verifier(KEY).verify(log)
    assert verdict.payload == 0x5EED
    assert verdict.schemes == ("F", "R")


@SCHEMES
def test_two_identities_in_one_log_contradict_each_other(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, payload=1, steps=40) + marked_log(KEY, scheme=scheme, payload=2, steps=40)
    verdict = Verifier(KEY).verify(log)
    assert verdict.consistent is False
    assert verdict.payload in (None, 1, 2)
    assert verdict.agreeing + verdict.contradicting == verdict.counts["used"]
    strict = Verifier(KEY, noise=0.0).verify(log)
    assert strict.payload is None
    assert strict.false_positive_rate == 1.0


@SCHEMES
def test_altered_choices_are_counted_and_never_accepted_as_another_identity(scheme: str) -> None:
    rng = random.Random(6)
    log = marked_log(KEY, scheme=scheme, steps=80)
    for i in rng.sample(range(80), 30):
        distribution = log[i].distribution
        assert distribution is not None
        log[i] = replace(log[i], behavior=rng.choice(distribution.behaviors))
    verdict = Verifier(KEY).verify(log)
    assert verdict.counts["impossible under this key"] > 0
    assert verdict.payload in (None, 0x5EED)


def test_conflicting_copies_erase_the_step_in_any_order() -> None:
    log = marked_log(KEY, steps=60)
    distribution = log[0].distribution
    assert distribution is not None
    other = next(name for name in distribution.behaviors if name != log[0].behavior)
    forged = replace(log[0], behavior=other)
    for jumbled in ([forged, *log], [*log, forged], [*log, forged, log[0]]):
        verdict = Verifier(KEY).verify(jumbled)
        assert verdict.payload == 0x5EED
        assert verdict.counts["conflicting copies"] == len(jumbled) - 59


@SCHEMES
def test_a_part_beside_the_whole_list_is_a_copy_of_it(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, steps=40)
    stripped = [record.with_partial_weights({}) for record in log]
    chosen = [_only(record, record.behavior) for record in log[:10]]
    alone = Verifier(KEY).verify(log)
    for jumbled in ([*stripped, *log, *chosen], [*log, *chosen, *stripped], [*log[:20], *stripped, *log[20:]]):
        verdict = Verifier(KEY).verify(jumbled)
        assert verdict.counts["duplicate"] == len(jumbled) - 40
        assert verdict.evidence_bits == alone.evidence_bits
        assert verdict.payload == 0x5EED


def test_a_forged_part_takes_no_more_than_its_step() -> None:
    """The whole list is neither altered nor replaced by a part; a part that disagrees erases, as any altered copy."""
    log = marked_log(KEY, scheme="R", steps=40)
    first, second = log[0], log[1]
    assert first.distribution is not None
    heavier = {first.behavior: first.distribution.weight(first.behavior) + 1}
    rival = next(name for name in first.distribution.behaviors if name != first.behavior)
    forgeries = [
        first.with_partial_weights(heavier),
        first.with_partial_weights({"no such name": 1}),
        first.with_partial_weights({"no such name": 0}),
        replace(first.with_partial_weights({}), behavior=rival),
        replace(first.with_partial_weights({}), scheme="F"),
    ]
    without = Verifier(KEY).verify(log[1:])
    for forged in forgeries:
        for jumbled in ([forged, *log], [*log, forged]):
            verdict = Verifier(KEY).verify(jumbled)
            assert verdict.counts["conflicting copies"] == 2
            assert verdict.evidence_bits == without.evidence_bits
    # Two parts of one step that differ: neither says which is genuine, and no whole list is here to tell.
    parts = [_only(second, second.behavior), second.with_partial_weights({})]
    assert Verifier(KEY).verify([*log[:1], *log[2:], *parts]).counts["conflicting copies"] == 2
    # Two whole lists conflict, whatever parts stand beside them.
    other = replace(second, behavior=next(n for n in log[1].distribution.behaviors if n != second.behavior))  # type: ignore[union-attr]
    assert Verifier(KEY).verify([*log, other, *parts]).counts["conflicting copies"] == 4


def _only(record: StepRecord, name: str) -> StepRecord:
    assert record.distribution is not None
    return record.with_partial_weights({name: record.distribution.weight(name)})


def test_a_step_that_the_agent_did_not_obey_is_an_erasure() -> None:
    log = marked_log(KEY, steps=60)
    disobeyed = [log[0].with_enforced(False), *log]
    verdict = Verifier(KEY).verify(disobeyed)
    assert verdict.counts["not enforced"] == 2
    assert verdict.counts["used"] + verdict.counts["impossible under this key"] == 59
    assert verdict.payload == 0x5EED


@SCHEMES
def test_too_few_steps_are_a_verdict_that_says_how_many_more(scheme: str) -> None:
    log = marked_log(KEY, scheme=scheme, steps=400)
    verdict = Verifier(KEY).verify(log[:8])
    assert not verdict.accepted
    assert verdict.steps_needed is not None
    assert f"about {verdict.steps_needed} more steps" in verdict.sentence
    # The estimate comes from few steps; twice as many must do.
    assert Verifier(KEY).verify(log[: 8 + 2 * verdict.steps_needed]).accepted


@pytest.mark.parametrize("records", [[], "unmarked"])
def test_nothing_to_go_on_is_a_verdict(records: object) -> None:
    if records:
        session = Embedder(KEY, 5, payload_len=8).session()
        records = [session.unmarked("a", reason="elicitation failed").record for _ in range(5)]
    verdict = Verifier(KEY).verify(records)  # type: ignore[arg-type]
    assert not verdict.accepted
    assert verdict.payload is None
    assert ("none of the 5 records can be used" if records else "the log is empty") in verdict.sentence


def test_a_mark_without_identity_says_ours_and_no_more() -> None:
    session = Embedder(KEY).session()
    log = [session.choose(TICKET_WEIGHTS).record for _ in range(40)]
    verdict = Verifier(KEY).verify(log)
    assert verdict.accepted
    assert verdict.payload == 0
    assert "holder of this key" in verdict.sentence
    assert not Verifier(OTHER, any_key_id=True).verify(log).accepted


def test_records_of_another_length_are_set_aside_and_counted() -> None:
    log = marked_log(KEY, steps=60) + marked_log(KEY, payload=3, payload_len=8, steps=5)
    verdict = Verifier(KEY).verify(log)
    assert verdict.payload_len == 16
    assert verdict.counts["other payload length"] == 5
    assert verdict.payload == 0x5EED


def test_two_lengths_as_common_read_as_the_longer() -> None:
    log = marked_log(KEY, steps=40) + marked_log(KEY, payload=3, payload_len=8, steps=40)
    assert Verifier(KEY).verify(log).payload_len == 16
    assert Verifier(KEY).verify(log[::-1]).payload_len == 16


def test_copies_of_one_line_do_not_move_the_payload_length() -> None:
    """61 copies of one line that states another length, against 60 genuine steps: a context counts once."""
    log = marked_log(KEY, steps=60)
    unmarked = replace(log[0], payload_len=24, marked=False, reason="planted")
    marked = replace(log[0], payload_len=24)
    stripped = replace(log[0].with_partial_weights({}), payload_len=24)
    for planted in (unmarked, marked, stripped):
        verdict = Verifier(KEY).verify([*log, *[planted] * 61])
        assert verdict.payload == 0x5EED
        assert verdict.payload_len == 16
        assert verdict.counts["other payload length"] == 61
        assert any("61 records state another payload length" in finding for finding in verdict.tampering)


def test_only_steps_that_could_be_read_decide_on_the_payload_length() -> None:
    """Contexts are cheap to make up. Unmarked ones, and steps of F without weights, could not be read at any length."""
    log = marked_log(KEY, steps=60)
    rng = random.Random(4)
    unmarked = replace(log[0], payload_len=24, marked=False, reason="planted")
    stripped = replace(log[0].with_partial_weights({}), payload_len=24)
    for line in (unmarked, stripped):
        planted = [replace(line, context=rng.randbytes(32)) for _ in range(200)]
        assert Verifier(KEY).verify([*log, *planted]).payload == 0x5EED


def test_as_many_made_up_steps_as_genuine_ones_move_the_length_and_a_pinned_one_stays() -> None:
    """What remains (docs/verdict.md): only a given length tells them apart. The verdict says what it set aside."""
    log = marked_log(KEY, steps=60)
    rng = random.Random(4)
    planted = [replace(record, payload_len=17, context=rng.randbytes(32)) for record in log]
    assert Verifier(KEY).verify([*log, *planted[:-1]]).payload == 0x5EED
    moved = Verifier(KEY).verify([*log, *planted])
    assert not moved.accepted
    assert any("60 state 16 bits" in finding for finding in moved.tampering)
    assert Verifier(KEY, payload_len=16).verify([*log, *planted]).payload == 0x5EED
    registry = Registry(16, [Identity("acme", 0x5EED)])
    assert Verifier(KEY, registry=registry).verify([*log, *planted]).identity == "acme"


def test_steps_taken_out_by_copies_that_disagree_are_listed() -> None:
    """An altered copy of every step leaves nothing to read. That must not pass for an untouched log."""
    log = marked_log(KEY, steps=60)
    assert Verifier(KEY).verify(log).tampering == ()
    altered = []
    for record in log:
        assert record.distribution is not None
        altered.append(replace(record, behavior=next(n for n in record.distribution.behaviors if n != record.behavior)))
    verdict = Verifier(KEY).verify(log + altered)
    assert not verdict.accepted
    assert verdict.tampering == ("60 steps are logged in copies that disagree: none of them counts",)
    assert Verifier(KEY).verify([*log, altered[7]]).tampering == (
        "1 step is logged in copies that disagree: none of them counts",
    )


def test_steps_taken_out_as_not_obeyed_are_listed() -> None:
    log = marked_log(KEY, steps=60)
    verdict = Verifier(KEY).verify([*log, *[record.with_enforced(False) for record in log]])
    assert not verdict.accepted
    [finding] = verdict.tampering
    assert finding.startswith("60 steps are logged both as not obeyed and without that")
    # A step that is only ever logged as not obeyed is an honest erasure.
    assert Verifier(KEY).verify([log[0].with_enforced(False), *log[1:]]).tampering == ()


def test_a_disobeyed_step_is_erased_even_if_an_unmarked_copy_says_so() -> None:
    log = marked_log(KEY, steps=40)
    unmarked = replace(log[0], marked=False, reason="the agent refused", enforced=False)
    verdict = Verifier(KEY).verify([*log, unmarked])
    assert verdict.counts["not enforced"] == 1


def test_copies_under_two_key_ids_conflict() -> None:
    log = marked_log(KEY, steps=40)
    relabelled = replace(log[0], key_id="0" * 16)
    verdict = Verifier(KEY, any_key_id=True).verify([*log, relabelled])
    assert verdict.counts["conflicting copies"] == 2


def test_nobody_is_named_before_the_bound_is_met() -> None:
    """Few steps under another key, a registry that holds every payload: a candidate may appear, a name must not."""
    registry = Registry(8, [Identity(f"tenant {i}", i) for i in range(256)])
    for seed in range(100):
        log = marked_log(OTHER, payload=seed, payload_len=8, steps=4, seed=seed)
        for noise in (None, 0.0):
            verdict = Verifier(KEY, registry=registry, any_key_id=True, noise=noise).verify(log)
            assert not verdict.accepted
            assert verdict.identity is None
            assert verdict.payload is None
            assert verdict.as_dict()["identity"] is None


def test_the_printed_bound_is_never_smaller_than_the_bound() -> None:
    for steps in range(30, 80, 3):
        verdict = Verifier(KEY).verify(marked_log(KEY, steps=steps))
        if verdict.accepted:
            printed = re.search(r"at most (\S+) ", verdict.sentence)
            assert printed is not None
            assert verdict.false_positive_rate <= float(printed[1]) <= 1.2 * verdict.false_positive_rate
    log = marked_log(KEY, payload=1, payload_len=1, steps=900)
    assert Verifier(KEY).verify(log).false_positive_rate == 1e-300


@given(st.floats(5e-324, 1.0))
@example(9.95e-8)
@example(9.9000000001e-8)
@example(1e-6)
@example(1.0)
def test_the_printed_bound_is_a_bound_of_two_digits(rate: float) -> None:
    """Rounding up must carry over: 9.95e-08 is 1.0e-07, not 10.0e-08. What is no small number is not written as one."""
    surplus = -log2(rate)
    verdict = replace(Verifier(KEY).verify([]), candidate=1, evidence_bits=surplus, bits_paid=0.0)
    printed = verdict.bound_text
    assert re.fullmatch(r"[1-9]\.\de-\d{2,3}|1e-300|1|0\.0{0,2}[1-9]\d?", printed)
    assert verdict.false_positive_rate <= float(printed) <= 1.11 * verdict.false_positive_rate


def test_without_noise_only_the_one_payload_that_explains_every_step_is_named() -> None:
    """Clean logs of about 15 bits, a registry of 100 names of 10 bits, threshold 1e-2: now and then a second payload
    explains every step as well. With noise 0 nobody is named then, so that a clean log never names the wrong identity
    (spec, section 9.1). In 300 logs the test must meet at least three such.
    """
    rng = random.Random(5)
    ambiguous = 0
    for trial in range(300):
        payloads = rng.sample(range(1 << 10), 100)
        registry = Registry(10, [Identity(f"tenant {i}", payload) for i, payload in enumerate(payloads)])
        session = Embedder(KEY, payloads[50], payload_len=10).session(f"ambiguous {trial}")
        log = [session.choose({"a": 1, "b": 1}).record for _ in range(15)]
        verifier = Verifier(KEY, registry=registry, noise=0.0, threshold=1e-2)
        verdict = verifier.verify(log)
        assert verdict.payload in (None, payloads[50])
        readings = verifier.take_in(log).readings
        explaining = sum(all(reading.e_value(m) > 0 for reading in readings) for m in range(1 << 10))
        assert verdict.accepted == (explaining == 1)
        ambiguous += explaining > 1
        if explaining > 1:
            assert "more than one identity" in verdict.sentence
    assert ambiguous >= 3


def test_a_log_made_to_need_many_checks_is_given_up() -> None:
    """4,000 near-certain steps agree with nearly every guess; the checks are paid from the same budget."""
    session = Embedder(KEY, 7, payload_len=16, scheme="R").session("slow")
    log = [session.choose({"usual": 0.99, "rare": 0.01}).record for _ in range(300)]
    log = [record for record in log if record.behavior == "usual"]
    verdict = Verifier(KEY, work_limit=6000, noise=0.0).verify(log)
    assert verdict.consistent is None
    assert verdict.work_spent


def test_a_search_beyond_its_limit_says_so() -> None:
    session = Embedder(KEY, 7, payload_len=64, scheme="R").session()
    log = [session.choose({"a": 1, "b": 1}).record for _ in range(120)]
    verdict = Verifier(KEY, work_limit=1000).verify(log)
    assert not verdict.accepted
    assert verdict.consistent is None
    assert verdict.steps_needed is None
    assert "work limit" in verdict.sentence
    assert verdict.work_note is not None
    assert "registry or a claim" in verdict.work_note


def test_names_that_the_mark_does_not_tie_can_be_replaced() -> None:
    """F is tied to ranks: with all names replaced the evidence is the same. R is tied to the name of the choice, and to
    the others as far as they could have won: with every rejected option renamed a sixth of the evidence is left.

    R: 20 logs of 100 steps at 1e-6, of which more than half must still be accepted (of 40 logs, 37 were).
    """
    verifier = Verifier(KEY)
    accepted, kept = 0, []
    for seed in range(20):
        session = Embedder(KEY, 0x5EED, payload_len=16, scheme="R").session(f"renamed R {seed}")
        log = [session.choose(TICKET_WEIGHTS).record for _ in range(100)]
        rejected = [_renamed(record, set(TICKET_WEIGHTS) - {record.behavior}) for record in log]
        before, after = verifier.verify(log, claim=0x5EED), verifier.verify(rejected, claim=0x5EED)
        accepted += after.accepted
        kept.append(after.evidence_bits / before.evidence_bits)
    assert accepted > 10
    assert 0.1 < sum(kept) / len(kept) < 0.3
    session = Embedder(KEY, 0x5EED, payload_len=16).session("renamed F")
    log = [session.choose(TICKET_WEIGHTS).record for _ in range(60)]
    renamed = verifier.verify([_renamed(record, set(TICKET_WEIGHTS)) for record in log])
    assert renamed.payload == 0x5EED
    assert renamed.evidence_bits == verifier.verify(log).evidence_bits


def _renamed(record: StepRecord, which: set[str]) -> StepRecord:
    """New names for these behaviors."""
    assert record.distribution is not None
    weights = record.distribution.as_weights()
    names = {name: f"{name} as others call it" if name in which else name for name in weights}
    distribution = BehaviorDistribution.quantise({names[name]: weight for name, weight in weights.items()})
    return replace(record, distribution=distribution, behavior=names[record.behavior])


def test_names_texts_and_revocations_show() -> None:
    session = Embedder(KEY, "acme", payload_len=32).session()
    log = [session.choose(TICKET_WEIGHTS).record for _ in range(80)]
    assert Verifier(KEY).verify(log).text == "acme"
    assert "as text: 'acme'" in Verifier(KEY).verify(log).sentence
    registry = Registry(32, [Identity("Acme GmbH", 0x61636D65, revoked_at="2026-01-01T00:00:00+00:00")])
    verdict = Verifier(KEY, registry=registry).verify(log)
    assert verdict.identity == "Acme GmbH"
    assert "revoked 2026-01-01" in verdict.sentence


def test_altered_raw_contexts_are_counted() -> None:
    session = Embedder(KEY, 5, payload_len=8, keep_context=True).session()
    log = [session.choose(TICKET_WEIGHTS).record for _ in range(40)]
    log[3] = replace(log[3], raw_context={"session": session.id, "step": 99})
    verdict = Verifier(KEY).verify(log)
    assert verdict.context_mismatches == 1
    assert verdict.payload == 5


def test_the_verdict_as_plain_data() -> None:
    verdict = Verifier(KEY).verify(marked_log(KEY, steps=60))
    content = verdict.as_dict()
    assert content["payload"] == "5eed"
    assert content["accepted"] is True
    assert content["outcomes"]["used"] == verdict.counts["used"]
    assert content["false_positive_rate"] == 2.0 ** -content["surplus"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"key": []}, "key"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"key": [KEY, OTHER], "any_key_id": True}, "any_key_id"),
        ({"payload_len": 8, "registry": Registry(16)}, "payload_len"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(settings: dict[str, object], name: str) -> None:
    with pytest.raises(SettingError) as caught:
        Verifier(**({"key": KEY} | settings))  # type: ignore[arg-type]
    assert caught.value.name == name


@SCHEMES
@pytest.mark.parametrize("payload", [0x00, 0xA6])
@pytest.mark.parametrize("relabelled", [0, 7, 9, 12, 16, 24])
def test_a_log_relabelled_with_another_length_names_nobody(scheme: str, payload: int, relabelled: int) -> None:
    """An attack on logs of binary choices, whose steps use one row each: m followed by zeros must not fit."""
    session = Embedder(KEY, payload, payload_len=8, scheme=scheme).session("relabelled")
    log = [session.choose({"yes": 1, "no": 1}).record for _ in range(90)]
    assert Verifier(KEY, work_limit=100_000).verify(log).payload in (payload, None)
    forged = [replace(record, payload_len=relabelled) for record in log]
    assert not Verifier(KEY, work_limit=100_000).verify(forged).accepted


@pytest.mark.slow
@SCHEMES
def test_unmarked_logs_are_accepted_no_more_often_than_the_bound_says(scheme: str) -> None:
    """Null logs at a threshold of 1/8: acceptance must not exceed it (600 logs, five standard errors).

    Hypothesis: an agent without our key, on lists of its own, is accepted with probability at most the threshold.
    """
    rng = random.Random(scheme)
    accepted = 0
    trials = 600 if scheme == "F" else 300
    verifier = Verifier(KEY, payload_len=4, threshold=1 / 8)
    for _ in range(trials):
        accepted += verifier.verify(_null_log(rng, scheme, steps=10)).accepted
    assert accepted <= trials / 8 + 5 * (trials / 8 * 7 / 8) ** 0.5


def test_consistency_of_null_logs_follows_the_exact_law() -> None:
    """F at L = 4 and a fixed number of equations: the share of consistent systems is the closed form's (z < 5)."""
    from agentmark.core import scheme_f
    from agentmark.core.linear import LinearSystem

    rng = random.Random(8)
    trials, rows = 3000, 6
    consistent = 0
    for _ in range(trials):
        system = LinearSystem(4)
        while system.equation_count < rows:
            distribution = BehaviorDistribution.quantise(dirichlet(rng, 5, 1.0))
            behavior = distribution.at(rng.getrandbits(32))
            for equation in scheme_f.decode(distribution, rng.randbytes(32), behavior, payload_len=4) or []:
                if system.equation_count < rows:
                    system.update(equation)
        consistent += system.consistent
    expected = consistency_probability(rows, 4)
    assert abs(consistent / trials - expected) < 5 * (expected * (1 - expected) / trials) ** 0.5


def _null_log(rng: random.Random, scheme: str, *, steps: int) -> list[StepRecord]:
    """What an agent without our key would have logged, with our key id pasted on."""
    log = []
    for step in range(steps):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, rng.randint(2, 6), 1.0))
        log.append(
            StepRecord(
                scheme=scheme,
                key_id=KEY.id,
                payload_len=4,
                session="null",
                step_index=step,
                context=rng.randbytes(32),
                distribution=distribution,
                behavior=distribution.at(rng.getrandbits(32)),
                marked=True,
            )
        )
    return log


def test_a_hopeless_claim_is_a_verdict_whatever_its_evidence() -> None:
    log = marked_log(KEY, steps=400)
    for noise in (None, 0.0, 0.001):
        verdict = Verifier(KEY, noise=noise).verify(log, claim=1)
        assert not verdict.accepted
        assert verdict.false_positive_rate == 1.0
        assert verdict.steps_needed is None
        assert "inf" not in verdict.sentence


def test_a_claim_on_nothing_is_a_verdict() -> None:
    assert not Verifier(KEY).verify([], claim=42).accepted
    assert not Verifier(OTHER).verify(marked_log(KEY, steps=5), claim=42).accepted
    empty = Verifier(KEY, registry=Registry(8, [Identity("a", 5)])).verify([])
    assert (empty.candidate, empty.consistent) == (None, None)


def test_a_registry_of_very_long_payloads_pays_finitely() -> None:
    registry = Registry(2000, [Identity("a", 5)])
    session = Embedder(KEY, 7, payload_len=2000).session("long")
    verdict = Verifier(KEY, registry=registry).verify([session.choose(TICKET_WEIGHTS).record for _ in range(3)])
    assert not verdict.accepted


def test_enough_evidence_for_nobody_promises_nothing() -> None:
    """Under a wrong key more steps do not help, and the verdict does not say they would."""
    log = [r.with_partial_weights({}) for r in marked_log(KEY, scheme="R", payload=5, payload_len=8, steps=200)]
    verdict = Verifier(OTHER, any_key_id=True).verify(log)
    assert not verdict.accepted
    assert verdict.steps_needed is None or verdict.steps_needed > 20


def test_two_identities_that_share_a_log_are_both_mentioned() -> None:
    log = marked_log(KEY, scheme="R", payload=1, steps=80) + marked_log(KEY, scheme="R", payload=2, steps=80)
    verdict = Verifier(KEY).verify(log)
    assert {found.payload for found in verdict.found} == {1, 2}
    assert verdict.sentence.startswith("2 identities found: payload 0x000")
    assert verdict.tampering == ()
