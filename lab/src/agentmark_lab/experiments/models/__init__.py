"""Real language models: the lists they state, and how they fare with the mark."""
