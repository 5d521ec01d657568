"""Disclosures of public mode: what the holder of a marking key proves of some records, to anyone."""
