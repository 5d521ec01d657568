"""Tamper-evident logs: links between records, and signed checkpoints over them (docs/chain.md).

Written by `writer.py` with `links.py` and `checkpoint.py`; judged by `check.py`, session by session in `session.py`.
"""
