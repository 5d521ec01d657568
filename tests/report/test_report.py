"""The report: what it says, that hostile input stays text, and that a signature covers all of it."""

import json
import random
import re
import shlex
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import check_inert
from reports import (
    DOCUMENT,
    KEY,
    NOON,
    SECRET,
    SIGNER,
    STRANGER,
    TENANTS,
    Run,
    parsed,
    report_on,
    with_foreign_steps,
    write_log,
)
from support import marked_log, through_json

from agentmark import Embedder, LogWriter, Registry, SharedKey, StepRecord, Verifier
from agentmark.audit import stretches
from agentmark.chain.writer import ChainWriter
from agentmark.cli import main
from agentmark.core.canonical import canonical_bytes
from agentmark.keys.signing import SigningKey
from agentmark.report import (
    Provenance,
    build_report,
    check_report,
    describe_chain,
    describe_file,
    render_report,
    report_digest,
    sign_report,
)
from agentmark.report.chain_part import MAX_CHAIN_FINDINGS
from agentmark.report.content import MAX_CANDIDATES, MAX_STEPS
from agentmark.report.curves import MAX_POINTS
from agentmark.report.numbers import bits_text, count_text, rate_in_words, rate_text
from agentmark.report.signature import SignedReportError
from agentmark.verify.verdict import Segment

HOSTILE = (
    "<script>alert(1)</script>",
    "\"double\" & 'single'",
    "</style></table><img src=x onerror=alert(1)>",
    "name " * 2000,
    "\u202eأمر بالدفع\u202c",
    "👩‍👩‍👧 🚀",
    "nul \0 escape \x1b[31m line\nfeed",
)


def numbers_in(value: object) -> list[object]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, (int, float)) else []


def test_an_attributed_log() -> None:
    report = report_on(marked_log(KEY))
    verdict = report["verdict"]
    assert verdict["accepted"]
    assert verdict["identity"] == "acme-eu"
    assert verdict["payload"] == "5eed"
    assert report["made_at"] == "2030-01-02T12:00:00Z"
    assert float(verdict["bound"]) < 1e-20
    assert verdict["bound_in_words"].startswith("one in 10^")
    assert float(verdict["level_bits"]) == pytest.approx(float(verdict["bits_paid"]) + 19.932, abs=0.002)
    assert report["growth"]["of"] == "candidate"
    assert report["growth"]["points"][0] == (0, f"-{verdict['bits_paid']}")
    assert report["growth"]["points"][-1] == (60, verdict["surplus_bits"])
    assert report["rank_growth"] is not None
    assert report["rank_growth"]["points"][-1] == (60, 16)
    assert report["ownership"] is not None
    assert not report["control"]["accepted"]
    assert {step["finding"] for step in report["steps"]} == {"consistent"}
    assert report["findings"] == report["passed_over"] == report["segments"] == []


def test_the_line_of_a_candidate_found_by_search_is_as_low_as_the_page_says() -> None:
    """Null logs, open decoding of 4 bits. Hypothesis: the drawn line ever reaches b bits with probability at most 2^-b.

    400 logs of 12 fair choices, made without the key, threshold 0.05; b = 2 and 4, five standard errors. The candidate
    is picked by looking at the whole log, so its evidence without the price reaches b far more often.
    """
    rng = random.Random(11)
    trials = 400
    heights, evidence = [], []
    for trial in range(trials):
        # Sessions of their own: under the same contexts all logs would meet the same rows and pads.
        session = Embedder(SharedKey(rng.randbytes(32)), 0, payload_len=4).session(f"null {trial}")
        log = [replace(session.choose({"a": 1, "b": 1}).record, key_id=KEY.id) for _ in range(12)]
        verifier = Verifier(KEY, threshold=0.05)
        verdict = verifier.verify(log)
        report = build_report(
            verdict,
            control=verdict,
            intake=verifier.take_in(log),
            noise_rates=verifier.noise_rates,
            provenance=Provenance(made_at=NOON, command="null"),
        )
        if report["growth"]["of"] == "candidate":
            heights.append(max(float(bits) for _, bits in report["growth"]["points"] if bits is not None))
            evidence.append(heights[-1] + verdict.bits_paid)
    for b in (2, 4):
        bound = trials * 2.0**-b
        assert sum(height >= b for height in heights) <= bound + 5 * bound**0.5
        assert sum(bits >= b for bits in evidence) > 1.5 * bound, "what the line would show without the price"
    assert "any wrong identity ever reaches a height of b bits is at most 2^-b" in render_report(
        report_on(marked_log(KEY))
    )
    claimed = render_report(report_on(marked_log(KEY), claim=0x5EED))
    assert "If the claim is false, this line ever reaches a height of b bits" in claimed


