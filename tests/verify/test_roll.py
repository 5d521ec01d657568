"""Many logs at once: each judged alone, all questions paid for, short ones pooled."""

import random
from dataclasses import replace
from math import log2

import pytest
from support import EVEN, logs_of_strangers, marked_log, state_of

from agentmark import Embedder, Identity, Registry, SharedKey, StepRecord, Verifier
from agentmark.core.statistics import wilson_interval
from agentmark.verify.candidates import Route
from agentmark.verify.correction import FalseDiscovery, Familywise
from agentmark.verify.many import LEAST_LOOK, LOOKS_PART, Group, judge_roll
from agentmark.verify.roll import By, Roll
from agentmark.verify.verdict import Standing

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
TENANTS = {"acme": 0x2265B1F5, "globex": 0x91B7584A, "initech": 0xD8F16ADF}
REGISTRY = Registry(32, [Identity(name, payload) for name, payload in TENANTS.items()])


def session(name: str, tenant: str, *, steps: int, key: SharedKey = KEY, scheme: str = "F") -> list[StepRecord]:
    """A session of a tenant, whose lists carry two bits a step."""
    run = Embedder(key, TENANTS[tenant], payload_len=32, scheme=scheme).session(name)
    return [run.choose(EVEN).record for _ in range(steps)]


def roll_of(verifier: Verifier, logs: dict[str, list[StepRecord]], **settings: object) -> Roll:
    groups = [Group(name=name, files=(f"{name}.jsonl",), state=state_of(verifier, log)) for name, log in logs.items()]
    settings = {"correction": Familywise()} | settings
    return judge_roll(verifier, groups, **settings)  # type: ignore[arg-type]


def three_tenants(*, steps: int, each: int = 4) -> dict[str, list[StepRecord]]:
    return {f"{name} {i}": session(f"{name} {i}", name, steps=steps) for name in TENANTS for i in range(each)}


@pytest.mark.parametrize("registry", [None, REGISTRY])
def test_every_session_is_named_for_its_own_tenant(registry: Registry | None) -> None:
    roll = roll_of(Verifier(KEY, registry=registry), three_tenants(steps=40))
    assert roll.standings == {Standing.ATTRIBUTED: 12}
    for row in roll.rows:
        assert row.verdict.payload == TENANTS[row.name.split()[0]]
        assert row.files == (f"{row.name}.jsonl",)
    assert roll.questions == 12
    assert [len(total.rows) for total in roll.totals] == [4, 4, 4]
    assert [total.steps for total in roll.totals] == [160, 160, 160]
    assert "12 of 12 sessions attributed, to 3 identities" in roll.sentence


def test_every_row_pays_for_all_questions() -> None:
    logs = three_tenants(steps=40)
    verifier = Verifier(KEY, registry=REGISTRY)
    alone = verifier.verify(logs["acme 0"])
    row = roll_of(verifier, logs).rows[0]
    assert row.name == "acme 0"
    assert row.verdict.bits_paid == pytest.approx(alone.bits_paid + log2(12))
    assert row.verdict.evidence_bits == alone.evidence_bits


def test_logs_with_nothing_usable_ask_no_question_and_have_a_row() -> None:
    logs = three_tenants(steps=40, each=1) | {"foreign": session("foreign", "acme", steps=40, key=OTHER), "empty": []}
    roll = roll_of(Verifier(KEY, registry=REGISTRY), logs)
    assert roll.questions == 3
    assert roll.standings == {Standing.ATTRIBUTED: 3, Standing.NOTHING_USABLE: 2}


def test_the_order_of_the_groups_makes_no_difference() -> None:
    logs = three_tenants(steps=30) | three_tenants(steps=5, each=9)
    names = list(logs)
    random.Random(1).shuffle(names)
    verifier = Verifier(KEY)
    assert roll_of(verifier, {name: logs[name] for name in names}) == roll_of(verifier, logs)


def test_nothing_to_judge_is_a_roll_without_rows() -> None:
    roll = roll_of(Verifier(KEY), {})
    assert (roll.rows, roll.questions, roll.totals, roll.attributed) == ((), 0, (), False)


def test_one_log_is_judged_as_it_is_alone() -> None:
    log = session("one", "acme", steps=40)
    verifier = Verifier(KEY, registry=REGISTRY)
    [row] = roll_of(verifier, {"one": log}).rows
    assert row.verdict == replace(verifier.verify(log), findings=())


def test_each_log_has_its_own_payload_length() -> None:
    logs = {"short": marked_log(KEY, payload=5, payload_len=8), "long": session("long", "acme", steps=40)}
    roll = roll_of(Verifier(KEY), logs)
    assert [(row.name, row.verdict.payload) for row in roll.rows] == [("long", TENANTS["acme"]), ("short", 5)]


def test_a_claim_is_of_one_length_and_asked_of_each() -> None:
    """A single log that states another length must not keep the others from being judged."""
    logs = three_tenants(steps=30, each=2) | {"odd": marked_log(KEY, payload=1, payload_len=1, steps=30)}
    roll = roll_of(Verifier(KEY), logs, claim=TENANTS["globex"])
    assert [row.name for row in roll.rows if row.verdict.accepted] == ["globex 0", "globex 1"]
    assert roll.questions == 6
    assert {row.name: row.verdict.standing for row in roll.rows}["odd"] is Standing.NOTHING_USABLE


