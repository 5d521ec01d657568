"""BFCL v4, multi-turn base (tool use): which function to call next, or the end of the turn. Success is the official
check of states and responses.

Choosing a behavior and executing it are kept apart: arguments are the ground truth's when its plan for the turn holds a
call of the chosen function. A function that the plan does not hold is really called all the same, with the arguments of
some call of it in the ground truth of all tasks, or with plain values of the documented types when there is none.
Whatever that changes stays changed: the expert goes on with its plan, and never repairs.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from random import Random
from typing import Any

from agentmark_lab.envs.base import OwnTasksError, Task
from agentmark_lab.envs.script import Planned, Script
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator

try:
    from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker
except ImportError as error:
    raise MissingError(f"the package bfcl-eval ({error})", "run `make lab`, which installs it in .venvs/lab") from error

END_OF_TURN = "end of turn"
SUITE = "multi_turn_base"
# As the benchmark: an agent that makes more calls in one turn is stopped, and has failed.
CALLS_A_TURN = 20

_PLAYER = "agentmark"
_DATA = files("bfcl_eval") / "data"
_PLAIN_VALUES = {"string": "example", "integer": 1, "float": 1.0, "boolean": True, "array": [], "dict": {}, "tuple": ()}


class Conversation:
    """A user who asks for several things in turn, and an agent that calls functions until it ends each turn."""

    def __init__(
        self,
        entry: Mapping[str, Any],
        turns: Sequence[Sequence[Planned]],
        wrong: "WrongCalls",
        verdicts: dict[str, bool],
    ) -> None:
        self.observation = ""
        self.success = False
        self._entry = entry
        self._turns = turns
        self._wrong = wrong
        self._verdicts = verdicts
        self._script = Script(turns[0])
        # What was called in each turn so far: a step is a list of calls, and here always a single one.
        self._calls: list[list[list[str]]] = [[]]
        self._over = False
        functions = {name: document for kind in entry["involved_classes"] for name, document in documents(kind).items()}
        self.behaviors = (*functions, END_OF_TURN)
        self.descriptions = {name: document["description"] for name, document in functions.items()}

    @property
    def goal(self) -> str:
        turn = min(len(self._calls), len(self._turns)) - 1
        return "\n".join([message["content"] for message in self._entry["question"][turn]])

    @property
    def done(self) -> bool:
        return self._over

    def expert(self) -> str:
        planned = self._script.next
        return planned.function if planned else END_OF_TURN

    def step(self, behavior: str) -> None:
        if behavior == END_OF_TURN:
            self._end_turn()
            return
        planned = self._script.planned(behavior)
        call = planned.call if planned else self._wrong.call(behavior)
        self.observation = execute(self._entry, [call])[0]
        self._calls[-1].append([call])
        if planned:
            self._script.made(planned, self.observation)
        self._over = len(self._calls[-1]) > CALLS_A_TURN

    def _end_turn(self) -> None:
        if len(self._calls) < len(self._turns):
            self._script = Script(self._turns[len(self._calls)])
            self._calls.append([])
            return
        self._over = True
        truth = [[planned.call for planned in turn] for turn in self._turns]
        # The check plays all calls anew, and many episodes make the same: these get the same verdict.
        story = json.dumps([self._entry["id"], self._calls])
        if story not in self._verdicts:
            verdict = multi_turn_checker(self._calls, truth, self._entry, SUITE, _PLAYER)
            self._verdicts[story] = bool(verdict["valid"])
        self.success = self._verdicts[story]


class WrongCalls:
    """How a function is called that is not called for."""

    def __init__(self, known: Mapping[str, Sequence[str]], rng: Random) -> None:
        self._known = known
        self._rng = rng

    def call(self, function: str) -> str:
        if function in self._known:
            return self._rng.choice(self._known[function])
        parameters = _all_documents()[function]["parameters"]
        values = {name: _plain_value(parameters["properties"][name]) for name in parameters["required"]}
        return f"{function}({', '.join([f'{name}={value!r}' for name, value in values.items()])})"


class MultiTurn:
    """The 200 conversations of the base category; groups are the function collections that they involve."""

    max_steps = 150

    def __init__(self, work: Path) -> None:
        """Nothing is slow to make, or kept."""
        self._load(_DATA)

    def _load(self, data: Traversable) -> None:
        entries = _lines(data / f"BFCL_v4_{SUITE}.json")
        answers = _lines(data / "possible_answer" / f"BFCL_v4_{SUITE}.json")
        self._truth = {line["id"]: line["ground_truth"] for line in answers}
        self._entries = {Task(entry["id"], "+".join(sorted(entry["involved_classes"]))): entry for entry in entries}
        self._turns: dict[str, list[list[Planned]]] = {}
        self._verdicts: dict[str, bool] = {}
        self._known: dict[str, list[str]] = defaultdict(list)
        for call in [call for turns in self._truth.values() for turn in turns for call in turn]:
            self._known[function_of(call)].append(call)

    def tasks(self) -> Sequence[Task]:
        return list(self._entries)

    def start(self, task: Task, *, seed: int) -> Conversation:
        entry = self._entries[task]
        if task.id not in self._turns:
            _forget_instances()
            self._turns[task.id] = [_planned(entry, turn) for turn in self._truth[task.id]]
        _forget_instances()
        wrong = WrongCalls(self._known, generator(seed, SUITE, task.id))
        return Conversation(entry, self._turns[task.id], wrong, self._verdicts)


class OwnConversations(MultiTurn):
    """Conversations that somebody brings, over the benchmark's own functions: a folder with the two files of the base
    category, named and laid out as in the package."""

    def __init__(self, work: Path, own: Path) -> None:
        try:
            self._load(own)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise OwnTasksError(own, f"holds no BFCL_v4_{SUITE}.json with possible_answer: {error!r}") from None
        without = sorted({task.id for task in self._entries} - {*self._truth})
        if without or not self._entries:
            raise OwnTasksError(own, f"no answer to {without[0]}" if without else "holds no conversation")


def function_of(call: str) -> str:
    return call.partition("(")[0].strip()


@cache
def documents(kind: str) -> dict[str, Any]:
    """The functions of a collection, by name."""
    place = _DATA / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[kind]
    return {line["name"]: line for line in _lines(place)}


def execute(entry: Mapping[str, Any], calls: Sequence[str]) -> list[str]:
    """Make the calls in the benchmark's own way, on the objects that belong to this conversation."""
    replies, _ = multi_turn_utils.execute_multi_turn_func_call(
        list(calls), entry["initial_config"], entry["involved_classes"], _PLAYER, entry["id"]
    )
    return [str(reply) for reply in replies]


def _planned(entry: Mapping[str, Any], turn: Sequence[str]) -> list[Planned]:
    return [Planned(function_of(call), call, reply) for call, reply in zip(turn, execute(entry, turn), strict=True)]


def _forget_instances() -> None:
    """The benchmark keeps its objects in a module's globals, for good; here an episode begins with new ones."""
    for name in [name for name in vars(multi_turn_utils) if re.match(rf"{_PLAYER}_", name)]:
        delattr(multi_turn_utils, name)


def _plain_value(parameter: Mapping[str, Any]) -> Any:
    if parameter.get("enum"):
        return parameter["enum"][0]
    return parameter.get("default", _PLAIN_VALUES[parameter["type"]])


@cache
def _all_documents() -> dict[str, Any]:
    return {name: document for kind in MULTI_TURN_FUNC_DOC_FILE_MAPPING for name, document in documents(kind).items()}


def _lines(place: Traversable) -> list[dict[str, Any]]:
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines() if line.strip()]