def test_what_the_steps_could_say_is_not_called_evidence() -> None:
    """Without a candidate there is no bound on the line: steps that could say much are common in null logs."""
    report = report_on(marked_log(KEY, steps=8), registry=None, noise=0.0)
    assert report["growth"]["of"] == "steps"
    page = render_report(report)
    assert "2^-b" not in page
    assert "this is no evidence yet" in page


def test_the_page_says_what_the_data_says() -> None:
    report = report_on(marked_log(KEY))
    page = render_report(report)
    text = " ".join(parsed(page).text)
    verdict = report["verdict"]
    for said in (
        verdict["sentence"],
        "acme-eu",
        verdict["bound_in_words"],
        verdict["bound"],
        "Control: with a random key",
        "agentmark verify log.jsonl",
        "2030-01-02T12:00:00Z",
        KEY.id,
        report_digest(report),
        "A separate question",
        "How the identity becomes determined",
    ):
        assert said in text, said
    assert page.count("<svg") == 4, "two charts, each for a screen and for a phone"
    assert not re.search(r"https?:|<script|<link|@import|url\(", page), "it needs no network and no script"
    assert render_report(report) == page


def test_reports_are_deterministic_and_canonical() -> None:
    records = marked_log(KEY, scheme="R", steps=30)
    first, second = report_on(records, noise=0.0), report_on(through_json(records), noise=0.0)
    assert canonical_bytes(first) == canonical_bytes(second)
    assert not any(isinstance(number, float) for number in numbers_in(first))
    assert json.loads(json.dumps(first, allow_nan=False)) == json.loads(canonical_bytes(first))


def test_a_log_that_is_too_short_names_nobody() -> None:
    report = report_on(marked_log(KEY, steps=8))
    assert not report["verdict"]["accepted"]
    assert report["verdict"]["steps_needed"]
    page = render_report(report)
    assert "acme-eu" not in page, "below the bound, not even as a candidate"
    assert "globex" not in page
    assert "none named" in page
    assert f"about {report['verdict']['steps_needed']}" in page


def test_foreign_steps_are_shown_as_contradicting_or_impossible() -> None:
    records = with_foreign_steps(marked_log(KEY, steps=100), 10)
    report = report_on(records)
    verdict = report["verdict"]
    assert verdict["accepted"]
    findings = [step["finding"] for step in report["steps"]]
    assert findings.count("contradicting") == verdict["contradicting"] > 0
    assert findings.count("impossible") == verdict["outcomes"].get("impossible under this key", 0)
    worst = min(
        (step for step in report["steps"] if step["evidence_bits"]), key=lambda s: float(s["evidence_bits"] or 0)
    )
    assert worst["finding"] == "contradicting"
    assert float(worst["evidence_bits"] or 0) < 0
    assert "contradicting" in render_report(report)


def test_infinite_evidence_reaches_neither_the_data_nor_the_page() -> None:
    records = with_foreign_steps(marked_log(KEY, steps=60), 10)
    report = report_on(records, claim=0x5EED, noise=0.0)
    assert report["verdict"]["evidence_bits"] is None
    assert report["verdict"]["surplus_bits"] is None
    ruled_out = [step for step in report["steps"] if step["finding"] == "contradicting"]
    assert ruled_out[0]["evidence_bits"] is None
    points = report["growth"]["points"]
    first_none = next(i for i, (_, bits) in enumerate(points) if bits is None)
    assert all(bits is None for _, bits in points[first_none:])
    assert points[first_none][0] == ruled_out[0]["record"]
    json.dumps(report, allow_nan=False)
    page = render_report(report)
    assert "✕" in page
    assert "ruled out" in page
    assert "nan" not in re.findall(r'points="([^"]*)"', page)[0]


def test_erased_steps_say_why() -> None:
    session = Embedder(KEY, 0x5EED, payload_len=16).session("erasures")
    records = [session.choose({"a": 1, "b": 2, "c": 3}).record for _ in range(4)]
    records[1] = records[1].with_enforced(False)
    records += [session.unmarked("a", reason="the reply could not be parsed").record, records[0]]
    report = report_on(records)
    steps = report["steps"]
    assert [step["finding"] for step in steps[4:]] == ["erased", "erased"]
    assert (steps[1]["finding"], steps[1]["outcome"]) == ("erased", "not enforced")
    assert steps[4]["reason"] == "the reply could not be parsed"
    assert steps[4]["candidates"] == []
    assert report["verdict"]["outcomes"] == {"duplicate": 1, "not enforced": 1, "unmarked": 1, "used": 3}
    page = render_report(report)
    assert "the reply could not be parsed" in page
    assert "not logged" in page


