"""A monitor takes nothing back: what adversaries without the key gain by seeing its numbers, and what it keeps."""

import random
from collections import Counter
from dataclasses import replace
from math import fsum, log2
from pathlib import Path

import pytest
from support import dirichlet, marked_log

from agentmark import (
    BehaviorDistribution,
    Monitor,
    MonitorStateError,
    Registry,
    SettingError,
    SharedKey,
    StepRecord,
    Verifier,
)
from agentmark.core.context import context_digest, context_fields
from agentmark.core.errors import PayloadError
from agentmark.identity.registry import Identity
from agentmark.verify.arrivals import RETRACTIONS, Arrival
from agentmark.verify.followed import FIRST_WORK, FOLLOWED_FROM_THE_START, WORK_PER_RECORD, Question

KEY = SharedKey(bytes(range(32)))
OTHER = SharedKey(bytes(range(1, 33)))
REGISTRY = Registry(16, [Identity("acme", 0x5EED), Identity("globex", 0x1234)])
LOGS = {scheme: marked_log(KEY, scheme=scheme, steps=40) for scheme in ("F", "R")}
LEVEL = 1e-2


def many_names(count: int = 1000) -> Registry:
    names = [Identity(f"tenant {i}", 61 * i + 1) for i in range(count)]
    return Registry(16, [*names, Identity("acme", 0x5EED)])


def watched(records: list[StepRecord], **question: object) -> Monitor:
    monitor = Monitor(KEY, **question)  # type: ignore[arg-type]
    for record in records:
        monitor.update(record)
    return monitor


def foreign_step(key: SharedKey, number: int, rng: random.Random, payload_len: int = 8) -> StepRecord:
    """What an adversary writes who does not have the key: an even list, and any choice."""
    return StepRecord(
        scheme="F",
        key_id=key.id,
        payload_len=payload_len,
        session="s",
        step_index=number,
        context=context_digest(context_fields("s", number)),
        distribution=BehaviorDistribution.quantise({"a": 1, "b": 1, "c": 1, "d": 1}),
        behavior=rng.choice("abcd"),
        marked=True,
    )


def altered(record: StepRecord) -> StepRecord:
    assert record.distribution is not None
    return replace(record, behavior=next(b for b in record.distribution.behaviors if b != record.behavior))


# Adversaries ---------------------------------------------------------------------------------------------------------


class Verify:
    """`verify`, asked again after every record, as a watcher."""

    def __init__(self, key: SharedKey) -> None:
        self._verifier = Verifier(key, threshold=LEVEL)
        self._log: list[StepRecord] = []
        self.accepted = False

    def show(self, record: StepRecord) -> float:
        self._log.append(record)
        verdict = self._verifier.verify(self._log, claim=5)
        self.accepted |= verdict.accepted
        return verdict.surplus


class Watch:
    """The monitor, as a watcher."""

    def __init__(self, key: SharedKey) -> None:
        self._monitor = Monitor(key, threshold=LEVEL, claim=5)

    @property
    def accepted(self) -> bool:
        return self._monitor.alarm is not None

    def show(self, record: StepRecord) -> float:
        self._monitor.update(record)
        return self._monitor.status().surplus


def withdrawing(watcher: Verify | Watch, key: SharedKey, rng: random.Random) -> bool:
    """Sees the surplus after every record, and withdraws each step with which it fell by an altered copy."""
    shown = 0.0
    for number in range(14):
        step = foreign_step(key, number, rng)
        before, shown = shown, watcher.show(step)
        if shown < before:
            shown = watcher.show(altered(step) if rng.random() < 0.5 else step.with_enforced(False))
    return watcher.accepted


def test_steps_that_are_withdrawn_win_against_verify_and_not_against_the_monitor() -> None:
    """40 logs each at a level of 1e-2. By chance alone four or more are accepted with probability 7e-4."""
    accepted = Counter[str]()
    for trial in range(40):
        key = SharedKey(random.Random(trial).randbytes(32))
        accepted["verify"] += withdrawing(Verify(key), key, random.Random(trial))
        accepted["monitor"] += withdrawing(Watch(key), key, random.Random(trial))
    assert accepted["verify"] >= 10
    assert accepted["monitor"] <= 3


