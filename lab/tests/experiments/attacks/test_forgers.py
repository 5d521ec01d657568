"""Forgers who ask: what each view of a verdict teaches them, and that the stranger's teaches nothing by itself."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

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

from agentmark.verify.verdict import Verdict


def outcomes(told: str, genuine: str = NO_LOG, *, count: int, threshold: float = 1e-6) -> list[forgers.Outcome]:
    return done(told, genuine, count=count, threshold=threshold).outcomes


def done(told: str, genuine: str = NO_LOG, *, count: int, threshold: float = 1e-6) -> forgers.Done:
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
    shown = done(VIEW, count=8)
    assert shown.outcomes == [None] * 8
    assert list(shown.refusals.values()) == [8 * forgers.MOST_QUESTIONS], "one view, to the letter"
    assert forgers._refusals_claim(forgers.refusals_of([shown])).holds


@dataclass(frozen=True)
class LeakingView:
    """A stranger's view that tells one thing more."""

    accepted: bool
    more: Any

    def as_dict(self) -> dict[str, Any]:
        return {"accepted": self.accepted, "sentence": f"Not attributed: {self.more}."}


def evidence_leaks(verdict: Verdict) -> LeakingView:
    return LeakingView(verdict.accepted, f"{verdict.evidence_bits:.1f} bits")


def bound_leaks(verdict: Verdict) -> LeakingView:
    return LeakingView(verdict.accepted, 2**-verdict.evidence_bits)


@pytest.mark.parametrize("leak", [evidence_leaks, bound_leaks])
def test_a_view_that_leaks_is_found_out(leak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """5 forgers before a verifier whose view for strangers tells the evidence, or its bound (less is better there)."""
    monkeypatch.setattr(Verdict, "for_stranger", leak)
    for threshold in forgers.THRESHOLDS:
        shown = done(VIEW, count=5, threshold=threshold)
        assert None not in shown.outcomes
        assert not forgers._refusals_claim(forgers.refusals_of([shown])).holds


def test_a_verifier_that_refuses_in_two_ways_fails_the_claim() -> None:
    def holds(*parts: tuple[float, dict[str, int]]) -> bool:
        done = [forgers.Done(threshold, [], Counter(views)) for threshold, views in parts]
        return forgers._refusals_claim(forgers.refusals_of(done)).holds

    assert holds((1e-6, {"a": 3}), (1e-6, {"a": 2}), (1e-9, {"b": 1}), (1e-3, {}))
    assert not holds((1e-6, {"a": 3}), (1e-6, {"b": 2}))
    assert not holds((1e-6, {})), "nothing was shown"


@pytest.mark.parametrize("scheme", [LOG_F, LOG_R])
def test_yes_and_no_still_teach_a_forger_who_has_one_genuine_log(scheme: str) -> None:
    """5 forgers with one accepted log each: all forge a log without any of its records.

    No view can prevent this, since it needs the answer alone: docs/verdict.md says what an operator does about it.
    """
    asked = outcomes(YES_NO, scheme, count=5)
    assert all(questions is not None and questions <= 80 for questions in asked), asked


def test_questions_written_down_beforehand_are_accepted_as_seldom_as_the_bound_says() -> None:
    """N of them are accepted with probability at most N times the threshold. Without a genuine log all answers are
    "no" until one is "yes", so nobody can do better by adapting: that follows from the rules, and is not tried here.

    Hypothesis: at a threshold of 1/64 and 8 questions, at most 1 in 8 forgers is ever accepted; 150 forgers, five
    standard errors.
    """
    trials, bound = 150, forgers.LUCKY_QUESTIONS * forgers.LUCKY_THRESHOLD
    found = forgers.run_chunk(Chunk(None, trials, seed=11, number=0)).outcomes
    lucky = len([outcome for outcome in found if outcome is not None])
    assert 0 < lucky <= trials * bound + 5 * (trials * bound * (1 - bound)) ** 0.5


def claims_of(changed: dict[Row | None, list[forgers.Outcome]]) -> list[Claim]:
    """Of an experiment in which everything is as it should be but for what was changed."""
    found: dict[Row | None, list[forgers.Outcome]] = {
        row: [None] * 4 if row.told == VIEW else [22, 30, 21, 25] for row in forgers.ROWS
    }
    found[None] = [None] * 100
    return forgers._findings({**found, **changed}, {1e-6: Counter(["no"])}).claims


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