def test_empty_logs_and_logs_of_another_key_make_pages_too() -> None:
    for records in ([], marked_log(STRANGER, steps=5)):
        report = report_on(records, registry=None)
        assert not report["verdict"]["accepted"]
        page = render_report(report)
        assert "no step could be used" in page
        assert "<svg" not in page


def test_a_mark_without_an_identity() -> None:
    report = report_on(marked_log(KEY, payload=0, payload_len=0), registry=None)
    assert report["verdict"]["accepted"]
    assert report["rank_growth"] is None
    assert "the holder of this key" in render_report(report)


def test_partial_lists_are_reported() -> None:
    records = [record.with_partial_weights({}) for record in marked_log(KEY, scheme="R", steps=5)]
    report = report_on(records)
    assert all(step["candidates"] == [] for step in report["steps"])
    assert "not logged" in render_report(report)


def test_long_logs_are_folded_and_capped() -> None:
    report = report_on(marked_log(KEY, steps=MAX_STEPS + 50))
    assert len(report["steps"]) == MAX_STEPS
    assert report["steps_left_out"] == 50
    assert len(report["growth"]["points"]) <= MAX_POINTS + 2
    assert report["growth"]["points"][-1][0] == MAX_STEPS + 50
    page = render_report(report)
    assert "<summary>Records 201 to 2,000</summary>" in page
    assert "50 further records not listed" in page


def test_long_lists_are_capped_and_keep_the_choice() -> None:
    session = Embedder(KEY, 1, payload_len=8).session("long lists")
    names = [f"tool-{i}" for i in range(100)]
    records = [session.choose(dict.fromkeys(names, 1)).record for _ in range(20)]
    for step in report_on(records, registry=None)["steps"]:
        assert len(step["candidates"]) == MAX_CANDIDATES
        assert step["candidates_left_out"] == 100 - MAX_CANDIDATES
        assert step["choice"] in [name for name, _ in step["candidates"]]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_stays_text(name: str, tmp_path: Path) -> None:
    """As a behavior, a session, a reason, an identity, a command, a path, and a finding."""
    # Such names are not issued; a registry that has them is read.
    entries = [{"agentmark_registry": 1, "payload_len": 16}, {"name": name.replace("\n", " "), "payload": "5eed"}]
    (tmp_path / "registry.jsonl").write_text("\n".join(map(json.dumps, entries)))
    registry = Registry.load(tmp_path / "registry.jsonl")
    session = Embedder(KEY, 0x5EED, payload_len=16, scheme="R").session(name)
    records = [session.choose({name: 2, "b": 1, "c": 1, "d": 1}).record for _ in range(40)]
    records.append(session.unmarked(name, reason=name).record)
    report = report_on(records, registry=registry, noise=0.0, findings=[name], passed_over=[name])
    report["command"] = name
    report["inputs"] = [{"kind": "log", "path": name, "size": 1, "sha256": "00"}]
    report["question"]["claim"] = name
    report["segments"] = [
        {
            "payload": "5eed",
            "identity": name,
            "first_step": 1,
            "last_step": 40,
            "first_record": name,
            "last_record": name,
            "steps": 40,
            "evidence_bits": "1.000",
            "bound": "1",
        }
    ]
    assert report["verdict"]["accepted"]
    page = render_report(report)
    plain = parsed(render_report(report_on(marked_log(KEY), noise=0.0, findings=["x"])))
    check_inert(page)
    hostile = parsed(page)
    added = set(hostile.tags) - set(plain.tags)
    assert not added & {"script", "img", "style", "iframe"}
    assert added <= {"div", "span", "table", "td", "tr", "b", "code"}
    assert hostile.tags.count("style") == 1
    assert not {attribute for attribute in hostile.attributes if attribute.startswith("on")}
    assert all(character not in page for character in "\u202e\u202c\0\x1b")
    assert len(page) < 200_000, "a long name is cut wherever it stands"
    assert "<bdi>" in page
    assert canonical_bytes(report)


