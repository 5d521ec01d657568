"""The embedding side: an `Embedder` holds key and identity, a `Session` marks the decisions of one run."""
