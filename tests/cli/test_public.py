"""Public mode as a user types it: a key pair, a marked run, its verdict."""

import hashlib
import io
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import check_inert
from support import TICKET_WEIGHTS

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark import MarkingKey, PublicKey
from agentmark.cli import main
from agentmark.disclosure.make import disclose
from agentmark.keys.signing import SigningKey
from agentmark.report import render_report, sign_report
from agentmark.report.page_data import page_data

Run = Callable[..., tuple[int, str, str]]

LINES = (json.dumps(TICKET_WEIGHTS) + "\n") * 50
LIMITED = ("--work-limit", "100000")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a fresh folder: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_keygen_writes_both_halves_and_prints_what_to_anchor(run: Run) -> None:
    status, out, _ = run("keygen", "--public", "marking.json")
    assert status == 0
    key, public = MarkingKey.load("marking.json"), PublicKey.load("marking.pub.json")
    assert public == key.public
    assert stat.S_IMODE(Path("marking.json").stat().st_mode) == 0o600
    assert key.id in out
    assert key.public.fingerprint in out
    assert json.loads(Path("marking.json").read_text())["secret"] not in out
    assert "secret" not in json.loads(Path("marking.pub.json").read_text())


def test_keygen_overwrites_neither_half(run: Run) -> None:
    Path("marking.pub.json").write_text("mine")
    assert run("keygen", "--public", "marking.json")[0] == 2
    assert not Path("marking.json").exists(), "no secret without its public half"
    Path("marking.pub.json").unlink()
    Path("marking.json").write_text("mine")
    assert run("keygen", "--public", "marking.json")[0] == 2
    assert not Path("marking.pub.json").exists()


def test_a_tenants_pair_is_of_its_masters_kind(run: Run) -> None:
    run("keygen", "--public", "master.json")
    run("keygen", "shared.json")
    assert run("keygen", "--public", "acme.json", "--from", "master.json", "--tenant", "acme")[0] == 0
    assert MarkingKey.load("acme.json") == MarkingKey.load("master.json").derive("acme")
    assert "give --public" in run("keygen", "b.json", "--from", "master.json", "--tenant", "b")[2]
    assert "no public half" in run("keygen", "--public", "b.json", "--from", "shared.json", "--tenant", "b")[2]
    assert not Path("b.json").exists()


def test_a_marking_key_serves_its_holder_as_a_shared_key_does(run: Run) -> None:
    run("keygen", "--public", "marking.json")
    run("identity", "registry.jsonl", "--issue", "tenant-0042")
    key = ["--key", "marking.json", "--registry", "registry.jsonl"]
    status, _, _ = run("embed", *key, "--payload", "tenant-0042", "--scheme", "R", "--log", "run.jsonl", stdin=LINES)
    assert status == 0
    status, out, _ = run("verify", "run.jsonl", *key, "--control", *LIMITED)
    assert status == 0
    assert out.startswith("Attributed to 'tenant-0042'")
    assert "with a random key: Not attributed" in out
    status, out, _ = run("monitor", "run.jsonl", *key)
    assert status == 0
    assert "tenant-0042" in out


# From here on: disclosing, and verdicts without the secret.

PUBLIC = ("--disclosure", "run.disclosure.json", "--public-key", "marking.pub.json")


def marked_run(run: Run, *, payload_len: int = 16, scheme: str = "R", log: str = "run.jsonl") -> None:
    if not Path("marking.json").exists():
        run("keygen", "--public", "marking.json")
    payload = ("--payload", "42" if payload_len else "0", "--payload-len", str(payload_len))
    status, _, err = run("embed", "--key", "marking.json", *payload, "--scheme", scheme, "--log", log, stdin=LINES)
    assert status == 0, err


def finished(path: str) -> None:
    """As a log looks to which nothing was written for a day."""
    day_ago = time.time() - 86_400
    os.utime(path, (day_ago, day_ago))


def disclosed(run: Run, *options: str) -> str:
    finished("run.jsonl")
    status, out, err = run("disclose", "run.jsonl", "--key", "marking.json", "-o", "run.disclosure.json", *options)
    assert status == 0, err
    return out


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_verdict_without_the_secret_is_the_holders(run: Run, scheme: str) -> None:
    marked_run(run, scheme=scheme)
    out = disclosed(run)
    assert "50 records disclosed" in out
    assert "for ever" in out
    for name in ("run.jsonl", "run.disclosure.json"):
        assert f"{hashlib.sha256(Path(name).read_bytes()).hexdigest()}  {name}" in out, "to be put on record"
    _, holders, _ = run("verify", "run.jsonl", "--key", "marking.json", "--json", *LIMITED)
    Path("marking.json").unlink()
    status, out, err = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    assert status == 0, err
    said, expected = json.loads(out), json.loads(holders)
    assert said["payload"] == expected["payload"] == "002a"
    assert said["evidence_bits"] == expected["evidence_bits"]
    assert said["ownership_bits"] == expected["ownership_bits"]
    assert said["rests_on"]["statement"] == "strangers and other tenants"
    assert expected["rests_on"] is None
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0
    assert "rests on      Holds against everyone without the secret" in out


