"""What many questions cost: the arithmetic of both promises, and that they are kept."""

from math import log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import logs_of_strangers, state_of

from agentmark import SettingError, SharedKey, StepRecord, Verifier
from agentmark.core.statistics import wilson_interval
from agentmark.core.theory import false_positive_rate
from agentmark.verify.correction import Correction, FalseDiscovery, Familywise
from agentmark.verify.many import Group, judge_roll
from agentmark.verify.roll import Roll

# The tests below take chances of this many standard errors: one run in a million fails by chance.
CONFIDENCE = 1 - 2e-6


@given(
    st.lists(st.floats(min_value=-5, max_value=60), min_size=1, max_size=30), st.floats(min_value=1e-6, max_value=0.9)
)
def test_as_many_pass_the_settled_threshold_as_it_was_settled_for(surpluses: list[float], rate: float) -> None:
    """The definition of e-BH, written down once more: the largest k of which k e-values reach K / (k rate)."""
    questions = len(surpluses)
    threshold = FalseDiscovery(rate).settled(surpluses, questions)
    passing = sorted([surplus for surplus in surpluses if false_positive_rate(surplus) <= threshold], reverse=True)
    e_values = sorted([2.0**surplus for surplus in surpluses], reverse=True)
    reached = [k for k, e in enumerate(e_values, start=1) if e * (1 + 1e-9) >= questions / (k * rate)]
    assert len(passing) <= max(reached, default=0)
    surely = [k for k, e in enumerate(e_values, start=1) if e * (1 - 1e-9) >= questions / (k * rate)]
    assert len(passing) >= max(surely, default=0)
    assert threshold == pytest.approx(max(len(passing), 1) * rate / questions)


def test_the_familywise_threshold_does_not_move() -> None:
    correction = Familywise(0.01)
    assert correction.settled([50.0, 50.0], 2) == correction.strictest(2) == correction.mildest(2) == 0.01
    assert correction.tries_paid(300) == 300
    assert "0.01" in correction.explained


def test_more_names_make_it_milder_and_never_milder_than_the_rate() -> None:
    correction = FalseDiscovery(0.1)
    assert correction.settled([1.0] * 10, 10) == correction.strictest(10) == pytest.approx(0.01)
    assert correction.settled([40.0] * 5 + [1.0] * 5, 10) == pytest.approx(0.05)
    assert correction.settled([40.0] * 10, 10) == pytest.approx(0.1) == correction.mildest(10)


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, float("nan"), 1e-301])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    for correction in (Familywise, FalseDiscovery):
        with pytest.raises(SettingError):
            correction(rate)


# The promises, on logs that nobody we know has made. F without noise: a log of s steps of two bits each, and a payload
# of four, is named with probability 2^-(2 s - 4) exactly, as often as a bound allows.


def roll_of(verifier: Verifier, logs: list[list[StepRecord]], correction: Correction) -> Roll:
    groups = [Group(name=f"{i:03}", files=(), state=state_of(verifier, log)) for i, log in enumerate(logs)]
    return judge_roll(verifier, groups, correction=correction, pools=False)


def named_alone(verifier: Verifier, logs: list[list[StepRecord]]) -> int:
    """The shortcut: every log at the threshold, as if it were the only one."""
    return sum(verifier.verify(log).accepted for log in logs)


def test_familywise_error_stays_below_nominal_and_without_correction_does_not() -> None:
    """Hypothesis: with nobody's logs, a roll names somebody with probability at most 0.5. 250 rolls of 8 logs."""
    rng, nominal, trials = Random(1), 0.5, 250
    rolls_with_names = shortcuts_with_names = 0
    for trial in range(trials):
        logs = logs_of_strangers(rng, [3, 3, 3, 3, 4, 4, 4, 4], name=f"familywise {trial}")
        verifier = Verifier(SharedKey(rng.randbytes(32)), any_key_id=True, noise=0, threshold=nominal)
        rolls_with_names += roll_of(verifier, logs, Familywise(nominal)).attributed
        shortcuts_with_names += named_alone(verifier, logs) > 0
    assert wilson_interval(rolls_with_names, trials, confidence=CONFIDENCE).low <= nominal
    # About 0.23 are expected: the bound is not kept by naming nobody.
    assert rolls_with_names > trials * 0.1
    assert wilson_interval(shortcuts_with_names, trials, confidence=CONFIDENCE).low > nominal


def test_the_share_of_wrong_names_stays_below_the_rate_and_without_correction_does_not() -> None:
    """Hypothesis: of a list of names, on average a share of at most 0.3 is wrong. 250 lists: two logs of ours among
    sixteen of nobody's. The interval for a mean of numbers in [0, 1] is Hoeffding's."""
    rng, rate, trials = Random(2), 0.3, 250
    key = SharedKey(rng.randbytes(32))
    wrong_shares: list[float] = []
    shortcut_shares: list[float] = []
    for trial in range(trials):
        ours = logs_of_strangers(rng, [14, 14], name=f"ours {trial}", key=key)
        logs = ours + logs_of_strangers(rng, [3] * 12 + [4] * 4, name=f"discovery {trial}")
        verifier = Verifier(key, any_key_id=True, noise=0, threshold=rate)
        roll = roll_of(verifier, logs, FalseDiscovery(rate))
        named = [row.verdict.accepted for row in roll.rows]
        assert named[:2] == [True, True]
        wrong_shares.append(sum(named[2:]) / sum(named))
        alone = named_alone(verifier, logs[2:])
        shortcut_shares.append(alone / (alone + 2))
    margin = sqrt(-log((1 - CONFIDENCE) / 2) / (2 * trials))
    assert sum(wrong_shares) / trials - margin <= rate
    assert sum(wrong_shares) > 0
    assert sum(shortcut_shares) / trials - margin > rate
