"""The tables, for either database."""

VERSION = 1

# Records and calls are append-only: what retention deletes has to be announced in `expirations` first, and stays so.
# Decisions are what a gateway remembers for a while, not evidence: they may go at any time.
TABLES = """
CREATE TABLE @records (
    id {number},
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    step {integer} NOT NULL,
    context {bytes} NOT NULL,
    outcome {small} NOT NULL,
    key_id TEXT NOT NULL,
    line TEXT NOT NULL,
    written_at {time} NOT NULL
);
CREATE UNIQUE INDEX records_by_context ON @records (context, outcome);
CREATE INDEX records_by_session ON @records (session);
CREATE INDEX records_by_time ON @records (written_at);
CREATE TABLE @decisions (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    retry_key TEXT,
    session TEXT NOT NULL,
    place {bytes} NOT NULL,
    said TEXT NOT NULL,
    context {bytes},
    request_digest {bytes} NOT NULL,
    created_at {time} NOT NULL,
    expires_at {time} NOT NULL,
    settled {small} NOT NULL,
    reply {bytes},
    answer TEXT NOT NULL
);
CREATE INDEX decisions_by_retry_key ON @decisions (tenant, retry_key) WHERE retry_key IS NOT NULL;
CREATE INDEX decisions_by_place ON @decisions (session, place);
CREATE INDEX decisions_by_expiry ON @decisions (expires_at) WHERE reply IS NOT NULL;
CREATE INDEX decisions_by_time ON @decisions (created_at);
CREATE TABLE @tenants (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    key_file TEXT,
    upstream_credential TEXT,
    requests_per_minute {integer},
    concurrent_requests {integer},
    created_at {time} NOT NULL,
    revoked_at {time}
);
CREATE TABLE @api_keys (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES @tenants (name),
    digest {bytes} NOT NULL,
    created_at {time} NOT NULL,
    revoked_at {time}
);
CREATE TABLE @calls (
    id {number},
    tenant TEXT NOT NULL,
    what TEXT NOT NULL,
    detail TEXT NOT NULL,
    written_at {time} NOT NULL
);
CREATE INDEX calls_by_time ON @calls (written_at);
CREATE TABLE @expirations (
    id {number},
    before {time} NOT NULL,
    at {time} NOT NULL,
    what TEXT NOT NULL,
    deleted {integer} NOT NULL
);
CREATE INDEX expirations_by_time ON @expirations (what, before);
"""
