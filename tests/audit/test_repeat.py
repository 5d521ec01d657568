"""A report of public mode, judged again from what it carries: whatever was changed in it shows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import EVEN

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.audit.case import Case, ReportOrder
from agentmark.audit.repeat import RepeatError, repeat
from agentmark.disclosure.basis import PublicBasis
from agentmark.disclosure.check import DisclosedSteps
from agentmark.disclosure.make import disclose
from agentmark.disclosure.tenants import Tenants
from agentmark.embed.embedder import Embedder
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.marking import MarkingKey
from agentmark.log.jsonl import LogWriter
from agentmark.record import StepRecord
from agentmark.report import disclosed_part
from agentmark.report.parts import Report

KEY = MarkingKey(bytes(range(7, 39)))
OTHER = MarkingKey(bytes(range(160, 192)))
REGISTRY = Registry(16, [Identity("acme", 42), *[Identity(f"tenant {i}", 1000 + i) for i in range(20)]])
LIMIT = 100_000


def marked(*, payload_len: int = 16, scheme: str = "R", steps: int = 30, payload: int = 42) -> list[StepRecord]:
    payload = payload if payload_len else 0
    session = Embedder(KEY, payload, payload_len=payload_len, scheme=scheme).session("5eed" * 8)
    return [session.choose(EVEN).record for _ in range(steps)]


def report_of(
    log: list[StepRecord], folder: Path, *, disclosed: list[StepRecord] | None = None, **settings: Any
) -> Any:
    """What `agentmark verify --report r.json` writes, read back."""
    path = folder / "log.jsonl"
    with LogWriter(path) as writer:
        for record in log:
            writer.write(record)
    registry = settings.pop("public_registry", None)
    claimed = settings.pop("claimed_by_holder", False)
    basis = PublicBasis.of((KEY.public,), claimed_by_holder=claimed, registry=registry)
    case = Case(
        logs=[path],
        keys=[DisclosedSteps(disclose(log if disclosed is None else disclosed, KEY))],
        basis=basis,
        work_limit=LIMIT,
        report=ReportOrder(command="agentmark verify log.jsonl"),
        **settings,
    )
    return json.loads(json.dumps(case.answer().report))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return report_of(marked(), tmp_path_factory.mktemp("report"))


def changed(report: Any, change: Callable[[Any], object]) -> Report:
    copy: Report = json.loads(json.dumps(report))
    change(copy)
    return copy


@pytest.mark.parametrize("scheme", ["F", "R"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"claim": 42},
        {"claim": 7},
        {"claim": "ab"},
        {"claim": b"\x00\x2a"},
        {"threshold": 1e-9, "noise": 0.1},
        {"payload_len": 16, "claimed_by_holder": True},
    ],
    ids=str,
)
def test_an_honest_report_is_repeated(scheme: str, settings: dict[str, Any], tmp_path: Path) -> None:
    made = report_of(marked(scheme=scheme, steps=40), tmp_path, **settings)
    repeated = repeat(made)
    assert not repeated.differences
    assert repeated.records == 40
    assert repeated.verdict is not None
    assert repeated.verdict.accepted == made["verdict"]["accepted"]
    assert repeated.public_keys == (KEY.public,)


def test_exhibits_with_faults_are_repeated_too(tmp_path: Path) -> None:
    """Records that are not disclosed, copies, unmarked ones, another identity, and what was disclosed and is gone."""
    log = marked(steps=100)
    session = Embedder(KEY, 7, payload_len=16, scheme="R").session()
    others = [session.choose(EVEN).record for _ in range(60)]
    exhibit = [*log[:98], log[3].with_enforced(False), *log[5:9], *others]
    made = report_of(exhibit, tmp_path, disclosed=[*log[:95], log[99], *others])
    assert made["verdict"]["accepted"]
    assert len({part["payload"] for part in made["segments"]}) > 1
    assert set(made["verdict"]["outcomes"]) >= {"not disclosed", "altered since it was disclosed", "duplicate"}
    assert any("1 of 156 disclosed records is not in the log" in finding for finding in made["findings"])
    assert not repeat(made).differences


def test_a_log_without_a_payload_is_the_key_holders(tmp_path: Path) -> None:
    tenants = Tenants()
    tenants.register("acme", KEY.public)
    made = report_of(marked(payload_len=0), tmp_path, public_registry=tenants)
    repeated = repeat(made)
    assert not repeated.differences
    assert "of 'acme'" in repeated.basis.sentence  # type: ignore[union-attr]
    assert any("registered for" in sentence for sentence in repeated.not_repeated)


# What was changed shows ----------------------------------------------------------------------------------------------


def record_changed(place: int, **members: Any) -> Callable[[Any], object]:
    def change(report: Any) -> None:
        records = report["disclosed"]["records"]
        records[place] = json.dumps(json.loads(records[place]) | members, separators=(",", ":"))

    return change


def without_proofs_of_its_own(report: Any) -> None:
    """Another disclosure of the same records, by somebody else's key."""
    records = [StepRecord.from_json(line) for line in report["disclosed"]["records"]]
    report["disclosed"]["disclosures"] = [json.loads(json.dumps(disclose(records, OTHER).as_dict()))]


