"""Planned before played, in the history: whoever has the repository sees that the plan of a result was committed, as it
stands, with the code that played it.

What a run was interrupted in is kept for its plan alone (`Campaign.plan`, `Chunk.plan`). That nobody played with other
code, threw that away and committed, no test can see.
"""

import re
import subprocess
import sys
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from agentmark_lab.experiments.utility.trials import _campaigns
from agentmark_lab.kit.experiment import Result
from agentmark_lab.kit.options import Options
from agentmark_lab.kit.plan import Plan

ROOT = Path(__file__).parents[2]
RESULTS = [Result.load(path) for path in sorted((ROOT / "results").glob("*.json"))]
PLANNED = [result for result in RESULTS if "plan" in result.data]
BY_NAME = pytest.mark.parametrize("result", PLANNED, ids=lambda result: result.name)

# What prints the digest of the playing code, as a result states it, in the code of any commit.
_CODE = {
    "model_utility": (
        "from agentmark_lab.experiments.models.model_plan import ModelPlan\n"
        "from agentmark_lab.experiments.models.model_utility import playing_code\n"
        "print({place.environment: playing_code(place) for place in ModelPlan.of('model_utility').places})"
    ),
    "synthid": "from agentmark_lab.experiments.social.synthid import _playing\nprint(_playing())",
}
_CODE_OF_EXPERTS = (
    "from agentmark_lab.kit.campaign import playing_code\n"
    "from agentmark_lab.kit.plan import Plan\n"
    "print({name: playing_code(name) for name in Plan.of('NAME').environments})"
)


def history(*arguments: str) -> bytes | None:
    """What git says; None where it has no answer."""
    asked = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    return asked.stdout if asked.returncode == 0 else None


def commit_of(result: Result) -> str:
    """That played it, in the history that is here."""
    commit = result.version.partition(" at ")[2]
    assert re.fullmatch("[0-9a-f]{10}", commit), f"played by code that is not a commit: {result.version!r}"
    shallow = (history("rev-parse", "--is-shallow-repository") or b"").strip()
    if shallow != b"false":
        pytest.skip("no history here: a clone of the whole repository has it")
    assert history("merge-base", "--is-ancestor", commit, "HEAD") is not None, f"{commit} is not in the history"
    return commit


def test_every_plan_has_its_result() -> None:
    plans = {path.stem for path in (ROOT / "lab/src/agentmark_lab/plans").glob("*.toml")}
    assert {result.name for result in PLANNED} == plans


@BY_NAME
def test_the_plan_was_committed_in_the_code_that_played_it(result: Result) -> None:
    commit = commit_of(result)
    plan = history("show", f"{commit}:{result.data['plan']['file']}")
    assert plan is not None, f"{commit} has no such plan"
    assert sha256(plan).hexdigest() == result.data["plan"]["sha256"]


@BY_NAME
def test_the_playing_code_is_that_of_the_commit(result: Result, tmp_path: Path) -> None:
    """The digest that the result states, calculated again in the code of its commit."""
    archive = history("archive", commit_of(result), "src", "lab/src")
    assert archive is not None
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(tmp_path, filter="data")
    code = _CODE.get(result.name, _CODE_OF_EXPERTS.replace("NAME", result.name))
    before = f"import sys; sys.path[:0] = ['{tmp_path}/src', '{tmp_path}/lab/src']\n"
    asked = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.strip() == str(result.data["playing_code"])


def test_what_is_kept_of_an_interrupted_run_counts_for_its_plan_alone() -> None:
    """Else one could play, look at what is kept, set the margins and go on."""
    plan = Plan.of("bfcl")
    options = Options()
    kept = [repr(one) for one in _campaigns(plan, "first", options, 1, is_read=True)]
    assert all(plan.digest in name for name in kept)
