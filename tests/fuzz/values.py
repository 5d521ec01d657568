"""What hostile input is made of: numbers at the edges, text that steers a terminal, names that mean something here."""

import random

# As they would stand in JSON text, valid or not.
NUMBERS = (
    "0", "-0", "-1", "1", "2", "0.5", "1e-320", "1e308", "-1e308", "1e999", "1E400", "NaN", "Infinity", "-Infinity",
    "255", "256", "4095", "4096", "4097", "65536", "4294967295", "4294967296", "4294967297", "9007199254740991",
    "9007199254740992", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1.0", "00", "+1",
    "9" * 310, "9" * 4300, "9" * 4301, "9" * 40_000, "0." + "1" * 5000, "true", "false", "null", "",
)  # fmt: skip

TEXTS = (
    "", " ", "\n", "\r\n", "\t", "\0", "a\0b", "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\x85",
    "\u202etxt.exe", "\u2066a\u2069", "\u200f", "\u061c", "\u2028", "\u2029", "\ufeff", "\ud800", "\udfff\ud83d",
    "\U0001f600", "\U0010ffff", "a\u0301", "ß", "İ", "ﷺ" * 18, "²", "٣", "-", "--", "-x", "--help", "0x", "0b2", "1_0",
    "é" * 400, "a" * 5000, "{", "[", '"', "\\", "\\u0000", "{}", "[]", "%s%n", "{0}", "<script>alert(1)</script>",
    "'\"&<>", "attachment://0", "attachment://", "agentmark.record", "nan", "inf", "1e400", "0x" + "f" * 5000,
    "9" * 5000, "0" * 64, "f" * 64, "F" * 64, "0" * 128, "2026-01-02T03:04:05+00:00",
    "9999-99-99", "0001-01-01T00:00:00+23:59",
)  # fmt: skip

NAMES = (
    "agentmark", "scheme", "key_id", "payload_len", "session", "step", "context", "weights", "choice", "marked",
    "partial", "reason", "enforced", "raw_context", "meta", "prev", "agentmark_checkpoint", "sessions", "total",
    "previous", "time", "public_key", "signature", "count", "head", "agentmark.record", "record", "resourceSpans",
    "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "kvlistValue", "values", "arrayValue", "data",
    "runs", "run_type", "extra", "metadata", "outputs", "inputs", "traceId", "trace_id", "type", "context.span_id",
    "span_id", "name", "attributes.agentmark", "eval", "samples", "status", "events", "event", "source", "attachments",
    "epoch", "messages", "observations", "items", "agentmark_key", "id", "secret", "agentmark_signing_key",
    "agentmark_registry", "payload", "issued_at", "revoked_at", "report", "algorithm", "verdict", "made_at", "version",
)  # fmt: skip

BYTES = (
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\x1b[31m", b"\n", b"\r", b"\r\n",
    b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x01\x02",
    b"PK\x05\x06", b"SQLite format 3\0", b"PAR1", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0",
    b"\0\0\0\x01", b"\x01\0\0\0", b"\xff" * 8, b"\x7f\xf8" + bytes(6), b"\x7f\xf0" + bytes(6), b'{"agentmark',
)  # fmt: skip


def text(rng: random.Random) -> str:
    """Hostile text, or two of them."""
    chosen = rng.choice(TEXTS)
    return chosen + rng.choice(TEXTS) if rng.random() < 0.2 else chosen
