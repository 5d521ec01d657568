"""Secrets: the shared key that marks and reads, the key that signs, and how both are kept."""
