"""Other ways to choose, behind the same `choose` as a marked session: for comparison, not for marking."""

from agentmark.policies.baseline import BaselineSession
from agentmark.policies.chooser import Chooser
from agentmark.policies.red_green import GreenTest, RedGreenSession, green_test
from agentmark.policies.repetition import RepetitionSession, contains_intact_segment, surviving_bits

__all__ = [
    "BaselineSession",
    "Chooser",
    "GreenTest",
    "RedGreenSession",
    "RepetitionSession",
    "contains_intact_segment",
    "green_test",
    "surviving_bits",
]
