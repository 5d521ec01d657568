"""The first page: who, how sure, on what, what it does not prove, in words that a layman reads aloud."""

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from pages import check_inert
from reports import KEY, NOON, STRANGER, TENANTS, parsed, report_on, with_foreign_steps
from support import marked_log

from agentmark import Identity, Registry, Verifier
from agentmark.report import Provenance, Report, StrangerReport, build_stranger_report, render_report
from agentmark.report.first_page import FILES_SHOWN, GLOSSARY, IDENTITIES_SHOWN, NOTE_LEN, first_page
from agentmark.report.provenance import InputFile
from agentmark.verify.verdict import Segment

LOG_FILE = InputFile(kind="log", path="log.jsonl", size=1234, sha256="ab" * 32)


def words_of(report: Report | StrangerReport) -> str:
    """What is read aloud."""
    return (
        " ".join(" ".join(parsed(first_page(report)).text).split())
        .replace(" .", ".")
        .replace(" ,", ",")
        .replace(" :", ":")
    )


def mixed_report() -> Report:
    """The records of two identities, shuffled: both are found."""
    records = [
        *marked_log(KEY, scheme="R", steps=80),
        *marked_log(KEY, scheme="R", payload=0x1234, steps=80, seed=5),
    ]
    random.Random(1).shuffle(records)
    return report_on(records)


def test_it_says_who_how_sure_and_on_what() -> None:
    report = report_on(marked_log(KEY), provenance={"inputs": [LOG_FILE]})
    said = words_of(report)
    assert "These records are attributed to acme-eu." in said
    assert "All 60 steps that count agree with it." in said
    assert report["verdict"]["bound_in_words"] in said
    assert report["verdict"]["bound"] in said
    assert "not the probability that the finding is wrong" in said
    assert "one in 1 million (1e-06)" in said
    assert f"log log.jsonl SHA-256 {'ab' * 32}, 1,234 bytes" in said
    assert "60 records read, of which 60 are evidence" in said
    assert KEY.id in said


def test_it_says_what_it_does_not_prove() -> None:
    said = words_of(report_on(marked_log(KEY)))
    assert "Whoever has the secret key can write records that carry any identity" in said
    assert "It is about choices: which action was taken" in said
    assert "nothing of records that are not here" in said
    assert "key holder's registry" in said
    negative = words_of(report_on(marked_log(KEY, steps=5)))
    assert "does not show that the records are not of an identity of this key" in negative


def test_every_term_of_the_glossary_is_used_or_shown_and_there_are_few() -> None:
    said = words_of(report_on(marked_log(KEY), provenance={"inputs": [LOG_FILE]}))
    assert len(GLOSSARY) <= 6
    before = said[: said.index("Words used here")]
    for term in ("record", "step", "mark", "key", "identity", "SHA-256"):
        assert term in before, term
    # Terms of the trade stay in the details.
    for term in ("payload", "e-value", "surplus", "bits", "rank", "noise", "false-positive", "digest"):
        assert term not in before, term


def test_what_was_set_aside_is_said_with_the_reason() -> None:
    records = marked_log(KEY, steps=40)
    records = [*records[:30], *[record.with_enforced(False) for record in records[30:]], records[0]]
    said = words_of(report_on(records))
    assert (
        "11 records were set aside: 10 not enforced (the agent did not do what was chosen); 1 duplicate (a copy" in said
    )
    one = words_of(report_on([*records[:30], records[0]]))
    assert "1 record was set aside: 1 duplicate" in one


