"""Signed reports that are not reports: whatever was signed, it is told what is wrong with it."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import marked_log

from agentmark import SharedKey, Verifier
from agentmark.cli import main
from agentmark.core.canonical import canonical_bytes
from agentmark.keys.signing import SigningKey
from agentmark.report import Provenance, Report, build_report, check_report, describe_chain, sign_report
from agentmark.report.shape import shape_fault
from agentmark.report.signature import ALGORITHM, REPORT_LABEL, SignedReportError

KEY = SharedKey(bytes(range(100, 132)))
SIGNER = SigningKey(bytes(range(200, 232)))


@pytest.fixture(scope="module")
def report() -> Report:
    records = marked_log(KEY, steps=12)
    verifier = Verifier(KEY)
    verdict = verifier.verify(records)
    return build_report(
        verdict,
        control=verdict,
        intake=verifier.take_in(records),
        noise_rates=verifier.noise_rates,
        provenance=Provenance(made_at=datetime(2030, 1, 2, tzinfo=UTC), command="agentmark verify log.jsonl"),
        chains=[describe_chain("log.jsonl", records, [])],
        segments=verifier.segments(records),
    )


def plain(content: Any) -> Any:
    return json.loads(json.dumps(content))


def signed_anyway(content: Any) -> dict[str, Any]:
    """What somebody gets who signs whatever they like."""
    value = SIGNER.sign(REPORT_LABEL, canonical_bytes(content))
    signature = {"algorithm": ALGORITHM, "public_key": SIGNER.public_key, "value": value}
    return {"report": content, "signature": signature}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside, of lists to their first item alone."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def changed(content: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    copy = plain(content)
    inside = copy
    for name in path[:-1]:
        inside = inside[name]
    change(inside, path[-1])
    return copy


def test_what_was_built_has_its_shape(report: Report) -> None:
    assert shape_fault(report, Report, "report") is None
    assert check_report(plain(sign_report(report, SIGNER))) == SIGNER.public_key


def test_a_member_that_is_missing_strange_or_of_another_type_is_an_error_at_every_level(report: Report) -> None:
    """The signature is right each time: it is no excuse."""
    whole = plain(report)
    # These two are objects of any names.
    free = {("versions",), ("verdict", "outcomes"), ("control", "outcomes")}
    tried = 0
    for path in [path for path in places(whole) if path]:
        altered = [changed(whole, path, lambda inside, name: inside.__setitem__(name, [[{"odd": True}]]))]
        if isinstance(path[-1], str) and path[:-1] not in free:
            altered.append(changed(whole, path, lambda inside, name: inside.pop(name)))
            altered.append(changed(whole, path, lambda inside, name: inside.__setitem__(f"{name} ", "extra")))
        for content in altered:
            tried += 1
            with pytest.raises(SignedReportError):
                check_report(signed_anyway(content))
    assert tried > 300


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda report: report.pop("verdict"), "report has no verdict"),
        (lambda report: report.pop("made_at"), "report has no made_at"),
        (lambda report: report.update(made_at=5), "report.made_at is not text"),
        (lambda report: report.update(verdict=[]), "report.verdict is not an object"),
        (lambda report: report["verdict"].update(sentence=None), "report.verdict.sentence is not text"),
        (lambda report: report["verdict"].update(accepted=1), "report.verdict.accepted is not true or false"),
        (lambda report: report["verdict"].update(rank=True), "report.verdict.rank is not an integer"),
        (lambda report: report["verdict"].update(note="trust me"), "report.verdict has a member 'note'"),
        (lambda report: report.update(keys="abc"), "report.keys is not a list"),
        (lambda report: report["versions"].update(agentmark=1), "report.versions.agentmark is not text"),
        (lambda report: report["growth"]["points"][0].append(1), r"report.growth.points\[0\] is not a list of 2"),
        (lambda report: report.update(agentmark_report=True), "report.agentmark_report is not 1"),
        (lambda report: report.clear(), "report.agentmark_report is not 1"),
    ],
)
def test_the_error_says_where_and_what(report: Report, change: Callable[[Any], None], fault: str) -> None:
    content = plain(report)
    change(content)
    with pytest.raises(SignedReportError, match=fault):
        check_report(signed_anyway(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda signed: signed.update(verdict="Attributed to the neighbour."),
        lambda signed: signed["signature"].update(signer="a court"),
        lambda signed: signed["signature"].update(value=None),
        lambda signed: signed["signature"].update(public_key=[]),
        lambda signed: signed["signature"].pop("algorithm"),
        lambda signed: signed["signature"].update(algorithm="none"),
        lambda signed: signed.update(signature=None),
        lambda signed: signed.update(report=[]),
        lambda signed: signed.pop("report"),
    ],
)
def test_nothing_stands_beside_what_is_signed(report: Report, change: Callable[[Any], None]) -> None:
    signed = plain(sign_report(report, SIGNER))
    change(signed)
    for public_key in (None, SIGNER.public_key):
        with pytest.raises(SignedReportError):
            check_report(signed, public_key=public_key)


def test_what_was_altered_is_not_signed_whatever_its_shape(report: Report) -> None:
    signed = plain(sign_report(report, SIGNER))
    signed["report"]["verdict"] = "altered"
    assert check_report(signed) is None


def test_the_command_prints_nothing_that_steers(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = plain(report)
    content["made_at"] = "2030\x1b[2J\u202e\nSigned by the court."
    content["verdict"]["sentence"] = "Attributed to \u202eemca\x9b1A\nSigned by the court."
    path = tmp_path / "signed.json"
    path.write_text(json.dumps(signed_anyway(content)))
    assert main(["check-report", str(path)]) == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines())
    assert "\nSigned by the court" not in said
    assert "Attributed to \\u202eemca\\x9b1A\\nSigned by the court." in said


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"nonsense", "is not valid JSON"),
        (b'{"report": {}, "report": {}, "signature": {}}', "names a member twice in one object"),
        (b'{"report": {"a": 1, "a": 1}, "signature": {}}', "names a member twice in one object"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"\xff\xfe", "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"null", "is not a JSON object of report and signature"),
    ],
)
def test_a_file_that_is_no_signed_report_is_exit_two(
    content: bytes, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "signed.json"
    path.write_bytes(content)
    assert main(["check-report", str(path)]) == 2
    assert fault in capsys.readouterr().err
