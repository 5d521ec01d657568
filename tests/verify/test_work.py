"""Work is counted, and whoever makes a log cannot make us do more of it: the attacks, in operations."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest
from support import dirichlet, marked_log

from agentmark import BehaviorDistribution, Embedder, Identity, Registry, SettingError, SharedKey, StepRecord, Verifier
from agentmark.audit.bulk import BulkAudit
from agentmark.audit.case import Case
from agentmark.core.context import context_digest, context_fields
from agentmark.core.costs import elimination_cost, longest_open_payload
from agentmark.core.distribution import MAX_BEHAVIORS, TOTAL_WEIGHT
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.log.parquet import ParquetRecords
from agentmark.log.read.limits import Limits
from agentmark.verify.intake import Outcome, reading_cost
from agentmark.verify.keyring import Keyring
from agentmark.verify.state import LogState, accumulate
from agentmark.verify.work import READ_PER_BYTE, Work, reading_work

KEY = SharedKey(bytes(range(32)))
# What is done in any case (the evidence of the best candidates) is linear in the log, and small.
SLACK = 1.25


def junk(steps: int, payload_len: int, scheme: str, *, behaviors: int = 6, alpha: float = 0.3) -> list[StepRecord]:
    """Records that state our key and were drawn without it."""
    rng = random.Random(f"{steps} {payload_len} {scheme}")
    session = f"junk {steps} {scheme}"
    log = []
    for step in range(steps):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, behaviors, alpha))
        record = StepRecord(
            scheme=scheme,
            key_id=KEY.id,
            payload_len=payload_len,
            session=session,
            step_index=step,
            context=context_digest(context_fields(session, step)),
            distribution=distribution,
            behavior=distribution.at(rng.getrandbits(32)),
            marked=True,
        )
        log.append(record)
    return log


def fat(count: int, names: int = MAX_BEHAVIORS) -> list[StepRecord]:
    """Records of R with the longest list there is, of names as short as can be."""
    light = {f"{number:x}": 1 for number in range(names - 1)}
    distribution = BehaviorDistribution.quantise({"usual": TOTAL_WEIGHT - len(light)} | light)
    return [replace(record, distribution=distribution, behavior="usual") for record in junk(count, 32, "R")]


# The meter


def test_a_meter_spends_until_its_limit_and_remembers_what_it_refused() -> None:
    work = Work(100)
    assert work.take(60)
    assert not work.cut_short
    assert not work.take(500)
    assert not work.take(50)
    assert work.take(40)
    assert (work.spent, work.left, work.cut_short, work.needed) == (100, 0, True, 110)
    work.spend(5)
    assert (work.spent, work.left) == (105, 0)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
def test_a_limit_that_cannot_be_meant_is_named(limit: int) -> None:
    with pytest.raises(SettingError, match="work_limit"):
        Verifier(KEY, work_limit=limit)


# The attacks


@pytest.mark.parametrize(
    ("steps", "payload_len", "scheme"),
    [(3400, 4096, "F"), (30, 32, "R"), (200, 32, "R"), (10_000, 32, "F"), (2000, 16, "R"), (1000, 24, "F")],
)
def test_junk_cannot_make_a_verdict_cost_more_than_the_limit(steps: int, payload_len: int, scheme: str) -> None:
    verdict = Verifier(KEY).verify(junk(steps, payload_len, scheme, alpha=0.8))
    assert not verdict.accepted
    assert verdict.work <= SLACK * DEFAULT_WORK_LIMIT


@pytest.mark.parametrize("limit", [1, 1000, 30_000])
def test_the_limit_is_what_was_asked_for(limit: int) -> None:
    log = junk(300, 64, "F")
    verdict = Verifier(KEY, work_limit=limit).verify(log)
    # Evidence for the candidates and ownership: a few operations a step.
    assert verdict.work <= limit + 15 * len(log)
    assert verdict.work_spent
    assert verdict.work_note is not None
    assert f"work limit of {limit}" in verdict.work_note


def test_segments_of_a_foreign_log_share_one_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmark.verify import judge

    meters = []

    def watched(limit: float) -> Work:
        meters.append(Work(limit))
        return meters[-1]

    monkeypatch.setattr(judge, "Work", watched)
    assert [part.payload for part in Verifier(KEY, work_limit=200_000).segments(junk(1000, 32, "F"))] == [None]
    assert len(meters) == 1
    assert meters[0].spent <= 2 * 200_000, "the windows, and the division of the log, which is linear in it"


def test_the_same_log_costs_the_same_work_again() -> None:
    log = junk(200, 48, "F")
    verdicts = [Verifier(KEY, work_limit=50_000).verify(log) for _ in range(2)]
    assert verdicts[0].work == verdicts[1].work
    assert verdicts[0].as_dict() == verdicts[1].as_dict()


def test_elimination_of_the_longest_payload_fits_the_limit() -> None:
    assert elimination_cost(4096) <= DEFAULT_WORK_LIMIT


# Reading


def test_any_log_that_is_not_packed_is_read_in_full() -> None:
    """Lists of an honest agent, with names of three letters and more: never dearer than their bytes pay for."""
    rng = random.Random(1)
    for scheme in ("F", "R"):
        for size in (1, 2, 6, 20, 100, 1000):
            for alpha in (0.05, 0.3, 5.0):
                [record] = junk(1, rng.choice((0, 32, 4096)), scheme)
                named = {f"n{i:02d}": mass for i, mass in enumerate(dirichlet(rng, size, alpha).values())}
                distribution = BehaviorDistribution.quantise(named)
                whole = replace(record, distribution=distribution, behavior=distribution.behaviors[0])
                for seen in [whole] if scheme == "F" else [whole, whole.with_partial_weights({})]:
                    size_on_disk = len(seen.to_json()) + 1
                    assert reading_cost(seen) <= READ_PER_BYTE * size_on_disk, (scheme, size, alpha)


def test_fat_records_are_read_up_to_what_their_bytes_pay_for(tmp_path: Path) -> None:
    """Seventeen records of R with 4,096 options each."""
    path = tmp_path / "fat.jsonl"
    path.write_text("".join(record.to_json() + "\n" for record in fat(17)))
    work = reading_work(DEFAULT_WORK_LIMIT, path.stat().st_size)
    accumulate(fat(17), Keyring(KEY), work)
    assert work.spent <= work.limit <= 3_000_000


def test_what_a_packed_log_is_read_for_follows_its_size_on_disk(tmp_path: Path) -> None:
    log = fat(60, names=1000)
    path = tmp_path / "fat.jsonl.gz"
    path.write_bytes(gzip.compress("".join(record.to_json() + "\n" for record in log).encode()))
    limit = 4 * int(reading_cost(log[0]))
    # A reader of logs would call this a bomb; here it is trusted.
    limits = Limits(records_per_kib=10_000)
    verdict = Case(logs=[path], keys=[KEY], work_limit=limit, limits=limits).answer().verdict
    read = max(limit, READ_PER_BYTE * path.stat().st_size) // reading_cost(log[0])
    assert verdict.counts[Outcome.NOT_READ] == len(log) - read > 0
    assert verdict.record_count == len(log)
    note = verdict.work_note
    assert note is not None
    assert f"{verdict.counts[Outcome.NOT_READ]} of 60 records were not read" in note
    enough = int(note.split("a work limit of ")[1].split()[0])
    assert (
        Case(logs=[path], keys=[KEY], work_limit=enough, limits=limits).answer().verdict.counts[Outcome.NOT_READ] == 0
    )


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_table_in_which_all_steps_share_a_list_is_read_in_full(tmp_path: Path, scheme: str) -> None:
    """A step takes some forty bytes there, most of them its context; twenty options are twenty clocks to hash."""
    path = tmp_path / "log.parquet"
    run = Embedder(KEY, 7, payload_len=32, scheme=scheme).session("one list")
    even = {f"n{i:02d}": 1 for i in range(20)}
    log = [run.choose(even).record for _ in range(3000)]
    with ParquetRecords(path) as table:
        for record in log:
            table.write(record)
    assert sum([reading_cost(record) for record in log]) > READ_PER_BYTE * path.stat().st_size or scheme == "F"
    verdict = Case(logs=[path], keys=[KEY], work_limit=1).answer().verdict
    assert verdict.counts[Outcome.NOT_READ] == 0
    audit = BulkAudit(paths=[str(path)], keys=[KEY], work_limit=1, workers=1).run()
    assert audit.read.bad_shards == ()


def test_which_records_are_read_depends_on_order_and_size_alone() -> None:
    """Otherwise the key would decide what is evidence, and the bound would not hold."""
    log = [*junk(6, 32, "R"), *fat(2, names=500), *junk(5, 32, "F")]
    for keys in (Keyring(KEY), Keyring(KEY).strangers()):
        work = Work(1500)
        steps = accumulate(log, keys, work).intake().steps
        unread = [number for number, step in enumerate(steps) if step.outcome is Outcome.NOT_READ]
        assert unread == [6, 7], "what is small is still read after what was too large"


def test_a_state_keeps_what_was_not_read() -> None:
    state = accumulate(junk(3, 32, "R"), Keyring(KEY), Work(170))
    again = LogState.from_bytes(state.to_bytes())
    assert [step.outcome for step in again.intake().steps] == [step.outcome for step in state.intake().steps]
    assert again.intake().steps[-1].outcome is Outcome.NOT_READ


# What a verdict says, and what is said before there is one


def test_a_payload_too_long_to_search_for_is_called_so_at_once() -> None:
    """A clean log of R with 128 bits took half a minute, and found nothing."""
    session = Embedder(KEY, 0xABC << 100, payload_len=128, scheme="R").session("long")
    log = [session.choose({"a": 3, "b": 2, "c": 1}).record for _ in range(200)]
    verdict = Verifier(KEY).verify(log)
    assert not verdict.accepted
    assert verdict.work < 100_000
    assert "cut short by the work limit" in verdict.sentence
    assert verdict.work_note is not None
    assert "give the registry or a claim" in verdict.work_note
    assert Verifier(KEY).verify(log, claim=0xABC << 100).accepted
    registry = Registry(128, [Identity("somebody", 7), Identity("tenant", 0xABC << 100)])
    assert Verifier(KEY, registry=registry).verify(log).identity == "tenant"


def test_embedders_say_which_payloads_need_a_registry(caplog: pytest.LogCaptureFixture) -> None:
    longest = longest_open_payload(is_linear=False)
    assert 32 <= longest < 128
    assert Embedder(KEY, 1, payload_len=longest, scheme="R").readable_unnamed
    assert Embedder(KEY, 1, payload_len=4096, scheme="F").readable_unnamed
    assert caplog.text == ""
    assert not Embedder(KEY, 1, payload_len=longest + 1, scheme="R").readable_unnamed
    assert "only with a registry or a claim" in caplog.text


def test_a_longer_limit_reads_further() -> None:
    """Power is what a limit costs: the same log is decoded once there is work enough."""
    payload = 0x1234_5678_9ABC
    log = marked_log(KEY, payload=payload, payload_len=48, scheme="F", steps=150)
    rng = random.Random(3)
    for i in rng.sample(range(len(log)), 45):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, 8, 0.6))
        log[i] = replace(log[i], distribution=distribution, behavior=distribution.at(rng.getrandbits(32)))
    assert not Verifier(KEY, work_limit=2000).verify(log).accepted
    assert Verifier(KEY).verify(log).payload == payload


def test_places_share_the_work_and_too_many_are_refused_at_once() -> None:
    log = marked_log(KEY)[:30]
    verifier = Verifier(KEY)
    place = verifier.locate(log[0].session, log, offsets=range(1, 200))
    # At none of these places is it ours: each is searched, and none for long.
    assert place.offset is None
    assert place.verdict.work_limit < DEFAULT_WORK_LIMIT
    assert 199 * place.verdict.work_limit <= 51 * DEFAULT_WORK_LIMIT
    with pytest.raises(SettingError, match="fewer places or records, or a higher limit"):
        verifier.locate(log[0].session, fat(17), offsets=range(1000))
