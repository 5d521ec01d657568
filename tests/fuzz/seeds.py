"""Real inputs of every kind, made at the start: what is mutated begins as something that works."""

import base64
import gzip
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from chained_logs import SIGNER, STRANGER, one_session, two_sessions
from log_run import KEY, PAYLOAD, PAYLOAD_LEN
from log_shapes import EXPORTS, LINES, RUN, SHAPES
from support import marked_log

from agentmark import Monitor, SqliteLog
from agentmark.audit.case import Case, ReportOrder
from agentmark.core.evidence import Evidence
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.disclosure.tenants import Tenant, Tenants
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.public import PublicKey
from agentmark.log.rotating import RotatingLog
from agentmark.report import sign_report
from agentmark.verify.keyring import Keyring
from agentmark.verify.state import accumulate
from fuzz.mutate import MAX_INPUT

FEW = 8


def _jsonl(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@cache
def native_logs() -> list[bytes]:
    """AgentMark's own lines: F, R, in part, unmarked, odd names, chained and signed, of several lengths."""
    logs = [_jsonl(LINES[:FEW]), _jsonl(LINES[30:44]), _jsonl(LINES[-3:])]
    logs += [_jsonl([line.to_json() for line in lines[:30]]) for lines in (one_session(), two_sessions())]
    for scheme, payload_len in (("F", 8), ("R", 8), ("R", 32), ("F", 128)):
        payload = PAYLOAD % (1 << payload_len)
        records = marked_log(KEY, scheme=scheme, payload=payload, payload_len=payload_len, steps=20)
        logs.append(_jsonl([record.to_json() for record in records]))
    return logs


@cache
def packed_logs() -> list[bytes]:
    """The same, packed and rotated."""
    logs = [gzip.compress(log, mtime=0) for log in native_logs()]
    with tempfile.TemporaryDirectory() as folder:
        with RotatingLog(Path(folder) / "run.jsonl", max_bytes=4000, compress=True) as log:
            for record in RUN[:30]:
                log.write(record)
        logs += [path.read_bytes() for path in sorted(Path(folder).glob("*.gz"))]
    try:
        import zstandard
    except ImportError:
        return logs
    return logs + [zstandard.ZstdCompressor().compress(log) for log in native_logs()]


@cache
def export(name: str) -> list[bytes]:
    """The shapes of one format, after log_shapes.py, whose names begin so."""
    return [make(LINES[:FEW]) for shape, (make, _) in SHAPES.items() if shape.startswith(name)]


@cache
def recorded(pattern: str) -> list[bytes]:
    """What the real packages wrote."""
    contents = [path.read_bytes() for path in sorted(EXPORTS.glob(pattern))]
    return [content for content in contents if len(content) <= MAX_INPUT]


@cache
def databases() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with SqliteLog(path) as log:
            for record in RUN[:FEW]:
                log.write(record)
        return [path.read_bytes()]


@cache
def logs() -> list[bytes]:
    """Logs of every kind."""
    return [*native_logs(), *packed_logs(), *export(""), *recorded("*"), *databases()]


# What is not a log ---------------------------------------------------------------------------------------------------


def _saved(save: object, name: str = "file") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(path)  # type: ignore[operator]
        return path.read_bytes()


@cache
def key_files() -> list[bytes]:
    return [_saved(KEY.save)]


@cache
def signing_key_files() -> list[bytes]:
    return [_saved(SIGNER.save)]


def registry() -> Registry:
    """Names of several kinds, one of them revoked."""
    issued = "2026-01-02T03:04:05+00:00"
    names = ("tenant-0042", "Zürich 😀", "42", "0x2a", "a b")
    made = Registry(PAYLOAD_LEN, [Identity(name, number, issued) for number, name in enumerate(names)])
    made.add(Identity("the agent", PAYLOAD, issued, issued))
    return made


@cache
def registry_files() -> list[bytes]:
    return [_saved(registry().save)]


@cache
def registry_tables() -> list[bytes]:
    return [_saved(registry().save, "registry.db")]


def _public_vectors() -> Any:
    return json.loads((Path(__file__).parents[2] / "vectors" / "public.json").read_text(encoding="utf-8"))


@cache
def disclosures() -> list[bytes]:
    return [case["text"].encode() for case in _public_vectors()["disclosures"]["valid"]]


def _public_key() -> PublicKey:
    return PublicKey.from_dict(json.loads(disclosures()[0])["public_key"])


@cache
def public_key_files() -> list[bytes]:
    return [_saved(_public_key().save)]


@cache
def tenants_files() -> list[bytes]:
    time = "2026-01-02T03:04:05+00:00"
    return [_saved(Tenants([Tenant("Zürich 😀", _public_key(), time, time)]).save)]


@cache
def signed_reports() -> list[bytes]:
    """A report of a log that is attributed, and of one that is not."""
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for number, lines in enumerate((LINES[30:60], LINES[:2])):
            path = Path(folder) / f"{number}.jsonl"
            path.write_bytes(_jsonl(lines))
            answer = Case(logs=[path], keys=[KEY], report=ReportOrder(command="agentmark verify")).answer()
            assert answer.report is not None
            reports.append(json.dumps(sign_report(answer.report, SIGNER), ensure_ascii=False).encode())
    return [report for report in reports if len(report) <= MAX_INPUT]


def signed_again(rng: random.Random, report: bytes) -> bytes:
    """A changed report that its changer has signed: what is inside must not be trusted for that."""
    try:
        content = json.loads(report)["report"]
        return json.dumps(sign_report(content, rng.choice((SIGNER, STRANGER)))).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return report


def weight_lines() -> list[bytes]:
    wrapped = {"weights": {"Search": 0.6, "Book": 0.4}, "context": {"observation": "x"}, "meta": {"n": 1}}
    return [b'{"Search": 0.6, "Book": 0.4}\n' * 3, (json.dumps(wrapped) + "\n").encode() * 2]


def situations() -> list[bytes]:
    return [b'{"candidates": ["search", {"name": "book", "description": "d"}], "messages": "Find me a table."}\n']


@cache
def states() -> list[bytes]:
    """Accumulated parts of logs: sets of symbols (F), soft symbols (R), records that say nothing."""
    return [accumulate(records, Keyring(KEY)).to_bytes() for records in (RUN[:6], RUN[30:37], RUN[-3:])]


def monitors() -> list[bytes]:
    """What watches of a growing log keep: new, within the log, and with records that were taken back."""
    watching = Monitor(KEY)
    made = [watching.to_bytes()]
    for records in (RUN[:6], RUN[30:37], RUN[-3:]):
        for record in records:
            watching.update(record)
        made.append(watching.to_bytes())
    return made


def evidences() -> list[bytes]:
    made = Evidence()
    for e_value in (2.0, 1.5, 0.0):
        made.update(e_value)
    return [Evidence().to_bytes(), made.to_bytes(), Evidence((0.0,)).to_bytes()]


def linear_systems() -> list[bytes]:
    whole, part = LinearSystem(8), LinearSystem(100)
    for bit in range(8):
        whole.update(Equation(1 << bit, bit & 1))
        part.update(Equation(3 << bit, bit & 1))
    return [whole.to_bytes(), part.to_bytes(), LinearSystem(0).to_bytes()]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
