"""How large a line of a log may be."""

# The longest line that is read, in bytes, and the most that it may take as objects of Python.
MAX_LINE = 16 << 20
MAX_PARSED = 256 << 20
