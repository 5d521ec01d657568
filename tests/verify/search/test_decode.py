"""Finding the payload when steps are wrong: transform, registry, information sets, splices, lost places, tampering."""

import random
from dataclasses import replace
from math import log2

import pytest
from support import dirichlet, marked_log

from agentmark import BehaviorDistribution, Embedder, Identity, Registry, SettingError, SharedKey, StepRecord, Verifier
from agentmark.core.symbols import Reading, SoftSymbols, SymbolSet
from agentmark.verify.search import registry_scan, walsh
from agentmark.verify.search.information_sets import likely_payloads
from agentmark.verify.search.registry_scan import best_identities, scan_above
from agentmark.verify.search.splice import segment, windows
from agentmark.verify.search.walsh import likeliest_payloads
from agentmark.verify.tamper import tamper_findings
from agentmark.verify.work import Work

KEY = SharedKey(bytes(range(100, 132)))
SCHEMES = pytest.mark.parametrize("scheme", ["F", "R"])


def readings_of(log: list[StepRecord]) -> list[Reading]:
    return Verifier(KEY).take_in(log).readings


def score(readings: list[Reading], payload: int, noise: float) -> float:
    return sum(log2((1 - noise) * reading.e_value(payload) + noise) for reading in readings)


def diluted(log: list[StepRecord], share: float, seed: int = 0) -> list[StepRecord]:
    """Replace a share of the steps by those of an agent without the key."""
    rng = random.Random(seed)
    log = log[:]
    for i in rng.sample(range(len(log)), round(share * len(log))):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, 8, 0.6))
        log[i] = replace(log[i], distribution=distribution, behavior=distribution.at(rng.getrandbits(32)))
    return log


@SCHEMES
@pytest.mark.parametrize("payload_len", [0, 1, 6, 9])
def test_the_transform_ranks_as_scoring_every_payload_does(scheme: str, payload_len: int) -> None:
    payload = 0x155 & (1 << payload_len) - 1
    log = diluted(marked_log(KEY, scheme=scheme, payload=payload, payload_len=payload_len, steps=12), 0.3)
    readings = readings_of(log)
    for noise in (0.1, 0.6):
        best = likeliest_payloads(readings, payload_len, noise=noise, count=4)
        truth = sorted((score(readings, m, noise) for m in range(1 << payload_len)), reverse=True)[:4]
        assert [score(readings, m, noise) for m in best] == pytest.approx(truth)


def test_soft_readings_go_through_the_same_transform() -> None:
    log = [r.with_partial_weights({}) for r in marked_log(KEY, scheme="R", payload=77, payload_len=8, steps=30)]
    readings = readings_of(log)
    assert all(isinstance(reading, SoftSymbols) for reading in readings)
    best = likeliest_payloads(readings, 8, noise=0.3, count=3)
    truth = sorted((score(readings, m, 0.3) for m in range(256)), reverse=True)[:3]
    assert [score(readings, m, 0.3) for m in best] == pytest.approx(truth)


def test_numpy_and_plain_python_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = readings_of(diluted(marked_log(KEY, scheme="R", payload=0x5A5, payload_len=11, steps=30), 0.3))
    plain = likeliest_payloads(readings, 11, noise=0.2, count=5)
    monkeypatch.setattr(walsh, "PLAIN_LIMIT", 4)
    assert likeliest_payloads(readings, 11, noise=0.2, count=5) == plain


def test_the_transform_names_its_limits() -> None:
    with pytest.raises(ValueError, match="beyond the transform"):
        likeliest_payloads([], 25, noise=0.1)
    with pytest.raises(ValueError, match="not between 0 and 1"):
        likeliest_payloads([], 8, noise=0.0)


@SCHEMES
@pytest.mark.parametrize("soft", [False, True])
def test_the_registry_scan_ranks_as_scoring_each_identity_does(scheme: str, soft: bool) -> None:
    rng = random.Random(4)
    payloads = [rng.getrandbits(21) for _ in range(300)]
    log = diluted(marked_log(KEY, scheme=scheme, payload=payloads[123], payload_len=21, steps=40), 0.4)
    if soft and scheme == "R":
        log[::2] = [record.with_partial_weights({}) for record in log[::2]]
    readings = readings_of(log)
    best = best_identities(payloads, readings, payload_len=21, noise=[0.2], count=3)
    truth = sorted((score(readings, m, 0.2) for m in payloads), reverse=True)[:3]
    # Scores are rounded to sixteenths of a bit for the ranking.
    assert [score(readings, payloads[i], 0.2) for i in best] == pytest.approx(truth, abs=40 / 16)
    assert best[0] == 123


