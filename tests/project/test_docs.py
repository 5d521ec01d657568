"""The pages' Python runs as pasted, each page as one program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
# Pages whose code needs no more than AgentMark. Those of the frameworks run in the environments of the frameworks.
PAGES = ["elicitation.md", "testing.md"]


def python_blocks(page: Path) -> str:
    """The Python blocks of a page, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


@pytest.mark.parametrize("page", PAGES)
def test_python_runs_as_pasted(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(python_blocks(DOCS / page), encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