def test_a_session_of_two_tenants_names_both() -> None:
    mixed = session("acme part", "acme", steps=60) + session("globex part", "globex", steps=60)
    roll = roll_of(Verifier(KEY, registry=REGISTRY), {"mixed": mixed, "clean": session("clean", "acme", steps=40)})
    totals = {total.identity: total.rows for total in roll.totals}
    assert totals == {"acme": (0, 1), "globex": (1,)}


def test_steps_that_stand_in_another_session_are_counted() -> None:
    log = session("one", "acme", steps=40)
    roll = roll_of(Verifier(KEY), {"one": log, "two": [replace(record, session="two") for record in log[:7]]})
    assert [row.shared_contexts for row in roll.rows] == [7, 7]


def test_what_is_found_in_one_log_is_looked_for_in_the_others() -> None:
    """A log too noisy for the search that its share of the work allows is named once somebody else's search is done."""
    rng = random.Random(5)
    damaged = [
        replace(record, behavior=rng.choice(sorted(EVEN))) if rng.random() < 0.45 else record
        for record in session("damaged", "acme", steps=170)
    ]
    verifier = Verifier(KEY, work_limit=3000)
    alone = roll_of(verifier, {"damaged": damaged})
    assert not alone.rows[0].verdict.accepted
    roll = roll_of(verifier, {"damaged": damaged} | three_tenants(steps=40, each=1))
    row = {row.name: row for row in roll.rows}["damaged"]
    assert row.verdict.payload == TENANTS["acme"]
    assert row.verdict.route is Route.OTHER_LOG


def test_all_searches_together_stay_within_their_bound() -> None:
    """Foreign steps throughout: nothing is found, and every search goes as far as it may."""
    verifier = Verifier(KEY, any_key_id=True, work_limit=20_000)
    logs = {f"{i}": session(f"{i}", "acme", steps=40, key=OTHER) for i in range(30)}
    roll = roll_of(verifier, logs, pools=False)
    assert not roll.attributed
    linear = sum(len(log) for log in logs.values()) * 50
    assert sum(row.verdict.work for row in roll.rows) <= 2 * LOOKS_PART * 20_000 + 30 * LEAST_LOOK + linear


def test_by_false_discovery_the_verdict_states_the_threshold_it_was_settled_at() -> None:
    logs = three_tenants(steps=40) | {"foreign": session("foreign", "acme", steps=40, key=OTHER)}
    roll = roll_of(Verifier(KEY, registry=REGISTRY, any_key_id=True), logs, correction=FalseDiscovery(0.01))
    assert {row.verdict.threshold for row in roll.rows} == {12 * 0.01 / 13}
    assert roll.standings[Standing.ATTRIBUTED] == 12
    assert all(len(row.verdict.found) == row.verdict.accepted for row in roll.rows)


def test_the_threshold_of_all_does_not_change_how_an_identity_was_found() -> None:
    logs = three_tenants(steps=40)
    for verifier, route in (Verifier(KEY), Route.ELIMINATION), (Verifier(KEY, registry=REGISTRY), Route.REGISTRY):
        roll = roll_of(verifier, logs, correction=FalseDiscovery(0.01))
        assert {row.verdict.route for row in roll.rows} == {route}


# Pools ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("registry", [None, REGISTRY])
def test_short_sessions_of_three_tenants_are_pooled_rightly(registry: Registry | None) -> None:
    """Six steps each, twelve bits, where naming somebody takes at least 28."""
    logs = three_tenants(steps=6, each=12)
    roll = roll_of(Verifier(KEY, registry=registry), logs)
    assert roll.standings == {Standing.TOO_SHORT: 36}
    assert roll.questions == 37
    assert sorted([pool.payload for pool in roll.pools]) == sorted(TENANTS.values())
    for number, pool in enumerate(roll.pools):
        assert pool.among == 36
        right = [i for i in pool.rows if TENANTS[roll.rows[i].name.split()[0]] == pool.payload]
        assert len(pool.rows) >= 10
        assert len(right) >= len(pool.rows) - 1
        assert all(roll.rows[i].pool == number for i in pool.rows)
        assert pool.false_positive_rate <= 1e-6
        assert "at least one of the 36" in pool.sentence
    assert sum(len(pool.rows) for pool in roll.pools) == len({i for pool in roll.pools for i in pool.rows})
    assert all(total.rows == () and total.pooled_rows for total in roll.totals)


def test_copies_of_a_session_under_other_names_add_nothing() -> None:
    """Forty copies of one session of six steps: counted each by itself, they would prove whatever it happens to say."""
    log = session("one", "acme", steps=6)
    copies = {f"{i}": [replace(record, session=f"{i}") for record in log] for i in range(40)}
    roll = roll_of(Verifier(KEY, registry=REGISTRY), copies)
    assert roll.pools == ()
    assert {row.shared_contexts for row in roll.rows} == {6}


