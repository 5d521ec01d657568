"""The office, and the demonstration with a model on a provider that is scripted."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from agentmark import Registry, SharedKey, Verifier, open_log
from agentmark.cli import main
from agentmark.demo.office import ANSWER_OPTION, FILES, TASKS, Office
from agentmark.elicit.situation import ANSWER
from agentmark.testing import FakeProvider
from agentmark.testing.provider import chat_answer

# What it takes to do each task.
SOLUTIONS: list[list[tuple[str, dict[str, str]]]] = [
    [("read_file", {"file": "wifi.txt"}), (ANSWER, {"text": "It is blue-kettle."})],
    [("send_mail", {"to": "ana", "text": "The total is 412."})],
    [("delete_file", {"file": "old_draft.txt"})],
    [("add_calendar_event", {"date": "2027-03-14", "text": "launch"})],
    [("find_word", {"word": "Parking"}), (ANSWER, {"text": "permits.txt"})],
    [("add_line", {"file": "todo.txt", "text": "Call the plumber"})],
]


@pytest.mark.parametrize("number", range(len(TASKS)))
def test_every_task_can_be_done_and_is_not_done_by_itself(number: int) -> None:
    office = Office()
    assert not TASKS[number].done(office)
    for name, arguments in SOLUTIONS[number]:
        if name == ANSWER:
            office.answer = arguments["text"]
        else:
            assert not office.tools()[name].call(arguments).startswith("error")
    assert TASKS[number].done(office)


def test_tools_refuse_wrong_arguments_and_really_work() -> None:
    office = Office()
    tools = office.tools()
    assert tools["list_files"].call({}) == ", ".join(sorted(FILES))
    assert tools["find_word"].call({"word": "cake"}) == "notes.txt"
    assert tools["find_word"].call({"word": ""}) == "none"
    assert tools["read_file"].call({"file": "none.txt"}) == "error: no such file"
    assert tools["read_file"].call({}) == "error: wrong arguments"
    assert tools["add_line"].call({"file": "todo.txt", "text": 3}) == "error: wrong arguments"
    assert len(tools) == 7
    assert ANSWER_OPTION.name not in tools


def scripted(body: dict[str, Any]) -> str:
    """Arguments for a tool where a schema asks for them, an answer otherwise."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return "The password is blue-kettle, see permits.txt."
    values = {name: (kind["enum"][0] if "enum" in kind else "x") for name, kind in schema["properties"].items()}
    return json.dumps(values)


def test_the_demo_on_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(4)

    def letters(_: dict[str, Any]) -> dict[str, float]:
        return {letter: -1.5 - rng.random() for letter in "ABCDEFGH"}

    with FakeProvider({"/v1/chat/completions": chat_answer(scripted, top_logprobs=letters)}) as provider:
        command = ["demo", "--base-url", provider.base_url, "--model", "fake", "--elicitor", "labels"]
        assert main([*command, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "right key:   Attributed to 'acme-eu'" in said.out
    assert "wrong key:   Not attributed" in said.out
    assert "near chance" not in said.out
    assert "60 after" in said.err or "of 60" in said.err
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "fake</bdi> worked in an office" in page
    assert "Attributed to" in page
    records = list(open_log(tmp_path / "log-model.jsonl"))
    assert len(records) >= 60
    assert {record.scheme for record in records} == {"R"}
    assert records[0].meta is not None
    assert (records[0].meta["elicitor"], records[0].meta["model"]) == ("labels", "fake")
    key, registry = SharedKey.load(tmp_path / "key.json"), Registry.load(tmp_path / "registry.jsonl")
    assert Verifier(key, registry=registry).verify(records).identity == "acme-eu"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "name for the model is needed"),
        (["--model", "gpt"], "needs --base-url"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--gguf", "y"], "on this machine"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--elicitor", "y"], "is none of"),
    ],
)
def test_options_that_contradict_each_other(
    options: list[str], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *options, "--out", str(tmp_path)]) == 2
    assert fault in capsys.readouterr().err


def test_without_the_extra_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main(["demo", "--model", "local", "--out", str(tmp_path)]) == 2
    assert "pip install '.[local]'" in capsys.readouterr().err
