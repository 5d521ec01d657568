"""Whether the mark hurts an agent: a softened expert in real environments, with the mark and without it."""