def test_the_steps_of_an_identity_are_counted_once_however_many_sessions_hold_them() -> None:
    log = session("one", "acme", steps=40)
    copies = {f"{i}": [replace(record, session=f"{i}") for record in log] for i in range(10)}
    [total] = roll_of(Verifier(KEY, registry=REGISTRY), copies).totals
    assert (len(total.rows), total.steps) == (10, 40)


def test_copies_that_disagree_do_not_count_in_a_pool() -> None:
    logs = three_tenants(steps=6, each=12)
    others = {"north": "south", "south": "north", "east": "west", "west": "east"}
    forged = {
        f"forged {name}": [
            replace(record, behavior=others[record.behavior], session=f"forged {name}") for record in log
        ]
        for name, log in logs.items()
    }
    assert roll_of(Verifier(KEY, registry=REGISTRY), logs).pools != ()
    assert roll_of(Verifier(KEY, registry=REGISTRY), logs | forged).pools == ()


def test_no_session_is_named_alone_and_called_too_short() -> None:
    """A part of a list says more for some payloads than it does on average, so that a log may be named that says too
    little on average."""
    logs = {}
    for name in [f"acme {i}" for i in range(40)]:
        run = Embedder(KEY, TENANTS["acme"], payload_len=32, scheme="R").session(name)
        choices = [run.choose({"a": 50, "b": 30, "c": 15, "d": 5}) for _ in range(16)]
        logs[name] = [choice.record.with_partial_weights({}) for choice in choices]
    roll = roll_of(Verifier(KEY, registry=REGISTRY), logs, correction=Familywise(1e-2))
    assert roll.standings[Standing.ATTRIBUTED]
    assert not [row.name for row in roll.rows if row.verdict.accepted and row.pool is not None]


def test_a_pool_that_no_session_speaks_for_is_no_name_among_the_discoveries() -> None:
    """Sessions of one step, a sixth of them acme's: together they speak for acme, and none of them by itself. The
    pool is not shown, so the rows that are must not be let off for it."""
    logs = {"long": session("long", "globex", steps=40)}
    for i in range(700):
        logs[f"short {i}"] = session(f"short {i}", "acme" if i % 6 == 0 else "initech", steps=1)
    registry = Registry(32, [Identity(name, TENANTS[name]) for name in ("acme", "globex")])
    roll = roll_of(Verifier(KEY, registry=registry), logs, correction=FalseDiscovery(0.1))
    assert (roll.questions, roll.pools, roll.standings[Standing.ATTRIBUTED]) == (702, (), 1)
    assert {row.verdict.threshold for row in roll.rows} == {0.1 / 702}


def test_pools_are_left_alone_where_nobody_asks_for_them() -> None:
    roll = roll_of(Verifier(KEY, registry=REGISTRY), three_tenants(steps=6, each=12), pools=False)
    assert (roll.pools, roll.questions, roll.attributed) == ((), 36, False)


def test_a_claim_is_asked_of_the_short_ones_together() -> None:
    logs = three_tenants(steps=4, each=8)
    roll = roll_of(Verifier(KEY), logs, claim=TENANTS["globex"])
    [pool] = roll.pools
    assert pool.payload == TENANTS["globex"]
    assert pool.bits_paid == pytest.approx(log2(25))
    elsewhere = roll_of(Verifier(KEY), logs, claim=0x12345678)
    assert elsewhere.pools == ()


def test_pools_of_nobodys_logs_stay_below_nominal() -> None:
    """Hypothesis: nobody is named for logs that none of the registry made, with probability at most 0.3, in rows and
    pools together. 150 rolls of 20 short logs, half of them by an identity of the same key that is not registered."""
    rng, nominal, trials = random.Random(6), 0.3, 150
    registry = Registry(4, [Identity("acme", 1), Identity("globex", 2), Identity("initech", 3)])
    named = 0
    for trial in range(trials):
        key = SharedKey(rng.randbytes(32))
        logs = logs_of_strangers(rng, [3] * 10, name=f"foreign {trial}")
        logs += logs_of_strangers(rng, [3] * 10, name=f"other {trial}", key=key)
        verifier = Verifier(key, any_key_id=True, registry=registry)
        roll = roll_of(verifier, {f"{i}": log for i, log in enumerate(logs)}, correction=Familywise(nominal))
        named += any(pool.payload in (1, 2, 3) for pool in roll.pools)
        named += any(row.verdict.payload in (1, 2, 3) for row in roll.rows)
    assert wilson_interval(named, trials, confidence=1 - 2e-6).low <= nominal


def test_rows_by_file_say_so() -> None:
    roll = roll_of(Verifier(KEY, registry=REGISTRY), three_tenants(steps=40, each=1), by=By.FILE)
    assert roll.by == "file"
    assert "3 of 3 files attributed" in roll.sentence
    summary = roll.summary()
    assert summary["correction"]["kind"] == "familywise"
    assert summary["standings"]["attributed"] == 3
    assert roll.rows[0].as_dict(roll.by)["file"] == "acme 0"
