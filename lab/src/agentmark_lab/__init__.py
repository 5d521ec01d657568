"""Experiments: what the theorems promise, measured on the shipped code. A leaf: only the command line imports it."""