def test_a_session_that_may_still_be_open_is_not_disclosed_unasked(run: Run) -> None:
    marked_run(run)
    command = ("disclose", "run.jsonl", "--key", "marking.json", "-o", "run.disclosure.json")
    status, _, err = run(*command)
    assert status == 2
    assert "its sessions may be open" in err
    assert not Path("run.disclosure.json").exists()
    assert run(*command, "--open-sessions-too")[0] == 0
    status, _, err = run(*command, "--open-sessions-too")
    assert status == 2
    assert "exists already" in err


def test_a_table_is_as_fresh_as_what_stands_beside_it_and_standard_input_is_named_as_such(run: Run) -> None:
    marked_run(run)
    lines = Path("run.jsonl").read_text()
    finished("run.jsonl")
    Path("run.jsonl-wal").write_text("")
    command = ("--key", "marking.json", "-o", "run.disclosure.json")
    assert "its sessions may be open" in run("disclose", "run.jsonl", *command)[2]
    finished("run.jsonl-wal")
    assert run("disclose", "run.jsonl", *command)[0] == 0
    Path("run.disclosure.json").unlink()
    assert "and standard input was written to" in run("disclose", "-", *command, stdin=lines)[2]


def test_sessions_can_be_disclosed_apart(run: Run) -> None:
    marked_run(run)
    marked_run(run)
    sessions = sorted({json.loads(line)["session"] for line in Path("run.jsonl").read_text().splitlines()})
    assert len(sessions) == 2
    assert "50 records disclosed" in disclosed(run, "--session", sessions[0])
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--session", sessions[0], *LIMITED)
    assert status == 0
    assert out.startswith("Attributed")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--session", sessions[1], *LIMITED)
    assert status == 1
    assert "no record is proved by a disclosure of its key (50 not disclosed)" in out


def test_a_log_without_a_record_of_the_key_has_nothing_to_disclose(run: Run) -> None:
    marked_run(run)
    finished("run.jsonl")
    run("keygen", "--public", "other.json")
    status, out, _ = run("disclose", "run.jsonl", "--key", "other.json", "-o", "other.disclosure.json")
    assert status == 3
    assert "nothing to disclose" in out
    assert not Path("other.disclosure.json").exists()


def test_altered_and_added_records_count_against_everyone(run: Run) -> None:
    marked_run(run)
    lines = Path("run.jsonl").read_text().splitlines()
    disclosed(run)
    added = json.loads(lines[0]) | {"context": "ab" * 32, "step": 99}
    moved = json.loads(lines[1]) | {"step": 98}
    Path("run.jsonl").write_text("\n".join([lines[0], json.dumps(moved), *lines[2:], json.dumps(added)]) + "\n")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0, "a log that is mostly genuine is still attributed"
    assert "1 altered since it was disclosed" in out
    assert "1 not disclosed" in out
    assert "at least 2 of the 51 steps are another's or were altered" in out
    assert "1 of 50 disclosed records is not in the log" in out
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--noise", "0", "--claim", "42", *LIMITED)
    assert status == 1, "where no foreign step is allowed for, one is enough"


def test_a_claim_on_what_others_made_pays_for_every_key(run: Run) -> None:
    marked_run(run)
    disclosed(run)
    _, plain, _ = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    claimed = ("--claimed-by-holder", "--keys-registered", "16")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *claimed, "--json", *LIMITED)
    assert status == 0
    assert json.loads(out)["bits_paid"] == json.loads(plain)["bits_paid"] + 4
    assert json.loads(out)["rests_on"]["statement"] == "claimed by its holder"
    _, out, _ = run("verify", "run.jsonl", *PUBLIC, *claimed, *LIMITED)
    assert "on three conditions that the files cannot show" in out
    assert "16 registered keys: 4.0 bits are paid" in out


