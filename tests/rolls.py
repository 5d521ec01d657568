"""Small rolls, and reports on them, that several test files use."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from support import marked_log

from agentmark import Identity, Registry, SharedKey, StepRecord, Verifier
from agentmark.report.provenance import InputFile, Provenance
from agentmark.report.roll_content import RollReport, build_roll_report
from agentmark.verify.correction import Correction, Familywise
from agentmark.verify.many import Group, judge_roll
from agentmark.verify.roll import By, Pool, Roll, RollRow
from agentmark.verify.state import accumulate

KEY = SharedKey(bytes(range(100, 132)))
STRANGER = SharedKey(bytes(range(7, 39)))
NOON = datetime(2030, 1, 2, 12, 0, 0, tzinfo=UTC)
NAMES = ("acme", "globex", "initech")
# Digits that do not turn up in a digest by chance.
PAYLOADS = (0x5EED0123456789AB, 0x0BADC0DE12345678, 0x7777ABCD0000FFFF)


def registry_of(names: Sequence[str] = NAMES) -> Registry:
    """A registry of these names, whatever they look like: those that exist are read."""
    registry = Registry(64)
    for i, name in enumerate(names):
        payload = PAYLOADS[i] if i < len(PAYLOADS) else int(sha256(name.encode()).hexdigest()[:16], 16)
        registry._enter(Identity(name, payload))
    return registry


TENANTS = registry_of()


def log_of(name: str, *, seed: int, steps: int = 40, registry: Registry = TENANTS) -> list[StepRecord]:
    """One session of a tenant; few steps are too few to name anybody."""
    payload = registry.named(name).payload
    return marked_log(KEY, scheme="R", payload=payload, payload_len=64, steps=steps, seed=seed)


def roll_of(
    logs: Iterable[tuple[str, Sequence[str], Sequence[StepRecord]]],
    *,
    registry: Registry = TENANTS,
    by: By = By.SESSION,
    correction: Correction | None = None,
) -> Roll:
    """A roll of logs given as name, files and records."""
    verifier = Verifier(KEY, registry=registry)
    groups = [
        Group(name=name, files=tuple(files), state=accumulate(records, verifier.keys)) for name, files, records in logs
    ]
    return judge_roll(verifier, groups, by=by, correction=correction or Familywise(1e-6))


def three_tenants(*, by: By = By.SESSION, correction: Correction | None = None) -> Roll:
    """Of each tenant two sessions that are named, and of acme two that are short; one session of another key."""
    logs = [
        (f"{name}-session-{seed}", [f"logs/{name}/run-{seed}.jsonl"], log_of(name, seed=10 * i + seed))
        for i, name in enumerate(NAMES)
        for seed in range(2)
    ]
    logs += [(f"short-{i}", [f"logs/short-{i}.jsonl"], log_of("acme", seed=50 + i, steps=4)) for i in range(2)]
    logs.append(("foreign", ["logs/foreign.jsonl"], marked_log(STRANGER, steps=5)))
    return roll_of(logs, by=by, correction=correction)


def with_pool(roll: Roll, rows: Sequence[int], *, name: str = "acme", registry: Registry = TENANTS) -> Roll:
    """The same with these short rows pooled for somebody: which rows, and how well, a test can say."""
    identity = registry.named(name)
    pool = Pool(
        payload=identity.payload,
        payload_len=registry.payload_len,
        identity=name,
        revoked_at=None,
        evidence_bits=70.0,
        bits_paid=6.0,
        rows=tuple(rows),
        among=len(rows) + 1,
    )
    pooled = [replace(row, pool=0) if i in rows else replace(row, pool=None) for i, row in enumerate(roll.rows)]
    return replace(roll, rows=tuple(pooled), pools=(pool,))


def rows_where(roll: Roll, standing: str) -> list[int]:
    return [i for i, row in enumerate(roll.rows) if row.verdict.standing == standing]


def mixed_with(roll: Roll, row: int, other: int) -> Roll:
    """The same with whoever is named in the row `other` found in the row `row` as well."""
    theirs, mine = roll.rows[other].verdict.found[0], roll.rows[row].verdict
    rows = list(roll.rows)
    rows[row] = replace(rows[row], verdict=replace(mine, found=(*mine.found, replace(theirs, at_least_steps=7))))
    return replace(roll, rows=tuple(rows))


def inputs_of(rows: Iterable[RollRow]) -> list[InputFile]:
    """As `describe_file` would, of files that are not there."""
    paths = dict.fromkeys(os.fsencode(path) for row in rows for path in row.files)
    return [
        InputFile(kind="log", path=path.decode("utf-8", "backslashreplace"), size=1000, sha256=sha256(path).hexdigest())
        for path in paths
    ]


def report_on(roll: Roll, **settings: Any) -> RollReport:
    """A report whose every byte is fixed."""
    registry = InputFile(kind="registry", path="registry.jsonl", size=300, sha256="ab" * 32)
    provenance = Provenance(
        made_at=NOON,
        command="agentmark verify logs --key key.json --registry registry.jsonl",
        key_ids=[KEY.id],
        inputs=[*inputs_of(roll.rows), registry],
    )
    settings.setdefault("options", [("--key", "key.json"), ("--registry", "registry.jsonl")])
    return build_roll_report(
        roll,
        provenance=replace(provenance, **settings.pop("provenance", {})),
        noise_rates=(0.0, 0.1),
        registry_size=3,
        **settings,
    )
