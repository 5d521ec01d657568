"""Adapters: one lazy file for each framework, each a thin shell on `Decider.turn`."""