def test_many_sessions_are_judged_by_their_disclosure_too(run: Run) -> None:
    marked_run(run)
    marked_run(run)
    disclosed(run)
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0
    assert "rests on Holds against everyone" in out
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    assert json.loads(out.splitlines()[-1])["summary"]["rests_on"]["statement"] == "strangers and other tenants"


# Reports, which anyone can check -------------------------------------------------------------------------------------


def reported(run: Run, *options: str, name: str = "report.html") -> str:
    """A run, its disclosure and the report; the secret, the log and the disclosure are then gone."""
    marked_run(run)
    disclosed(run)
    status, _, err = run("verify", "run.jsonl", *PUBLIC, "--report", name, *LIMITED, *options)
    assert status == 0, err
    for gone in ("marking.json", "run.jsonl", "run.disclosure.json"):
        Path(gone).unlink()
    return Path(name).read_text(encoding="utf-8")


def test_a_report_says_against_whom_it_holds_and_that_no_secret_is_needed(run: Run) -> None:
    page = reported(run)
    check_inert(page, saves_data=True)
    assert "It holds against everyone without the secret key" in page
    assert "Holds against everyone without the secret" in page, "in the details, as the command prints it"
    assert "agentmark check-report report.html" in page
    assert PublicKey.load("marking.pub.json").fingerprint in page
    assert "--disclosure run.disclosure.json --public-key marking.pub.json" in page


def test_whoever_receives_the_one_file_repeats_the_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reported(run)
    status, out, err = run("check-report", "report.html", "--public-key", "marking.pub.json")
    assert status == 0, err
    assert "Attributed to payload 0x002a" in out
    assert "judged again  the 50 records in it" in out
    assert "rests on      Holds against everyone" in out
    assert "which is the one you gave" in out
    assert "not checked   that the records are those of the files" in out
    status, out, _ = run("check-report", "report.html")
    assert status == 0
    assert "whose it is, the file cannot prove" in out
    # The same without the extra.
    monkeypatch.setattr("agentmark.keys.public.find_spec", lambda name: None)
    assert run("check-report", "report.html")[1] == out


def test_the_data_that_the_page_saves_are_checked_alike_and_make_the_page(run: Run) -> None:
    page = reported(run)
    Path("report.json").write_text(json.dumps(page_data(page)[0]))
    assert run("check-report", "report.json", "--page", "anew.html")[0] == 0
    assert Path("anew.html").read_text(encoding="utf-8") == page
    assert run("check-report", "report.html", "--page", "again.html")[0] == 0
    assert Path("again.html").read_text(encoding="utf-8") == page
    assert run("check-report", "report.html", "--page", "report.html")[0] == 2


def test_the_data_of_a_report_and_its_signed_file_are_checked_alike(run: Run) -> None:
    signer = run("signing-key", "signing.json")[1].split()[-1]
    page = reported(run, "--signed", "it's <signed>.json", "--signing-key", "signing.json")
    check_inert(page, saves_data=True)
    status, out, err = run("check-report", "it's <signed>.json", "--public-key", signer)
    assert status == 0, err
    assert out.startswith(f"Signed by {signer}.")
    assert "judged again" in out
    assert run("check-report", "report.html")[0] == 0, "the page names the signed file, and is still its data"
    assert "has no signature by anybody" in run("check-report", "report.html", "--public-key", signer)[1]
    signed = json.loads(Path("it's <signed>.json").read_text())
    # Signed by its author, and false: the records in it say otherwise.
    signed["report"]["verdict"]["payload"] = "0007"
    Path("false.json").write_text(json.dumps(sign_report(signed["report"], SigningKey.load("signing.json"))))
    status, out, _ = run("check-report", "false.json", "--public-key", signer)
    assert status == 1
    assert out.startswith("ALTERED: what the report says is not what its own records")
    assert "verdict.payload says" in out
    assert "Attributed" not in out


@pytest.mark.parametrize("change", ["verdict", "record", "proof", "public key", "statement"])
def test_what_was_altered_in_a_report_is_named_with_what_to_do(run: Run, change: str) -> None:
    run("keygen", "--public", "other.json")
    reported(run, name="report.json")
    report = json.loads(Path("report.json").read_text())
    carried = report["disclosed"]
    if change == "verdict":
        report["verdict"]["sentence"] = "Attributed to the neighbour."
    elif change == "record":
        carried["records"][7] = json.dumps(json.loads(carried["records"][7]) | {"session": "\x1b[2Jmine"})
    elif change == "proof":
        carried["disclosures"][0]["records"][7]["proof"] = carried["disclosures"][0]["records"][8]["proof"]
    elif change == "public key":
        carried["disclosures"][0]["public_key"] = PublicKey.load("other.pub.json").as_dict()
    else:
        report["rests_on"]["sentence"] = "Holds against everyone, the holder too."
    Path("altered.json").write_text(json.dumps(report))
    status, out, _ = run("check-report", "altered.json", "--page", "page.html")
    assert status == 1
    assert out.startswith("ALTERED: ")
    assert "Ask its author for the file again" in out
    said = {
        "verdict": 'verdict.sentence says "Attributed to the neighbour."',
        "record": "record number 8 in the report",
        "proof": "its proof does not hold",
        "public key": "not by the holder of its key",
        "statement": "rests_on.sentence says",
    }
    assert said[change] in out
    assert "\x1b" not in out
    assert not Path("page.html").exists()


