"""The agent with tools: what it sends, how its replies are read, and that what was drawn once is kept."""

from dataclasses import replace
from pathlib import Path

import pytest
from agentmark_lab.experiments.models import tool_agent
from agentmark_lab.experiments.models.tool_agent import (
    MAX_REQUIRED,
    MAX_TOOLS,
    QUERIES,
    Reply,
    Tool,
    ToolSituation,
    read_line,
    replies_of,
    tool_situations,
)
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from made_up import stand_in

from agentmark.elicit.situation import ANSWER

SEARCH = Tool("search", "Search the web", ("query",), ("page",))
LIST = Tool("list_all", "", (), ("page",))
ASKED = ToolSituation("a query", (SEARCH, LIST), ({"role": "user", "content": "Find it."},))


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('CALL search {"query": "a {b}"}', ("search", '{"query": "a {b}"}')),
        ("CALL list_all {}", ("list_all", "{}")),
        ("CALL search", ("search", "")),
        ("ANSWER I cannot.", (None, "")),
        # Cut off in the middle of its arguments.
        ('CALL search {"query": "a', (None, "")),
    ],
)
def test_a_reply_is_a_call_or_an_answer(line: str, read: tuple[str | None, str]) -> None:
    assert read_line(line) == read


def test_the_grammar_offers_every_tool_with_its_arguments() -> None:
    rules = dict(rule.split(" ::= ", 1) for rule in ASKED.grammar.splitlines())
    assert rules["root"].startswith('"CALL " (tool0 | tool1) | "ANSWER "')
    assert rules["tool0"] == '"search {" "\\"query\\": " value (", " "\\"page\\": " value)? "}"'
    assert rules["tool1"] == '"list_all {"  ("\\"page\\": " value)? "}"'
    assert replace(ASKED, brief=True).grammar == 'root ::= "CALL " ("search" | "list_all") | "ANSWER"'


def test_earlier_calls_are_sent_in_the_agent_s_convention_and_shown_with_their_roles() -> None:
    function = {"name": "search", "arguments": '{"query": "it"}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}
    output = {"role": "tool", "tool_call_id": "1", "content": "Nothing."}
    later = replace(ASKED, said=(*ASKED.said, call, output))
    assert later.messages[2] == {"role": "assistant", "content": 'CALL search {"query": "it"}'}
    assert later.messages[3] == output
    assert later.situation.messages[2] == call
    assert "search(query, page?): Search the web" in later.messages[0]["content"]
    assert later.situation.names == ["search", "list_all", ANSWER]


def test_the_queries_are_real_and_fit() -> None:
    try:
        situations = tool_situations()
    except MissingError as missing:
        pytest.skip(str(missing))
    assert len({one.name for one in situations}) == QUERIES
    for one in situations:
        assert 2 <= len(one.tools) <= MAX_TOOLS
        assert all(len(tool.required) <= MAX_REQUIRED for tool in one.tools)


def test_a_reply_that_is_kept_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    seeds: list[int] = []

    def draw(model: object, one: ToolSituation, seed: int) -> Reply:
        seeds.append(seed)
        return Reply("search", "{}", f"reply {len(seeds)}", 9, 8, 7, 1.0, 2.0, 0.1)

    monkeypatch.setattr(tool_agent, "opened", stand_in(opened))
    monkeypatch.setattr(tool_agent, "draw", draw)
    file, options = tmp_path / "made-up.gguf", Options(work=tmp_path)
    first = replies_of(file, [ASKED], 2, options, print)
    assert [reply.text for reply in first["a query"]] == ["reply 1", "reply 2"]
    more = replies_of(file, [ASKED], 3, options, print)
    assert more["a query"][:2] == first["a query"]
    assert len(opened) == 2
    assert replies_of(file, [ASKED], 3, options, print) == more
    assert len(opened) == 2, "with all of them kept, no model is opened"
    assert len(set(seeds)) == 3
    # Another request has replies of its own.
    replies_of(file, [replace(ASKED, brief=True)], 1, options, print)
    assert len(seeds) == 4
