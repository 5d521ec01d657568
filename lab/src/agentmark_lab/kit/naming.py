"""When a log names its identity: after how many steps; and stretch by stretch, where several agents made it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2

from agentmark.core.evidence import Evidence
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.intake import read_step
from agentmark.verify.verdict import Segment

# A joint that is found within so many steps is found.
TOLERANCE = 5


def named_after(records: Sequence[StepRecord], key: SharedKey, payload: int, *, payload_len: int) -> float:
    """After how many steps the identity is accepted, with all payloads of its length paid for."""
    evidence = Evidence()
    for number, record in enumerate(records, start=1):
        reading = read_step(record, key, payload_len).reading
        if reading is not None:
            evidence.update(reading.e_value(payload))
        if evidence.bits >= payload_len - log2(DEFAULT_THRESHOLD):
            return number
    return inf


@dataclass(frozen=True, slots=True)
class Splice:
    """Whether every stretch is named right, in order and nothing besides; the largest error of a joint; and whether an
    identity was named that is in nobody's stretch."""

    named: bool
    error: int | None
    invented: bool

    @property
    def success(self) -> bool:
        return self.named and self.error is not None and self.error <= TOLERANCE


def judge_splice(segments: tuple[Segment, ...], truth: list[int | None], cuts: list[int]) -> Splice:
    """Two stretches of the same finding side by side count as one."""
    merged: list[Segment] = []
    for segment in segments:
        if not merged or merged[-1].payload != segment.payload:
            merged.append(segment)
    named = [segment.payload for segment in merged] == truth
    invented = any(segment.payload is not None and segment.payload not in truth for segment in merged)
    error = None
    if named:
        error = max(abs(segment.first - cut) for segment, cut in zip(merged[1:], cuts, strict=True))
    return Splice(named, error, invented)
