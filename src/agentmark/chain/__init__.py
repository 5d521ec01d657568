"""Tamper-evident logs: links between records, and signed checkpoints over them (docs/chain.md)."""