def test_each_further_length_costs_more_and_all_shares_together_are_one_at_most() -> None:
    question = Question(threshold=LEVEL, claim=5)
    shares = [2.0 ** -question.length_bits(place) for place in range(1, 4098)]
    assert fsum(shares) <= 1
    assert shares == sorted(shares, reverse=True)
    monitor = Monitor(KEY, claim=5)
    rng = random.Random(0)
    for number, payload_len in enumerate([8, 4, 8, 5, 4, 12]):
        monitor.update(foreign_step(KEY, number, rng, payload_len))
    seen = monitor.status().lengths
    assert [length.payload_len for length in seen] == [8, 4, 5, 12]
    assert [length.length_bits for length in seen] == [log2(2), log2(6), log2(12), log2(20)]


def test_the_shares_of_a_registry_and_of_open_decoding_are_one_at_most() -> None:
    named = Question(threshold=LEVEL, registry=REGISTRY)
    assert fsum(2.0 ** -named.payload_bits(identity.payload, 16) for identity in REGISTRY) <= 1
    anyone = Question(threshold=LEVEL)
    assert fsum(2.0 ** -anyone.payload_bits(payload, 6) for payload in range(64)) <= 1


def test_a_length_that_was_given_costs_nothing_and_others_do_not_count() -> None:
    monitor = Monitor(KEY, claim=5, payload_len=8)
    monitor.update(foreign_step(KEY, 0, random.Random(0), 4))
    monitor.update(foreign_step(KEY, 1, random.Random(0), 8))
    status = monitor.status()
    assert status.arrivals == {Arrival.OTHER_LENGTH: 1, Arrival.COUNTED: 1}
    assert status.bits_paid == 0


# The rule at arrival -------------------------------------------------------------------------------------------------

STEP, NEXT = LOGS["R"][:2]
COPIES = {
    Arrival.DUPLICATE: replace(STEP, session="elsewhere", step_index=99),
    Arrival.IN_PART: STEP.with_partial_weights({}),
    Arrival.CONFLICTING_COPY: altered(STEP),
    Arrival.UNMARKED_COPY: replace(STEP, marked=False, reason="context repeated"),
    Arrival.NOT_ENFORCED_COPY: STEP.with_enforced(False),
    Arrival.OTHER_KEY_COPY: replace(STEP, key_id=OTHER.id),
    Arrival.OTHER_LENGTH_COPY: replace(STEP, payload_len=8),
}


@pytest.mark.parametrize("kind", COPIES)
def test_whatever_comes_after_a_step_that_counts_is_said_and_changes_nothing(kind: Arrival) -> None:
    monitor = watched([STEP], claim=0x5EED)
    before = monitor.status()
    monitor.update(COPIES[kind])
    after = monitor.status()
    assert after.arrivals == {Arrival.COUNTED: 1, kind: 1}
    assert (after.evidence_bits, after.bits_paid, after.lengths) == (
        before.evidence_bits,
        before.bits_paid,
        before.lengths,
    )
    assert after.retractions == (kind in RETRACTIONS)


def test_other_weights_are_a_conflict_and_another_scheme_is_too() -> None:
    assert STEP.distribution is not None
    weights = dict(zip(STEP.distribution.behaviors, reversed(STEP.distribution.weights), strict=True))
    other_list = replace(STEP, distribution=BehaviorDistribution.from_weights(weights))
    monitor = watched([STEP, other_list, replace(STEP, scheme="F")], claim=0x5EED)
    assert monitor.status().arrivals == {Arrival.COUNTED: 1, Arrival.CONFLICTING_COPY: 2}


FIRST = {
    Arrival.UNMARKED: replace(STEP, marked=False, reason="context repeated"),
    Arrival.OTHER_KEY: replace(STEP, key_id=OTHER.id),
    Arrival.OTHER_LENGTH: replace(STEP, payload_len=8),
}


@pytest.mark.parametrize("kind", FIRST)
def test_a_record_that_was_not_read_does_not_use_its_context_up(kind: Arrival) -> None:
    monitor = watched([FIRST[kind], STEP], claim=0x5EED, payload_len=16)
    assert monitor.status().arrivals == {kind: 1, Arrival.COUNTED: 1}


