"""ALFWorld's text games: find something in a house, clean, heat or cool it, and put it where it belongs.

The games run in their own engine (Fast Downward's, as TextWorld uses it), which says what can be done and when the
goal is reached; names and texts come from ALFWorld and TextWorld. Only what TextWorld does again at every step is left
out: it renders every command and every reply through a grammar, which takes a hundred times as long as the step. Here
a command is its template filled in, and a reply is rendered when it is asked for. All admissible commands are
behaviors, also those that change nothing (`help`, `inventory`, `look`, `examine`).
"""

import gzip
import json
import os
import shutil
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from agentmark_lab.envs.alfworld_expert import CLEAN, COOL, HEAT, LOOK, PLACE, TWO, Goal, Searcher
from agentmark_lab.envs.base import OwnTasksError, Task
from agentmark_lab.kit.data import MissingError, find_data
from agentmark_lab.kit.files import write_whole

MAX_STEPS = 50

# The paper's labels, by the first word of a game's folder.
GROUPS = {
    "look_at_obj_in_light": LOOK,
    "pick_and_place_simple": PLACE,
    "pick_clean_then_place_in_recep": CLEAN,
    "pick_cool_then_place_in_recep": COOL,
    "pick_heat_then_place_in_recep": HEAT,
    "pick_two_obj_and_place": TWO,
}
# Raised when a compiled game would look different.
COMPILED_VERSION = 1


@dataclass(frozen=True, slots=True)
class Compiled:
    """A game in the engine's own form, with what it takes to name things."""

    sas: str
    # Of each action: its template, and its parameters with their types.
    templates: dict[str, str]
    parameters: dict[str, list[list[str]]]
    supertypes: dict[str, list[str]]
    type_of: dict[str, str]
    names: dict[str, str]
    # What holds at the beginning: predicate, then arguments.
    facts: list[list[str]]


class _Houses:
    """The games of one split. The expert is `alfworld_expert`: the game's own planner takes many seconds for a plan in
    a large kitchen, and knows where everything is; the package's handcoded one draws from the global generator, and
    keeps track of what it holds by a command (`put`) that the games no longer have."""

    split: ClassVar[str]
    games: ClassVar[str] = "*/*/game.tw-pddl"
    max_steps = MAX_STEPS

    def __init__(self, work: Path) -> None:
        self._kept = work / "alfworld"
        # ALFWorld makes a folder for its data on import, and would do so in the home folder.
        os.environ.setdefault("ALFWORLD_DATA", str(self._kept))
        _import_engine()
        self._folder = self._find_games()
        self._tasks = [
            Task(str(game.parent.relative_to(self._folder)), self._group(game.parent))
            for game in sorted(self._folder.glob(self.games))
        ]

    def _find_games(self) -> Path:
        return _games_folder(self.split, self._kept)

    def _group(self, folder: Path) -> str:
        return GROUPS[folder.parent.name.partition("-")[0]]

    def _compiled_at(self, folder: Path) -> Path:
        """Beside the game, which was unpacked here."""
        return folder / f"compiled-{COMPILED_VERSION}.json.gz"

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def start(self, task: Task, *, seed: int) -> "Household":
        folder = self._folder / task.id
        order = Random(f"{seed} {task.id}")
        compiled = _compiled(folder, self._compiled_at(folder))
        return Household(folder / "game.tw-pddl", _goal(folder, task.group), compiled, order)


class SeenHouses(_Houses):
    """140 games in rooms that also occur in ALFWorld's training games: the paper's ID."""

    split = "valid_seen"


class UnseenHouses(_Houses):
    """134 games in rooms that do not: the paper's OOD."""

    split = "valid_unseen"


class OwnHouses(_Houses):
    """Games in a folder that somebody brings, at any depth in it: of each `game.tw-pddl`, and beside it the
    `traj_data.json` that says what is to be done. Nothing is written into that folder."""

    games = "**/game.tw-pddl"

    def __init__(self, work: Path, own: Path) -> None:
        self._own = own
        super().__init__(work)
        if not self._tasks:
            raise OwnTasksError(own, "holds no game.tw-pddl, at any depth")

    def _find_games(self) -> Path:
        return self._own

    def _group(self, folder: Path) -> str:
        stated = str(_stated(folder).get("task_type"))
        if stated not in GROUPS:
            raise OwnTasksError(folder, f"traj_data.json names the task type {stated!r}; known: {', '.join(GROUPS)}")
        return GROUPS[stated]

    def _compiled_at(self, folder: Path) -> Path:
        """By its content: the same name may be another game tomorrow."""
        digest = sha256((folder / "game.tw-pddl").read_bytes()).hexdigest()[:32]
        return self._kept / "own" / f"{digest}-{COMPILED_VERSION}.json.gz"


