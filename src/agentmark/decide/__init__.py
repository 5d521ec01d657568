"""Deciding for an agent: list, mark and log in one object, on which every adapter is a thin shell."""