def test_names_are_whole_in_the_data() -> None:
    session = Embedder(KEY, 1, payload_len=8).session("whole")
    name = HOSTILE[3]
    report = report_on([session.choose({name: 1, "b": 1}).record], registry=None)
    assert name in [candidate for candidate, _ in report["steps"][0]["candidates"]]


def test_segments_are_drawn_and_listed() -> None:
    segments = [
        Segment(0, 29, "session a step 0", "session a step 29", 0x5EED, "acme-eu", 60.0, 10.0, 1e-15),
        Segment(30, 39, "session a step 30", "session a step 39", None, None, 0.0, 0.0, 1.0),
        Segment(40, 59, "session b step 0", "session b step 19", 0x1234, "globex", 50.0, 10.0, 1e-12),
    ]
    report = report_on(marked_log(KEY), segments=segments)
    assert [
        (part["identity"], part["first_step"], part["last_step"], part["steps"]) for part in report["segments"]
    ] == [
        ("acme-eu", 1, 30, 30),
        (None, 31, 40, 10),
        ("globex", 41, 60, 20),
    ]
    page = render_report(report)
    assert 'class="c0" style=width:50.00%' in page
    assert 'class="none" style=width:16.67%' in page
    assert 'class="c1" style=width:33.33%' in page
    assert "1.0e-12" in page


@pytest.mark.parametrize(
    ("rate", "words", "number"),
    [
        (1.0, "no bound: chance explains as much", "1"),
        (0.3, "one in 3", "3.0e-01"),
        (1 / 660, "one in 620", "1.6e-03"),
        (1e-6, "one in 1 million", "1.0e-06"),
        (1 / 3.4e6, "one in 3.3 million", "3.0e-07"),
        (2.01e-8, "one in 47 million", "2.1e-08"),
        (1e-9, "one in 1 billion", "1.0e-09"),
        (1.1e-19, "one in 9 quintillion", "1.1e-19"),
        (1e-300, "one in 10^300 (a 1 with 300 zeros)", "1.0e-300"),
    ],
)
def test_bounds_in_words(rate: float, words: str, number: str) -> None:
    assert rate_in_words(rate) == words
    assert rate_text(rate) == number


@given(st.floats(1e-300, 0.5))
def test_bounds_are_never_rounded_down(rate: float) -> None:
    assert float(rate_text(rate)) >= rate * (1 - 1e-9)
    assert float(rate_text(rate)) <= rate * 1.11
    match = re.fullmatch(r"one in ([\d.,]+)(?: (\w+))?", rate_in_words(rate))
    if match:
        scale = {None: 1, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15, "quintillion": 1e18}
        assert float(match[1].replace(",", "")) * scale[match[2]] <= 1 / rate * (1 + 1e-9)


def test_numbers_as_text() -> None:
    assert bits_text(-0.0001) == "0.000"
    assert bits_text(1.23456) == "1.235"
    assert bits_text(float("-inf")) is None
    assert bits_text(None) is None
    assert (count_text(1, "step"), count_text(2000, "step")) == ("1 step", "2,000 steps")


