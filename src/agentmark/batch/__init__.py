"""Records as columns: millions of steps read, kept and judged by arrays (extra: fast).

Whatever a column says is what the plain reader says of the same record, and what one refuses the other refuses. Without
the extra the plain engine serves.
"""
