"""Where gateways keep records, decisions, tenants and calls: SQLite or PostgreSQL, behind one class (docs/store.md)."""
