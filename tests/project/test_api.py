"""docs/api.md describes every public name, and no other."""

import importlib
import re
from pathlib import Path

import pytest

import agentmark

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
MODULES_HEADING = "## Public modules"
# A row of a table that begins with a name in backticks, and goes on with what it is for.
ROW = re.compile(r"^\| `([\w.]+)` \| (\S.*) \|$", re.MULTILINE)


def described() -> list[str]:
    names, _, _ = PAGE.partition(MODULES_HEADING)
    return [name for name, _ in ROW.findall(names)]


def test_the_page_describes_exactly_the_public_names() -> None:
    public = set(agentmark.__all__) - {"__version__"}
    missing, unknown = sorted(public - set(described())), sorted(set(described()) - public)
    assert not missing, f"docs/api.md lacks a row for {', '.join(missing)}: add '| `NAME` | what it is for |'"
    assert not unknown, f"docs/api.md describes {', '.join(unknown)}, which agentmark.__all__ does not have"


def test_no_name_is_described_twice() -> None:
    assert len(described()) == len(set(described()))


def test_errors_and_only_errors_stand_under_errors() -> None:
    section = PAGE[PAGE.index("## Errors") : PAGE.index(MODULES_HEADING)]
    listed = {name for name, _ in ROW.findall(section)}
    values = {name: getattr(agentmark, name) for name in agentmark.__all__}
    errors = {name for name, value in values.items() if isinstance(value, type) and issubclass(value, Exception)}
    assert listed == errors


def test_the_public_modules_can_be_imported() -> None:
    modules = [name for name, _ in ROW.findall(PAGE[PAGE.index(MODULES_HEADING) :])]
    assert modules
    for name in modules:
        importlib.import_module(name)


@pytest.mark.parametrize("room", ["elicit", "report"])
def test_a_name_that_a_room_hands_on_is_no_module_of_it(room: str) -> None:
    """Whichever is loaded first, the name means the same."""
    package = importlib.import_module(f"agentmark.{room}")
    modules = {path.stem for folder in package.__path__ for path in Path(folder).glob("*.py")}
    assert not modules & set(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__ if name != "TransformersModel")
