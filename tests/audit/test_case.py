"""The audit use case: paths and keys in, verdict and report out, one intake."""

import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from support import marked_log

from agentmark import LogWriter, PayloadError, Registry, RegistryError, SettingError, SharedKey, StepRecord, Verifier
from agentmark.audit.case import Case, LostPlace, ReportOrder
from agentmark.audit.engine import PlainEngine
from agentmark.chain.writer import ChainWriter
from agentmark.cli import main
from agentmark.cli.verify import verdict_lines
from agentmark.identity.registry import Identity
from agentmark.keys.signing import SigningKey
from agentmark.report import render_report
from agentmark.verify.keyring import Keyring
from agentmark.verify.state import LogState

KEY = SharedKey(bytes(range(32)))
STRANGER = SharedKey(bytes(range(160, 192)))
NAMES = Registry(16, [Identity("acme", 0x5EED), Identity("globex", 0x1234), Identity("42", 0x0777)])
ORDER = ReportOrder(command="agentmark verify")


def log_file(folder: Path, records: list[StepRecord], name: str = "log.jsonl") -> Path:
    path = folder / name
    with LogWriter(path) as log:
        for record in records:
            log.write(record)
    return path


def test_a_log_is_taken_in_once_and_once_for_the_control(tmp_path: Path, read_steps: list[str]) -> None:
    path = log_file(tmp_path, marked_log(KEY))
    Case(logs=[path], keys=[KEY], claim=0x5EED).answer()
    assert len(read_steps) == 60
    answer = Case(logs=[path], keys=[KEY], claim=0x5EED, report=ORDER).answer()
    assert answer.report is not None
    assert len(read_steps) == 60 + 2 * 60


