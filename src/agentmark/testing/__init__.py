"""For tests of agents that use AgentMark: a scripted elicitor, a scripted model, and a provider on the loopback."""

from agentmark.testing.provider import FakeProvider
from agentmark.testing.scripted import ScriptedChat, ScriptedElicitor

__all__ = ["FakeProvider", "ScriptedChat", "ScriptedElicitor"]
