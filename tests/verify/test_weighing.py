"""Several identities in one log: all are found, none is hidden, and nobody is named who is not there."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from support import TICKET_WEIGHTS, dirichlet, marked_log

from agentmark import Embedder, Identity, Registry, SharedKey, StepRecord, Verifier
from agentmark.core.costs import DEFAULT_WORK_LIMIT
from agentmark.core.evidence import Evidence
from agentmark.core.theory import false_positive_rate
from agentmark.verify.candidates import FEW_NAMES, MOST_FOUND
from agentmark.verify.prices import Prices
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.verdict import Standing, Verdict

KEY = SharedKey(bytes(range(32)))
OTHER = SharedKey(bytes(range(100, 132)))
SCHEMES = pytest.mark.parametrize("scheme", ["F", "R"])
TENANTS = {"acme": 0x11223344, "initech": 0xDEADBEEF, "umbrella": 0x0BADCAFE}
FEW = Registry(32, [Identity(name, payload) for name, payload in TENANTS.items()])
MANY = Registry(32, [*FEW, *[Identity(f"tenant-{i}", random.Random(i).getrandbits(32)) for i in range(200)]])


def pooled(*, scheme: str, sessions: int, steps: int = 20, key: SharedKey = KEY) -> dict[str, list[StepRecord]]:
    """So many sessions of each tenant."""
    return {
        name: marked_log(
            key, scheme=scheme, payload=payload, payload_len=32, steps=steps, sessions=sessions, seed=payload
        )
        for name, payload in TENANTS.items()
    }


def together(logs: dict[str, list[StepRecord]]) -> list[StepRecord]:
    return [record for log in logs.values() for record in log]


def payloads(verdict: Verdict) -> set[int]:
    return {found.payload for found in verdict.found}


@SCHEMES
@pytest.mark.parametrize("registry", [None, FEW, MANY], ids=["open", "few names", "many names"])
def test_everyone_in_a_pooled_log_is_found(scheme: str, registry: Registry | None) -> None:
    verdict = Verifier(KEY, registry=registry).verify(together(pooled(scheme=scheme, sessions=12)))
    assert payloads(verdict) == set(TENANTS.values())
    surpluses = [found.evidence_bits - found.bits_paid for found in verdict.found]
    assert surpluses == sorted(surpluses, reverse=True)
    assert verdict.payload == verdict.found[0].payload
    assert verdict.standing is Standing.ATTRIBUTED
    assert verdict.sentence.startswith("3 identities found: ")
    for found in verdict.found:
        assert f"at least {found.at_least_steps} steps, at most {found.bound_text}" in verdict.sentence


@SCHEMES
def test_sessions_that_were_merged_under_one_name_are_taken_apart(scheme: str) -> None:
    """Then no session is anybody's own: who else is there shows in what the first leaves unexplained."""
    log = [
        record
        for payload in (0x1122, 0x3344, 0xBEEF)
        for record in marked_log(KEY, scheme=scheme, payload=payload, steps=250, seed=payload)
    ]
    verdict = Verifier(KEY).verify([replace(record, session="all") for record in log])
    assert payloads(verdict) == {0x1122, 0x3344, 0xBEEF}


@SCHEMES
@pytest.mark.parametrize("payload_len", [16, 32])
def test_two_keys_and_two_tenants_are_two_identities(scheme: str, payload_len: int) -> None:
    mine = marked_log(KEY, scheme=scheme, payload=0x1234, payload_len=payload_len, steps=25, sessions=5)
    theirs = marked_log(OTHER, scheme=scheme, payload=0x4321, payload_len=payload_len, steps=25, sessions=5, seed=1)
    assert payloads(Verifier([KEY, OTHER]).verify(mine + theirs)) == {0x1234, 0x4321}


def test_an_identity_that_the_registry_does_not_know_is_found_beside_one_that_it_does() -> None:
    mine = marked_log(KEY, payload=TENANTS["acme"], payload_len=32, sessions=8)
    theirs = marked_log(KEY, payload=0x51EEE222, payload_len=32, sessions=8, seed=1)
    verdict = Verifier(KEY, registry=FEW).verify(mine + theirs)
    assert {(found.payload, found.identity) for found in verdict.found} == {
        (TENANTS["acme"], "acme"),
        (0x51EEE222, None),
    }


def test_every_name_that_passes_is_found_however_many_there_are() -> None:
    """Against the definition: every name of the registry weighed on every step, without any search."""
    rng = random.Random(4)
    registry = Registry(16, [Identity(f"tenant-{i}", 37 * i + 5) for i in range(60)])
    carried = rng.sample([identity.payload for identity in registry], 14)
    assert len(registry) > FEW_NAMES
    log = [
        record
        for i, payload in enumerate(carried)
        for record in marked_log(KEY, payload=payload, steps=30, sessions=4 + i, seed=i)
    ]
    verifier = Verifier(KEY, registry=registry)
    readings = verifier.take_in(log).readings
    passing = set()
    for identity in registry:
        evidence = Evidence()
        evidence.update_all([reading.e_value(identity.payload) for reading in readings])
        if false_positive_rate(evidence.bits - Prices(registry).of(identity.payload, 16)) <= 1e-6:
            passing.add(identity.payload)
    assert passing < set(carried), "some carry too little of the whole to be named, or this test shows less"
    assert len(passing) > 5
    verdict = verifier.verify(log)
    assert payloads(verdict) == passing
    assert f"and {len(passing) - 5} more: " in verdict.sentence
    assert len(verdict.as_dict()["found"]) == len(passing)


