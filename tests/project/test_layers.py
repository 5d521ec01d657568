"""The layers hold, and the check that says so notices when they do not."""

import shutil
from pathlib import Path

import pytest
from layers import INNER_RANKS, RANKS, import_graph, violations

SOURCE = Path(__file__).parents[2] / "src" / "agentmark"


def test_nobody_crosses_a_line() -> None:
    assert violations(SOURCE) == []


def test_the_table_speaks_of_rooms_that_exist() -> None:
    rooms = {name.split(".")[0] for name in import_graph(SOURCE)}
    assert rooms == {room for rank in RANKS for room in rank}
    for room, ranks in INNER_RANKS.items():
        parts = {name.split(".")[1] for name in import_graph(SOURCE) if name.startswith(f"{room}.")}
        assert parts == {part for rank in ranks for part in rank}, room


def lazily(statement: str) -> str:
    return f"\n\ndef _late() -> None:\n    {statement}\n"


PLANTED = {
    "direct": (
        "verify/intake.py",
        "from agentmark.embed.embedder import Embedder\n",
        "verify.intake imports embed.embedder: embed is not below verify",
    ),
    "transitive": (
        "identity/table.py",
        "from agentmark.verify.verdict import Verdict\n",
        "embed reaches verify: embed.embedder -> identity.registry -> identity.table -> verify.verdict",
    ),
    "lazy": (
        "embed/session.py",
        lazily("from agentmark.verify.verifier import Verifier"),
        "embed.session imports verify.verifier: verify is not below embed",
    ),
    "by name": (
        "record.py",
        lazily('import_module("agentmark.log.sink")'),
        "record imports log.sink: log is not below record",
    ),
    "package-internal": (
        "verify/search/walsh.py",
        "from agentmark.verify.judge import Judge\n",
        "verify.search.walsh imports verify.judge: inside verify, judge is above search",
    ),
    "relative": (
        "verify/tamper.py",
        "from .. import decide\n",
        "verify.tamper imports decide: decide is not below verify",
    ),
    "cycle": (
        "core/prf.py",
        lazily("from agentmark.core.context import context_digest"),
        "cycle: core.context -> core.prf -> core.context",
    ),
    "put together": (
        "record.py",
        lazily('import_module(f"agentmark.{room}")'),
        "record imports by a name that nobody can check: import_module(f'agentmark.{room}')",
    ),
    "by keyword": (
        "record.py",
        lazily('import_module(name="agentmark.log.sink")'),
        "record imports by a name that nobody can check: import_module(name='agentmark.log.sink')",
    ),
    "under another name": (
        "record.py",
        lazily("from importlib import import_module as load"),
        "record imports import_module under another name",
    ),
    "executed": (
        "record.py",
        lazily('exec("import agentmark.cli")'),
        "record imports by a name that nobody can check: exec('import agentmark.cli')",
    ),
    "handed on": (
        "log/__init__.py",
        "from agentmark.log.read.open import open_log\n",
        "log loads log.read.open for whoever imports any module of it",
    ),
    "adapters": (
        "adapters/adk.py",
        "from agentmark.adapters.langchain import chat as other_chat\n",
        "adapters.adk imports adapters.langchain: adapters know nothing of each other",
    ),
    "leaf": (
        "cli/power.py",
        "from agentmark.testing import FakeProvider\n",
        "cli.power imports testing: testing is a leaf",
    ),
    "front door": (
        "report/content.py",
        "from agentmark import Verifier\n",
        "report.content imports the front door: import from the file where a name lives",
    ),
    "lab": (
        "cli/lab.py",
        lazily("from agentmark_lab.cli import add_parser"),
        "cli.lab imports agentmark_lab: agentmark_lab has no rank in the table",
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_violation_is_found(kind: str, tmp_path: Path) -> None:
    file, line, expected = PLANTED[kind]
    tree = tmp_path / "agentmark"
    shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    with (tree / file).open("a", encoding="utf-8") as source:
        source.write(line)
    assert expected in violations(tree)


def test_a_new_room_needs_a_rank(tmp_path: Path) -> None:
    tree = tmp_path / "agentmark"
    shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "attic.py").write_text("from agentmark.record import StepRecord\n", encoding="utf-8")
    assert "attic imports record: attic has no rank in the table" in violations(tree)
