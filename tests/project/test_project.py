"""Rules of the project that matter enough to be tests."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from layers import RANKS

import agentmark
from agentmark.cli import main

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "agentmark"

PURE_MODULES = {
    "collections", "dataclasses", "functools", "hashlib", "json", "math", "operator", "random", "statistics", "struct",
    "typing",
}  # fmt: skip


def imports(path: Path) -> set[str]:
    """Modules that a file imports when it is itself imported (not inside a function)."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted((SOURCE / "core").glob("*.py")), ids=lambda path: path.name)
def test_the_core_is_pure(path: Path) -> None:
    for name in imports(path):
        assert name.startswith("agentmark.core") or name.split(".")[0] in PURE_MODULES, name
    names = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Name)}  # fmt: skip
    assert not names & {"open", "print", "input"}


def test_exports() -> None:
    assert sorted(agentmark.__all__) == sorted(set(agentmark.__all__))
    for name in agentmark.__all__:
        assert getattr(agentmark, name) is not None


def test_importing_agentmark_loads_nothing_foreign() -> None:
    """Law L10, in a fresh interpreter without the site packages of this environment in sight."""
    script = (
        "import sys; before = set(sys.modules); import agentmark;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'agentmark'}));"
        "print(sorted(name for name in sys.modules if name.startswith('agentmark')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['agentmark', 'agentmark.version']"]


def test_every_test_and_module_named_in_the_paper_map_exists() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    for file, test in re.findall(r"`(test_\w+\.py)::(\w+)`", text):
        (path,) = [path for folder in ("tests", "lab/tests") for path in (ROOT / folder).rglob(file)]
        assert f"def {test}(" in path.read_text(encoding="utf-8"), test
    for path, function in re.findall(r"`((?:core|policies|verify/search)/\w+\.py)(?:::(\w+))?`", text):
        source = (SOURCE / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in source, f"{path}::{function}"
    for name in re.findall(r"`theory\.(\w+)`", text):
        assert f"def {name}(" in (SOURCE / "core" / "theory.py").read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    "command",
    [
        "",
        "keygen",
        "identity",
        "embed",
        "verify",
        "inspect",
        "convert",
        "power",
        "signing-key",
        "check-report",
        "chain",
        "calibrate",
        "demo",
        "lab",
    ],
)
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    assert caught.value.code == 0
    assert "usage: agentmark" in capsys.readouterr().out


def test_help_names_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name in ("SQLite", "OTLP/JSON", "Langfuse", "Phoenix", "LangSmith", "Inspect", "gzip or zstd", "docs/logs.md"):
        assert name in text


def test_the_changelog_has_this_version() -> None:
    assert f"## {agentmark.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_files_named_in_the_architecture_exist() -> None:
    """The walk of one decision out and back, and where a new part goes."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|lab|tests)/[\w./]+)`", text)
    assert len(named) > 40
    for path in named:
        assert (ROOT / path).exists(), path
    walk = text.partition("## One decision, out and back")[2].partition("## Where")[0]
    walked = re.findall(r"`src/agentmark/(\w+)", walk)
    assert {"adapters", "wire", "elicit", "embed", "log", "audit", "verify", "report"} <= set(walked)


def test_the_rooms_in_the_architecture_are_those_of_the_table() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = text.partition("## The rooms")[2].partition("## The laws")[0]
    lines = [re.findall(r"`(\w+)(?:/|\.py)`", row.split("|")[1]) for row in rows.splitlines() if row.startswith("| `")]
    ranks = [set(rank) - {"version", "__main__"} for rank in RANKS]
    # Errors and times come before the record there as here; the version and the entry point are no rooms to visit.
    assert [set(line) for line in lines] == [rank for rank in ranks if rank]


def test_every_law_that_the_code_cites_is_defined() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    laws = set(re.findall(r"^\| (L\d+) \|", text, flags=re.MULTILINE))
    assert laws == {f"L{number}" for number in range(1, 13)}
    cited = set()
    for folder in ("src", "lab", "tests", "docs"):
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]:
            cited |= set(re.findall(r"[lL]aw (L\d+)", path.read_text(encoding="utf-8")))
    assert cited <= laws