def test_the_registry_scan_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    payloads = [rng.getrandbits(16) for _ in range(200)]
    log = [r.with_partial_weights({}) for r in marked_log(KEY, scheme="R", payload=payloads[9], steps=120)]
    readings = readings_of(log)
    fast = best_identities(payloads, readings, payload_len=16, noise=[0.2])
    monkeypatch.setattr(registry_scan, "find_spec", lambda name: None)
    assert best_identities(payloads, readings, payload_len=16, noise=[0.2]) == fast
    assert fast[0] == 9


@pytest.mark.slow
@SCHEMES
@pytest.mark.parametrize("foreign", [0.0, 0.1, 0.5])
def test_a_registry_pays_for_its_names_only(scheme: str, foreign: float) -> None:
    """A thousand names cost 11 bits, where 64 free bits would cost 64: fewer steps, any noise."""
    rng = random.Random(6)
    registry = Registry(64, [Identity(f"tenant {i}", rng.getrandbits(64)) for i in range(1000)])
    payload = registry.named("tenant 421").payload
    log = diluted(marked_log(KEY, scheme=scheme, payload=payload, payload_len=64, steps=160), foreign)
    short = log if foreign == 0.5 else log[:44]
    verdict = Verifier(KEY, registry=registry).verify(short)
    assert verdict.identity == "tenant 421"
    assert verdict.bits_paid == pytest.approx(log2(2000), abs=0.01)
    assert verdict.runner_up is not None
    assert verdict.runner_up.evidence_bits < verdict.evidence_bits - 15
    assert not Verifier(KEY, registry=registry).control(short).accepted


def test_a_payload_outside_the_registry_is_still_read() -> None:
    registry = Registry(16, [Identity("somebody", 1)])
    verdict = Verifier(KEY, registry=registry).verify(marked_log(KEY, steps=60))
    assert verdict.payload == 0x5EED
    assert verdict.identity is None
    assert verdict.bits_paid == 17


@pytest.mark.parametrize(("scheme", "payload_len", "foreign"), [("F", 64, 0.1), ("F", 128, 0.05), ("R", 32, 0.1)])
def test_long_payloads_are_read_from_noisy_logs(scheme: str, payload_len: int, foreign: float) -> None:
    payload = random.Random(payload_len).getrandbits(payload_len)
    log = diluted(marked_log(KEY, scheme=scheme, payload=payload, payload_len=payload_len, steps=220), foreign)
    verdict = Verifier(KEY).verify(log)
    assert verdict.payload == payload
    assert verdict.route == "information sets"


def test_information_sets_stop_at_their_work_limit() -> None:
    log = diluted(marked_log(KEY, payload=1, payload_len=64, steps=200), 0.9)
    hard = [reading for reading in readings_of(log) if isinstance(reading, SymbolSet)]
    work = Work(20_000)
    found = list(likely_payloads(hard, 64, rng=random.Random(0), work=work))
    assert work.cut_short
    assert work.spent <= 20_000
    assert len(found) == 1, "none stands out, and the best is kept"


def test_the_result_does_not_depend_on_the_order_of_noisy_records() -> None:
    log = diluted(marked_log(KEY, scheme="R", steps=80), 0.3)
    verdict = Verifier(KEY).verify(log)
    shuffled = random.Random(1).sample(log, len(log))
    again = Verifier(KEY).verify(shuffled)
    assert (again.payload, again.evidence_bits) == (verdict.payload, verdict.evidence_bits)


# Splices


def alfworld_like(scheme: str, payload: int, steps: int, seed: int) -> list[StepRecord]:
    rng = random.Random(seed)
    session = Embedder(KEY, payload, payload_len=8, scheme=scheme).session(f"splice {scheme} {payload} {seed}")
    return [session.choose(dirichlet(rng, 20, 0.1)).record for _ in range(steps)]


@SCHEMES
def test_two_spliced_agents_are_told_apart(scheme: str) -> None:
    for seed in range(4):
        cut = 45 + 10 * seed
        log = alfworld_like(scheme, 0x11, cut, seed) + alfworld_like(scheme, 0xEE, 120 - cut, seed + 50)
        found = [part for part in Verifier(KEY).segments(log) if part.payload is not None]
        assert [part.payload for part in found] == [0x11, 0xEE]
        assert abs(found[0].last - (cut - 1)) <= 5
        assert abs(found[1].first - cut) <= 5
        assert max(part.false_positive_rate for part in found) <= 1e-6


