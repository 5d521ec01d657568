"""A log is damaged: records are lost, foreign ones join, all is shuffled. What does a verifier make of the rest?"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from agentmark.core.evidence import Evidence
from agentmark.identity.registry import Registry
from agentmark.keys.shared import SharedKey
from agentmark.log.jsonl import LogWriter
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark.verify.intake import read_step
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier

LOSS_RATE = 0.4
FOREIGN_SHARE = 0.1
LINE_WIDTH = 112


@dataclass(frozen=True, slots=True)
class Recovery:
    """One scheme's log, what was left of it, and what was read from that."""

    scheme: str
    logged: int
    damaged: tuple[StepRecord, ...]
    foreign: int
    # The log as it was, and what the damage left of it.
    full: Path
    path: Path
    verdict: Verdict
    wrong_key: Verdict
    short: Verdict
    # Evidence for the tenant's payload after each record that is left, with the right key and with a stranger's.
    growth: tuple[float, ...]
    wrong_key_growth: tuple[float, ...]


def recover(
    full: Path,
    foreign_records: Callable[[int], list[StepRecord]],
    *,
    key: SharedKey,
    registry: Registry,
    tenant: str,
    rng: random.Random,
) -> Recovery:
    """Damage the log at `full`, write what is left beside it, and judge that. `foreign_records(n)` makes n of them."""
    damaged = full.with_stem(f"{full.stem}-damaged")
    damaged.unlink(missing_ok=True)
    records = list(open_log(full))
    kept = rng.sample(records, round((1 - LOSS_RATE) * len(records)))
    foreign = foreign_records(round(len(kept) * FOREIGN_SHARE / (1 - FOREIGN_SHARE)))
    with LogWriter(damaged) as log:
        for record in rng.sample(kept + foreign, len(kept) + len(foreign)):
            log.write(record)
    left = list(open_log(damaged))
    payload = registry.named(tenant).payload
    verifier = Verifier(key, registry=registry)
    stranger = SharedKey.generate()
    return Recovery(
        scheme=records[0].scheme,
        logged=len(records),
        damaged=tuple(left),
        foreign=len(foreign),
        full=full,
        path=damaged,
        verdict=verifier.verify(left),
        wrong_key=Verifier(stranger, registry=registry, any_key_id=True).verify(left),
        short=verifier.verify(left[:12]),
        growth=tuple(_evidence(left, key, payload, registry.payload_len)),
        wrong_key_growth=tuple(_evidence(left, stranger, payload, registry.payload_len)),
    )


def _evidence(records: Iterable[StepRecord], key: SharedKey, payload: int, payload_len: int) -> Iterator[float]:
    """The evidence for a payload after each record: it grows with those that agree, and falls with the others."""
    evidence = Evidence()
    for record in records:
        reading = read_step(record, key, payload_len).reading
        if reading is not None:
            evidence.update(reading.e_value(payload))
        yield evidence.bits


def recovery_lines(recovery: Recovery) -> list[str]:
    """What was lost, and what was read all the same, for a terminal."""
    left = len(recovery.damaged)
    answers = (
        ("right key", recovery.verdict),
        ("wrong key", recovery.wrong_key),
        (f"{recovery.short.record_count} records", recovery.short),
    )
    return [
        f"AgentMark-{recovery.scheme}: {recovery.logged} decisions were logged. {LOSS_RATE:.0%} of them are lost,",
        f"{recovery.foreign} of another agent's join under our key id, and the {left} records left are shuffled.",
        *[line for label, verdict in answers for line in _answer(label, verdict)],
    ]


def _answer(label: str, verdict: Verdict) -> list[str]:
    first = f"    {label + ':':<13}"
    return wrap(verdict.sentence, LINE_WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
