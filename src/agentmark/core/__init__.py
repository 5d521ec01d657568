"""The named primitives: pure functions on the standard library, with no I/O, clock, environment or globals."""
