"""Fuzzing: whatever is handed in, the only ends are success and a typed error (docs/testing.md)."""
