"""What is planned before it is played: complete, of seeds that no two sets share, and of trials that can show what they
are to show."""

from hashlib import sha256
from pathlib import Path

import pytest
from agentmark_lab.kit.plan import FOLDER, Measure, Plan, PlanError

# The plan of what a language model plays has a form of its own (`experiments/models/model_plan.py`).
NAMES = sorted({path.stem for path in FOLDER.glob("*.toml")} - {"model_utility"})
UTILITY = ["agentdojo", "alfworld", "bfcl", "scienceworld", "toolbench"]

GOOD = """
environments = ["corridors"]
tasks = 12
stopping = "All are played."
pilot = "seed 9"
[sets]
first = 100
second = 200
[[level]]
epsilon = 0.1
trials = 5
read = 2
success = { margin = 0.5, pilot_sd = 0.4 }
steps = { margin = 5, pilot_sd = 4 }
"""


def test_every_experiment_on_utility_has_a_plan() -> None:
    assert set(NAMES) == {*UTILITY, "synthid"}


@pytest.mark.parametrize("name", NAMES)
def test_the_margins_follow_from_the_trials(name: str) -> None:
    """With the pilot's spread every test shows equivalence with a chance of 0.95, where episodes are cheap of 0.997, if
    there is no difference at all."""
    plan, chance = Plan.of(name), 0.95 if name in ("scienceworld", "synthid") else 0.997
    assert len(plan.sets) == 2
    for level in plan.levels:
        for measure in (level.success, level.steps):
            assert measure.power(plan.tasks * level.trials, plan.tasks) >= chance


def written(folder: Path, text: str) -> Plan:
    (folder / "p.toml").write_text(text, encoding="utf-8")
    return Plan.of("p", folder)


def test_a_plan_is_known_by_its_bytes(tmp_path: Path) -> None:
    plan = written(tmp_path, GOOD)
    assert plan.digest == sha256(GOOD.encode()).hexdigest()
    assert plan.data["sha256"] == plan.digest
    assert plan.digest in plan.sentence
    assert written(tmp_path, GOOD.replace("margin = 5", "margin = 6")).digest != plan.digest


def test_a_seed_moves_both_sets_and_they_stay_apart(tmp_path: Path) -> None:
    plan = written(tmp_path, GOOD)
    (level,) = plan.levels
    assert list(plan.seeds("first", level, seed=1)) == [100, 101, 102, 103, 104]
    assert list(plan.seeds("second", level, seed=3)) == [202, 203, 204, 205, 206]


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("second = 200", "second = 104", "share seeds"),
        ("read = 2", "read = 6", "reads more trials"),
        ("trials = 5", "trials = 0", "plans no trial"),
        ('stopping = "All are played."', "", "stopping"),
        ("margin = 0.5, ", "", "margin"),
        ("[sets]", "[sets", "not complete"),
    ],
)
def test_a_plan_that_leaves_something_open_is_refused(tmp_path: Path, before: str, after: str, fault: str) -> None:
    with pytest.raises(PlanError, match=fault):
        written(tmp_path, GOOD.replace(before, after))


def test_no_plan_no_play(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        Plan.of("none", tmp_path)


def test_power_grows_with_the_trials() -> None:
    measure = Measure(0.02, 0.6)
    assert measure.power(500, 100) == 0
    assert 0.4 < measure.power(5_000, 100) < measure.power(20_000, 100) < 1