def test_the_command_takes_a_log_in_once_and_once_for_the_control(
    tmp_path: Path, read_steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")
    log_file(tmp_path, marked_log(KEY))
    assert main(["verify", "log.jsonl", "--key", "key.json", "--claim", "0x5eed", "--report", "r.html"]) == 0
    assert len(read_steps) == 2 * 60


def test_the_answer_is_the_verifiers(tmp_path: Path) -> None:
    records = marked_log(KEY)
    path = log_file(tmp_path, records)
    assert Case(logs=[path], keys=[KEY], registry=NAMES).answer().verdict == Verifier(KEY, registry=NAMES).verify(
        records
    )


def test_several_logs_are_pooled_in_their_order(tmp_path: Path) -> None:
    records = marked_log(KEY, scheme="R")
    paths = [log_file(tmp_path, records[:9], "b.jsonl"), log_file(tmp_path, records[9:], "a.jsonl")]
    answer = Case(logs=paths, keys=[KEY]).answer()
    assert [finding.record for finding in answer.verdict.findings] == records
    assert answer.verdict == Verifier(KEY).verify(records)


def test_another_engine_may_take_the_logs_in(tmp_path: Path) -> None:
    """Whatever reads the records, the verdict is the plain engine's."""

    class BackAndForth:
        """Reads each log in two halves, each in a process of its own as far as the state can tell."""

        def take_in(self, logs: object, keys: Keyring, work: object = None) -> LogState:
            whole = LogState()
            for records in logs:  # type: ignore[attr-defined]
                for part in (records[: len(records) // 2], records[len(records) // 2 :]):
                    whole.merge(LogState.from_bytes(PlainEngine().take_in([part], keys).to_bytes()))
            return whole

    path = log_file(tmp_path, marked_log(KEY, scheme="R"))
    case = Case(logs=[path], keys=[KEY])
    assert case.answer(engine=BackAndForth()).verdict == case.answer().verdict


@pytest.mark.parametrize("claim", [0x5EED, b"\x5e\xed", [0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1], "acme"])
def test_a_claim_is_whatever_a_payload_can_be_or_a_name(claim: int | bytes | list[int] | str) -> None:
    records = marked_log(KEY)
    verdict = Verifier(KEY, registry=NAMES).verify(records, claim=claim)
    assert verdict.accepted
    assert verdict.payload == 0x5EED
    assert verdict.bits_paid == 0
    assert not Verifier(KEY, registry=NAMES).verify(records, claim="globex").accepted


def test_a_mistyped_name_is_refused_not_acquitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text of a few bytes it would be an identity that nobody has: "not attributed" would then mislead."""
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")
    NAMES.save("names.jsonl")
    log_file(tmp_path, marked_log(KEY))
    for mistyped in ("ac", "Acme", "acme "):
        with pytest.raises(RegistryError, match="is not in the registry"):
            Verifier(KEY, registry=NAMES).verify(marked_log(KEY), claim=mistyped)
    command = ["verify", "log.jsonl", "--key", "key.json", "--registry", "names.jsonl", "--claim", "ac"]
    assert main(command) == 2
    assert "'ac': is not in the registry" in capsys.readouterr().err


def test_a_claim_in_text_without_a_registry_is_its_bytes() -> None:
    records = marked_log(KEY, payload=int.from_bytes(b"ok", "big"))
    assert Verifier(KEY).verify(records, claim="ok").accepted
    with pytest.raises(PayloadError, match="needs 32 bits"):
        Verifier(KEY).verify(records, claim="acme")
    with pytest.raises(SettingError, match="does not fit 16 bits"):
        Verifier(KEY).verify(records, claim=1 << 16)


def test_on_the_command_line_a_name_goes_before_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")
    NAMES.save("names.jsonl")
    log_file(tmp_path, marked_log(KEY, payload=0x0777))
    assert main(["verify", "log.jsonl", "--key", "key.json", "--registry", "names.jsonl", "--claim", "42"]) == 0
    assert "Attributed to '42'" in capsys.readouterr().out


# Payloads whose digits appear in no digest or number by chance.
ONE, TWO = 0xDEADBEEF00C0FFEE, 0xFACADE1100DECADE
LONG_NAMES = Registry(64, [Identity("tenant-one", ONE), Identity("tenant-two", TWO)])


def unproved(key: SharedKey, scheme: str, steps: int) -> list[StepRecord]:
    """Steps that state our key id. Their session is renamed: the helper puts the payload into it."""
    records = marked_log(key, scheme=scheme, payload=ONE, payload_len=64, steps=steps)
    return [replace(record, key_id=KEY.id, session="run") for record in records]


UNPROVED = {
    "too short": unproved(KEY, "R", 6),
    "another's, R": unproved(STRANGER, "R", 40),
    "another's, F": unproved(STRANGER, "F", 60),
}


@pytest.mark.parametrize("claim", [None, "tenant-two"])
@pytest.mark.parametrize("log", UNPROVED)
def test_no_rendering_names_anyone_who_is_not_accepted(tmp_path: Path, log: str, claim: str | None) -> None:
    """Neither the best candidate nor the runner-up, by name or by payload: not as data, text, report or repr."""
    path = log_file(tmp_path, UNPROVED[log])
    case = Case(logs=[path], keys=[KEY], registry=LONG_NAMES, claim=claim, work_limit=1000, report=ORDER)
    answer = case.answer()
    assert not answer.verdict.accepted
    assert answer.report is not None
    assert answer.verdict.candidate in (ONE, TWO), "there is somebody to be named, or this test shows nothing"
    renderings = [
        json.dumps(answer.as_dict()),
        json.dumps(answer.report),
        render_report(answer.report),
        repr(answer.verdict),
        "\n".join(verdict_lines(answer)),
    ]
    # A report states its question, on the first page and beside the finding: the name that was claimed is the asker's
    # own word, and stands nowhere else.
    assert answer.report["question"]["claim"] == claim
    names = {"tenant-one", "tenant-two"} - {claim}
    for rendering in renderings:
        for word in (*names, f"{ONE:x}", f"{TWO:x}", str(ONE), str(TWO)):
            assert word not in rendering.lower()
    if claim is not None:
        assert render_report(answer.report).count(claim) == 2
        assert claim not in json.dumps(answer.report["verdict"])


def test_whoever_does_not_pass_the_bound_is_a_runner_up_without_a_name() -> None:
    mine, theirs = marked_log(KEY, scheme="R"), marked_log(KEY, scheme="R", payload=0x1234, seed=9)
    alone = Verifier(KEY, registry=NAMES).verify(mine)
    assert alone.runner_up is not None
    assert alone.as_dict()["runner_up"] == {"evidence_bits": alone.runner_up.evidence_bits}
    mixed = Verifier(KEY, registry=NAMES).verify([*mine, *theirs])
    assert mixed.runner_up is not None
    assert {found.identity for found in mixed.found} == {"acme", "globex"}
    assert mixed.runner_up.evidence_bits < min([found.evidence_bits for found in mixed.found])


@pytest.mark.parametrize("threshold", [1e-6, 1e-300])
def test_an_identity_below_the_bound_is_not_named_as_mixed_in_either(threshold: float) -> None:
    mine, theirs = marked_log(KEY, scheme="R"), marked_log(KEY, scheme="R", payload=0x1234, steps=9, seed=9)
    verdict = Verifier(KEY, registry=NAMES, threshold=threshold).verify([*mine, *theirs])
    assert verdict.runner_up is not None
    assert [found.payload for found in verdict.found] == ([0x5EED] if threshold == 1e-6 else [])
    assert "1234" not in str(verdict.as_dict())
    with pytest.raises(SettingError, match="smallest bound"):
        Verifier(KEY, threshold=1e-305)


@pytest.mark.parametrize("claim", [5, 1 << 70, "tenant", b"\0\1", [0, 1]])
def test_a_claim_about_a_log_that_is_not_ours_gets_a_verdict(claim: int | str | bytes | list[int]) -> None:
    verdict = Verifier(KEY).verify(marked_log(STRANGER, steps=4), claim=claim)
    assert not verdict.accepted
    assert "none of the 4 records can be used" in verdict.sentence


@pytest.mark.parametrize("claim", [1 << 16, -1])
def test_a_claim_that_cannot_fit_is_refused_whatever_the_log_holds(claim: int) -> None:
    for records in ([], marked_log(STRANGER, steps=4), marked_log(KEY, steps=4)):
        with pytest.raises(SettingError, match="does not fit 16 bits"):
            Verifier(KEY, payload_len=16).verify(records, claim=claim)


@pytest.mark.parametrize("claim", [True, 1.5, object(), iter([1]), "\ud800", [0.0] * 16, memoryview(b"ab")])
def test_what_is_no_payload_is_a_typed_error(claim: object) -> None:
    with pytest.raises(PayloadError):
        Verifier(KEY).verify(marked_log(KEY, steps=4), claim=claim)  # type: ignore[arg-type]


def test_numbers_of_other_packages_are_numbers() -> None:
    assert Verifier(KEY).verify(marked_log(KEY), claim=numpy.int64(0x5EED)).accepted


def test_a_report_states_what_was_asked(tmp_path: Path) -> None:
    path = log_file(tmp_path, marked_log(KEY))
    answer = Case(logs=[str(path)], keys=[KEY], claim=0x5EED, report=ORDER).answer()
    assert answer.report is not None
    assert answer.report["question"]["claim"] == "0x5eed"


def test_what_cannot_be_meant_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    missing = tmp_path / "no-such-log.jsonl"
    with pytest.raises(SettingError, match="offsets"):
        Case(logs=[missing], keys=[KEY], place=LostPlace(session="s", offsets=0))
    with pytest.raises(SettingError, match="work_limit"):
        Case(logs=[missing], keys=[KEY], work_limit=0)
    with pytest.raises(SettingError, match="at least one"):
        Case(logs=[missing], keys=[])
    with pytest.raises(SettingError, match="threshold"):
        Case(logs=[missing], keys=[KEY], threshold=2)


def test_a_lost_place_is_found_and_reported(tmp_path: Path) -> None:
    records = marked_log(KEY, scheme="R")
    lost = [replace(record, session="?", step_index=0, context=bytes(32)) for record in records[3:30]]
    path = log_file(tmp_path, lost)
    answer = Case(
        logs=[path], keys=[KEY], place=LostPlace(session=records[0].session, offsets=5), report=ORDER
    ).answer()
    assert answer.place is not None
    assert answer.report is not None
    assert (answer.place.offset, answer.place.tried) == (3, 5)
    assert answer.report["question"]["place"] == {"session": records[0].session, "offsets_tried": 5, "offset": 3}


def test_an_order_for_a_stranger_makes_no_other_report(tmp_path: Path, read_steps: list[str]) -> None:
    """Neither the key holder's report nor the control is made: what is not there cannot be handed on by mistake."""
    path = log_file(tmp_path, marked_log(KEY))
    order = ReportOrder(command="agentmark verify", for_stranger=True)
    answer = Case(logs=[path], keys=[KEY], registry=NAMES, report=order).answer()
    assert answer.report is None
    assert answer.control is None
    assert len(read_steps) == 60
    assert answer.stranger_report is not None
    assert answer.stranger_report["verdict"]["identity"] == "acme"
    with pytest.raises(SettingError, match="many questions at once"):
        Case(logs=[path], keys=[KEY], place=LostPlace(session="s"), report=order)


def test_a_foreign_line_at_the_head_hides_no_checkpoint(tmp_path: Path) -> None:
    """A record that was removed is missed in the answer, whatever format the first line speaks of."""
    signer = SigningKey(bytes(range(7, 39)))
    path = tmp_path / "log.jsonl"
    with LogWriter(path, chain=ChainWriter(signer, every=20)) as log:
        for record in marked_log(KEY):
            log.write(record)
    lines = path.read_text().splitlines(keepends=True)
    for head in ("", '{"resourceSpans": []}\n', '{"data": []}\n'):
        path.write_text(head + "".join(lines[:30] + lines[31:]))
        answer = Case(logs=[path], keys=[KEY], public_keys=[signer.public_key]).answer()
        (chain,) = answer.chains
        assert chain["checkpoints"] == 3, head
        assert {finding["kind"]: finding["count"] for finding in chain["findings"]} == {"gap": 1, "unchecked": 9}


def test_a_report_on_one_session_rests_on_the_files_that_hold_it(tmp_path: Path) -> None:
    """A folder holds other files too; they are not what this report is about."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(b"%PDF-1.7\n")
    for name in ("b", "c"):
        with LogWriter(folder / f"{name}.jsonl") as log:
            for record in marked_log(KEY, steps=40, seed=ord(name)):
                log.write(replace(record, session=name))
    case = Case(logs=[folder], keys=[KEY], skip_bad=True, report=ORDER)
    every, one = case.answer().report, replace(case, sessions=("c",)).answer().report
    assert every is not None
    assert one is not None
    assert [Path(file["path"]).name for file in every["inputs"]] == ["b.jsonl", "c.jsonl", "a.pdf"]
    assert [Path(file["path"]).name for file in one["inputs"]] == ["c.jsonl"]
    assert len(one["passed_over"]) == 1
    assert "inspect" not in render_report(one)
