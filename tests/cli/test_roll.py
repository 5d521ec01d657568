"""`agentmark verify` over many sessions: the table, the other forms, and what it exits with."""

import csv
import json
import random
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from support import EVEN

from agentmark import Embedder, Identity, LogWriter, Registry, SharedKey, StepRecord, Verifier
from agentmark.cli import main
from agentmark.cli.roll_table import short_row_names, table
from agentmark.verify.correction import Familywise
from agentmark.verify.roll import By, Roll, RollRow

MASTER = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(200, 232)))
TENANTS = {"acme": 0x2265B1F5, "globex": 0x91B7584A, "initech": 0xD8F16ADF}


def session(name: str, tenant: str, steps: int = 40, key: SharedKey = MASTER) -> list[StepRecord]:
    run = Embedder(key, TENANTS[tenant], payload_len=32).session(name)
    return [run.choose(EVEN).record for _ in range(steps)]


def write(path: Path, records: list[StepRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tenants under one key, two sessions each, a file for each session."""
    monkeypatch.chdir(tmp_path)
    MASTER.save("key.json")
    Registry(32, [Identity(name, payload) for name, payload in TENANTS.items()]).save("registry.jsonl")
    for i, name in enumerate(TENANTS):
        for j in range(2):
            write(tmp_path / "logs" / f"{name}-{j}.jsonl", session(f"{i}{j}-session", name))
    return tmp_path


def verify(*words: str) -> int:
    return main(["verify", "logs", "--key", "key.json", *words])


def rows_of(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.usefixtures("folder")
def test_three_tenants_with_a_registry_and_one_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--registry", "registry.jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "6 of 6 sessions attributed, to 3 identities."
    totals = [line.split() for line in lines[3:6]]
    assert sorted([(words[0], words[1], words[2]) for words in totals]) == [
        ("acme", "2", "80"),
        ("globex", "2", "80"),
        ("initech", "2", "80"),
    ]
    assert "6 questions paid for" in "\n".join(lines)
    named = {line.split()[0]: line.split()[2] for line in lines if " attributed " in line and "-sessi" in line}
    assert named == {f"{i}{j}-session"[:8]: name for i, name in enumerate(TENANTS) for j in range(2)}


def test_three_tenants_with_a_key_of_their_own_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = []
    for name in TENANTS:
        key = MASTER.derive(name)
        key.save(f"{name}.json")
        words += ["--key", f"{name}.json"]
        write(tmp_path / "logs" / f"{name}.jsonl", session(f"session of {name}", name, key=key))
    assert main(["verify", "logs", *words, "--json"]) == 0
    *rows, last = rows_of(capsys.readouterr().out)
    assert {row["session"]: row["payload"] for row in rows} == {
        f"session of {name}": f"{payload:08x}" for name, payload in TENANTS.items()
    }
    assert last["summary"]["questions"] == 3  # type: ignore[index]


@pytest.mark.usefixtures("folder")
def test_files_and_their_order_make_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    verify("--json")
    first = capsys.readouterr().out
    verify("--json")
    assert capsys.readouterr().out == first
    names = [str(path) for path in Path("logs").iterdir()]
    random.Random(1).shuffle(names)
    main(["verify", *names, "--key", "key.json", "--json"])
    assert capsys.readouterr().out == first


def test_damaged_files_are_judged_as_far_as_they_go(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "logs" / "acme-0.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:30]) + "this is no record\n" + lines[31][:50])
    assert verify("--registry", "registry.jsonl") == 2
    capsys.readouterr()
    assert verify("--registry", "registry.jsonl", "--skip-bad") == 0
    output = capsys.readouterr()
    assert "6 of 6 sessions attributed" in output.out
    assert "passed over" in output.err


def test_a_session_id_that_two_tenants_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of one session with different contexts: both made theirs with a nonce of their own."""
    for name in ("acme", "globex"):
        shared = [replace(record, session="shared") for record in session(f"own nonce of {name}", name, steps=60)]
        write(folder / "logs" / f"shared-{name}.jsonl", shared)
    assert verify("--registry", "registry.jsonl", "--session", "shared", "--by", "session") == 0
    assert "2 identities found" in capsys.readouterr().out
    assert verify("--registry", "registry.jsonl", "--session", "shared", "--by", "file", "--json") == 0
    *rows, _ = rows_of(capsys.readouterr().out)
    named = {row["file"]: row["identity"] for row in rows if row["accepted"]}
    assert named == {"logs/shared-acme.jsonl": "acme", "logs/shared-globex.jsonl": "globex"}


@pytest.mark.usefixtures("folder")
def test_a_session_is_chosen_by_the_beginning_of_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--session", "01") == 0
    assert "Attributed to payload 0x2265b1f5" in capsys.readouterr().out
    assert verify("--session", "0", "--session", "11") == 2
    assert "2 sessions begin with '0'" in capsys.readouterr().err
    assert verify("--session", "zz") == 2
    assert "'00-session', '01-session'" in capsys.readouterr().err
    assert verify("--session", "00", "--session", "11") == 0
    assert "2 of 2 sessions attributed" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_pooled_it_is_one_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    verify("--registry", "registry.jsonl", "--pool", "--json")
    pooled = json.loads(capsys.readouterr().out)
    assert pooled["records"] == 240
    verify("--registry", "registry.jsonl", "--by", "all", "--json")
    assert json.loads(capsys.readouterr().out) == pooled


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pool", "--by", "file"], "--by all"),
        (["--pool", "--csv", "x.csv"], "several sessions"),
        (["--pool", "--report", "pages/"], "one page"),
        (["--report", "page.html"], "--report FOLDER/"),
        (["--report", "pages/", "--segments"], "--pool"),
        (["--csv", "-", "--json"], "standard output"),
        (["--csv", "logs/acme-0.jsonl"], "would be overwritten"),
        (["--csv", "nowhere/x.csv"], "no such folder"),
        (["--report", "logs"], "a folder alone"),
        (["--fdr", "0.1", "--for-stranger"], "does not go with --for-stranger"),
        (["--fdr", "2"], "--fdr: 2 is not a rate"),
        (["--fdr", "0.1", "--threshold", "1e-9"], "takes the place of --threshold"),
        (["--csv", "logs"], "is a folder"),
        (["--find-offset"], "one --session"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_does_not_go_together_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*words) == 2
    assert said in capsys.readouterr().err
    assert not Path("x.csv").exists()


@pytest.mark.parametrize("words", [["logs", "--csv", ""], ["logs", "--report", ""], [""]])
@pytest.mark.usefixtures("folder")
def test_an_empty_name_is_not_the_folder_one_stands_in(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", *words, "--key", "key.json"])
    assert ended.value.code == 2
    assert "is empty" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_spreadsheet_gets_no_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("logs/odd.jsonl"), session('=HYPERLINK("http://evil")', "acme"))
    write(Path("logs/odder.jsonl"), session("@SUM(A1)\nnew line", "acme"))
    write(Path("logs/wide.jsonl"), session("\uff1d1+1", "acme"))
    assert verify("--csv", "table.csv") == 0
    with Path("table.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert lines[0][:5] == ["session", "verdict", "identity", "payload", "bound"]
    assert len(lines) == 1 + 9
    names = [line[0] for line in lines]
    assert '\'=HYPERLINK("http://evil")' in names
    assert "'@SUM(A1)\\nnew line" in names
    assert "'\uff1d1+1" in names, "a wide sign is a formula to some"
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)
    capsys.readouterr()
    verify("--csv", "-")
    assert capsys.readouterr().out.startswith("session,verdict,identity")


@pytest.mark.usefixtures("folder")
def test_json_is_a_line_for_each_and_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    verify("--registry", "registry.jsonl", "--json", "--control")
    *rows, last = rows_of(capsys.readouterr().out)
    assert [row["session"] for row in rows] == sorted(f"{i}{j}-session" for i in range(3) for j in range(2))
    assert all(row["standing"] == "attributed" and row["files"] for row in rows)
    summary = last["summary"]
    assert isinstance(summary, dict)
    assert summary["control"] == {"attributed": 0, "judged": 6}
    assert [total["identity"] for total in summary["identities"]] == list(TENANTS)


@pytest.mark.usefixtures("folder")
def test_strangers_see_decisions_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("logs/short.jsonl"), session("short", "acme", steps=5))
    write(Path("logs/foreign.jsonl"), session("foreign", "acme", key=OTHER))
    assert verify("--registry", "registry.jsonl", "--for-stranger") == 0
    shown = capsys.readouterr().out
    assert "6 of 8 sessions attributed." in shown
    for word in ("too short", "bits", "bound", "steps", "questions", "pooled", "key"):
        assert word not in shown
    verify("--registry", "registry.jsonl", "--for-stranger", "--json")
    *rows, last = rows_of(capsys.readouterr().out)
    unnamed = [{name: value for name, value in row.items() if name != "session"} for row in rows if not row["accepted"]]
    assert unnamed[0] == unnamed[1]
    assert last == {"summary": {"by": "session", "rows": 8, "attributed": 6}}


def test_nothing_usable_has_an_exit_status_and_names_the_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    OTHER.save("other.json")
    assert main(["verify", "logs", "--key", "other.json"]) == 3
    said = capsys.readouterr().err
    assert MASTER.id in said
    assert OTHER.id in said
    one = str(folder / "logs" / "acme-0.jsonl")
    assert main(["verify", one, "--key", "other.json"]) == 3
    assert OTHER.id[:8] in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_judged_and_nobody_named_is_another_exit_status() -> None:
    assert verify("--claim", "0x12345678") == 1
    assert verify("--claim", "0x2265b1f5") == 0


@pytest.mark.usefixtures("folder")
def test_a_report_of_many_is_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--registry", "registry.jsonl", "--report", "pages/", "--case-number", "2026-7") == 0
    pages = sorted(path.name for path in Path("pages").iterdir())
    assert "index.html" in pages
    assert "roll.json" in pages
    assert len([page for page in pages if page.endswith(".html")]) == 1 + len(TENANTS)
    data = json.loads(Path("pages/roll.json").read_text(encoding="utf-8"))
    assert data["case_number"] == "2026-7"
    assert len(data["rows"]) == 6
    assert "--registry registry.jsonl" in data["command"]
    assert "6 of 6" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_hostile_names_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("logs/odd.jsonl"), session("\x1b[2J\u202eevil", "acme"))
    verify()
    output = capsys.readouterr()
    assert "\x1b" not in output.out + output.err
    assert "\u202e" not in output.out + output.err


def test_a_table_keeps_to_the_width_of_the_terminal() -> None:
    rows = [["session", "notes"], ["s" * 60, "n" * 200]]
    assert max(map(len, table(rows, width=80))) <= 80
    assert table(rows)[1].endswith("n" * 200)


def test_long_names_that_begin_alike_cost_no_more_than_their_length() -> None:
    """Sessions are whatever whoever made the log called them."""
    nobody = Verifier(MASTER).verify([])
    rows = [RollRow(name="x" * 400_000 + end, files=(), verdict=nobody) for end in ("", "a", "b")]
    roll = Roll(by=By.SESSION, rows=tuple(rows), pools=(), questions=0, correction=Familywise())
    before = process_time()
    assert short_row_names(roll) == [row.name for row in rows]
    assert process_time() - before < 5


def test_one_long_name_does_not_widen_every_line() -> None:
    lines = table([["session", "notes"], ["s" * 5000, "n"], *[[f"{i}", "n"] for i in range(100)]])
    assert "s" * 5000 + "  n" in lines[1]
    assert max(map(len, lines[2:])) < 100
