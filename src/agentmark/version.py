"""The version of this distribution, and of the lab's beside it."""

__version__ = "0.1.0"
