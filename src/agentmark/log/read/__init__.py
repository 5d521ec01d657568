"""Logs as they are handed in: each format is recognised by what it holds, not by its name (docs/logs.md).

`open.py` opens a log; `formats.py` is the table of formats, one file each; `format.py` says what a format has to do.
"""