class Household:
    """One game. The engine is one for the process, so that only the episode started last may be played."""

    def __init__(self, game: Path, goal: Goal, compiled: Compiled, rng: Random) -> None:
        self._game = game
        self._compiled = compiled
        self._facts: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for predicate, *arguments in compiled.facts:
            self._facts[predicate].add(tuple(arguments))
        self._engine = _import_engine()
        self._lib = _library()
        self._lib.load_sas(compiled.sas.encode("utf-8"))
        # The action that led here, for its reply; at the beginning there is none.
        self._last: str | None = None
        self._renew()
        self._searcher = Searcher(goal, self._facts, compiled.names, rng)

    def _renew(self) -> None:
        """What can be done now. Where two actions have one command the first counts, as in TextWorld."""
        count = self._lib.get_applicable_operators_count()
        operators = (self._engine.Operator * count)()
        self._lib.get_applicable_operators(operators)
        self._operators: dict[str, Any] = {}
        for operator in operators:
            self._operators.setdefault(self._command(operator.name), operator)
        self._behaviors = tuple(sorted(self._operators))
        self._won = bool(self._lib.check_goal())
        self.__dict__.pop("observation", None)

    def _command(self, operator: str) -> str:
        action, *arguments = operator.split()
        names = [self._compiled.names[argument] for argument in arguments]
        parameters = [name for name, _ in self._compiled.parameters[action]]
        return self._compiled.templates[action].format(**dict(zip(parameters, names, strict=False)))

    @property
    def goal(self) -> str:
        return self._text.task

    @cached_property
    def observation(self) -> str:
        return self._text.reply(self._facts, self._last)

    @cached_property
    def _text(self) -> "_Text":
        return _Text(self._game, self._compiled)

    @property
    def behaviors(self) -> Sequence[str]:
        return self._behaviors

    @property
    def done(self) -> bool:
        return self._won

    @property
    def success(self) -> bool:
        return self._won

    def expert(self) -> str | None:
        advice = self._searcher.advise()
        return advice if advice in self._operators else None

    def step(self, behavior: str) -> None:
        operator = self._operators[behavior]
        effects = (self._engine.Atom * operator.nb_effect_atoms)()
        self._lib.apply_operator(operator.id, effects)
        for effect in effects:
            sign, predicate, arguments = _parsed(effect.name)
            if sign:
                self._facts[predicate].add(arguments)
            else:
                self._facts[predicate].discard(arguments)
        self._last = operator.name
        self._renew()
        self._searcher.look(self._facts)


class _Text:
    """What a game says, in TextWorld's words."""

    def __init__(self, game: Path, compiled: Compiled) -> None:
        from textworld.envs.pddl.logic import GameLogic
        from textworld.generator.game import EntityInfo
        from textworld.logic import Type

        content = json.loads(game.read_text(encoding="utf-8"))
        self._compiled = compiled
        self._logic = GameLogic(domain=content["pddl_domain"], grammar=content["grammar"])
        for name, supertypes in compiled.supertypes.items():
            self._logic.types.add(Type(name, supertypes))
        self._entities = {}
        for identifier, name in compiled.names.items():
            info = EntityInfo(identifier, compiled.type_of[identifier])
            info.name, info.definite, info.indefinite = name, "the", "a"
            self._entities[identifier] = info

    @cached_property
    def task(self) -> str:
        return str(self._logic.grammar.derive("#task#", self._context({}, None)))

    def reply(self, facts: Mapping[str, set[tuple[str, ...]]], operator: str | None) -> str:
        rule = "#intro#" if operator is None else self._logic.actions[operator.split()[0]].feedback_rule
        return str(self._logic.grammar.derive(rule, self._context(facts, operator)))

    def _context(self, facts: Mapping[str, set[tuple[str, ...]]], operator: str | None) -> dict[str, Any]:
        from textworld.logic import Placeholder, Proposition, Variable

        type_of = self._compiled.type_of
        known = [
            Proposition(predicate, [Variable(argument, type_of[argument]) for argument in arguments])
            for predicate, members in facts.items()
            for arguments in sorted(members)
        ]
        mapping = {}
        if operator is not None:
            action, *arguments = operator.split()
            for (name, kind), argument in zip(self._compiled.parameters[action], arguments, strict=False):
                mapping[Placeholder(name, kind)] = Variable(argument, kind)
        return {
            "state": _state(self._logic, known),
            "facts": known,
            "variables": {placeholder.name: self._entities[variable.name] for placeholder, variable in mapping.items()},
            "mapping": mapping,
            "entity_infos": self._entities,
        }


def _state(logic: Any, facts: list[Any]) -> Any:
    """A state of TextWorld with these facts. Its class for PDDL would translate the whole game anew."""
    from collections import Counter

    from textworld.envs.pddl.logic import PddlState

    state = PddlState.__new__(PddlState)
    state._logic = logic
    state._facts = defaultdict(set)
    state._vars_by_name = {}
    state._vars_by_type = defaultdict(set)
    state._var_counts = Counter()
    state.add_facts(facts)
    return state