def test_a_page_that_shows_something_else_than_its_data_is_caught(run: Run) -> None:
    page = reported(run)
    for shown, other in (
        ("0x002a", "0x0007"),
        ("without the secret key", "of all times"),
        ("</html>", "<b>!</b></html>"),
    ):
        Path("altered.html").write_text(page.replace(shown, other, 1), encoding="utf-8")
        status, out, _ = run("check-report", "altered.html")
        assert status == 1
        assert out.startswith("ALTERED: the data inside the page hold, but the page shows something else")
    # By another version of AgentMark a page may look different: that is said, and relied on no more.
    report = page_data(page)[0]
    report["versions"]["agentmark"] = "9.9"
    Path("old.html").write_text(render_report(report).replace("How sure is that?", "How sure?"), encoding="utf-8")
    status, out, _ = run("check-report", "old.html")
    assert status == 1
    assert "made by version 9.9, which may be why" in out


def test_a_report_by_another_holder_is_in_order_and_not_by_this_key(run: Run) -> None:
    run("keygen", "--public", "other.json")
    reported(run)
    status, out, _ = run("check-report", "report.html", "--public-key", "other.pub.json")
    assert status == 1
    assert out.startswith("NOT BY THIS KEY: the verdict follows from its records")
    assert PublicKey.load("marking.pub.json").fingerprint in out
    assert "Attributed" not in out
    run("identity", "tenants.jsonl", "--register", "acme", "--public-key", "marking.pub.json")
    assert run("check-report", "report.html", "--public-key", "tenants.jsonl")[0] == 0


def test_a_registry_of_public_keys_puts_its_name_on_the_page(run: Run) -> None:
    marked_run(run, payload_len=0)
    disclosed(run)
    run("identity", "tenants.jsonl", "--register", "a<b>c", "--public-key", "marking.pub.json")
    public = ("--disclosure", "run.disclosure.json", "--public-key", "tenants.jsonl")
    status, out, err = run("verify", "run.jsonl", *public, "--claimed-by-holder", "--report", "report.html", *LIMITED)
    assert status == 0, err
    assert "bits that it was made with this key at all: bound" in out, "the key is the identity"
    page = Path("report.html").read_text(encoding="utf-8")
    check_inert(page, saves_data=True)
    assert "The public key is on record for <b><bdi>a&lt;b&gt;c</bdi></b>" in page
    assert "if three things are true that no file can show" in page
    status, out, _ = run("check-report", "report.html")
    assert status == 0
    assert "not checked   the conditions of the claim, and that the claimant had 1 registered key" in out
    assert "not checked   whose name the public key is registered for" in out
    # By the reader's own registry.
    status, out, _ = run("check-report", "report.html", "--public-key", "tenants.jsonl")
    assert status == 0
    assert "registered    for 'a<b>c' since 20" in out
    assert "whose name" not in out
    run("identity", "tenants.jsonl", "--revoke", "a<b>c")
    assert ", and revoked at 20" in run("check-report", "report.html", "--public-key", "tenants.jsonl")[1]
    run("identity", "other.jsonl", "--register", "neighbour", "--public-key", "marking.pub.json")
    status, out, _ = run("check-report", "report.html", "--public-key", "other.jsonl")
    assert status == 1
    assert out.startswith("NOT THIS NAME")
    assert "'a<b>c'" in out
    assert "'neighbour'" in out


