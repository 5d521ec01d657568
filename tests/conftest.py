"""Settings for every test."""

from hypothesis import settings

# These machines are shared: a slow example says nothing, and the examples are the same in every run.
settings.register_profile("agentmark", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("agentmark")