CHANGES: dict[str, tuple[Callable[[Any], object], str]] = {
    "verdict": (lambda r: r["verdict"].update(payload="0007"), "verdict.payload"),
    "sentence": (lambda r: r["verdict"].update(sentence="Attributed to the neighbour."), "verdict.sentence"),
    "bound": (lambda r: r["verdict"].update(bound="1.0e-99"), "verdict.bound"),
    "found": (lambda r: r["verdict"]["found"][0].update(payload="0007"), "verdict.found[0].payload"),
    "ownership": (lambda r: r["ownership"].update(evidence_bits="999.000"), "ownership"),
    "growth": (lambda r: r["growth"]["points"].pop(), "growth"),
    "step": (lambda r: r["steps"][3].update(choice="Pay", finding="consistent"), "steps[3]"),
    "keys": (lambda r: r.update(keys=[OTHER.id]), "keys"),
    "record": (record_changed(4, step=77), "record number 5 in the report"),
    "record of another session": (record_changed(4, session="another"), "altered since it was"),
    "record unmarked": (record_changed(4, marked=False), "must say why"),
    "record that is none": (lambda r: r["disclosed"]["records"].__setitem__(2, "{}"), "record number 3 in the report"),
    "record taken out": (lambda r: r["disclosed"]["records"].pop(), "verdict"),
    "record twice": (lambda r: r["disclosed"]["records"].append(r["disclosed"]["records"][0]), "verdict"),
    "proof of a record": (
        lambda r: r["disclosed"]["disclosures"][0]["records"][0].update(proof="00" * 80),
        "its proof does not hold",
    ),
    "digest of a record": (
        lambda r: r["disclosed"]["disclosures"][0]["records"][0].update(digest="00" * 32),
        "its proof does not hold",
    ),
    "proof of the disclosure": (lambda r: r["disclosed"]["disclosures"][0].update(proof="00" * 80), "does not hold"),
    "public key": (
        lambda r: r["disclosed"]["disclosures"][0].update(public_key=OTHER.public.as_dict()),
        "not by the holder of its key",
    ),
    "public key that is none": (
        lambda r: r["disclosed"]["disclosures"][0]["public_key"].update(public_key="00" * 32),
        "no point of prime order",
    ),
    "other disclosure": (without_proofs_of_its_own, "verdict"),
    "no disclosure": (lambda r: r["disclosed"].update(disclosures=[]), "at least one"),
    "statement": (lambda r: r["rests_on"].update(statement="claimed by its holder"), "rests_on.sentence"),
    "statement that is none": (lambda r: r["rests_on"].update(statement="everybody"), "is none"),
    "sentence of the statement": (lambda r: r["rests_on"].update(sentence="Holds against all."), "rests_on.sentence"),
    "keys registered": (lambda r: r["rests_on"].update(keys_registered=9), "keys_registered"),
    "nothing to rest on": (lambda r: r.update(rests_on=None), "rests on"),
    "tenant of no key": (
        lambda r: r["rests_on"]["tenants"].append(
            {"name": "x", "key_id": OTHER.id, "registered_at": "2030", "revoked_at": None}
        ),
        "disclosed nothing",
    ),
    "threshold": (lambda r: r["disclosed"]["asked"].update(threshold="0.5"), "verdict.threshold"),
    "threshold that is none": (lambda r: r["disclosed"]["asked"].update(threshold="low"), "cannot have been asked"),
    "noise": (lambda r: r["disclosed"]["asked"].update(noise="0.0"), "noise"),
    "length": (lambda r: r["disclosed"]["asked"].update(payload_len=8), "verdict"),
    "claim": (lambda r: r["question"].update(claim="0x2a", claim_taken_as="a number"), "verdict.route"),
    "claim that is none": (lambda r: r["question"].update(claim="x", claim_taken_as="a number"), "cannot have been"),
    "registry": (lambda r: r["question"].update(registry_size=1), "verdict"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_was_changed_is_named(name: str, report: Any) -> None:
    change, place = CHANGES[name]
    repeated = repeat(changed(report, change))
    assert repeated.differences
    assert any(place in difference for difference in repeated.differences), repeated.differences
    assert all(len(difference) < 1000 for difference in repeated.differences)


def test_a_verdict_turned_round_in_all_its_members_is_caught_by_the_records(report: Any) -> None:
    """Every figure of another report, whose records were exchanged for these."""
    other = changed(report, lambda r: None)
    log = marked(payload=7)
    made = [record.to_json() for record in log]
    other["disclosed"]["records"] = made  # type: ignore[index]
    repeated = repeat(other)
    assert any("altered since it was disclosed" in difference for difference in repeated.differences)


def test_findings_that_the_records_show_cannot_be_left_out(tmp_path: Path) -> None:
    log = marked()
    made = report_of(log[:20], tmp_path, disclosed=log)
    assert "10 of 30 disclosed records" in made["findings"][-1]
    repeated = repeat(changed(made, lambda r: r["findings"].pop()))
    assert any("findings does not say: 10 of 30" in difference for difference in repeated.differences)
    more = repeat(changed(made, lambda r: r["findings"].append("log.jsonl changed while it was read")))
    assert not more.differences
    assert any("1 finding on files" in sentence for sentence in more.not_repeated)


def test_what_was_disclosed_and_is_in_no_chosen_session_is_said(tmp_path: Path) -> None:
    """Whoever writes a report may say that sessions were chosen: what was taken out is then not a finding of it."""
    log = marked()
    made = report_of(log[:20], tmp_path, disclosed=log)

    def chosen(report: Any) -> None:
        report["disclosed"]["asked"]["all_sessions"] = False
        report["findings"] = []

    repeated = repeat(changed(made, chosen))
    assert not repeated.differences
    assert any("If they were all: 10 of 30 disclosed records" in sentence for sentence in repeated.not_repeated)


def test_that_a_claim_came_first_the_report_cannot_show(tmp_path: Path) -> None:
    made = report_of(marked(), tmp_path, claim=42)
    assert any("the claim was made before anyone looked" in sentence for sentence in repeat(made).not_repeated)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"noise": 0.1}, "the share of foreign steps asked for is not"),
        ({"payload_len": 16}, "the payload length asked for is not"),
        ({"noise": 0.0, "payload_len": 16}, "the share of foreign steps and the payload length asked for are not"),
    ],
)
def test_that_what_was_asked_for_is_not_the_best_of_several_the_report_cannot_show(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    made = report_of(marked(), tmp_path, **settings)
    assert any(said in sentence for sentence in repeat(made).not_repeated)
    assert not any("asked for" in sentence for sentence in repeat(report_of(marked(), tmp_path)).not_repeated)


def test_a_report_of_more_than_is_ever_carried_is_not_judged(report: Any) -> None:
    for more in (
        lambda part: part.update(disclosures=part["disclosures"] * 501),
        lambda part: part.update(records=part["records"] * 334),
        lambda part: part["disclosures"][0].update(records=part["disclosures"][0]["records"] * 334),
    ):
        with pytest.raises(RepeatError, match="more records or disclosures"):
            repeat(changed(report, lambda r, more=more: more(r["disclosed"])))  # type: ignore[misc]


# Registries of identities --------------------------------------------------------------------------------------------


def test_of_a_registry_the_report_names_those_who_are_found_and_nobody_else(tmp_path: Path) -> None:
    made = report_of(marked(), tmp_path, registry=REGISTRY)
    assert made["verdict"]["identity"] == "acme"
    assert "tenant 3" not in json.dumps(made)
    repeated = repeat(made)
    assert not repeated.differences
    assert any("the registry held 21 identities" in sentence for sentence in repeated.not_repeated)
    whole = repeat(made, registry=REGISTRY)
    assert not whole.differences
    assert not any("registry" in sentence for sentence in whole.not_repeated)
    renamed = changed(made, lambda r: r["disclosed"]["identities"][0].update(name="neighbour"))
    assert any("verdict.identity" in difference for difference in repeat(renamed).differences)
    for member, value in (("consistent", False), ("route", "claim")):
        turned = changed(made, lambda r, member=member, value=value: r["verdict"].update({member: value}))  # type: ignore[misc]
        assert any(f"verdict.{member}" in difference for difference in repeat(turned).differences)
    assert any("how near the next" in sentence for sentence in repeated.not_repeated)
    cheaper = changed(made, lambda r: r["question"].update(registry_size=2))
    assert any("bits_paid" in difference for difference in repeat(cheaper).differences)
    smaller = Registry(16, list(REGISTRY)[:5])
    assert any("registry_size" in difference for difference in repeat(made, registry=smaller).differences)


def test_a_claimed_name_is_in_the_report_and_judged_again(tmp_path: Path) -> None:
    for claim, accepted in (("acme", True), ("tenant 3", False)):
        made = report_of(marked(), tmp_path, registry=REGISTRY, claim=claim)
        assert made["verdict"]["accepted"] is accepted
        assert not repeat(made).differences
        (tmp_path / "log.jsonl").unlink()


def test_that_nobody_of_a_registry_is_named_takes_the_registry(tmp_path: Path) -> None:
    made = report_of(marked(steps=4), tmp_path, registry=REGISTRY)
    assert not made["verdict"]["accepted"]
    repeated = repeat(made)
    assert not repeated.differences
    assert any("takes the registry" in sentence for sentence in repeated.not_repeated)
    assert not repeat(made, registry=REGISTRY).differences


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda r: r["steps"][3].update(choice="Pay"), "steps[3].choice"),
        (lambda r: r["steps"][3].update(session="another"), "steps[3].session"),
        (lambda r: r["verdict"].update(threshold="1e-99"), "verdict.threshold"),
        (lambda r: r["verdict"].update(potential_bits="999.000"), "verdict.potential_bits"),
        (lambda r: r["verdict"].update(used=30), "verdict.used"),
        (lambda r: r["question"].update(claim="tenant 3"), "what it was taken as"),
        (lambda r: r["question"].update(claim_taken_as="a name in the registry"), "what it was taken as"),
    ],
)
def test_what_needs_no_registry_is_compared_without_it(
    change: Callable[[Any], object], place: str, tmp_path: Path
) -> None:
    made = report_of(marked(steps=4), tmp_path, registry=REGISTRY)
    assert any(place in difference for difference in repeat(changed(made, change)).differences)


def test_nobody_of_a_registry_explains_what_was_not_proved_either(tmp_path: Path) -> None:
    """So many steps that disagree with everyone: of a registry that is not here, nobody is asked about them."""
    made = report_of(marked(steps=90, payload=7), tmp_path, disclosed=[], registry=REGISTRY)
    assert not made["verdict"]["accepted"]
    assert not repeat(made).differences


# What cannot be repeated ---------------------------------------------------------------------------------------------


def test_a_report_that_carries_nothing_is_an_error(
    report: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(RepeatError, match="carries no disclosure"):
        repeat(changed(report, lambda r: r.update(disclosed=None)))
    monkeypatch.setattr(disclosed_part, "MAX_CARRIED", 29)
    long = report_of(marked(), tmp_path)
    assert long["disclosed"] is None
    assert long["rests_on"]["statement"] == "strangers and other tenants"


def test_work_beyond_the_usual_is_not_done_unasked(report: Any) -> None:
    greedy = changed(report, lambda r: r["disclosed"]["asked"].update(work_limit=10**12))
    with pytest.raises(RepeatError, match="--work-limit"):
        repeat(greedy)
