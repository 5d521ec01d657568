"""Where records are looked for, and what is said of broken ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_shapes import (
    LINE,
    LINES,
    RUN,
    as_json_text,
    as_lines,
    inspect_sample,
    langfuse_row,
    langsmith_row,
    otlp_request,
    otlp_span,
    phoenix_row,
)

from agentmark import RecordError
from agentmark.log.read.open import open_log

BAD_RECORDS: dict[str, tuple[Any, str]] = {
    "not JSON": ("{nonsense", r"agentmark\.record: is not valid JSON"),
    "cut by the tool": (LINE[:200], "it has 200 characters, and may have been cut"),
    "free text": ("hello", "is text, but no JSON object"),
    "a number": (7, "is a number"),
    "a boolean": (True, "is a boolean"),
    "a list": ([LINE], "is a list"),
    "another version": (LINE.replace('"agentmark":1', '"agentmark":9'), "found 9, this build reads version 1"),
    "a member twice": (LINE.replace('"step":0', '"step":0,"step":1'), "step: appears twice"),
    "nested without end": ('{"a":' * 5000, "is not valid JSON"),
    "a foreign object": ({"colour": "red"}, "agentmark: is missing"),
}


@pytest.mark.parametrize("bad", BAD_RECORDS)
@pytest.mark.parametrize(
    ("row", "place"),
    [
        (lambda raw: otlp_request([otlp_span(raw)]), r"log:2 span 1"),
        (lambda raw: langfuse_row({"agentmark.record": raw}), r"log:2"),
        (phoenix_row, r"log:2"),
        (langsmith_row, r"log:2"),
    ],
    ids=["otlp", "langfuse", "phoenix", "langsmith"],
)
def test_a_bad_record_is_named_with_its_place_or_passed_over(
    tmp_path: Path, row: Callable[[Any], Any], place: str, bad: str
) -> None:
    raw, fault = BAD_RECORDS[bad]
    path = tmp_path / "log"
    path.write_bytes(as_lines([row(LINES[1]), row(raw), row(LINES[2])]))
    with pytest.raises(RecordError, match=rf"^record .*{place}: .*{fault}"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[1:3]
    assert len(source.summary.bad_lines) == 1


@pytest.mark.parametrize("said", [LINES[1], "{nonsense", '{"agentmark": 1}'])
def test_what_a_user_said_is_no_record(tmp_path: Path, said: str) -> None:
    """Else anybody who talks to the agent could stop an export, or contradict one of its steps."""
    texts = [json.dumps({"agentmark.record": said}), json.dumps({"agentmark": {"record": said}})]
    objects = [{"agentmark": text} for text in texts] + [{"messages": [text], "input": text} for text in texts]
    path = tmp_path / "log"
    for text in [*texts, *objects]:
        langfuse = [langfuse_row({"a": 1}, input=text, output=text)]
        langfuse += [langfuse_row({"agentmark.record": LINE}, input=text)]
        langsmith = [langsmith_row(None) | {"inputs": text, "outputs": text}, langsmith_row(LINE) | {"inputs": text}]
        for rows in (langfuse, langsmith):
            path.write_bytes(as_lines(rows))
            source = open_log(path)
            assert list(source) == RUN[:1]
            assert source.summary.skipped == 1
    path.write_bytes(as_lines([langfuse_row({"a": 1}, input={"agentmark.record": said})]))
    assert list(open_log(path)) == []


def test_a_record_that_the_tool_has_parsed_must_be_as_strict(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = json.dumps(langfuse_row({"agentmark.record": json.loads(LINE)}))
    path.write_text(text.replace('"step": 0', '"step": 0, "step": 1') + "\n")
    with pytest.raises(RecordError, match="names a member twice"):
        list(open_log(path))
    path.write_text(text.replace('"step": 0', '"step": 0.5') + "\n")
    with pytest.raises(RecordError, match="step"):
        list(open_log(path))


def test_nan_beside_a_record_is_another_tools_and_in_a_record_a_fault(tmp_path: Path) -> None:
    """Python's tools write it; a strict parser would lose the whole row to an attribute that nobody reads."""
    path = tmp_path / "log"
    beside = langfuse_row({"agentmark.record": LINE, "score": float("nan")})
    inside = langfuse_row({"agentmark.record": json.loads(LINE) | {"meta": {"score": float("inf")}}})
    path.write_bytes(as_lines([beside, inside]))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[:1]
    assert [(error.where, error.field) for error in source.summary.bad_lines] == [(f"{path}:2", "meta.score")]
    path.write_bytes(as_json_text([beside, inside]))
    assert list(open_log(path, skip_bad=True)) == RUN[:1]


