"""For tests of agents that use AgentMark: scripted elicitors and models, and two providers on the loopback.

`FakeProvider` says what it was told to say. `RefusingProvider` has a small competent model and refuses what today's
providers refuse; `PROFILES` says who refuses what, and `Errand` is a task for an agent.
"""

from agentmark.testing.provider import FakeProvider
from agentmark.testing.refusing.errand import Errand
from agentmark.testing.refusing.profiles import PROFILES, Profile
from agentmark.testing.refusing.provider import RefusingProvider
from agentmark.testing.scripted import ScriptedChat, ScriptedElicitor

__all__ = [
    "PROFILES",
    "Errand",
    "FakeProvider",
    "Profile",
    "RefusingProvider",
    "ScriptedChat",
    "ScriptedElicitor",
]