def test_files_are_described_by_size_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"abc")
    described = describe_file("log", path)
    assert described["size"] == 3
    assert described["sha256"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert describe_file("log", "/dev/null")["sha256"] is None


def test_every_member_is_documented() -> None:
    records = marked_log(KEY, steps=20)
    report = report_on(
        records,
        segments=[Segment(0, 19, "a", "b", 1, "x", 1.0, 1.0, 1.0)],
        chains=[describe_chain("log.jsonl", records, [])],
    )

    def members(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(members, value.values()))
        return set().union(*map(members, value)) if isinstance(value, (list, tuple)) else set()

    outcomes = set(report["verdict"]["outcomes"]) | set(report["control"]["outcomes"])
    for name in members(report) - outcomes:
        assert re.search(rf"`(\w+\.)?{name}[`.]", DOCUMENT), name


# Signatures


def test_a_signature_covers_every_member() -> None:
    report = report_on(marked_log(KEY, steps=12))
    signed = json.loads(json.dumps(sign_report(report, SIGNER)))
    assert check_report(signed) == SIGNER.public_key
    assert check_report(signed, public_key=SIGNER.public_key) == SIGNER.public_key
    for name in report:
        altered = json.loads(json.dumps(signed))
        # The version is checked before the signature, so that it is not merely wrong.
        if name == "agentmark_report":
            continue
        altered["report"][name] = "altered"
        assert check_report(altered) is None, name
    deep = json.loads(json.dumps(signed))
    deep["report"]["steps"][3]["choice"] += "!"
    assert check_report(deep) is None
    reordered = {"signature": signed["signature"], "report": dict(reversed(signed["report"].items()))}
    assert check_report(reordered) == SIGNER.public_key, "the order of members is not part of it"


def test_a_signature_by_another_key_is_not_taken() -> None:
    signed = sign_report(report_on(marked_log(KEY, steps=5)), SIGNER)
    other = SigningKey(bytes(range(150, 182)))
    assert check_report(signed, public_key=other.public_key) is None
    relabelled = signed | {"signature": signed["signature"] | {"public_key": other.public_key}}
    assert check_report(relabelled) is None


@pytest.mark.parametrize(
    "signed",
    [
        [],
        {"report": {}},
        {"report": {"agentmark_report": 2}, "signature": {}},
        {"report": {"agentmark_report": 1}, "signature": {"algorithm": "RSA"}},
        {"report": {"agentmark_report": 1}, "signature": {"algorithm": "Ed25519", "public_key": 1, "value": ""}},
        {
            "report": {"agentmark_report": 1, "x": 0.5},
            "signature": {"algorithm": "Ed25519", "public_key": SIGNER.public_key, "value": "00"},
        },
    ],
)
def test_what_is_not_a_signed_report_is_an_error(signed: object) -> None:
    with pytest.raises(SignedReportError):
        check_report(signed)


# The commands


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a fresh folder with a key, a registry and a log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    KEY.save("key.json")
    TENANTS.save("registry.jsonl")
    write_log("log.jsonl", marked_log(KEY))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


VERIFY = ("verify", "log.jsonl", "--key", "key.json", "--registry", "registry.jsonl")


def test_one_command_writes_page_data_and_signature(run: Run) -> None:
    status, out, _ = run("signing-key", "signing.json")
    assert status == 0
    public_key = out.split()[-1]
    assert stat.S_IMODE(Path("signing.json").stat().st_mode) == 0o600
    signing = ("--signed", "signed.json", "--signing-key", "signing.json")
    status, out, _ = run(*VERIFY, "--report", "report.html", *signing, "--json")
    assert status == 0
    printed = json.loads(out)
    signed = json.loads(Path("signed.json").read_text(encoding="utf-8"))
    assert signed["report"] == printed
    page = Path("report.html").read_text(encoding="utf-8")
    assert report_digest(printed) in page
    assert [file["kind"] for file in printed["inputs"]] == ["log", "registry"]
    assert printed["keys"] == [KEY.id]
    for text in (out, page, Path("signed.json").read_text()):
        assert SECRET.hex() not in text
        assert json.loads(Path("signing.json").read_text())["secret"] not in text
    status, out, _ = run("check-report", "signed.json", "--public-key", public_key)
    assert status == 0
    assert "Attributed to 'acme-eu'" in out
    status, out, _ = run("check-report", "signed.json")
    assert "cannot prove" in out
    Path("signed.json").write_text(Path("signed.json").read_text().replace("acme-eu", "globex"))
    status, out, _ = run("check-report", "signed.json", "--public-key", public_key)
    assert status == 1
    assert out.startswith("ALTERED")
    assert "Attributed" not in out


def test_the_command_in_the_report_gives_the_verdict_again(run: Run) -> None:
    write_log("a log.jsonl", marked_log(KEY, seed=3))
    status, out, _ = run(
        "verify", "log.jsonl", "a log.jsonl", "--pool", "--key", "key.json", "--threshold", "1e-9", "--noise", "0.05",
        "--claim", "0x5eed", "--skip-bad", "--report", "report.json", "--json",
    )  # fmt: skip
    assert status == 0
    printed = json.loads(out)
    assert printed == json.loads(Path("report.json").read_text(encoding="utf-8"))
    words = shlex.split(printed["command"])
    assert words[0] == "agentmark"
    status, out, _ = run(*words[1:])
    assert status == 0
    assert out.startswith(printed["verdict"]["sentence"])
    assert "with a random key" in out


def test_claims_on_the_command_line(run: Run) -> None:
    status, out, _ = run(*VERIFY, "--claim", "acme-eu")
    assert status == 0
    assert "less 0.0 for naming it" in out
    assert "  claim         acme-eu, taken as a name in the registry\n" in out
    assert run(*VERIFY, "--claim", "globex")[0] == 1
    status, out, err = run(*VERIFY, "--claim", "acne-eu")
    assert status == 2
    assert "'acne-eu': is not in the registry, but there is 'acme-eu'; a claim is a name in it, or a number" in err
    status, out, _ = run("verify", "log.jsonl", "--key", "key.json", "--claim", "ac", "--json")
    assert status == 1
    assert json.loads(out)["claim"] == {"given": "ac", "taken_as": "text of 16 bits"}
    status, out, _ = run("verify", "log.jsonl", "--key", "key.json", "--claim", "ac", "--report", "claim.html")
    assert "  claim         ac, taken as text of 16 bits; a name is looked up in a --registry\n" in out
    assert "ac</bdi>, taken as text of 16 bits" in Path("claim.html").read_text()
    status, out, _ = run("verify", "log.jsonl", "--key", "key.json", "--claim", "0x5eed", "--json")
    assert json.loads(out)["claim"] == {"given": "0x5eed", "taken_as": "a number"}
    assert run("verify", "log.jsonl", "--key", "key.json", "--claim", str(0x5EED))[0] == 0
    status, _, err = run("verify", "log.jsonl", "--key", "key.json", "--claim", "no-such-name")
    assert status == 2
    assert "needs 96 bits" in err


def test_a_spliced_log_is_reported_in_stretches(run: Run) -> None:
    spliced = [*marked_log(KEY, scheme="R", steps=40), *marked_log(KEY, scheme="R", payload=0x1234, steps=40, seed=5)]
    write_log("spliced.jsonl", spliced)
    command = ("verify", "spliced.jsonl", "--pool", "--key", "key.json", "--registry", "registry.jsonl")
    _, out, _ = run(*command, "--report", "report.html", "--json")
    owners = [part["identity"] for part in json.loads(out)["segments"]]
    assert owners == ["acme-eu", "globex"]
    assert "class=strip" in Path("report.html").read_text(encoding="utf-8")


def test_in_a_long_log_stretches_are_looked_for_when_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "SEGMENTED_UNASKED", 50)
    write_log("spliced.jsonl", [*marked_log(KEY, steps=40), *marked_log(KEY, payload=0x1234, steps=30, seed=5)])
    command = (
        "verify",
        "--pool",
        "spliced.jsonl",
        "--key",
        "key.json",
        "--registry",
        "registry.jsonl",
        "--report",
        "report.html",
    )
    _, out, _ = run(*command, "--json")
    report = json.loads(out)
    assert report["segments"] == []
    hint = next(finding for finding in report["findings"] if "--segments" in finding)
    first, last = map(int, re.findall(r"(\d+) to (\d+)", hint)[0])
    assert abs(first - 41) <= 3
    assert last == 70
    _, out, err = run(*command, "--segments", "--json")
    assert [part["identity"] for part in json.loads(out)["segments"]] == ["acme-eu", "globex"]
    assert "looking for stretches" in err


