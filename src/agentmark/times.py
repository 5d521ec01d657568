"""The time as records, registries and checkpoints state it."""

from datetime import UTC, datetime


def utc_now() -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