def test_an_impossible_choice_does_not_use_its_context_up() -> None:
    """Which choices are possible follows from the draws; the pad, which the evidence hangs on, was not looked at."""
    step = LOGS["F"][0]
    assert step.distribution is not None
    tried = [replace(step, behavior=behavior) for behavior in step.distribution.behaviors]
    impossible = [record for record in tried if Verifier(KEY).take_in([record]).steps[0].reading is None]
    assert impossible
    monitor = watched([impossible[0], step], claim=0x5EED)
    assert monitor.status().arrivals == {Arrival.IMPOSSIBLE: 1, Arrival.COUNTED: 1}


def test_a_part_of_a_list_of_f_says_nothing_and_the_whole_list_still_counts() -> None:
    step = LOGS["F"][0]
    monitor = watched([step.with_partial_weights({}), step], claim=0x5EED)
    assert monitor.status().arrivals == {Arrival.UNREADABLE: 1, Arrival.COUNTED: 1}


def test_a_step_that_was_not_obeyed_from_the_start_never_counts() -> None:
    monitor = watched([STEP.with_enforced(False), STEP, altered(STEP)], claim=0x5EED)
    status = monitor.status()
    assert status.arrivals == {Arrival.NOT_ENFORCED: 3}
    assert (status.steps, status.retractions) == (0, 0)


def test_one_context_under_two_lengths_counts_once() -> None:
    monitor = watched([replace(STEP, payload_len=8), STEP])
    assert monitor.status().arrivals == {Arrival.COUNTED: 1, Arrival.OTHER_LENGTH_COPY: 1}
    assert [length.payload_len for length in monitor.status().lengths] == [8]


def test_a_copy_is_not_read_again(read_steps: list[str]) -> None:
    watched([STEP, *COPIES.values()], claim=0x5EED)
    assert len(read_steps) == 1


# The same evidence as a verifier's, with the record that crosses the line ---------------------------------------------

QUESTIONS: dict[str, dict[str, object]] = {
    "claim": {"claim": 0x5EED, "payload_len": 16},
    "registry": {"registry": REGISTRY},
    "many names": {"registry": many_names()},
    "open": {"payload_len": 16},
}


