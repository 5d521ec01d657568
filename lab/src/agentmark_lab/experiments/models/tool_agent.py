"""An agent with tools, driven by a local model: real queries, whole replies drawn at temperature 1. Every reply is kept
as it comes, for good.

Neither model emits native tool calls reliably, so that the agent has a plain convention of its own, the same for both:
one line, `CALL name {arguments}` or `ANSWER text`. A grammar holds the replies to it, as a strict mode of tools would:
whether to call, which tool and with which arguments is up to the model. All that is compared is drawn in this way.
"""

import json
import re
import tarfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from agentmark.elicit.local import LocalModel
from agentmark.elicit.situation import ANSWER_CANDIDATE, Candidate, Message, Situation
from agentmark_lab.experiments.models.ways_of_asking import opened
from agentmark_lab.kit.authors_runs import REMEDY, short_text, tool_name
from agentmark_lab.kit.data import find_data
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.files import made_once
from agentmark_lab.kit.options import Options, Progress

QUERIES = 12
MIN_TOOLS, MAX_TOOLS, MAX_REQUIRED = 2, 5, 2
MAX_DESCRIPTION = 60
# A reply is a line. What a value or an answer may hold keeps a small model from rambling.
MAX_REPLY_TOKENS, MAX_VALUE, MAX_ANSWER = 80, 40, 160
# A busy machine may take minutes for a reply of a second.
PATIENCE_S = 600.0

SYSTEM = (
    "You are an assistant that works with tools. Reply with one line. Either call a tool: "
    'CALL name {{"argument": "value"}}\nor answer the user: ANSWER text\nTools:\n{tools}'
)
# A temperature is meant to be the only thing between the model's probabilities and its reply.
SAMPLED: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def line(self) -> str:
        arguments = [*self.required, *[f"{name}?" for name in self.optional]]
        return f"{self.name}({', '.join(arguments)}): {self.description}"


