"""The office, and the demonstration with a model on a provider that is scripted."""

import json
import random
import re
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from agentmark import Registry, SharedKey, Verifier, open_log
from agentmark.audit.progress import Silent
from agentmark.cli import main
from agentmark.core.statistics import wilson_interval
from agentmark.demo.assistant import Ending
from agentmark.demo.model_run import run_model_demo
from agentmark.demo.model_text import render_model_text
from agentmark.demo.office import ANSWER_OPTION, FILES, TASKS, Office
from agentmark.elicit import Endpoint, HttpChat, elicitor_for
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


def counts_of(text: str) -> tuple[int, int, dict[str, int]]:
    """Tasks begun and asked for, and how many of those begun ended in which way."""
    found = re.search(r"(\d+) of (\d+) tasks begun: (.*)\.", text)
    assert found is not None, text
    endings = {ending: int(count) for count, ending in [part.split(" ", 1) for part in found[3].split(", ")]}
    return int(found[1]), int(found[2]), endings


def letters_of(rng: random.Random) -> Callable[[dict[str, Any]], dict[str, float]]:
    return lambda _: {letter: -1.5 - rng.random() for letter in "ABCDEFGH"}


def test_the_demo_on_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = chat_answer(scripted, top_logprobs=letters_of(random.Random(4)))
    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        command = ["demo", "--base-url", provider.base_url, "--model", "fake", "--elicitor", "labels"]
        assert main([*command, "--minutes", "60", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "right key:   Attributed to 'acme-eu'" in said.out
    assert "wrong key:   Not attributed" in said.out
    assert "near chance" not in said.out
    assert "18 tasks, at most 60 minutes" in said.err
    assert re.search(r"a decision takes \d+ s here; about \d+ (s|min) left", said.err)
    begun, asked, endings = counts_of(said.out)
    assert (begun, asked) == (18, 18)
    assert sum(endings.values()) == 18
    assert endings["done"] > 0, "it answers with the two words that two tasks ask for"
    ends = re.findall(
        r"task (\d+) of 18 (done|not done) \((\d+) decisions?\); (\d+) done, (\d+) decisions? in", said.err
    )
    assert [int(number) for number, *_ in ends] == list(range(1, 19))
    assert [int(done) for *_, done, _ in ends] == list(accumulate(ending == "done" for _, ending, *_ in ends))
    assert [int(total) for *_, total in ends] == list(accumulate(int(steps) for _, _, steps, *_ in ends))
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "fake</bdi> worked in an office" in page
    assert f"{endings.get('done', 0)} of 18 tasks done" in page
    assert "Attributed to" in page
    records = list(open_log(tmp_path / "log-model.jsonl"))
    assert len(records) == int(ends[-1][-1])
    assert f"{len(records)} decisions, lists from labels:" in said.out
    assert {record.scheme for record in records} == {"R"}
    assert records[0].meta is not None
    assert (records[0].meta["elicitor"], records[0].meta["model"]) == ("labels", "fake")
    key, registry = SharedKey.load(tmp_path / "key.json"), Registry.load(tmp_path / "registry.jsonl")
    assert Verifier(key, registry=registry).verify(records).identity == "acme-eu"


class StrikingClock:
    """A clock on which a fixed time passes whenever somebody looks."""

    def __init__(self, tick_s: float) -> None:
        self.now, self._tick_s = 0.0, tick_s

    def __call__(self) -> float:
        self.now += self._tick_s
        return self.now


class Saying(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def scripted_run(folder: Path, *, task_count: int, minutes: float, clock: StrikingClock) -> tuple[Any, list[str]]:
    answer = chat_answer(scripted, top_logprobs=letters_of(random.Random(5)))
    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        endpoint = Endpoint(provider.base_url, "fake")
        progress = Saying()
        result = run_model_demo(
            folder,
            chat=HttpChat(endpoint),
            elicitor=elicitor_for(endpoint, "labels"),
            near_chance=True,
            scheme="R",
            seed=1,
            task_count=task_count,
            minutes=minutes,
            progress=progress,
            clock=clock,
        )
    return result, progress.said


def test_when_the_time_is_up_the_task_at_hand_is_cut_short_and_counted_as_such(tmp_path: Path) -> None:
    # Ten seconds a look: the first task does not even see its second decision.
    result, said = scripted_run(tmp_path, task_count=12, minutes=0.1, clock=StrikingClock(10))
    assert [len(episode.steps) for episode in result.episodes] == [1]
    assert len(result.records) == 1
    begun, asked, endings = counts_of("\n".join(render_model_text(result, "agentmark")))
    assert (begun, asked) == (1, 12)
    assert sum(endings.values()) == 1
    text = "\n".join(render_model_text(result, "agentmark"))
    assert "The time was up after 0.1 minutes: --minutes gives it more." in text
    assert "Too few decisions are left to name a tenant" in text
    assert "near chance" in text
    assert "no more to do" in said[-2]


def test_a_task_that_is_cut_short_is_no_failure_of_the_model(tmp_path: Path) -> None:
    # Seven times in eight the first decision is not the answer, so that the task is not over when the time is up.
    runs = (scripted_run(tmp_path, task_count=12, minutes=0.1, clock=StrikingClock(10))[0] for _ in range(20))
    cut = next(result for result in runs if result.endings[Ending.CUT_SHORT])
    last = cut.episodes[-1]
    assert last.ending is Ending.CUT_SHORT
    assert last.request not in cut.never_done
    assert cut.out_of_time
    assert cut.done_interval is None, "of no task that came to an end"


def test_the_rest_is_estimated_from_the_pace_so_far(tmp_path: Path) -> None:
    result, said = scripted_run(tmp_path, task_count=2, minutes=1000, clock=StrikingClock(1))
    assert not result.out_of_time
    # At the first decision every task is taken to be as long as it may be: eleven more in two tasks.
    first = next(message for message in said if message.startswith("a decision takes"))
    seconds = int(re.findall(r"takes (\d+) s", first)[0])
    assert f"about {11 * seconds} s left" in first
    finished = len(result.episodes)
    assert result.done_interval == wilson_interval(result.endings[Ending.DONE], finished)


def test_a_model_that_gives_no_list_is_judged_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = chat_answer(scripted, top_logprobs=lambda _: {})
    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        command = ["demo", "--base-url", provider.base_url, "--model", "fake", "--elicitor", "labels", "--tasks", "2"]
        assert main([*command, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert counts_of(said.out)[:2] == (2, 2)
    assert "Not attributed" in said.out
    assert "0.00 bits of entropy a decision" in said.out


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "name for the model is needed"),
        (["--model", "gpt"], "needs --base-url"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--gguf", "y"], "on this machine"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--elicitor", "y"], "is none of"),
        (["--model", "local", "--tasks", "0"], "0 is not a number of tasks"),
        (["--model", "local", "--minutes", "nan"], "nan is not a time"),
        (["--model", "local", "--minutes", "-1"], "-1.0 is not a time"),
        (["--tasks", "3"], "is for a demonstration with a model"),
        (["--minutes", "3"], "is for a demonstration with a model"),
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
