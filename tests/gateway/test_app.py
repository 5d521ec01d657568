import argparse
import asyncio
import gzip
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, MESSAGES, chat_body, messages_body
from raw_upstream import RawUpstream, http_answer
from running import IDENTITY, KEY, eventually, gateway

from agentmark.gateway.app import Gateway
from agentmark.gateway.settings import Settings
from agentmark.testing import Errand, RefusingProvider


def test_limits_are_told_in_the_words_of_the_api(tmp_path: Path) -> None:
    options = ("--max-request", "2000", "--requests-per-minute", "4", "--receive-s", "0.5")
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, *options) as running:
        large = running.ask(MESSAGES, messages_body(Errand(1), padding="x" * 5000))
        assert (large.status, large.body["error"]["type"]) == (413, "request_too_large")
        assert running.ask("/v1/files", b"x" * 5000).status == 413
        with socket.create_connection((urlsplit(running.root_url).hostname, urlsplit(running.root_url).port)) as slow:
            slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert b" 408 " in slow.recv(1000).split(b"\r\n")[0]
        assert running.ask(CHAT, {"model": "m", "messages": []}).status in (200, 400)
        limited = running.ask(CHAT, {"model": "m", "messages": []})
        assert limited.status == 429
        assert limited.body["error"]["type"] == "rate_limit_error"
        assert int(limited.headers["retry-after"]) > 0
        assert running.records() == []