@dataclass(frozen=True, slots=True)
class ToolSituation:
    """What the agent sends when it asks for its next step: `said` is the conversation after its instructions, with
    calls as chat completions have them. In `brief`, a reply ends with the tool's name: where only that matters."""

    name: str
    tools: tuple[Tool, ...]
    said: tuple[Message, ...]
    brief: bool = False

    @property
    def conversation(self) -> list[Message]:
        system = SYSTEM.format(tools="\n".join([tool.line for tool in self.tools]))
        return [{"role": "system", "content": system}, *self.said]

    @property
    def messages(self) -> list[Message]:
        """As the model is sent them: calls in the agent's convention."""
        return [_in_convention(message) for message in self.conversation]

    @property
    def grammar(self) -> str:
        """What a reply may be, in llama.cpp's notation."""
        if self.brief:
            names = " | ".join([_literal(tool.name) for tool in self.tools])
            return f'root ::= "CALL " ({names}) | "ANSWER"'
        calls = " | ".join([f"tool{i}" for i in range(len(self.tools))])
        rules = [f'root ::= "CALL " ({calls}) | "ANSWER " [^\\n]{{1,{MAX_ANSWER}}}']
        rules += [f"tool{i} ::= {_call_rule(tool)}" for i, tool in enumerate(self.tools)]
        return "\n".join([*rules, f'value ::= "\\"" [^"\\\\\\n]{{0,{MAX_VALUE}}} "\\""'])

    @property
    def situation(self) -> Situation:
        """The same decision for one who is asked for a list: the tools, or answering."""
        candidates = [Candidate(tool.name, tool.description) for tool in self.tools]
        return Situation.of([*candidates, ANSWER_CANDIDATE], self.conversation)


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply. `tool` is None for an answer. Milliseconds as the server counts them: reading the part of the
    prompt that was not cached, and writing. `cpu_s` does not depend on what else the machine does; `seconds` does."""

    tool: str | None
    arguments: str
    text: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    read_ms: float
    written_ms: float
    seconds: float
    cpu_s: float = 0.0


def tool_situations() -> list[ToolSituation]:
    """ToolBench queries with two to five tools of at most two required arguments, taken evenly from the solvable
    subset G1_instruction."""
    with tarfile.open(find_data("toolbench/solvable_queries_765.tar.xz", remedy=REMEDY)) as archive:
        member = archive.extractfile("solvable_queries/test_instruction/G1_instruction.json")
        assert member is not None
        queries = json.load(member)
    read = [_read_query(query) for query in queries]
    fitting = [one for one in read if _fits(one)]
    return fitting[:: len(fitting) // QUERIES][:QUERIES]


def _read_query(query: dict[str, Any]) -> ToolSituation:
    tools = {tool.name: tool for tool in map(_read_tool, query["api_list"])}
    said = ({"role": "user", "content": query["query"]},)
    return ToolSituation(f"toolbench query {query['query_id']}", tuple(tools.values()), said)


def _read_tool(api: dict[str, Any]) -> Tool:
    return Tool(
        tool_name(api["tool_name"], api["api_name"]),
        short_text(api["api_description"] or "", MAX_DESCRIPTION),
        tuple(one["name"] for one in api["required_parameters"]),
        tuple(one["name"] for one in api["optional_parameters"][:1]),
    )


def _fits(one: ToolSituation) -> bool:
    return MIN_TOOLS <= len(one.tools) <= MAX_TOOLS and all(len(tool.required) <= MAX_REQUIRED for tool in one.tools)


def _in_convention(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    lines = [f"CALL {function['name']} {function['arguments']}" for function in functions]
    return {"role": message["role"], "content": "\n".join(lines)}


def _call_rule(tool: Tool) -> str:
    """Every required argument in its order; then the optional one, or not."""
    required = [f"{_literal(json.dumps(name) + ': ')} value" for name in tool.required]
    inner = ' ", " '.join(required)
    if tool.optional:
        comma = '", " ' if required else ""
        inner += f" ({comma}{_literal(json.dumps(tool.optional[0]) + ': ')} value)?"
    return f"{_literal(tool.name + ' {')} {inner} {_literal('}')}"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def read_line(line: str) -> tuple[str | None, str]:
    """The tool that a reply calls and its arguments as written; None and no arguments for an answer. A call that was
    cut off before its end is an answer that nobody can use: a provider would hand on its text."""
    found = re.fullmatch(r"CALL (\S+)(?: (\{.*\}))?", line)
    return (found[1], found[2] or "") if found else (None, "")


def draw(model: LocalModel, one: ToolSituation, seed: int, *, cached: bool = True) -> Reply:
    """Ask once, as the agent does. The prompt of the request before is not read again, unless it is not to be
    `cached`."""
    body = {
        "messages": one.messages,
        "grammar": one.grammar,
        "max_tokens": MAX_REPLY_TOKENS,
        "cache_prompt": cached,
        "seed": seed,
        **SAMPLED,
    }
    start, cpu = time.perf_counter(), time.process_time()
    endpoint = replace(model.endpoint, timeout_s=PATIENCE_S)
    content = endpoint.post("chat/completions", body, method="chat")
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    text = content["choices"][0]["message"]["content"] or ""
    tool, arguments = read_line(text)
    usage, timings = content["usage"], content["timings"]
    return Reply(
        tool=tool,
        arguments=arguments,
        text=text,
        input_tokens=usage["prompt_tokens"],
        cached_tokens=timings["cache_n"],
        output_tokens=usage["completion_tokens"],
        read_ms=timings["prompt_ms"],
        written_ms=timings["predicted_ms"],
        seconds=round(seconds, 3),
        cpu_s=round(cpu_s, 3),
    )


def replies_of(
    file: Path, situations: Sequence[ToolSituation], count: int, options: Options, progress: Progress
) -> dict[str, list[Reply]]:
    """So many replies in each situation, by its name. What an earlier run has kept is not drawn again."""
    folder = options.work / "replies" / f"{file.stem}-seed{options.seed}"
    places = {one.name: [_place(folder, one, number) for number in range(count)] for one in situations}
    missing = [one for one in situations if not all(place.exists() for place in places[one.name])]
    if missing:
        with opened(file) as model:
            for done, one in enumerate(missing, start=1):
                for number, place in enumerate(places[one.name]):
                    seed = generator(options.seed, "reply", one.name, number).getrandbits(31)
                    made_once(place, partial(_drawn, model, one, seed))
                progress(f"{model.model}: {count} replies in situation {done} of {len(missing)}")
    return {
        name: [Reply(**json.loads(place.read_text(encoding="utf-8"))) for place in some]
        for name, some in places.items()
    }


def _drawn(model: LocalModel, one: ToolSituation, seed: int) -> dict[str, Any]:
    return asdict(draw(model, one, seed))


def _place(folder: Path, one: ToolSituation, number: int) -> Path:
    """Under the whole request, so that another prompt has replies of its own."""
    asked = json.dumps([one.name, one.messages, one.grammar, MAX_REPLY_TOKENS])
    return folder / f"{sha256(asked.encode()).hexdigest()[:24]}-{number}.json"