def _import_engine() -> Any:
    try:
        import alfworld  # noqa: F401
        import fast_downward
        import textworld  # noqa: F401
    except ImportError as error:
        raise MissingError(f"the package {error.name}", "run `make lab` and use .venvs/lab/bin/agentmark") from None
    return fast_downward


@lru_cache(maxsize=1)
def _library() -> Any:
    return _import_engine().load_lib()


def _games_folder(split: str, unpacked: Path) -> Path:
    """The games of a split, unpacked once."""
    remedy = "put the archive of ALFWorld's games there"
    archive = find_data(f"alfworld/{split}.tar.xz", remedy=remedy)
    target = unpacked / "json_2.1.1" / split
    if not target.exists():
        partial = unpacked / f"{split}.partial-{os.getpid()}"
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            (partial / "json_2.1.1" / split).rename(target)
        except OSError:
            # Another run unpacked the same meanwhile, and appeared with all of it at once.
            if not target.exists():
                raise
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _stated(folder: Path) -> dict[str, Any]:
    """What the game's own description says of the task."""
    place = folder / "traj_data.json"
    try:
        stated = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OwnTasksError(place, f"cannot be read: {error}") from None
    if not isinstance(stated, dict) or not isinstance(stated.get("pddl_params"), dict):
        raise OwnTasksError(place, "has no pddl_params, which say what is to be done")
    return stated


def _goal(folder: Path, group: str) -> Goal:
    stated = _stated(folder)["pddl_params"]
    kinds = [f"{stated[name]}type".lower() for name in ("object_target", "parent_target", "toggle_target")]
    return Goal(group, *kinds)


def _compiled(folder: Path, place: Path) -> Compiled:
    """The game translated for the engine; kept in this place, for that takes up to a second."""
    if place.exists():
        with gzip.open(place, "rt", encoding="utf-8") as file:
            return Compiled(**json.load(file))
    compiled = compile_game(json.loads((folder / "game.tw-pddl").read_text(encoding="utf-8")))
    write_whole(place, gzip.compress(json.dumps(asdict(compiled)).encode("utf-8"), compresslevel=3))
    return compiled


def compile_game(content: Mapping[str, str]) -> Compiled:
    """Translate a game with Fast Downward, and name its things as ALFWorld does."""
    from alfworld.agents.utils.misc import Demangler
    from textworld.envs.pddl.logic import GameLogic
    from textworld.generator.game import EntityInfo

    engine = _import_engine()
    with _own_arguments():
        task, sas = engine.pddl2sas(content["pddl_domain"], content["pddl_problem"])
    lib = _library()
    lib.load_sas(sas.encode("utf-8"))
    atoms = (engine.Atom * lib.get_state_size())()
    lib.get_state(atoms)
    state = [_parsed(atom.name) for atom in atoms]
    stated = [
        (atom.predicate, *atom.args) for atom in task.init if hasattr(atom, "predicate") and atom.predicate != "="
    ]
    facts = sorted({*stated, *[(predicate, *arguments) for sign, predicate, arguments in state if sign]})
    type_of = {thing.name: thing.type_name for thing in task.objects}
    mentioned = {argument: EntityInfo(argument, type_of[argument]) for _, *arguments in facts for argument in arguments}
    demangler = Demangler(game_infos=mentioned)
    logic = GameLogic(domain=content["pddl_domain"], grammar=content["grammar"])
    # The template of this one names its receptacle through a query, for which TextWorld has the same shortcut.
    templates = {name: action.template for name, action in logic.actions.items()} | {"gotolocation": "go to {r}"}
    return Compiled(
        sas=sas,
        templates=templates,
        parameters={
            action.name: [[p.name.strip("?"), p.type_name] for p in action.parameters] for action in task.actions
        },
        # A type that is defined twice is the first, as in TextWorld.
        supertypes={kind.name: list(kind.supertype_names) for kind in reversed(task.types)},
        type_of=type_of,
        names={identifier: demangler.demangle_alfred_name(identifier).strip() for identifier in mentioned},
        facts=[list(fact) for fact in facts],
    )


@contextmanager
def _own_arguments() -> Iterator[None]:
    """The translator overwrites the arguments of the process."""
    kept = sys.argv
    try:
        yield
    finally:
        sys.argv = kept


def _parsed(atom: str) -> tuple[bool, str, tuple[str, ...]]:
    """`Atom inreceptacle(a, b)` or `NegatedAtom ...`: whether it holds, its predicate and its arguments."""
    sign, _, rest = atom.partition(" ")
    predicate, _, arguments = rest.rstrip(")").partition("(")
    return sign == "Atom", predicate, tuple([argument for argument in arguments.split(", ") if argument])
