"""Planned before played, in the history: whoever has the repository sees that the plan of a result was committed, as it
stands, in the code that played it."""

import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from agentmark_lab.kit.experiment import Result

ROOT = Path(__file__).parents[2]
RESULTS = [Result.load(path) for path in sorted((ROOT / "results").glob("*.json"))]
PLANNED = [result for result in RESULTS if "plan" in result.data]


def history(*arguments: str) -> bytes | None:
    """What git says; None where it has no answer."""
    asked = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    return asked.stdout if asked.returncode == 0 else None


def test_every_plan_has_its_result() -> None:
    plans = {path.stem for path in (ROOT / "lab/src/agentmark_lab/plans").glob("*.toml")}
    assert {result.name for result in PLANNED} == plans


@pytest.mark.parametrize("result", PLANNED, ids=lambda result: result.name)
def test_the_plan_was_committed_in_the_code_that_played_it(result: Result) -> None:
    commit = result.version.partition(" at ")[2]
    assert commit, "played by code that was not committed"
    assert commit.isalnum(), f"played by code with changes that were not committed: {commit}"
    if (
        history("rev-parse", "HEAD") is None
        or (history("rev-parse", "--is-shallow-repository") or b"").strip() != b"false"
    ):
        pytest.skip("no history here: a clone of the whole repository has it")
    plan = history("show", f"{commit}:{result.data['plan']['file']}")
    assert plan is not None, f"commit {commit} is not in the history, or has no such plan"
    assert sha256(plan).hexdigest() == result.data["plan"]["sha256"]
    assert history("merge-base", "--is-ancestor", commit, "HEAD") is not None, f"{commit} is no ancestor"
