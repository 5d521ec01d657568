"""The audit: logs and keys in, a verdict and a report out. What the command line, a console or an API asks."""