@SCHEMES
def test_a_stretch_that_is_not_ours_is_called_so(scheme: str) -> None:
    foreign = diluted(alfworld_like(scheme, 0x11, 60, 7), 1.0)
    log = alfworld_like(scheme, 0x11, 60, 1) + foreign + alfworld_like(scheme, 0xEE, 60, 2)
    registry = Registry(8, [Identity("one", 0x11), Identity("two", 0xEE)])
    parts = Verifier(KEY, registry=registry).segments(log)
    assert [part.identity for part in parts] == ["one", None, "two"]
    assert abs(parts[1].first - 60) <= 6
    assert abs(parts[1].last - 119) <= 6
    assert parts[0].first_record == log[0].where


def test_one_agent_is_one_segment_and_nobody_is_none() -> None:
    log = alfworld_like("R", 0x11, 80, 3)
    assert [(part.first, part.last, part.payload) for part in Verifier(KEY).segments(log)] == [(0, 79, 0x11)]
    assert [part.payload for part in Verifier(KEY).segments(diluted(log, 1.0))] == [None]
    assert Verifier(KEY).segments([]) == ()


def test_segmentation_by_hand() -> None:
    """Steps that agree with payload 0, then with payload 1; each is worth eight bits."""
    zero, one = SymbolSet((1,) * 8, 0, 1), SymbolSet((1,) * 8, 0, 1 << 255)
    readings: list[Reading | None] = [zero, None, zero, zero, None, one, one, one]
    found = segment(readings, [0, 1], bits_paid=lambda _: 1.0)
    assert [part.payload for part in found] == [0, 1]
    assert found[0].first == 0
    assert found[0].last + 1 == found[1].first
    assert found[1].first in (4, 5), "the erased step between them belongs to either"
    assert windows(40)[0] == (0, 40)
    assert {last - first for first, last in windows(100)} == {100, 50, 25}


# Lost places


@SCHEMES
def test_a_segment_whose_place_is_lost_is_placed(scheme: str) -> None:
    """Digests and indices gone, the session known: the offset is searched and paid for."""
    session = Embedder(KEY, 0xA6, payload_len=8, scheme=scheme).session("lost")
    rng = random.Random(8)
    log = [session.choose(dirichlet(rng, 8, 0.8)).record for _ in range(100)]
    lost = [replace(record, context=bytes(32), step_index=0) for record in log[23:83]]
    limit = 60 if scheme == "F" else 26
    found = Verifier(KEY).locate("lost", lost, offsets=range(limit))
    assert found.offset == 23
    assert found.tried == limit
    assert found.verdict.payload == 0xA6
    assert found.verdict.bits_paid == pytest.approx(8 + log2(limit))
    claimed = Verifier(KEY).locate("lost", lost, offsets=range(20, 26), claim=0xA6)
    assert claimed.offset == 23
    assert claimed.verdict.bits_paid == pytest.approx(log2(6))
    nowhere = Verifier(KEY).locate("another session", lost[:20], offsets=range(3))
    assert nowhere.offset is None
    assert not nowhere.verdict.accepted
    with pytest.raises(SettingError, match="offsets"):
        Verifier(KEY).locate("lost", lost, offsets=[])


# Tampering


def test_an_untouched_log_shows_nothing() -> None:
    assert tamper_findings(marked_log(KEY, steps=30, sessions=2)) == []


def test_missing_steps_are_counted() -> None:
    log = marked_log(KEY, steps=30, sessions=2)
    assert tamper_findings(log[:10] + log[14:]) == ["4 steps are missing in 1 of 2 sessions (the ends not counted)"]
    alone = marked_log(KEY, steps=30)
    assert tamper_findings(alone[:10] + alone[11:]) == ["1 step is missing (the ends not counted)"]


def test_renumbered_and_replayed_records_are_flagged() -> None:
    log, other = marked_log(KEY, steps=30, seed=1), marked_log(KEY, steps=30, seed=2)
    renumbered = replace(log[3], step_index=7)
    assert any("renumbered" in finding for finding in tamper_findings([*log[:3], renumbered, *log[4:]]))
    replayed = [replace(record, session=log[0].session, step_index=40 + i) for i, record in enumerate(other[:3])]
    findings = tamper_findings(log + replayed)
    assert any("3 records" in finding and "replayed" in finding for finding in findings)
    copied = tamper_findings(log + other + replayed)
    assert any("more than one session" in finding for finding in copied)


