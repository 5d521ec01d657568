"""What the authors' own runs left: real situations to elicit in, and lists that a model stated in some of them.

Beside the steps of their ToolBench and ALFWorld runs, ToolBench's solvable queries.
"""

import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from agentmark.core.distribution import BehaviorDistribution
from agentmark.elicit.situation import Candidate, Situation
from agentmark_lab.kit.data import find_data

REMEDY = "get the authors' elicited steps and ToolBench's solvable queries"
TOOLBENCH_STEPS = "elicited/toolbench_steps.jsonl"
TOOL_QUERIES, HOUSEHOLD_STEPS = 18, 3
MAX_DESCRIPTION = 120


@dataclass(frozen=True, slots=True)
class RealSituation:
    """`relevant` names the candidates that ToolBench's authors call relevant, where they say so."""

    name: str
    source: str
    situation: Situation
    relevant: frozenset[str] = frozenset()


def real_situations() -> list[RealSituation]:
    """Thirty situations, in an order that mixes the sources."""
    sources = [list(toolbench_queries(TOOL_QUERIES)), list(toolbench_steps()), list(alfworld_steps(HOUSEHOLD_STEPS))]
    return [one for row in zip_longest(*sources) for one in row if one is not None]


def elicited_lists() -> list[BehaviorDistribution]:
    """The 17 lists of the authors' runs that a model really stated; the other 40 are a silent uniform fallback."""
    path = find_data(TOOLBENCH_STEPS, remedy=REMEDY)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [BehaviorDistribution.quantise(row["llm_weights_as_written"]) for row in rows if row["elicited"]]


def toolbench_steps() -> Iterator[RealSituation]:
    """The first step of each task in the authors' runs."""
    seen = set()
    for line in find_data(TOOLBENCH_STEPS, remedy=REMEDY).read_text(encoding="utf-8").splitlines():
        step = json.loads(line)
        if step["query_id"] in seen:
            continue
        seen.add(step["query_id"])
        query, _, rest = step["context_for_key"].partition("\nAvailable Tools:\n")
        tools = re.findall(r"^\d+\. (\S+) \[[^\]]*\]: (.*)$", rest, flags=re.MULTILINE)
        candidates = [Candidate(name, short_text(text)) for name, text in tools]
        yield RealSituation(
            f"toolbench step {step['query_id']}",
            "ToolBench steps",
            Situation.of([*candidates, _FINISH], query.removeprefix("User Query: ")),
        )


def toolbench_queries(count: int) -> Iterator[RealSituation]:
    """Queries with two to nine tools, taken evenly from the solvable subset G1_instruction."""
    with tarfile.open(find_data("toolbench/solvable_queries_765.tar.xz", remedy=REMEDY)) as archive:
        member = archive.extractfile("solvable_queries/test_instruction/G1_instruction.json")
        assert member is not None
        queries = json.load(member)
    fitting = [query for query in queries if 2 <= len({tool_name(*_pair(api)) for api in query["api_list"]}) <= 9]
    for query in fitting[:: len(fitting) // count][:count]:
        tools = {tool_name(*_pair(api)): short_text(api["api_description"] or "") for api in query["api_list"]}
        yield RealSituation(
            f"toolbench query {query['query_id']}",
            "ToolBench queries",
            Situation.of([*[Candidate(name, text) for name, text in tools.items()], _FINISH], query["query"]),
            frozenset(tool_name(tool, api) for tool, api in query["relevant APIs"]) & tools.keys(),
        )


def alfworld_steps(count: int) -> Iterator[RealSituation]:
    """Steps of a household run: goal, inventory, recent actions, observation; the few-shot examples are left out."""
    path = find_data("elicited/alfworld_prompts_26.json", remedy=REMEDY)
    prompts = json.loads(path.read_text(encoding="utf-8"))["prompts"]
    for step in prompts[:: len(prompts) // count][:count]:
        text: str = step["prompt"]
        actions = json.loads(re.findall(r"^\[.*?^\]$", text, flags=re.MULTILINE | re.DOTALL)[-1])
        goal = re.findall(r"^Task Goal: (.*)$", text, flags=re.MULTILINE)[-1]
        observation = text.rpartition("Observation: ")[2].partition("\nAvailable Actions")[0]
        history = re.findall(r"^ +Action: (.*)$", text, flags=re.MULTILINE)[-3:]
        said = (
            f"Goal: {goal}\nLast actions: {', '.join(history) or 'none'}\nObservation: {short_text(observation, 300)}"
        )
        yield RealSituation(
            f"alfworld step {step['step_num']}", "ALFWorld steps", Situation.of(list(dict.fromkeys(actions)), said)
        )


_FINISH = Candidate("Finish", "Answer the user now, or give up.")


def _pair(api: dict[str, str]) -> tuple[str, str]:
    return api["tool_name"], api["api_name"]


def tool_name(tool: str, api: str) -> str:
    """A name as ToolBench's runs write it."""
    return "__".join([re.sub(r"\W+", "_", part).strip("_") for part in (tool, api)])


def short_text(text: str, limit: int = MAX_DESCRIPTION) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
