"""AgentDojo v1.2.2 without attacks (tool use): which tool to call next, or to answer. Success is each task's own check
of the world afterwards and of the answer.

Choosing a behavior and executing it are kept apart: arguments are the ground truth's when its plan holds a call of the
chosen tool. A tool that the plan does not hold is really called all the same, with the arguments of some call of it in
the ground truth of its suite, or with plain values of its schema's types when there is none; what that changes stays
changed. The answer is the ground truth's once every planned call has been made, else empty: an agent that has not
looked cannot know.
"""

import pickle
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from agentmark_lab.envs.base import Task
from agentmark_lab.envs.script import Planned, Script
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator

try:
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
    from agentdojo.task_suite.load_suites import get_suites
except ImportError as error:
    raise MissingError(f"the package agentdojo ({error})", "run `make lab`, which installs it in .venvs/lab") from error

ANSWER = "answer"
VERSION = "v1.2.2"

# Some tools stamp what they make with the time of day, to the microsecond; the worlds hold no such times.
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d+")
_PLAIN_VALUES = {"string": "example", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


class Errand:
    """What a user asks for, and the world it is done in."""

    def __init__(self, suite: "Suite", name: str, rng: Random) -> None:
        self._suite = suite
        self._task = suite.user_tasks[name]
        self._rng = rng
        self._before, self._world = suite.new_world(name), suite.new_world(name)
        self._script = Script(suite.plan(name))
        self._trace: list[Any] = []
        self.goal: str = self._task.PROMPT
        self.observation = ""
        self.done = False
        self.success = False
        self.behaviors = (*suite.runtime.functions, ANSWER)
        self.descriptions = {name: tool.description for name, tool in suite.runtime.functions.items()}

    def expert(self) -> str:
        planned = self._script.next
        return planned.function if planned else ANSWER

    def step(self, behavior: str) -> None:
        if behavior == ANSWER:
            self._answer("" if self._script.next else self._task.GROUND_TRUTH_OUTPUT)
            return
        planned = self._script.planned(behavior)
        call = planned.call if planned else self._suite.wrong_call(behavior, self._rng)
        self.observation = self._suite.run(self._world, call)
        self._trace.append(call)
        if planned:
            self._script.made(planned, self.observation)

    def _answer(self, text: str) -> None:
        self.done = True
        # The world is what the calls made of it, and comparing worlds is slow: the same calls get the same verdict.
        story = (self._task.ID, text, *[call.model_dump_json() for call in self._trace])
        if story not in self._suite.verdicts:
            judged = self._task.utility_from_traces(text, self._before, self._world, self._trace)
            judged = self._task.utility(text, self._before, self._world) if judged is None else judged
            self._suite.verdicts[story] = bool(judged)
        self.success = self._suite.verdicts[story]


class Suite:
    """One of the four worlds with its tools and tasks."""

    def __init__(self, suite: Any) -> None:
        self._suite = suite
        self.user_tasks: Mapping[str, Any] = suite.user_tasks
        self.runtime = FunctionsRuntime(suite.tools)
        self._plans: dict[str, list[Planned]] = {}
        self._worlds: dict[str, bytes] = {}
        self.verdicts: dict[tuple[str, ...], bool] = {}

    @cached_property
    def _default_world(self) -> Any:
        return self._suite.load_and_inject_default_environment({})

    def new_world(self, name: str) -> Any:
        """The world as a task finds it. Reading it in is slow, and unpickling ten times as fast as a deep copy."""
        if name not in self._worlds:
            world = self.user_tasks[name].init_environment(self._default_world.model_copy(deep=True))
            self._worlds[name] = pickle.dumps(world)
        return pickle.loads(self._worlds[name])

    def run(self, world: Any, call: Any) -> str:
        """What the tool says; an error of its own is a reply like any other."""
        result, fault = self.runtime.run_function(world, call.function, call.args)
        return _CLOCK.sub("now", str(fault or tool_result_to_str(result)))

    def plan(self, name: str) -> list[Planned]:
        """The ground truth of a task, with the replies that it gets."""
        if name not in self._plans:
            world = self.new_world(name)
            calls = self.user_tasks[name].ground_truth(world)
            self._plans[name] = [Planned(call.function, call, self.run(world, call)) for call in calls]
        return self._plans[name]

    @cached_property
    def _known(self) -> Mapping[str, list[Any]]:
        known: dict[str, list[Any]] = defaultdict(list)
        for name, task in self.user_tasks.items():
            for call in task.ground_truth(self.new_world(name)):
                known[call.function].append(call)
        return known

    def wrong_call(self, function: str, rng: Random) -> Any:
        """How a tool is called that is not called for."""
        if function in self._known:
            return rng.choice(self._known[function])
        schema = self.runtime.functions[function].parameters.model_json_schema()
        arguments = {name: _plain_value(schema["properties"][name]) for name in schema.get("required", [])}
        return FunctionCall(function=function, args=arguments)


class AgentDojo:
    """The 97 user tasks; groups are the four suites."""

    # The longest ground truth takes 18 calls and the answer.
    max_steps = 40

    def __init__(self, work: Path) -> None:
        """Nothing is slow to make, or kept."""
        self._suites = {name: Suite(suite) for name, suite in get_suites(VERSION).items()}

    def tasks(self) -> Sequence[Task]:
        return [Task(f"{name}/{task}", name) for name, suite in self._suites.items() for task in suite.user_tasks]

    def start(self, task: Task, *, seed: int) -> Errand:
        name = task.id.partition("/")[2]
        return Errand(self._suites[task.group], name, generator(seed, VERSION, task.id))


def _plain_value(schema: Mapping[str, Any]) -> Any:
    """For a type or the first of several; a type that is defined elsewhere gets none, and the tool says so."""
    options = schema.get("anyOf", [schema])
    return _PLAIN_VALUES.get(options[0].get("type", ""))
