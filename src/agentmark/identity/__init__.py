"""Who has which payload: the registry of identities, as a file of lines or a SQLite table."""
