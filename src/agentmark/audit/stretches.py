"""Stretches of a log that its identity does not explain: whose they are, or where to look."""

from collections.abc import Callable, Sequence

from agentmark.verify.defaults import SEGMENTED_UNASKED
from agentmark.verify.intake import Intake
from agentmark.verify.judge import Judge
from agentmark.verify.search.splice import SHORTEST_WINDOW, Stretch, segment
from agentmark.verify.verdict import Segment, Verdict


def find_segments(
    judge: Judge, intake: Intake, verdict: Verdict, *, asked: bool, progress: Callable[[str], None]
) -> tuple[tuple[Segment, ...], list[str]]:
    """The stretches of a spliced log; where looking for them takes long and was not asked for, a sentence instead."""
    foreign = _foreign_stretches(intake, verdict)
    if asked or (foreign and len(intake.steps) <= SEGMENTED_UNASKED):
        progress("looking for stretches of several identities")
        segments = judge.segments(intake)
        return (segments if len(segments) > 1 else ()), []
    return (), [_hint(foreign)] if foreign else []


def _foreign_stretches(intake: Intake, verdict: Verdict) -> list[Stretch]:
    """Stretches that the accepted identity does not explain: another agent's, if they are long."""
    if verdict.payload is None or verdict.contradicting == 0:
        return []
    readings = [step.reading for step in intake.steps]
    stretches = segment(readings, [verdict.payload], bits_paid=lambda _: verdict.bits_paid)
    return [s for s in stretches if s.payload is None and s.last - s.first + 1 >= SHORTEST_WINDOW]


def _hint(foreign: Sequence[Stretch]) -> str:
    places = ", ".join(f"{stretch.first + 1} to {stretch.last + 1}" for stretch in foreign)
    return f"records {places} do not fit the first identity: another's, perhaps; --segments looks for whose they are"
