"""Where records are written, and how logs of any format are read back (docs/logs.md)."""