@SCHEMES
def test_a_claim_and_a_question_without_noise_are_answered_as_asked(scheme: str) -> None:
    log = together(pooled(scheme=scheme, sessions=8))
    claimed = Verifier(KEY, registry=FEW).verify(log, claim="acme")
    assert [found.identity for found in claimed.found] == ["acme"]
    assert claimed.sentence.startswith("Attributed to 'acme'")
    assert f"; at least {claimed.contradicting} of the {len(log)} steps are another's or were altered." in (
        claimed.sentence.replace(",", "")
    )
    strict = Verifier(KEY, noise=0.0).verify(log)
    assert strict.found == ()
    assert strict.standing is Standing.NOT_ATTRIBUTED


@SCHEMES
@pytest.mark.parametrize("registry", [None, MANY])
def test_a_clean_log_is_not_looked_through_for_others(
    scheme: str, registry: Registry | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SortedLog, "parts", lambda _: pytest.fail("sessions were looked at"))
    monkeypatch.setattr("agentmark.verify.candidates.scan_above", lambda *_, **__: pytest.fail("scanned again"))
    log = marked_log(KEY, scheme=scheme, payload=TENANTS["acme"], payload_len=32, sessions=3)
    verdict = Verifier(KEY, registry=registry).verify(log)
    assert payloads(verdict) == {TENANTS["acme"]}
    assert verdict.unexplained == 0


def test_thousands_of_sessions_of_nobody_stay_within_the_limit() -> None:
    """Each is a part that might be somebody's own. One genuine session stands among them."""
    rng = random.Random(8)
    genuine = marked_log(KEY, payload=0x5EED, steps=400)
    junk = [
        replace(record, behavior=rng.choice(record.distribution.behaviors), session=f"junk {i // 12}")
        for i, record in enumerate(marked_log(KEY, payload=1, steps=100, sessions=24, seed=2))
        if record.distribution is not None
    ]
    verdict = Verifier(KEY).verify(genuine + junk)
    assert payloads(verdict) <= {0x5EED}
    assert verdict.work <= 1.25 * DEFAULT_WORK_LIMIT


def test_no_more_are_named_than_a_verdict_holds() -> None:
    registry = Registry(16, [Identity(f"tenant-{i}", i) for i in range(MOST_FOUND + 6)])
    log = [record for i in range(MOST_FOUND + 6) for record in marked_log(KEY, payload=i, steps=20, sessions=1, seed=i)]
    verdict = Verifier(KEY, registry=registry, threshold=0.9).verify(log)
    assert len(verdict.found) <= MOST_FOUND


# Statistics


def mixture(rng: random.Random, key: SharedKey, payload_len: int, scheme: str) -> tuple[list[StepRecord], Counter[int]]:
    """Two identities and steps of nobody, of random sizes, in sessions that mix them."""
    log: list[StepRecord] = []
    truth: Counter[int] = Counter()
    for payload in rng.sample(range(1 << payload_len), 2):
        session = Embedder(key, payload, payload_len=payload_len, scheme=scheme).session(f"{payload}")
        steps = rng.randint(10, 50) if scheme == "F" else rng.randint(8, 24)
        log += [session.choose(dirichlet(rng, rng.randint(2, 12), 0.6)).record for _ in range(steps)]
        truth[payload] = steps
    nobody = Embedder(SharedKey(rng.randbytes(32)), 0, payload_len=payload_len, scheme=scheme).session("nobody")
    for _ in range(rng.randint(0, 12)):
        log.append(replace(nobody.choose(dirichlet(rng, rng.randint(2, 12), 0.6)).record, key_id=key.id))
    return [replace(record, session="all") for record in log], truth


def hostile(rng: random.Random, key: SharedKey, payload_len: int, scheme: str) -> tuple[list[StepRecord], Counter[int]]:
    """A few steps of one identity that say as much as a step can, among many of nobody that say little."""
    payload = rng.getrandbits(payload_len)
    session = Embedder(key, payload, payload_len=payload_len, scheme=scheme).session("loud")
    steps = rng.randint(3, 6)
    loud = {f"option {i}": 1.0 for i in range(64)}
    log = [session.choose(loud).record for _ in range(steps)]
    nobody = Embedder(SharedKey(rng.randbytes(32)), 0, payload_len=payload_len, scheme=scheme).session("nobody")
    log += [replace(nobody.choose(TICKET_WEIGHTS).record, key_id=key.id) for _ in range(rng.randint(2, 12))]
    return log, Counter({payload: steps})


@SCHEMES
@pytest.mark.parametrize("made", [mixture, hostile])
def test_wrong_names_and_wrong_step_counts_are_as_rare_as_the_threshold_says(scheme: str, made: object) -> None:
    """Hypothesis: over logs and keys, with probability at most 0.05 a verdict names anybody whom the log does not
    carry, or says "at least N steps" of somebody who has fewer. 300 logs each: more than 31 wrong ones would happen
    with probability below 0.0001 if the hypothesis were true at its limit.
    """
    assert callable(made)
    rng = random.Random(f"{scheme} {made.__name__}")
    wrong = several = 0
    for _ in range(300):
        key = SharedKey(rng.randbytes(32))
        log, truth = made(rng, key, 6, scheme)
        verdict = Verifier(key, payload_len=6, threshold=0.05).verify(log)
        wrong += any(found.at_least_steps > truth[found.payload] for found in verdict.found)
        several += len(verdict.found)
    assert several > 150, "somebody is named often enough for this to show anything"
    assert wrong <= 31


@SCHEMES
def test_the_least_number_of_steps_is_a_good_part_of_the_truth(scheme: str) -> None:
    """Three tenants of 25 sessions each: a quarter of each one's steps, at the least, is proved to be theirs."""
    logs = pooled(scheme=scheme, sessions=25)
    verdict = Verifier(KEY, registry=FEW).verify(together(logs))
    for found in verdict.found:
        truth = len(logs[found.identity or ""])
        assert truth / 4 <= found.at_least_steps <= truth
