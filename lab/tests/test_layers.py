"""Who may import whom in the lab, and who may look at the environment. Imports inside functions count as well."""

import ast
from pathlib import Path

import agentmark_lab
import pytest
from agentmark_lab.catalogue import EXPERIMENTS, GROUPS

PACKAGE = Path(agentmark_lab.__file__).parent
ROOM = "agentmark_lab.experiments"
# The command line reads it for what a run is to do, and `data` for where data is. ALFWorld finds its folder there, and
# the experiment on speed starts interpreters that inherit it.
READERS = {"cli.py", "kit/data.py", "envs/alfworld.py", "experiments/theory/speed.py"}
WRITERS = {"envs/alfworld.py"}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def named(source: str, modules: set[str], *, strings: bool = True) -> set[str]:
    """The modules of the lab that a source names: in an import anywhere in it, or as a string to import by."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *[f"{node.module}.{alias.name}" for alias in node.names]}
        elif strings and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(":")[0])
    return found & modules


def imported(path: Path) -> set[str]:
    return named(path.read_text(encoding="utf-8"), set(MODULES))


def group_of(module: str) -> str:
    return module.removeprefix(f"{ROOM}.").partition(".")[0]


def in_room(*rooms: str) -> list[str]:
    return [name for name in MODULES if name.startswith(tuple([f"agentmark_lab.{room}" for room in rooms]))]


def test_an_import_is_seen_wherever_it_hides() -> None:
    modules = {"lab.a", "lab.b", "lab.c", "lab.d", "lab.e"}
    source = (
        "from lab import a\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lab.b import x\n"
        "def later():\n    import lab.c\n    import_module('lab.d:Thing')\n"
    )
    assert named(source, modules) == {"lab.a", "lab.b", "lab.c", "lab.d"}


def test_every_experiment_is_in_the_catalogue_under_its_name() -> None:
    assert {module for module in MODULES if _has_run(MODULES[module])} == set(EXPERIMENTS.values())
    for group in GROUPS:
        for name in group.modules:
            assert f'NAME = "{name}"' in MODULES[EXPERIMENTS[name]].read_text(encoding="utf-8")


def _has_run(path: Path) -> bool:
    """An experiment is a module of the room with a function `run`."""
    if not name_of(path).startswith(ROOM):
        return False
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in body)


@pytest.mark.parametrize("module", in_room("experiments"))
def test_no_experiment_imports_another(module: str) -> None:
    for other in imported(MODULES[module]):
        assert other not in EXPERIMENTS.values() or other == module, other
        if other.startswith(f"{ROOM}."):
            assert group_of(other) == group_of(module), f"{other} is a helper of another group"
        else:
            assert other == ROOM or other.split(".")[1] in ("kit", "envs", "peers"), other


@pytest.mark.parametrize("module", in_room("kit", "envs", "peers"))
def test_what_experiments_share_knows_none_of_them(module: str) -> None:
    for other in imported(MODULES[module]):
        assert other == "agentmark_lab" or other.split(".")[1] in ("kit", "envs", "peers"), other


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Names in strings are left out: the catalogue and the environments' table import when they are asked."""
    left = {
        name: named(path.read_text(encoding="utf-8"), set(MODULES), strings=False) - {name}
        for name, path in MODULES.items()
    }
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left


@pytest.mark.parametrize("module", MODULES)
def test_nobody_is_told_through_the_environment(module: str) -> None:
    path = MODULES[module]
    place = path.relative_to(PACKAGE).as_posix()
    reads, writes = environment_of(path.read_text(encoding="utf-8"))
    assert not reads or place in READERS
    assert not writes or place in WRITERS


def environment_of(source: str) -> tuple[bool, bool]:
    """Whether a source looks at the environment, and whether it changes it."""
    reads = writes = False
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Name):
            called = node.attr if isinstance(node, ast.Attribute) else node.id
            reads |= called in ("environ", "environb", "getenv")
            writes |= called in ("putenv", "unsetenv")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            writes |= node.func.attr in ("setdefault", "update", "pop") and _is_environment(node.func.value)
        if isinstance(node, ast.Assign | ast.Delete):
            items = [target for target in node.targets if isinstance(target, ast.Subscript)]
            writes |= any(_is_environment(item.value) for item in items)
    return reads, writes


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import os\nos.environ.get('X')", (True, False)),
        ("from os import getenv\ngetenv('X')", (True, False)),
        ("import os\nos.environ['X'] = 'y'", (True, True)),
        ("import os\nos.environ.update(X='y')", (True, True)),
        ("environment = {}\nenvironment['X'] = 1", (False, False)),
    ],
)
def test_a_look_at_the_environment_is_seen(source: str, seen: tuple[bool, bool]) -> None:
    assert environment_of(source) == seen