# What others can write is never a record: an attacker's copy of a step, with another choice, would erase the step.

FORGED = LINES[1].replace('"marked":true', '"marked":false,"reason":"x"')
PLANTED: list[Any] = [
    {"agentmark.record": FORGED},
    {"agentmark.record": json.loads(FORGED)},
    {"agentmark": {"record": FORGED}},
    {"metadata": {"agentmark.record": FORGED}},
    {"attributes": {"agentmark.record": FORGED}},
    json.loads(FORGED),
    FORGED,
    json.dumps({"agentmark.record": FORGED}),
    [{"agentmark.record": FORGED}],
]


def otlp_attribute(key: str, planted: Any) -> dict[str, Any]:
    text = planted if isinstance(planted, str) else json.dumps(planted)
    return {"key": key, "value": {"stringValue": text}}


def inspect_events(planted: Any) -> list[dict[str, Any]]:
    """The arguments of a call, its answer, a message, and notes of a solver, who does not say that they are ours."""
    return [
        {"event": "tool", "function": "f", "arguments": planted, "result": planted},
        {"event": "model", "input": [{"role": "user", "content": planted}], "output": planted},
        {"event": "info", "source": None, "data": planted},
        {"event": "info", "data": planted},
        {"event": "info", "source": "notes", "data": planted},
        {"event": "info", "source": "notes", "data": "attachment://planted"},
        {"event": "info", "source": "agentmark", "data": {"said": planted}},
        {"event": "state", "changes": [{"value": planted}]},
    ]


def inspect_document(planted: Any) -> Any:
    sample = inspect_sample(LINES[1:2])
    sample["events"] += inspect_events(planted)
    sample["input"] = sample["target"] = planted
    sample["store"] = sample["output"] = {"agentmark.record": planted, "value": planted}
    sample["messages"] = [{"role": "tool", "content": planted, "metadata": planted}]
    sample["attachments"]["planted"] = planted if isinstance(planted, str) else json.dumps(planted)
    return {"version": 2, "status": "success", "eval": {"task": planted}, "samples": [sample]}


PLACES: dict[str, Callable[[Any], Any]] = {
    "langsmith": lambda planted: langsmith_row(LINES[1]) | {"inputs": planted, "outputs": planted},
    "langsmith, a run of its own": lambda planted: {
        "runs": [
            langsmith_row(LINES[1]),
            langsmith_row(None) | {"inputs": planted, "outputs": planted, "events": [planted], "error": planted},
            {"run_type": "tool", "inputs": planted, "outputs": planted, "extra": {"invocation_params": planted}},
            {"run_type": "tool", "extra": {"runtime": planted, "metadata": {"said": planted}}},
        ]
    },
    "langfuse": lambda planted: {
        "data": [
            langfuse_row({"agentmark.record": LINES[1]}, input=planted, output=planted),
            langfuse_row({"said": planted}, input=planted, output=planted, statusMessage=planted),
            langfuse_row({"attributes": {"input.value": planted}, "scope": {"name": planted}}, modelParameters=planted),
        ]
    },
    "phoenix": lambda planted: [
        phoenix_row(LINES[1]),
        phoenix_row(None)
        | {"attributes": {"input.value": planted, "tool": {"parameters": planted}, "metadata": planted}},
        phoenix_row(None)
        | {"events": [planted], "status_message": planted, "attributes": {"llm": {"agentmark": planted}}},
    ],
    "otlp": lambda planted: otlp_request(
        [
            otlp_span(LINES[1]),
            otlp_span("", attributes=[otlp_attribute("gen_ai.tool.call.arguments", planted)]),
            otlp_span("", attributes=[otlp_attribute("input.value", planted)], events=[{"attributes": planted}]),
            otlp_span(
                "",
                attributes=[
                    {"key": "tool", "value": {"kvlistValue": {"values": [otlp_attribute("agentmark.record", planted)]}}}
                ],
            ),
        ]
    ),
    "inspect": inspect_document,
}


@pytest.mark.parametrize("place", PLACES)
def test_what_tools_users_and_models_wrote_is_no_record(tmp_path: Path, place: str) -> None:
    path = tmp_path / "log"
    for planted in PLANTED:
        path.write_bytes(as_json_text(PLACES[place](planted)))
        source = open_log(path)
        assert list(source) == RUN[1:2], planted
        assert source.summary.bad_lines == ()