def test_lines_passed_over_are_in_the_report(run: Run) -> None:
    with Path("log.jsonl").open("a") as log:
        log.write('{"agentmark":7}\n{"agentmark":1,"sche')
    _, out, _ = run(*VERIFY, "--skip-bad", "--report", "report.html", "--json")
    assert len(json.loads(out)["passed_over"]) == 2
    assert "is cut short" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--signed out.json", "goes together with --signing-key"),
        ("--signing-key signing.json", "goes together with --signing-key"),
        ("--signed out.json --signing-key none.json", "none.json: cannot be read"),
        ("--report log.jsonl", "would be overwritten"),
        ("--report key.json", "would be overwritten"),
        ("--noise 1", "noise: 1.0"),
        ("--segments", "give --report, --pdf or --signed"),
        ("--report no/such/folder.html", "there is no such folder"),
    ],
)
def test_bad_settings_are_exit_two(run: Run, arguments: str, message: str) -> None:
    before = Path("log.jsonl").read_bytes()
    status, _, err = run(*VERIFY, *arguments.split())
    assert status == 2
    assert message in err
    assert Path("log.jsonl").read_bytes() == before


def test_without_the_package_the_error_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    SIGNER.save("signing.json")
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    status, _, err = run(*VERIFY, "--signed", "out.json", "--signing-key", "signing.json")
    assert status == 2
    assert "pip install '.[signed]'" in err
    assert run(*VERIFY, "--report", "report.html")[0] == 0, "an unsigned report needs no package"


# For strangers


