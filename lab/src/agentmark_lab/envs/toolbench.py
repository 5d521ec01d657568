"""ToolBench (tool use, T1 to T6): which API to call next, or Finish. Real queries and real candidates, no live APIs.

Success is an offline proxy: every gold API ("relevant APIs") was called, and then Finish, within ten decisions.
ToolBench itself asks a language model to judge the final answer. An agent that writes no answer leaves such a judge
nothing to read, so there is none here, and the proxy must never be called a pass rate.
"""

import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentmark_lab.envs.base import OwnTasksError, Task
from agentmark_lab.kit.data import find_data

FINISH = "Finish"

# ToolBench's names of its subsets beside the paper's labels (caption of Table 1). The paper runs 50 tasks of its
# "multi-tool instruction" split and 20 of each other.
SUBSETS = {
    "T1": "G1_tool",  # single-tool selection
    "T2": "G1_instruction",  # single-tool instruction-following
    "T3": "G1_category",  # single-tool within-category selection
    "T4": "G2_category",  # multi-tool within-category selection
    "T5": "G2_instruction",  # multi-tool instruction-following
    "T6": "G3_instruction",  # complex multi-tool instruction-following
}

_REMEDY = "it comes with StableToolBench (its solvable queries and recorded runs, an archive each)"
# How long a name ToolBench sends to a model; two APIs of one query may then share a name, so names here are whole.
_SENT_LENGTH = 64
_RESERVED = ("from", "class", "return", "false", "true", "id", "and")


class Query:
    """A query with its APIs. A call is answered from a recording if there is one; what it says decides nothing."""

    def __init__(self, query: Mapping[str, Any], replies: Mapping[str, str]) -> None:
        self.goal: str = query["query"]
        self.observation = ""
        self.finished = False
        self._replies = replies
        self._apis = {api_name(api["tool_name"], api["api_name"]): api for api in query["api_list"]}
        self._missing = [api_name(tool, api) for tool, api in query["relevant APIs"]]
        self.gold = frozenset(self._missing)
        self.behaviors = (*self._apis, FINISH)

    @property
    def descriptions(self) -> Mapping[str, str]:
        finish = "Give the final answer, or give up."
        return {**{name: api["api_description"] or "" for name, api in self._apis.items()}, FINISH: finish}

    @property
    def done(self) -> bool:
        return self.finished

    @property
    def success(self) -> bool:
        return self.finished and not self._missing

    def expert(self) -> str:
        return self._missing[0] if self._missing else FINISH

    def step(self, behavior: str) -> None:
        if behavior == FINISH:
            self.finished = True
            return
        self._missing = [name for name in self._missing if name != behavior]
        self.observation = self._replies.get(behavior[-_SENT_LENGTH:]) or _simulated(self._apis[behavior])


class ToolBench:
    """The 765 solvable queries of the six test subsets."""

    max_steps = 10

    def __init__(self, work: Path) -> None:
        """Nothing is slow to make, or kept."""
        subsets = _members("toolbench/solvable_queries_765.tar.xz", r".*test_instruction/(\w+)\.json")
        self._queries = {
            Task(f"{name}/{query['query_id']}", label): query
            for label, name in SUBSETS.items()
            for query in subsets[name]
        }
        self._replies = dict(_recorded_replies())

    def tasks(self) -> Sequence[Task]:
        return list(self._queries)

    def start(self, task: Task, *, seed: int) -> Query:
        return Query(self._queries[task], self._replies)


class OwnQueries(ToolBench):
    """Queries that somebody brings: a JSON file, or a folder of them, each a list in the form of ToolBench's own
    (`query_id`, `query`, `api_list`, `relevant APIs`). A file is a group, by its name. Replies are simulated."""

    def __init__(self, work: Path, own: Path) -> None:
        files = sorted(own.glob("*.json")) if own.is_dir() else [own]
        self._queries = {}
        self._replies = {}
        for file in files:
            for query in _own_queries(file):
                self._queries[Task(f"{file.stem}/{query['query_id']}", file.stem)] = query
        if not self._queries:
            raise OwnTasksError(own, "holds no query, in no file *.json")


def _own_queries(file: Path) -> list[Any]:
    try:
        queries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OwnTasksError(file, f"cannot be read as JSON: {error}") from None
    if not isinstance(queries, list):
        raise OwnTasksError(file, "is no list of queries")
    for number, query in enumerate(queries, start=1):
        try:
            read = Query(query, {})
        except (KeyError, TypeError, ValueError) as error:
            raise OwnTasksError(file, f"query {number} is not in ToolBench's form: {error!r}") from None
        if "query_id" not in query or not read.gold or not read.gold <= {*read.behaviors}:
            raise OwnTasksError(file, f"query {number}: needs a query_id, and relevant APIs that its api_list holds")
    return queries


def api_name(tool: str, api: str) -> str:
    """The name by which ToolBench's prompts call an API."""
    plain = _standard(api)
    return f"{'is_' if plain in _RESERVED else ''}{plain}_for_{_standard(tool)}"


def _standard(name: str) -> str:
    """ToolBench's own rule."""
    plain = re.sub(r"_+", "_", re.sub(r"[^\u4e00-\u9fa5a-zA-Z0-9_^]", "_", name)).lower().strip("_")
    return f"get_{plain}" if plain[:1].isdigit() else plain


def _simulated(api: Mapping[str, Any]) -> str:
    """Where nothing was recorded: the API's template, if it has one."""
    return json.dumps({"error": "", "response": api.get("template_response", "")})


def _recorded_replies() -> Iterator[tuple[str, str]]:
    """Replies by the name of the API, from whichever query. A later one, which is whole, replaces an earlier one."""
    runs = _members("toolbench/gpt35_cot_runs_600.tar.xz", r".*/(\w+)\.json")
    for run in [run for subset in runs.values() for run in subset.values()]:
        for message in _tool_messages(run["answer"]["answer_details"]):
            # These recordings keep the first hundred characters of a message.
            found = re.match(r"\{'name': '([^']+)'.*'response': '(.+)", message, flags=re.DOTALL)
            if found:
                yield found[1], found[2]
    answers = _members("toolbench/data_example.tar.xz", r".*/(answer/.*)\.json")
    for answer in answers.values():
        dialogues = answer["answer_generation"].get("train_messages", [])
        for message in [message for dialogue in dialogues for message in dialogue]:
            if message["role"] == "function":
                yield message["name"], message["content"]


def _tool_messages(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for node in nodes:
        if node["role"] == "tool":
            yield node["message"]
        yield from _tool_messages(node["next"])


def _members(archive: str, pattern: str) -> dict[str, Any]:
    """The JSON files of an archive whose path matches, under what the group of the pattern found."""
    contents = {}
    with tarfile.open(find_data(archive, remedy=_REMEDY)) as file:
        for member in file:
            found = re.fullmatch(pattern, member.name)
            content = file.extractfile(member) if found else None
            if found and content:
                contents[found[1]] = json.load(content)
    return contents