def test_too_many_at_once_are_asked_to_come_back(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    with (
        RefusingProvider(delay_s=0.5) as provider,
        gateway(tmp_path, provider.root_url, "--max-concurrent", "2") as running,
        ThreadPoolExecutor(6) as pool,
    ):
        answers = list(pool.map(lambda _: running.ask(CHAT, body), range(6)))
    refused = [answer for answer in answers if answer.status == 503]
    assert sorted({answer.status for answer in answers}) == [200, 503]
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert refused[0].body["error"]["type"] == "overloaded_error"


def test_a_slow_upstream_is_given_up(tmp_path: Path) -> None:
    with (
        RefusingProvider(delay_s=3) as provider,
        gateway(tmp_path, provider.root_url, "--upstream-s", "0.3") as running,
    ):
        begun = time.monotonic()
        answered = running.ask(CHAT, chat_body(Errand(1)))
        assert (answered.status, answered.body["error"]["type"]) == (504, "timeout_error")
        assert time.monotonic() - begun < 2.5
        assert running.records() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_to_and_finishes_what_it_began(tmp_path: Path, number: int) -> None:
    with (
        RefusingProvider(delay_s=0.5) as provider,
        gateway(tmp_path, provider.root_url) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        answering = pool.submit(running.ask, CHAT, chat_body(Errand(1)))
        assert eventually(lambda: len(provider.requests) == 4)
        assert running.stop(number) == 0
        assert answering.result().status == 200
    assert [record.marked for record in running.records()] == [True]


def test_workers_share_the_store_and_their_counts(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    with gateway(tmp_path, "fake:", "--workers", "2", "--samples", "2") as running, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: running.ask(CHAT, body).status, range(30)))
        assert set(answers) == {200}
        assert running.count("agentmark_steps_total", outcome="marked") == 30
        assert running.stop() == 0
    assert len({record.context for record in running.records()}) == 30


def test_a_store_that_fails_costs_the_mark_or_the_request_as_told(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    for fail, status in (("open", 200), ("closed", 503)):
        folder = tmp_path / fail
        folder.mkdir()
        options = ("--fail", fail, "--store-s", "0.5")
        with RefusingProvider() as provider, gateway(folder, provider.root_url, *options) as running:
            assert running.ask(CHAT, body).status == 200
            before = len(running.records())
            running.store.rename(folder / "moved.db")
            assert running.ask(CHAT, body).status == status
            assert running.ask("/readyz").status == 503
            assert running.count("agentmark_errors_total", reason="store") >= 1
            if fail == "open":
                assert running.count("agentmark_unmarked_total", reason="its record could not be kept") == 1
            (folder / "moved.db").rename(running.store)
            assert eventually(lambda: running.ask("/readyz").status == 200)
            assert running.ask(CHAT, body).status == 200
        assert len([record for record in running.records() if record.enforced is None]) == before + 1


def test_a_list_of_the_agents_own_is_chosen_from_and_observed(tmp_path: Path) -> None:
    with gateway(tmp_path, "fake:") as running:
        weights = {"left": 3, "right": 1.5, "wait": 0}
        decided = [running.ask("/decide", {"weights": weights, "session": "run", "step": n}).body for n in range(80)]
        assert all(decision["marked"] and decision["choice"] in ("left", "right") for decision in decided)
        assert running.ask("/observe", {"decision": decided[0]["decision"], "did": decided[0]["choice"]}).body == {
            "recorded": False
        }
        assert running.ask("/observe", {"decision": decided[1]["decision"], "did": "wait"}).body == {"recorded": True}
        assert running.ask("/observe", {"decision": "0" * 32, "did": "wait"}).status == 404
        for bad in ({}, {"weights": {"a": "x"}}, {"weights": {"a": -1}}, {"weights": {}}, [], {"weights": {"a": 0}}):
            answered = running.ask("/decide", bad)
            assert (answered.status, answered.body["error"]["type"]) == (400, "invalid_request_error")
        assert running.ask("/decide", b"{").status == 400
        judged = running.ask("/verify", {"session": "run"}).body
        assert (judged["attributed"], judged["identity"], judged["records"]) == (True, IDENTITY, 81)
        unknown = running.ask("/verify", {"session": "another"}).body
        assert (unknown["attributed"], unknown["records"]) == (False, 0)
    found = running.records()
    assert [record.meta["did"] for record in found if record.enforced is False] == ["wait"]


def test_it_says_what_it_is_told_wrong_before_it_listens(tmp_path: Path) -> None:
    from agentmark.errors import SettingError
    from agentmark.gateway.settings import read_settings

    good = {"upstream": "https://host", "identity": "a", "key": "key.json"}
    read_settings(None, good)
    for wrong, name in (
        ({"upstream": "host"}, "upstream"),
        ({"upstream": "https://me:secret@host"}, "upstream"),
        ({"upstream": "https://host/v1\r\nX-Admin: 1"}, "upstream"),
        ({"upstream": "https://host/a b"}, "upstream"),
        ({"host": "0.0.0.0"}, "host"),
        ({"identity": None}, "identity"),
        ({"samples": 1}, "count"),
        ({"workers": 0}, "workers"),
        ({"keep_days": -1.0}, "keep_days"),
        ({"port": 70000}, "port"),
    ):
        with pytest.raises(SettingError) as refused:
            read_settings(None, {**good, **wrong})
        assert refused.value.name == name
        assert "secret" not in str(refused.value)
    file = tmp_path / "gateway.toml"
    rule = '[[rules]]\nmodel = "claude-*"\nmode = "stated"\nupstream = "https://api.anthropic.com"\n'
    file.write_text(f'upstream = "https://host"\nidentity = "a"\nkey = "k.json"\nsamples = 6\n{rule}', encoding="utf-8")
    settings = read_settings(file, {"samples": 3})
    assert settings.key == str(tmp_path / "k.json")
    assert settings.way("/v1/messages", "claude-5").mode == "stated"
    assert settings.way("/v1/messages", "claude-5").upstream == "https://api.anthropic.com"
    assert settings.way("/v1/messages", "gpt").proposals.count == 3
    for text in ("samples = true\n", "mode = 'x'\n", "nonsense = 1\n", "[[rules]]\nport = 1\n", "rules = 3\n", "a = ["):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(SettingError):
            read_settings(file, good)


def test_logs_are_lines_of_json_without_content(tmp_path: Path) -> None:
    body = chat_body(Errand(1), user="private-person")
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url) as running:
        assert running.ask(CHAT, body, headers={"authorization": "Bearer sk-secret"}).status == 200
        page = running.ask("/metrics").content.decode()
    lines = [json.loads(line) for line in running.log_text.splitlines()]
    assert [line["route"] for line in lines if "route" in line] == [CHAT]
    for text in ("private-person", "sk-secret", "Buy:", bytes(range(32)).hex()):
        assert text not in running.log_text + page


def test_every_setting_is_an_option_that_help_shows() -> None:
    from dataclasses import fields

    from agentmark.cli.gateway import add_parser
    from agentmark.gateway.settings import Settings

    parsers = argparse.ArgumentParser().add_subparsers()
    add_parser(parsers)
    page = parsers.choices["gateway"].format_help()
    for setting in fields(Settings):
        shown = "[[rules]]" if setting.name == "rules" else f"--{setting.name.replace('_', '-')}"
        assert shown in page, setting.name


def test_records_are_kept_as_long_as_was_said(tmp_path: Path) -> None:
    """Some two seconds, here."""
    with gateway(tmp_path, "fake:", "--keep-days", "0.000025") as running:
        assert running.ask(CHAT, chat_body(Errand(1))).status == 200
        [old] = running.records()
        assert eventually(lambda: running.records() == [])
        assert running.ask(CHAT, chat_body(Errand(2))).status == 200
        assert [record.context for record in running.records()] != [old.context]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_what_is_exported_is_verified_and_audited(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    with gateway(tmp_path, "fake:") as running:
        weights = {"left": 3, "right": 2, "wait": 1}
        for step in range(60):
            assert running.ask("/decide", {"weights": weights, "session": "run", "step": step}).status == 200
    log = tmp_path / f"log.{ending}"
    options = ["--key", tmp_path / "key.json", "--claim", IDENTITY]
    for words in (
        ["export", running.store, "-o", log],
        ["verify", *options, log],
        ["verify", *options, running.store],
        ["audit", *options, "--out", tmp_path / "out.csv", log],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "agentmark", *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if words[0] == "verify":
            assert f"'{IDENTITY}'" in done.stdout


def test_spans_and_metrics_go_to_the_collector_without_content(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    sent: dict[str, bytes] = {}

    def collect(request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        packed = b"content-encoding: gzip" in head.lower()
        sent[path] = sent.get(path, b"") + (gzip.decompress(body) if packed else body)
        return http_answer(b"", "Content-Type: application/x-protobuf")

    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "authorization": "Bearer sk-secret"}
    with RawUpstream(collect) as collector, RefusingProvider() as provider:
        options = ("--otlp-endpoint", collector.root_url)
        with gateway(tmp_path, provider.root_url, *options) as running:
            assert running.ask(CHAT, chat_body(Errand(1), model="gpt-x"), headers=headers).status == 200
            assert running.stop() == 0
        [record] = running.records()
    traces, metrics = sent["/v1/traces"], sent["/v1/metrics"]
    # The client's trace goes on here, and through to the upstream.
    assert bytes.fromhex(trace) in traces
    assert all(trace in asked.headers["traceparent"] for asked in provider.requests[:4])
    for text in (b"agentmark-gateway", b"/v1/chat/completions", record.context.hex().encode()):
        assert text in traces, text
    for text in (b"agentmark.gateway.added", b"gpt-x"):
        assert text in metrics, text
    for secret in (b"sk-secret", Errand(1).task.encode()[:40], bytes(range(32)), bytes(range(32)).hex().encode()):
        assert secret not in traces + metrics


def test_what_is_added_is_told_by_model(tmp_path: Path) -> None:
    with gateway(tmp_path, "fake:") as running:
        for model in ("one", "two"):
            assert running.ask(CHAT, chat_body(Errand(1), model=model)).status == 200
        for model in ("one", "two"):
            for name in ("agentmark_added_seconds_count", "agentmark_steps_total", "agentmark_tokens_total"):
                assert running.count(name, model=model) >= 1, name


def test_whoever_asks_whether_it_is_ready_fills_no_line(tmp_path: Path) -> None:
    """No key is asked for there: thousands who ask while the store is slow are one question to it."""
    checks: list[None] = []

    async def check() -> None:
        checks.append(None)
        await asyncio.sleep(0.1)

    async def ask(app: Gateway) -> int:
        statuses: list[int] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            statuses.append(message.get("status", 0))

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/readyz", "raw_path": b"/readyz", "headers": []}
        await app(scope, receive, send)
        return statuses[0]

    async def work() -> list[int]:
        app = Gateway(settings)
        app.store.check = check  # type: ignore[method-assign]
        return await asyncio.gather(*[ask(app) for _ in range(100)])

    KEY.save(tmp_path / "key.json")
    settings = Settings(
        upstream="http://127.0.0.1:9", key=str(tmp_path / "key.json"), identity=IDENTITY, store=str(tmp_path / "s.db")
    )
    assert asyncio.run(work()) == [200] * 100
    assert len(checks) == 1
