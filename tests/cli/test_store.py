"""`agentmark store`, `tenant` and `export`; and stores where a log is named."""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cluster import MISSING, Cluster, programs
from support import marked_log

from agentmark import SharedKey, StepRecord, read_log
from agentmark.cli.main import main
from agentmark.store.open import open_store

KEY = SharedKey(bytes(range(7, 39)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(url: object, records: Sequence[StepRecord], *, tenant: str = "", at: float | None = None) -> None:
    async def work() -> None:
        async with open_store(str(url), clock=time.time if at is None else lambda: at) as store:
            for record in records:
                await store.record(record, tenant=tenant)

    asyncio.run(work())


def said(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> str:
    assert main([str(word) for word in words]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


# --- tenant --------------------------------------------------------------------------------------------------------


def test_a_tenant_is_added_listed_and_revoked(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = said(capsys, "tenant", "add", path, "acme", "--credential", "env:UPSTREAM", "--requests-per-minute", 60)
    assert re.fullmatch("amk_[0-9a-f]{16}_[0-9a-f]{64}\n", first)
    second = said(capsys, "tenant", "key", path, "acme")
    listed = said(capsys, "tenant", "list", path)
    assert re.search("Z?  acme  identity acme\n", listed)
    assert [line.split()[2] for line in listed.splitlines()[1:]] == [first[4:20], second[4:20]]
    assert first.split("_")[2].strip() not in listed
    [as_data] = json.loads(said(capsys, "tenant", "list", path, "--json"))
    assert as_data["requests_per_minute"] == 60
    assert "revoked: API key" in said(capsys, "tenant", "revoke", path, "acme", "--api-key", first[4:20])
    assert said(capsys, "tenant", "revoke", path, "acme") == "revoked: acme\n"
    assert said(capsys, "tenant", "list", path).count("revoked") == 2


def test_an_api_key_is_nowhere_in_the_files(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = said(capsys, "tenant", "add", path, "acme").strip()
    secret = key.split("_")[2]
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content


def test_a_credential_that_was_typed_itself_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = said(capsys, "tenant", "add", path, "acme", "--credential", "sk-live-12345", status=2)
    assert "a store never holds a credential itself" in fault
    assert "sk-live" not in fault


def test_a_store_that_is_not_there_is_not_made_by_a_question(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ("tenant", "list", path),
        ("tenant", "key", path, "acme"),
        ("store", "show", path),
        ("store", "expire", path, "--keep-days", 1),
        ("export", path, "-o", path.with_name("out.jsonl")),
    ):
        assert "is no file" in said(capsys, *words, status=2)
    assert list(path.parent.iterdir()) == []


# --- store ---------------------------------------------------------------------------------------------------------


def test_a_store_is_made_described_and_thinned_out(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "store", "init", path) == f"{path}: the tables are there\n"
    log = marked_log(KEY, steps=6)
    fill(path, log[:4], at=time.time() - 10 * 86400)
    fill(path, log[4:])
    shown = said(capsys, "store", "show", path)
    assert "6 records" in shown
    assert "retention" not in shown
    assert "4 records" in said(capsys, "store", "expire", path, "--keep-days", 9.5)
    assert "retention has deleted 4 records" in said(capsys, "store", "show", path)
    as_data = json.loads(said(capsys, "store", "show", path, "--json"))
    assert (as_data["records"], as_data["expired"]) == (2, 4)
    assert read_log(path).records == log[4:]


@pytest.mark.parametrize("days", ["-1", "nan", "1e9", "inf"])
def test_a_period_that_is_none(path: Path, capsys: pytest.CaptureFixture[str], days: str) -> None:
    fill(path, [])
    assert "is not a number of days" in said(capsys, "store", "expire", path, f"--keep-days={days}", status=2)


# --- export, and stores as logs ------------------------------------------------------------------------------------


def test_an_export_holds_what_was_asked_for(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = marked_log(KEY, steps=9, sessions=3)
    fill(path, log[:3], tenant="acme", at=1_700_000_000)
    fill(path, log[3:], tenant="other")
    out = tmp_path / "out.jsonl"
    assert said(capsys, "export", path, "-o", out) == f"{out}: {len(log)} records from {path}\n"
    assert read_log(out).records == log
    said(capsys, "export", path, "--tenant", "acme", "-o", tmp_path / "acme.jsonl")
    assert read_log(tmp_path / "acme.jsonl").records == log[:3]
    said(capsys, "export", path, "--since", "2023-11-15", "-o", tmp_path / "since.jsonl")
    assert read_log(tmp_path / "since.jsonl").records == log[3:]
    said(capsys, "export", path, "--since", "2023-11-14T22:13:20Z", "-o", tmp_path / "then.jsonl")
    assert read_log(tmp_path / "then.jsonl").records == log
    said(capsys, "export", path, "--session", log[-1].session, "-o", tmp_path / "session.jsonl")
    assert {record.session for record in read_log(tmp_path / "session.jsonl").records} == {log[-1].session}
    assert "nothing is written over" in said(capsys, "export", path, "-o", out, status=2)
    assert "does not end in" in said(capsys, "export", path, "-o", tmp_path / "out.txt", status=2)


def test_a_log_is_not_exported_as_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{record.to_json()}\n" for record in marked_log(KEY, steps=2)))
    assert "cannot be used as a store" in said(capsys, "export", log, "-o", tmp_path / "out.jsonl", status=2)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.fixture(params=["sqlite", "postgresql"])
def full_store(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """A store with one tenant's log of 60 steps."""
    log = marked_log(KEY, steps=60)
    if request.param == "sqlite":
        fill(path, log, tenant="acme")
        yield str(path)
        return
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test-gateway")
    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster()
    try:
        cluster.start()
        url = cluster.url.replace("owner@", "owner:a-password@")
        fill(url, log, tenant="acme")
        yield url
    finally:
        cluster.remove()


def test_every_command_reads_a_store(full_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, report = tmp_path / "key.json", tmp_path / "report.html"
    KEY.save(key)
    options = ("--key", key, "--claim", "0x5eed", "--payload-len", 16)
    assert main(["verify", full_store, *map(str, options), "--json", "--report", str(report)]) == 0
    verdict = capsys.readouterr().out
    assert "60 records" in said(capsys, "inspect", full_store)
    said(capsys, "convert", full_store, "-o", tmp_path / "out.jsonl")
    assert read_log(tmp_path / "out.jsonl").records == marked_log(KEY, steps=60)
    words = ["audit", full_store, *map(str, options), "--json", "--report", str(tmp_path / "audit.html")]
    assert main([*words]) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["read"]["records"] == 60
    # What is written down names the server, and nobody's password.
    for text in (report.read_text(), shown, verdict):
        assert "a-password" not in text
    if full_store.startswith("postgresql"):
        assert "postgresql://127.0.0.1:" in report.read_text()


def test_an_audit_of_a_server_cannot_be_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    KEY.save(tmp_path / "key.json")
    fault = said(
        capsys,
        *("audit", "postgresql://me:a-password@127.0.0.1:1/db", "--key", tmp_path / "key.json"),
        *("--out", tmp_path / "out.csv", "--resume"),
        status=2,
    )
    assert "`agentmark export` it first" in fault
    assert "a-password" not in fault


def test_a_server_that_is_out_of_reach_is_named_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test-gateway")
    fault = said(capsys, "inspect", "postgresql://me:a-password@127.0.0.1:1/db", status=2)
    assert "postgresql://127.0.0.1:1/db: is out of reach" in fault
    assert "a-password" not in fault


@pytest.mark.parametrize(
    "words",
    [
        ["monitor", "URL", "--key", "no.json"],
        ["power", "--log", "URL"],
        ["identity", "URL", "--issue", "acme"],
        ["convert", "log.jsonl", "-o", "URL"],
        ["embed", "--log", "URL"],
    ],
)
def test_a_password_that_was_typed_where_a_file_goes_is_not_repeated(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://me:a-password@127.0.0.1:1/db"
    with suppress(SystemExit):
        assert main([url if word == "URL" else word for word in words]) == 2
    captured = capsys.readouterr()
    assert captured.err
    assert "a-password" not in captured.err + captured.out
