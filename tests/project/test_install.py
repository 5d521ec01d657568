"""What people are told to install is there to be installed: no package index has AgentMark under a name of ours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "CONTRIBUTING.md", "Makefile", "docs", "src", "lab/src", "tools")
# `pip install X` where X is one of our names: as such, with extras, or with a version.
FROM_AN_INDEX = re.compile(r"pip install (?:-\S+ )*['\"]?agentmark[\w-]*(?:\[|['\"=<>\s`.,]|$)")


def files() -> list[Path]:
    found = [path for place in PLACES for path in [ROOT / place, *(ROOT / place).rglob("*")]]
    return [path for path in found if path.is_file() and path.suffix in (".md", ".py", ".txt", ".toml", "")]


def test_nobody_is_sent_to_a_package_index_for_agentmark() -> None:
    assert len(files()) > 200
    advice = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files()
        for match in FROM_AN_INDEX.finditer(path.read_text(encoding="utf-8"))
    ]
    assert advice == []


def test_the_search_finds_such_advice() -> None:
    for advice in ("pip install agentmark", "pip install 'agentmark[http]'", "pip install -U agentmark-lab==1"):
        assert FROM_AN_INDEX.search(f"run {advice} first")
    assert not FROM_AN_INDEX.search("pip install '.[http]' in a clone of AgentMark")


@pytest.mark.slow
def test_the_wheel_installs_and_runs_where_no_clone_is(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT], check=True
    )
    (wheel,) = tmp_path.glob("agentmark_provenance-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[signed]"], check=True)
    key = tmp_path / "signing.json"
    done = subprocess.run(
        [tmp_path / "env/bin/agentmark", "signing-key", key], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert key.exists()
