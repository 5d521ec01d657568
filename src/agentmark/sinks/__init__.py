"""Where records go, beside the plain log of `agentmark.log`: rotated files, SQLite, OpenTelemetry (docs/logs.md)."""
