"""The experiment on false positives draws as it says."""

import random

from agentmark_lab.experiments.theory import false_positives
from agentmark_lab.kit.options import Options
from lab_support import silent


def test_another_seed_gives_other_draws():
    one, two = [false_positives.run(Options(quick=True, seed=seed), silent).data for seed in (1, 2)]
    assert one != two


def test_a_trial_trims_to_exactly_the_wanted_equations():
    verdicts = false_positives.trial(false_positives.UNMARKED, random.Random(1))
    assert len(verdicts) == len(false_positives.OVERHEADS)
    # Once contradicted, always contradicted.
    assert verdicts == sorted(verdicts, reverse=True)