def test_contradicting_steps_are_the_least_that_is_foreign_wherever_they_stand() -> None:
    """The two figures that used to contradict each other: those that contradict, and the share that explains best."""
    report = report_on(with_foreign_steps(marked_log(KEY, steps=120), 3))
    verdict = report["verdict"]
    assert verdict["accepted"]
    assert verdict["contradicting"] > 0
    own = verdict["found"][0]["at_least_steps"]
    first = words_of(report)
    assert f"at least {own:,} are its own, and at least {verdict['contradicting']:,} are not" in first
    assert "may agree with it by chance" in first
    details = " ".join(" ".join(parsed(render_report(report)).text).split())
    assert f"At least {verdict['contradicting']:,} of {verdict['used']:,} used steps" in details
    share = re.search(r"Of the shares that are tried \([\d %,]+\), (\d+)% foreign or altered steps", details)
    assert share is not None
    assert int(share[1]) / 100 * verdict["used"] >= verdict["contradicting"]


def test_an_estimate_below_what_is_certain_is_not_shown() -> None:
    report = report_on(with_foreign_steps(marked_log(KEY, steps=120), 3))
    report["verdict"]["likely_noise"] = "0.01"
    page = render_report(report)
    assert "At least" in page
    assert "explains the log best" not in page
    given = report_on(with_foreign_steps(marked_log(KEY, steps=120), 3), noise=0.3)
    assert "explains the log best" not in render_report(given), "a rate that was given is no estimate"


def test_several_identities_stand_there_each_with_evidence_and_steps() -> None:
    report = mixed_report()
    assert len(report["verdict"]["found"]) == 2
    said = words_of(report)
    assert "2 identities are found in these records" in said
    assert "attributed to" not in said
    for found in report["verdict"]["found"]:
        assert found["identity"] in ("acme-eu", "globex")
        assert f"at least {found['at_least_steps']:,}" in said
        assert found["bound"] in said
    page = render_report(report)
    assert "The identities found" in page
    assert page.index("The identities found") < page.index("The first of them, in detail")
    assert "Runner-up" not in page


def test_more_identities_than_a_sheet_holds_are_counted_there_and_listed_in_the_details() -> None:
    report = mixed_report()
    one = report["verdict"]["found"][0]
    report["verdict"]["found"] = [one | {"identity": f"tenant-{i}"} for i in range(IDENTITIES_SHOWN + 3)]
    said = words_of(report)
    assert f"{IDENTITIES_SHOWN + 3} identities are found" in said
    assert "And 3 more, listed in the details" in said
    assert f"tenant-{IDENTITIES_SHOWN + 2}" not in said
    assert f"tenant-{IDENTITIES_SHOWN + 2}" in render_report(report)


def test_the_owner_of_a_stretch_is_not_hidden_by_who_has_the_rest() -> None:
    stretches = [
        Segment(0, 39, "a", "b", 0x5EED, "acme-eu", 60.0, 10.0, 1e-15),
        Segment(40, 59, "c", "d", 0x1234, "globex", 50.0, 10.0, 1e-12),
    ]
    said = words_of(report_on(marked_log(KEY), segments=stretches))
    assert "Stretches of the log are also shown to be of globex" in said
    short = report_on(marked_log(KEY, steps=5), segments=stretches[1:])
    assert "globex" in words_of(short)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (marked_log(KEY, steps=7), "too little here to tell whose they are. About"),
        (marked_log(STRANGER, steps=20), "No record here can be used: nothing was judged"),
        ([], "No record here can be used: nothing was judged"),
    ],
)
def test_nobody_is_named_and_the_reason_is(records: list[Any], words: str) -> None:
    said = words_of(report_on(records))
    assert "attributed to nobody" in said
    assert words in said
    for name in ("acme-eu", "globex"):
        assert name not in said


def test_a_judged_log_of_another_is_not_called_short() -> None:
    records = [replace(record, key_id=KEY.id) for record in marked_log(STRANGER, steps=80)]
    said = words_of(report_on(records))
    assert "They were judged, and no identity that was asked about explains them well enough" in said


def test_a_claim_that_fails_is_repeated_as_the_question() -> None:
    records = [replace(record, key_id=KEY.id) for record in marked_log(STRANGER, steps=80)]
    verifier = Verifier(KEY, registry=TENANTS)
    assert not verifier.verify(records, claim="acme-eu").accepted
    report = report_on(records)
    report["question"]["claim"] = "acme-eu"
    assert "The question was whether they are of acme-eu." in words_of(report)