def test_what_carries_nothing_cannot_be_checked_and_says_what_can(run: Run) -> None:
    marked_run(run)
    run("verify", "run.jsonl", "--key", "marking.json", "--report", "holders.html", *LIMITED)
    run("verify", "run.jsonl", "--key", "marking.json", "--report", "holders.json", *LIMITED)
    check_inert(Path("holders.html").read_text(encoding="utf-8"))
    assert json.loads(Path("holders.json").read_text())["disclosed"] is None
    status, _, err = run("check-report", "holders.html")
    assert status == 2
    assert "only pages of verdicts by a disclosure do" in err
    status, _, err = run("check-report", "holders.json")
    assert status == 2
    assert "neither a signature nor a disclosure" in err
    assert run("check-report", "holders.html", "--public-key", "nowhere.json")[0] == 2
    Path("damaged.html").write_text('<a download="report.json" data-signed="" href="data:application/json;base64,AA">')
    assert "damaged" in run("check-report", "damaged.html")[2]
    Path("greedy.json").write_text("{" + '"agentmark_report": 7}')
    assert "is not 1, the version that this build reads" in run("check-report", "greedy.json")[2]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--disclosure", "run.disclosure.json"), "said with --public-key FILE"),
        (("--public-key", "marking.pub.json"), "goes together with --disclosure"),
        ((*PUBLIC, "--key", "marking.json"), "takes the place of the secret"),
        ((*PUBLIC, "--any-key-id"), "the key id that they state"),
        ((*PUBLIC, "--for-stranger"), "does not go with --for-stranger"),
        ((*PUBLIC, "--keys-registered", "4"), "goes together with --claimed-by-holder"),
        ((*PUBLIC, "--claimed-by-holder", "--keys-registered", "0"), "less than the 1 keys given"),
        (("--claimed-by-holder",), "goes together with --disclosure"),
        ((*PUBLIC[:2], "--public-key", "other.pub.json"), "none of the public keys given"),
        ((*PUBLIC, "--public-key", "other.pub.json"), "there is none among those given"),
        ((*PUBLIC[:2], "--public-key", "marking.json"), "holds a secret"),
        (
            (*PUBLIC, "--disclosure", "other.disclosure.json", "--public-key", "other.pub.json", "--claimed-by-holder"),
            "is a claim under one key",
        ),
    ],
)
def test_options_that_cannot_be_meant_are_refused(run: Run, options: tuple[str, ...], fault: str) -> None:
    marked_run(run)
    disclosed(run)
    run("keygen", "--public", "other.json")
    nothing = disclose([], MarkingKey.load("other.json"))
    nothing.save("other.disclosure.json")
    status, _, err = run("verify", "run.jsonl", *options)
    assert status == 2
    assert fault in " ".join(err.split())


def test_a_registry_of_public_keys_names_tenants_and_sets_the_price(run: Run) -> None:
    marked_run(run)
    disclosed(run)
    run("keygen", "--public", "other.json")
    status, out, err = run("identity", "tenants.jsonl", "--register", "acme", "--public-key", "marking.pub.json")
    assert status == 0, err
    assert MarkingKey.load("marking.json").public.fingerprint in out
    assert run("identity", "tenants.jsonl", "--register", "other", "--public-key", "other.pub.json")[0] == 0
    public = ("--disclosure", "run.disclosure.json", "--public-key", "tenants.jsonl")
    status, out, _ = run("verify", "run.jsonl", *public, *LIMITED)
    assert status == 0
    assert "of 'acme', other tenants" in out
    status, out, _ = run("verify", "run.jsonl", *public, "--claimed-by-holder", *LIMITED)
    assert "2 registered keys: 1.0 bits are paid" in out
    status, out, err = run(
        "verify", "run.jsonl", *public, "--claimed-by-holder", "--drawn-from", "2020-01-01T00:00:00Z"
    )
    assert status == 2
    assert "after the contexts were drawn" in err
    assert "not a time" in run("verify", "run.jsonl", *public, "--claimed-by-holder", "--drawn-from", "noon")[2]
    # What was on record when, the registry alone says.
    beside = ("verify", "run.jsonl", *PUBLIC, "--claimed-by-holder")
    assert "takes a registry" in run(*beside, "--drawn-from", "2030-01-01")[2]
    run("identity", "others.jsonl", "--register", "other", "--public-key", "other.pub.json")
    status, _, err = run(*beside, "--public-key", "others.jsonl")
    assert status == 2
    assert "is not in the registry" in err
    assert run("identity", "tenants.jsonl", "--revoke", "acme")[0] == 0
    assert "revoked" in run("identity", "tenants.jsonl")[1]
    assert "The key of 'acme' was revoked at" in run("verify", "run.jsonl", *public, *LIMITED)[1]
    Path("tenants.jsonl").write_text("\n".join(Path("tenants.jsonl").read_text().splitlines()[::2]) + "\n")
    status, _, err = run("verify", "run.jsonl", *public)
    assert status == 2
    assert "no key of the registry" in err
