"""Adapters: one lazy file for each framework, each a thin shell on `agentmark.decide.Decider`."""