def without_digests(text: str) -> str:
    """A report with what names its inputs left out: file digests and sizes, times, and the report's own digest, which
    also stands in the style of a printed sheet."""
    named = r"[0-9a-f]{64}|\d{4}-\d\d-\d\d(T|, )[\d:]+( UTC|Z)|\"size\": \d+|[\d,]+ bytes|'sha256-[^']+'"
    return re.sub(named, "", text)


def stranger_outputs(run: Run, log: str, *more: str) -> list[str]:
    """All that the command says and writes, in every form it has."""
    Path("current.jsonl").write_bytes(Path(log).read_bytes())
    command = ("verify", "current.jsonl", "--key", "key.json", "--for-stranger", *more)
    signing = ("--signed", "signed.json", "--signing-key", "signing.json")
    said = [*run(*command), *run(*command, "--json")]
    said += run(*command, "--report", "page.html", *signing, "--json")
    said += [Path("page.html").read_text(encoding="utf-8")]
    # The signature covers the digests, so that only what it signs can be compared.
    said += [json.dumps(json.loads(Path("signed.json").read_text())["report"])]
    return [without_digests(str(text)) for text in said]


def test_logs_that_are_not_attributed_look_the_same_to_a_stranger(run: Run) -> None:
    SIGNER.save("signing.json")
    log = marked_log(KEY)
    write_log("short.jsonl", log[:9])
    write_log("shorter.jsonl", log[:3])
    write_log("foreign.jsonl", [replace(record, key_id=KEY.id) for record in marked_log(STRANGER)])
    write_log("withdrawn.jsonl", [*log, *[record.with_enforced(False) for record in log]])
    logs = ("short.jsonl", "shorter.jsonl", "foreign.jsonl", "withdrawn.jsonl")
    for question in ((), ("--claim", "0x5eed"), ("--registry", "registry.jsonl")):
        first, *others = [stranger_outputs(run, log, *question) for log in logs]
        assert first[0] == "1"
        for other in others:
            assert other == first


