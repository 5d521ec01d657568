"""Environments that nobody here wrote, behind one small protocol. Each is one file, and needs its own packages."""