@pytest.mark.parametrize("count", [15, 20, 29, 30])
def test_a_log_that_was_renumbered_for_the_most_part_is_flagged_too(count: int) -> None:
    log = marked_log(KEY, steps=30)
    moved = [replace(record, step_index=record.step_index + 1000) for record in log[:count]]
    assert any(f"{count} records" in f and "renumbered" in f for f in tamper_findings([*moved, *log[count:]]))
    swapped = [replace(record, step_index=29 - record.step_index) for record in log]
    assert any("30 records" in f and "renumbered" in f for f in tamper_findings(swapped))


def test_contexts_that_bind_more_are_not_accused() -> None:
    session = Embedder(KEY, 5, payload_len=8).session("bound")
    log = [session.choose({"a": 1, "b": 1}, context={"observation": str(i)}).record for i in range(10)]
    assert tamper_findings(log) == []


def test_altered_contexts_are_named() -> None:
    session = Embedder(KEY, 5, payload_len=8, keep_context=True).session("kept")
    log = [session.choose({"a": 1, "b": 1}).record for _ in range(10)]
    log[4] = replace(log[4], raw_context={"session": "kept", "step": 99})
    findings = tamper_findings(log)
    assert findings == ["1 record (session kept step 4): the raw context is not that of the digest"]
    assert Verifier(KEY).verify(log).tampering == tuple(findings)


def overwritten(log: list[StepRecord], share: float, seed: int) -> list[StepRecord]:
    """Somebody chose anew from the same lists and cared for no probability: mostly what the agent hardly ever does."""
    rng = random.Random(seed)
    log = log[:]
    for i in rng.sample(range(len(log)), round(share * len(log))):
        distribution = log[i].distribution
        assert distribution is not None
        log[i] = replace(log[i], behavior=rng.choice(distribution.behaviors))
    return log


@SCHEMES
@pytest.mark.parametrize("with_numpy", [True, False])
def test_foreign_steps_do_not_hide_a_name_by_saying_most(
    scheme: str, with_numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work allows 32 steps of 600. Of those that say most, the greater part are others'."""
    if not with_numpy:
        monkeypatch.setattr(registry_scan, "find_spec", lambda _: None)
    rng = random.Random(9)
    payloads = tuple([rng.getrandbits(32) for _ in range(10_000)])
    found = 0
    for seed in range(8):
        log = marked_log(KEY, scheme=scheme, payload=payloads[seed], payload_len=32, steps=600, seed=seed)
        readings = readings_of(overwritten(log, 0.3, seed))
        best = registry_scan.scan(payloads, readings, payload_len=32, noise=[0.5, 0.1], work=Work(10.0))
        found += best[0] == seed
        above = scan_above(payloads, readings, payload_len=32, noise=[0.5], level=60.0, most=3, work=Work(10.0))
        assert above in ([seed], [])
    assert found == 8


@pytest.mark.parametrize("count", [3, 40, 700])
@pytest.mark.parametrize("payload_len", [0, 7, 21, 90])
def test_arrays_rank_and_select_identities_as_planes_do(
    count: int, payload_len: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties included: of equals, the identity that was entered first."""
    rng = random.Random(count + payload_len)
    payloads = tuple([rng.getrandbits(payload_len) if payload_len else 0 for _ in range(count)])
    readings: list[Reading] = []
    for _ in range(90):
        width = rng.choice([0, 1, 2, 3, 8, 8, 10])
        rows = tuple([rng.getrandbits(payload_len) if payload_len else 0 for _ in range(width)])
        symbols = rng.getrandbits(256) | 1 if width == 8 else 1 << rng.getrandbits(width)
        readings.append(SymbolSet(rows, rng.getrandbits(width) if width else 0, symbols))

    def answers() -> list[list[int]]:
        noise = [0.5, 0.1]
        best = [best_identities(payloads, readings, payload_len=payload_len, noise=noise, count=n) for n in (2, 30)]
        above = [
            scan_above(payloads, readings, payload_len=payload_len, noise=noise, level=level, most=9, work=Work())
            for level in (-60.0, 0.0)
        ]
        return best + above

    fast = answers()
    monkeypatch.setattr(registry_scan, "find_spec", lambda _: None)
    assert answers() == fast