def test_a_report_for_a_stranger_gives_the_answer_and_no_evidence(run: Run) -> None:
    SIGNER.save("signing.json")
    signing = ("--signed", "signed.json", "--signing-key", "signing.json")
    status, out, err = run(*VERIFY, "--for-stranger", "--report", "page.html", *signing, "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report == json.loads(Path("signed.json").read_text())["report"]
    assert set(report) == {
        "agentmark_report", "view", "made_at", "case_number", "author", "note", "versions", "command", "keys", "inputs",
        "question", "verdict", "findings", "passed_over",
    }  # fmt: skip
    assert report["verdict"]["identity"] == "acme-eu"
    assert report["verdict"]["threshold"] == "1e-06"
    assert report["keys"] == [KEY.id]
    page = Path("page.html").read_text(encoding="utf-8")
    text = " ".join(parsed(page).text)
    for said in (report["verdict"]["sentence"], "acme-eu", report["command"], KEY.id, report_digest(report)):
        assert said in text
    for file in report["inputs"]:
        assert file["sha256"] in text
    for kept in ("<svg", "class=odds", "Control", "Runner-up", "contradicting", " bits for", "More steps"):
        assert kept not in page, kept
    status, out, _ = run("check-report", "signed.json", "--public-key", SIGNER.public_key)
    assert status == 0
    assert report["verdict"]["sentence"] in out
    words = shlex.split(report["command"])
    assert words[-1] == "--for-stranger"
    status, out, _ = run(*words[1:])
    assert (status, out) == (0, report["verdict"]["sentence"] + "\n")


def test_what_could_not_be_read_is_said_to_strangers_too(run: Run) -> None:
    with Path("log.jsonl").open("a") as log:
        log.write('{"agentmark":7}\n')
    _, out, _ = run(*VERIFY, "--for-stranger", "--skip-bad", "--report", "page.html", "--json")
    assert len(json.loads(out)["passed_over"]) == 1
    assert "What was not read" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--control", "--segments", "--find-offset --session s", "--public-key 00"])
def test_what_is_not_for_strangers_is_refused(run: Run, option: str) -> None:
    status, out, err = run(*VERIFY, "--for-stranger", "--report", "page.html", *option.split())
    assert (status, out) == (2, "")
    assert "does not go with --for-stranger" in err


# The chain of a log, beside its verdict


def write_chained(path: str, records: list[StepRecord], *, every: int = 20) -> None:
    with LogWriter(path, chain=ChainWriter(SIGNER, every=every)) as log:
        for record in records:
            log.write(record)


def test_an_intact_chain_is_reported_with_its_signer(run: Run) -> None:
    write_chained("chained.jsonl", marked_log(KEY))
    command = ("verify", "chained.jsonl", "--key", "key.json", "--report", "report.html", "--json")
    status, out, _ = run(*command, "--public-key", SIGNER.public_key)
    assert status == 0
    [chain] = json.loads(out)["chains"]
    assert chain["intact"]
    assert chain["checked"] == chain["records"] == 60
    assert (chain["checkpoints"], chain["checkpoints_refused"]) == (3, 0)
    assert chain["signers"] == chain["trusted_keys"] == [SIGNER.public_key]
    page = Path("report.html").read_text(encoding="utf-8")
    assert "The chain of the log" in page
    assert "Nobody vouches" not in page
    run(*command)
    assert "Nobody vouches" in Path("report.html").read_text(encoding="utf-8")
    status, out, _ = run("verify", "chained.jsonl", "--key", "key.json")
    assert "chain         chained.jsonl: Intact: 60 records" in out


def test_a_broken_chain_is_reported_and_stops_nothing(run: Run) -> None:
    write_chained("chained.jsonl", marked_log(KEY))
    lines = Path("chained.jsonl").read_text(encoding="utf-8").splitlines()
    forged = json.loads(lines[20])
    assert "agentmark_checkpoint" in forged
    forged["total"] = 19
    # A gap in the middle, an altered checkpoint, and the end cut off before its last checkpoint.
    left = [*lines[:5], *lines[8:20], json.dumps(forged), *lines[21:50], lines[-1]]
    Path("broken.jsonl").write_text("\n".join(left) + "\n", encoding="utf-8")
    status, out, _ = run("verify", "broken.jsonl", "--key", "key.json", "--report", "report.html", "--json")
    assert status == 0, "the mark is read all the same"
    report = json.loads(out)
    [chain] = report["chains"]
    kinds = {finding["kind"]: finding for finding in chain["findings"]}
    assert not chain["intact"]
    assert kinds["gap"]["count"] == 3
    assert {"missing tail", "bad signature", "checkpoint break"} <= set(kinds)
    assert (chain["checkpoints"], chain["checkpoints_refused"]) == (2, 1)
    assert any("the chain of broken.jsonl: Not intact" in finding for finding in report["findings"])
    page = Path("report.html").read_text(encoding="utf-8")
    assert "records are missing" in page
    assert "bad signature" in page
    _, out, _ = run("verify", "broken.jsonl", "--key", "key.json", "--json")
    assert json.loads(out)["chains"] == [chain]


def test_logs_without_a_chain_have_none_unless_somebody_should_have_signed(run: Run) -> None:
    _, out, _ = run(*VERIFY, "--json")
    assert json.loads(out)["chains"] == []
    status, out, _ = run(*VERIFY, "--json", "--public-key", SIGNER.public_key)
    assert status == 0
    [chain] = json.loads(out)["chains"]
    assert {finding["kind"] for finding in chain["findings"]} == {"unsigned", "unchained"}
    status, _, err = run(*VERIFY, "--public-key", "typo")
    assert status == 2
    assert "is not a public key" in err


def test_each_log_has_its_own_chain(run: Run) -> None:
    write_chained("one.jsonl", marked_log(KEY, steps=30))
    write_chained("two.jsonl", marked_log(KEY, steps=30, seed=5))
    _, out, _ = run("verify", "one.jsonl", "log.jsonl", "two.jsonl", "--pool", "--key", "key.json", "--json")
    chains = json.loads(out)["chains"]
    assert [(chain["log"], chain["intact"]) for chain in chains] == [("one.jsonl", True), ("two.jsonl", True)]


def test_links_are_checked_without_the_package_for_signatures(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chained("chained.jsonl", marked_log(KEY))
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    status, out, _ = run("verify", "chained.jsonl", "--key", "key.json", "--json")
    assert status == 0
    [chain] = json.loads(out)["chains"]
    assert chain["checkpoints"] == chain["checked"] == chain["checkpoints_refused"] == 0
    assert "pip install '.[signed]'" in chain["findings"][0]["sentence"]


def test_many_findings_of_a_chain_are_counted_not_listed() -> None:
    records = [replace(record, session=f"s{i}") for i, record in enumerate(marked_log(KEY, steps=250))]
    chain = describe_chain("log", records, [])
    assert len(chain["findings"]) == MAX_CHAIN_FINDINGS
    assert chain["findings_left_out"] > 0
    report = report_on(marked_log(KEY, steps=9), chains=[chain])
    assert "further finding" in render_report(report)
