"""Rules that every adapter keeps. They run without any framework; each adapter's own tests are in tests/adapters."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What adapters share needs no framework.
SHARED = ("__init__", "side_calls", "streams")
ADAPTERS = sorted(path for path in (ROOT / "src" / "agentmark" / "adapters").glob("*.py") if path.stem not in SHARED)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

each_adapter = pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)

# Every import of anything that is neither AgentMark nor the standard library fails, as if it were not installed.
WITHOUT_PACKAGES = """
import sys
from importlib.abc import MetaPathFinder
class Bare(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in {"agentmark", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Bare())
"""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@each_adapter
def test_an_adapter_has_its_extra_pins_tests_and_page(path: Path) -> None:
    extra = path.stem.replace("_", "-")
    assert extra in EXTRAS
    assert (ROOT / "tests" / "adapters" / f"{extra}.txt").exists()
    assert (ROOT / "tests" / "adapters" / f"test_{path.stem}.py").exists()
    assert (ROOT / "docs" / "frameworks" / f"{extra}.md").exists()


@each_adapter
def test_the_index_has_every_adapter_with_its_version(path: Path) -> None:
    extra = path.stem.replace("_", "-")
    package = EXTRAS[extra][0].split(">")[0]
    pins = (ROOT / "tests" / "adapters" / f"{extra}.txt").read_text(encoding="utf-8")
    index = (ROOT / "docs" / "frameworks" / "README.md").read_text(encoding="utf-8")
    row = next(line for line in index.splitlines() if f"({extra}.md)" in line and line.startswith("|"))
    assert f"\n{package}=={row.split('|')[2].strip()}\n" in pins


@each_adapter
def test_an_adapter_without_its_framework_names_the_extra(path: Path) -> None:
    said = run(
        WITHOUT_PACKAGES + "from agentmark.errors import MissingExtraError\n"
        f"try:\n    import agentmark.adapters.{path.stem}\nexcept MissingExtraError as error:\n    print(error)\n"
    )
    assert f"pip install '.[{path.stem.replace('_', '-')}]'" in said


def test_what_adapters_share_loads_no_adapter() -> None:
    shared = [f"agentmark.adapters.{name}" for name in SHARED if name != "__init__"]
    script = f"import sys, agentmark.adapters, {', '.join(shared)}\n"
    loaded = run(script + "print(sorted(name for name in sys.modules if name.startswith('agentmark.adapters.')))")
    assert loaded.strip() == str(shared)


def test_the_package_loads_no_adapter() -> None:
    loaded = run(
        "import sys, agentmark, agentmark.decide.decider, agentmark.wire.apis\n"
        "print([name for name in sys.modules if name.startswith('agentmark.adapters')])"
    )
    assert loaded.strip() == "[]"
