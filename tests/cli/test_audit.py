"""`agentmark audit`: what it prints and writes, and what it exits with."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pages import check_inert
from support import EVEN

from agentmark import Embedder, Identity, LogWriter, Registry, SharedKey, StepRecord
from agentmark.cli import main

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
TENANTS = {"acme": 0x2265B1F5, "globex": 0x91B7584A}


def session(name: str, tenant: str, steps: int = 40, key: SharedKey = KEY) -> list[StepRecord]:
    run = Embedder(key, TENANTS[tenant], payload_len=32).session(name)
    return [run.choose(EVEN).record for _ in range(steps)]


def write(path: Path, records: list[StepRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")
    Registry(32, [Identity(name, payload) for name, payload in TENANTS.items()]).save("registry.jsonl")
    for i, name in enumerate(TENANTS):
        for j in range(3):
            write(Path("logs") / f"{name}-{j}.jsonl", session(f"{i}{j}-session", name, 40 if j else 6))
    return tmp_path


def audit(*words: str) -> int:
    return main(["audit", "logs", "--key", "key.json", "--registry", "registry.jsonl", "--workers", "1", *words])


@pytest.mark.usefixtures("folder")
def test_the_summary_says_who_how_many_and_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    Path("logs/notes.txt").write_text("no log\n")
    assert audit() == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "4 of 6 sessions attributed, to 2 identities."
    said = " ".join(captured.out.split())
    assert "acme 2 80" in said
    assert "not yet decidable 2" in said
    assert "bad files 1 skipped" in said
    assert "7 questions paid for: the chance that any of these names is wrong is at most 1e-06" in said
    assert captured.err == ("skipped: logs/notes.txt: not recognised: this is a file that begins with b'no log\\n'\n")
    assert not list(Path().glob("*.work"))


@pytest.mark.usefixtures("folder")
def test_the_false_discovery_rate_is_explained_where_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--fdr", "0.05", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["correction"]["kind"] == "false discovery rate"
    assert "a share of 0.05 is expected to be wrong" in summary["correction"]["explained"]
    # The more are named, the less each has to show: the short ones pass as well.
    assert summary["standings"]["attributed"] == 6
    assert {total["identity"]: total["rows"] for total in summary["identities"]} == {"acme": 3, "globex": 3}


@pytest.mark.usefixtures("folder")
def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    OTHER.save("other.json")
    assert main(["audit", "logs", "--key", "other.json"]) == 3
    assert f"the records state the keys {KEY.id}; given: {OTHER.id}" in capsys.readouterr().err
    assert audit("--claim", "acme", "--threshold", "1e-200") == 1
    for words, said in (
        (["--out", "x.txt"], "ends in none of"),
        (["--fdr", "2"], "is not a rate"),
        (["--fdr", "0.1", "--threshold", "0.1"], "takes the place of --threshold"),
        (["--resume"], "from where to go on"),
        (["--workers", "0"], "number of processes"),
        (["--report", "key.json"], "is a file"),
    ):
        assert audit(*words) == 2
        assert said in capsys.readouterr().err
    assert main(["audit", "logs", "nowhere.jsonl", "--key", "key.json"]) == 2
    assert "nowhere.jsonl: there is no such file or folder" in capsys.readouterr().err
    Path("logs/notes.txt").write_text("no log\n")
    assert audit("--strict") == 2
    assert "notes.txt: not recognised" in capsys.readouterr().err
    with pytest.raises(SystemExit) as refused:
        audit("--fdr", "0.1", "--familywise")
    assert refused.value.code == 2


@pytest.mark.usefixtures("folder")
def test_text_of_others_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[31mevil\u202e"
    write(Path("logs") / "evil.jsonl", session(evil, "acme"))
    Path("logs", f"{evil}.txt").write_text("no log\n")
    assert audit("--out", "results.jsonl") == 0
    captured = capsys.readouterr()
    for text in (captured.out, captured.err, Path("results.jsonl").read_text("utf-8")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\\x1b[31mevil" in captured.err


@pytest.mark.usefixtures("folder")
def test_the_report_is_inert_pages_with_a_link_for_each_identity() -> None:
    write(Path("logs") / "x.jsonl", session("<script>alert(1)</script>", "acme"))
    Path("logs/<b>.txt").write_text("no log\n")
    assert audit("--report", "report/", "--out", "results.csv") == 0
    pages = sorted(path.name for path in Path("report").glob("*.html"))
    assert pages == ["identity-01-acme.html", "identity-02-globex.html", "index.html"]
    index = check_inert(Path("report/index.html").read_text("utf-8"), links=["#files", *pages])
    assert "5 of 7 sessions attributed, to 2 identities." in index.text
    assert "<b>.txt: not recognised" in index.text
    assert "agentmark audit logs --key key.json --registry registry.jsonl --out results.csv" in index.text
    acme = check_inert(Path("report/identity-01-acme.html").read_text("utf-8"), links=["index.html"])
    assert "<script>alert(1)</script>" in acme.text
    assert "globex" not in acme.text
    inputs = [json.loads(line) for line in Path("report/inputs.jsonl").read_text("utf-8").splitlines()]
    assert len(inputs) == 8
    assert all(len(line["sha256"]) == 64 for line in inputs)
    data = json.loads(Path("report/audit.json").read_text("utf-8"))
    assert data["read"]["manifest_sha256"] in index.text


@pytest.mark.usefixtures("folder")
def test_a_report_does_not_grow_with_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmark.audit import bulk_report

    monkeypatch.setattr(bulk_report, "MOST_ROWS", 1)
    assert audit("--report", "report", "--out", "results.csv") == 0
    page = Path("report/identity-01-acme.html").read_text("utf-8")
    assert "1 further session is not listed here" in page
    assert "results.csv" in page


def test_an_interrupt_ends_everything_at_once_and_resume_goes_on(folder: Path) -> None:
    words = [sys.executable, "-m", "agentmark", "audit", "logs", "--key", "key.json", "--workers", "2"]
    for i in range(40):
        write(folder / "logs" / "many" / f"{i}.jsonl", session(f"many {i}", "acme"))
    words += ["--out", "results.jsonl", "--work-dir", "work"]
    process = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    work = folder / "work"
    deadline = time.monotonic() + 60
    while not (work / "settings.json").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    finished = subprocess.run([*words, "--resume"], cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert not work.exists()
    assert len((folder / "results.jsonl").read_text("utf-8").splitlines()) == 46