def test_an_identity_without_a_name_is_its_number() -> None:
    said = words_of(report_on(marked_log(KEY), registry=None))
    assert "attributed to identity 0x5eed" in said
    assert "registry" not in said
    revoked = Registry(16, [Identity("acme-eu", 0x5EED, revoked_at="2029-01-01T00:00:00Z")])
    assert "which was revoked on 2029-01-01T00:00:00Z" in words_of(report_on(marked_log(KEY), registry=revoked))
    nobody = words_of(report_on(marked_log(KEY, payload=0, payload_len=0), registry=None))
    assert "attributed to the holder of this key" in nobody


def test_case_author_and_note_head_it() -> None:
    named = {"case_number": "4 Ob 127/30", "author": "Dr. <b>E.</b> M.", "note": "First line.\nSecond & last."}
    report = report_on(marked_log(KEY), provenance=named)
    assert (report["case_number"], report["author"], report["note"]) == tuple(named.values())
    page = first_page(report)
    assert "4 Ob 127/30" in page
    assert "Dr. &lt;b&gt;E.&lt;/b&gt; M." in page
    assert "First line.</bdi><br><bdi>Second &amp; last." in page
    assert "The author's note" not in render_report(report)


def test_a_long_note_is_cut_on_the_first_page_and_whole_at_the_end() -> None:
    note = "word " * NOTE_LEN + "the last word"
    report = report_on(marked_log(KEY), provenance={"note": note})
    assert "the last word" not in first_page(report)
    assert "more at the end" in first_page(report)
    assert "the last word" in render_report(report)
    many = report_on(marked_log(KEY), provenance={"note": "line\n" * 9})
    assert "more at the end" in first_page(many)


def test_many_files_are_counted_there_and_listed_at_the_end() -> None:
    files = [LOG_FILE | {"path": f"part-{i:02}.jsonl"} for i in range(FILES_SHOWN + 3)]
    report = report_on(marked_log(KEY), provenance={"inputs": files})
    first = first_page(report)
    assert first.count("ab" * 32) == FILES_SHOWN
    assert "And 3 more files, listed at the end" in first
    assert "part-06.jsonl" not in first
    assert "<h2>Files</h2>" in render_report(report)


def test_the_stranger_reads_the_answer_and_no_count() -> None:
    """Whatever the log, the page differs in the answer and the files alone."""
    pages = []
    for records in (marked_log(KEY, steps=5), marked_log(STRANGER, steps=80), []):
        view = Verifier(KEY).verify(records).for_stranger()
        report = build_stranger_report(
            view,
            noise_rates=(0.0,),
            provenance=Provenance(made_at=NOON, command="agentmark verify log.jsonl", inputs=[LOG_FILE]),
        )
        pages.append(render_report(report))
    assert pages[0] == pages[1] == pages[2]
    check_inert(pages[0])
    assert "attributed to <b>nobody</b>" in pages[0]
    assert "set aside" not in pages[0]


def test_a_stranger_is_told_of_everyone_who_is_found() -> None:
    records = [
        *marked_log(KEY, scheme="R", steps=80),
        *marked_log(KEY, scheme="R", payload=0x1234, steps=80, seed=5),
    ]
    report = build_stranger_report(
        Verifier(KEY, registry=TENANTS).verify(records).for_stranger(),
        noise_rates=(0.0,),
        provenance=Provenance(made_at=NOON, command="agentmark verify log.jsonl"),
    )
    assert [found["identity"] for found in report["verdict"]["found"]] == ["globex", "acme-eu"]
    assert "2 identities are found in these records: globex, acme-eu." in words_of(report)
    page = render_report(report)
    assert "at least" not in page
    assert page.count("acme-eu") >= 2
