"""Other ways to choose, behind the same `choose` as a marked session: for comparison, not for marking."""

from agentmark.policies.baseline import BaselineSession
from agentmark.policies.chooser import Chooser
from agentmark.policies.early_stopping import EarlyStoppingSession
from agentmark.policies.red_green import GreenTest, RedGreenSession, green_test

__all__ = ["BaselineSession", "Chooser", "EarlyStoppingSession", "GreenTest", "RedGreenSession", "green_test"]
