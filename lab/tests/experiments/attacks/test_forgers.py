"""Forgers who ask: what each view of a verdict teaches them, and that the stranger's teaches nothing by itself."""

import pytest
from agentmark_lab.experiments.attacks import forgers
from agentmark_lab.experiments.attacks.forgers import (
    BITS,
    LOG_F,
    LOG_R,
    NO_LOG,
    SENTENCE,
    VIEW,
    YES_NO,
    Chunk,
    Row,
)
from agentmark_lab.kit.experiment import Claim


def outcomes(told: str, genuine: str = NO_LOG, *, count: int, threshold: float = 1e-6) -> list[forgers.Outcome]:
    return forgers.run_chunk(Chunk(Row(told, genuine, threshold), count, seed=11, number=0))


@pytest.mark.parametrize("told", [SENTENCE, BITS])
def test_evidence_teaches_a_forger_without_a_genuine_log(told: str) -> None:
    """20 forgers, threshold 1e-6: each asks at most 35 questions, one a forged step, and is accepted in the end.

    This is why the sentence is not for strangers; if it stopped working, the page that says so would be wrong.
    """
    asked = outcomes(told, count=20)
    assert all(questions is not None and 20 <= questions <= 35 for questions in asked), (
        f"each answer gives about one of the twenty bits away: {asked}"
    )


def test_the_strangers_view_does_not() -> None:
    """8 of these forgers with the stranger's answers: nobody gets anywhere.

    Each question is accepted by chance with probability 1e-6 at most, so 1,200 questions are with at most 0.0012.
    """
    assert outcomes(VIEW, count=8) == [None] * 8


@pytest.mark.parametrize("scheme", [LOG_F, LOG_R])
def test_yes_and_no_still_teach_a_forger_who_has_one_genuine_log(scheme: str) -> None:
    """5 forgers with one accepted log each: all forge a log without any of its records.

    No view can prevent this, since it needs the answer alone: docs/verdict.md says what an operator does about it.
    """
    asked = outcomes(YES_NO, scheme, count=5)
    assert all(questions is not None and questions <= 80 for questions in asked), asked


def test_yes_and_no_teach_nothing_before_the_first_yes() -> None:
    """Without a genuine log all answers are "no" until one is "yes", so a forger might as well have written all
    questions down beforehand: N of them are accepted with probability at most N times the threshold.

    Hypothesis: at a threshold of 1/64 and 8 questions, at most 1 in 8 forgers is ever accepted; 150 forgers, five
    standard errors.
    """
    trials, bound = 150, forgers.LUCKY_QUESTIONS * forgers.LUCKY_THRESHOLD
    found = forgers.run_chunk(Chunk(None, trials, seed=11, number=0))
    lucky = len([outcome for outcome in found if outcome is not None])
    assert 0 < lucky <= trials * bound + 5 * (trials * bound * (1 - bound)) ** 0.5


def claims_of(changed: dict[Row | None, list[forgers.Outcome]]) -> list[Claim]:
    """Of an experiment in which everything is as it should be but for what was changed."""
    found: dict[Row | None, list[forgers.Outcome]] = {
        row: [None] * 4 if row.told == VIEW else [22, 30, 21, 25] for row in forgers.ROWS
    }
    return forgers._findings({**found, None: [None] * 100, **changed}).claims


def test_each_claim_can_fail() -> None:
    assert all(claim.holds for claim in claims_of({}))
    for row, found in (
        (Row(SENTENCE, NO_LOG, 1e-6), [22, None, 21, 25]),
        (Row(YES_NO, LOG_R, 1e-6), [None] * 4),
        (Row(VIEW, NO_LOG, 1e-9), [None, 40, None, None]),
        (None, [3] * 40 + [None] * 60),
    ):
        assert [claim.holds for claim in claims_of({row: found})].count(False) == 1, row


def test_the_table_counts_questions() -> None:
    row, later = Row(BITS, NO_LOG, 1e-6), Row(BITS, NO_LOG, 1e-9)
    table = forgers._taught_table({row: [22, None, 21, 25], later: [31, 32, 33, None]})
    assert table.rows == [
        [BITS, NO_LOG, "1e-06", 4, 3, 21, 22, 25, 0],
        [BITS, NO_LOG, "1e-09", 4, 3, 31, 32, 33, 10],
    ]