@pytest.mark.parametrize("scheme", LOGS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_honest_log_raises_the_alarm_where_a_verifier_accepts(scheme: str, question: str) -> None:
    settings = dict(QUESTIONS[question])
    log = LOGS[scheme]
    monitor = watched(log, **settings)
    claim = settings.pop("claim", None)
    verifier = Verifier(KEY, **settings)  # type: ignore[arg-type]
    first = next(n for n in range(len(log)) if verifier.verify(log[:n], claim=claim).accepted)  # type: ignore[arg-type]
    alarm = monitor.alarm
    assert alarm is not None
    assert (alarm.payload, alarm.payload_len) == (0x5EED, 16)
    assert alarm.identity == ("acme" if "registry" in settings else None)
    assert first <= alarm.record <= alarm.found_at <= first + max(1, first // 8)
    whole = verifier.verify(log, claim=claim)  # type: ignore[arg-type]
    status = monitor.status()
    assert status.evidence_bits == pytest.approx(whole.evidence_bits)
    assert status.bits_paid == pytest.approx(whole.bits_paid)


@pytest.mark.parametrize("scheme", LOGS)
def test_an_alarm_that_a_search_finds_late_says_with_which_record_the_line_was_reached(scheme: str) -> None:
    """The candidate is followed from the first record on, as if it had been known."""
    log = LOGS[scheme]
    found = watched(log, registry=many_names()).alarm
    assert found is not None
    # A claim costs nothing: a line that is higher by the price is reached with the same record.
    exact = Monitor(KEY, claim=0x5EED, payload_len=16, threshold=1e-6 * 2.0**-found.bits_paid)
    crossed = next(number for number, record in enumerate(log, start=1) if exact.update(record))
    assert found.record == crossed


def test_the_alarm_stands_whatever_comes_later() -> None:
    monitor = watched(LOGS["R"], registry=REGISTRY)
    alarm = monitor.alarm
    for record in LOGS["R"]:
        monitor.update(altered(record))
        monitor.update(record.with_enforced(False))
    for record in marked_log(KEY, scheme="R", payload=0x0F0F, steps=60, seed=9):
        monitor.update(record)
    status = monitor.status()
    assert monitor.alarm == alarm == status.alarm
    assert status.retractions == 2 * len(LOGS["R"])
    assert monitor.surplus == status.surplus < status.most_surplus
    assert status.p_value == pytest.approx(2.0**-status.most_surplus)
    assert "'acme'" in status.sentence


def test_a_second_identity_raises_an_alarm_of_its_own() -> None:
    monitor = watched([*LOGS["R"], *marked_log(KEY, scheme="R", payload=0x1234, seed=8)], registry=REGISTRY)
    assert [alarm.identity for alarm in monitor.status().alarms] == ["acme", "globex"]


def test_nobody_is_named_without_an_alarm() -> None:
    monitor = watched(marked_log(OTHER, steps=30), registry=REGISTRY, any_key_id=True)
    status = monitor.status()
    assert status.steps > 0
    assert status.alarm is None
    assert "acme" not in str(status.as_dict()) + status.sentence
    assert status.p_value > status.threshold


def test_a_stranger_sees_the_alarm_and_no_number_that_a_record_moves() -> None:
    quiet, loud = watched([]), watched(LOGS["R"], registry=REGISTRY)
    few = watched(LOGS["R"][:4])
    assert quiet.status().for_stranger() == few.status().for_stranger()
    assert loud.status().for_stranger() == {"alarm": True, "identities": ["acme"], "threshold": 1e-6}


def test_short_payloads_are_followed_without_a_search_and_long_ones_by_few() -> None:
    short = watched(marked_log(KEY, payload=0x2A, payload_len=8, steps=40))
    assert short.alarm is not None
    assert short.status().searches == 0
    assert FOLLOWED_FROM_THE_START == 1 << 8
    rng = random.Random(3)
    long = Monitor(KEY, payload_len=12)
    for number in range(200):
        long.update(foreign_step(KEY, number, rng, 12))
    # Once there is enough to name somebody, each search waits for an eighth more: about 8 ln(200 / 17).
    assert 10 <= long.status().searches <= 30


def test_names_issued_later_belong_to_another_question() -> None:
    registry = Registry(16, REGISTRY)
    monitor = Monitor(KEY, registry=registry)
    paid = monitor.status().bits_paid
    registry.add(Identity("late", 7))
    assert monitor.status().bits_paid == paid


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 0.0},
        {"threshold": 1.5},
        {"noise": 1.0},
        {"registry": Registry(16)},
        {"registry": REGISTRY, "payload_len": 8},
        {"claim": 300, "payload_len": 8},
        {"claim": -1},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        Monitor(KEY, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", [True, "", b"abc"])
def test_a_claim_that_is_no_payload_of_the_length_is_refused(claim: object) -> None:
    with pytest.raises(PayloadError):
        Monitor(KEY, claim=claim, payload_len=16)  # type: ignore[arg-type]


def test_a_claim_in_text_is_followed_in_the_lengths_that_it_fits() -> None:
    log = marked_log(KEY, payload=int.from_bytes(b"ab\0", "big"), payload_len=24, scheme="R", steps=30)
    monitor = watched([replace(STEP, payload_len=8), *log], claim="ab")
    assert monitor.status().arrivals == {Arrival.OTHER_LENGTH: 1, Arrival.COUNTED: 30}
    assert monitor.alarm is not None


def test_without_noise_one_contradiction_ends_it_and_json_has_no_infinity() -> None:
    wrong = marked_log(KEY, payload=0x0F0F, steps=30)
    status = watched(wrong, claim=0x5EED, noise=0.0).status()
    assert status.surplus == float("-inf")
    assert status.as_dict()["surplus"] is None
    assert status.most_surplus >= -1


# A state that is kept ------------------------------------------------------------------------------------------------


def hostile_log() -> list[StepRecord]:
    mine = LOGS["R"]
    rng = random.Random(1)
    log = [
        *mine,
        *COPIES.values(),
        *[altered(record) for record in mine[5:10]],
        *[record.with_partial_weights({}) for record in marked_log(KEY, scheme="R", steps=4, seed=3)],
        *marked_log(KEY, payload=3, payload_len=8, steps=6, seed=5),
        *marked_log(OTHER, steps=3, seed=6),
        mine[20].with_enforced(False),
    ]
    rng.shuffle(log)
    return log


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_monitor_that_was_kept_goes_on_as_if_nothing_had_happened(question: str) -> None:
    # To decode what contradicts itself, again and again, takes long; there a clean log with copies must do.
    log = hostile_log() if question != "open" else [*LOGS["F"][:30], *LOGS["F"][:9], *map(altered, LOGS["F"][:9])]
    settings = QUESTIONS[question]
    whole = watched(log, **settings)
    for cut in (0, 1, 17, len(log)):
        kept = watched(log[:cut], **settings).to_bytes()
        restored = Monitor.from_bytes(kept, KEY, **settings)  # type: ignore[arg-type]
        assert restored.to_bytes() == kept
        for record in log[cut:]:
            restored.update(record)
        assert restored.status() == whole.status()
        assert restored.to_bytes() == whole.to_bytes()


def test_after_a_restart_the_same_log_changes_nothing_but_the_count_of_copies() -> None:
    kept = watched(LOGS["F"], claim=0x5EED).to_bytes()
    restored = Monitor.from_bytes(kept, KEY, claim=0x5EED)
    before = restored.status()
    for record in LOGS["F"]:
        restored.update(record)
    after = restored.status()
    assert after.evidence_bits == before.evidence_bits
    assert after.arrivals[Arrival.DUPLICATE] == len(LOGS["F"])


def test_damage_anywhere_is_refused() -> None:
    kept = watched(hostile_log()[:20]).to_bytes()
    for place in range(0, len(kept), 37):
        broken = bytearray(kept)
        broken[place] ^= 1
        with pytest.raises(MonitorStateError):
            Monitor.from_bytes(bytes(broken), KEY)
    for size in (0, 4, 5, 20, 60, len(kept) - 1):
        with pytest.raises(MonitorStateError):
            Monitor.from_bytes(kept[:size], KEY)
    with pytest.raises(MonitorStateError):
        Monitor.from_bytes(kept + b"\0", KEY)


def test_a_state_of_other_keys_or_of_another_question_is_refused() -> None:
    kept = watched(LOGS["F"][:5], claim=0x5EED).to_bytes()
    with pytest.raises(MonitorStateError, match="other keys"):
        Monitor.from_bytes(kept, OTHER, claim=0x5EED)
    for question in ({"claim": 0x5EEE}, {"claim": 0x5EED, "threshold": 1e-3}, {"claim": 0x5EED, "noise": 0.1}, {}):
        with pytest.raises(MonitorStateError, match="another question"):
            Monitor.from_bytes(kept, KEY, **question)  # type: ignore[arg-type]


def test_what_is_kept_of_a_context_is_small_and_does_not_grow_with_its_list() -> None:
    rng = random.Random(2)
    sizes = []
    for options in (2, 200):
        records = [
            replace(
                foreign_step(KEY, number, rng),
                distribution=(listed := BehaviorDistribution.quantise(dirichlet(rng, options, 5.0))),
                behavior=listed.behaviors[0],
            )
            for number in range(300)
        ]
        monitor = watched(records, claim=5)
        steps = monitor.status().steps
        sizes.append((len(monitor.to_bytes()) - len(Monitor(KEY, claim=5).to_bytes())) / steps)
    # 32 bytes of digest and 43 of what its first record said, besides the process itself.
    assert max(sizes) < 75 + 5


def test_searches_have_a_purse_that_hostile_records_cannot_empty_twice() -> None:
    """Records that make every search hard: what the searches cost in all follows the number of records."""
    rng = random.Random(5)
    lengths = range(30, 50)
    monitor = watched([foreign_step(KEY, 100 * length + i, rng, length) for length in lengths for i in range(60)])
    counted = monitor.status().steps
    assert counted > 500
    assert monitor._purse.spent > FIRST_WORK / 10
    # What a search does in any case may exceed what was left for the last one.
    assert monitor._purse.spent <= 1.25 * (FIRST_WORK + WORK_PER_RECORD * counted)
    again = Monitor.from_bytes(monitor.to_bytes(), KEY)
    assert again._purse.spent == monitor._purse.spent


def test_a_registry_that_verify_reads_is_one_that_a_monitor_reads(tmp_path: Path) -> None:
    """Names that would not be issued today are in registries of yesterday."""
    lines = ['{"agentmark_registry": 1, "payload_len": 16}', '{"name": "ac\\u200dme\\u00a0", "payload": "5eed"}']
    path = tmp_path / "registry.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
    alarm = watched(LOGS["F"], registry=Registry.load(path)).alarm
    assert alarm is not None
    assert alarm.identity == "ac\u200dme\u00a0"
