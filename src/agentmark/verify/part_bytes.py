"""A part of many logs as bytes, and the verdicts on it: what is kept on disk between the phases of `many`.

Logs open the steps in them, and verdicts tell of single records: keep both as confidential as the keys.
"""

from collections.abc import Callable, Iterable, Sequence
from json import dumps
from math import inf
from typing import Any

from agentmark.core.errors import StateError
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.identity.registry import Registry
from agentmark.verify.candidates import Route
from agentmark.verify.packed import unpacked
from agentmark.verify.reading_bytes import Source, count_bytes, framed
from agentmark.verify.readings import Readings
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.verdict import FoundIdentity, RunnerUp, Verdict

_LOGS = b"AMLP\x01"
_VERDICTS = b"AMVP\x01"
# What a verdict says beside what its log says, and what kinds of values that may be.
_NUMBERS = (
    "threshold",
    "evidence_bits",
    "bits_paid",
    "ownership_bits",
    "likely_noise",
    "potential_bits",
    "work_needed",
)
_COUNTS = ("rank", "work", "work_limit", "unexplained", "agreeing", "contradicting")


def logs_to_bytes(logs: Sequence[SortedLog]) -> bytes:
    """Magic, the number of logs, and each of them framed."""
    return _LOGS + count_bytes(len(logs)) + b"".join([framed(log.to_bytes()) for log in logs])


def logs_from_bytes(data: bytes, read: Callable[[bytes, int], Readings] = unpacked) -> list[SortedLog]:
    """The logs that these bytes are of; StateError if they are of none."""
    source = _opened(data, _LOGS, "logs")
    logs = [SortedLog.from_bytes(source.framed(), read) for _ in range(source.count())]
    source.expect_end()
    return logs


def verdicts_to_bytes(verdicts: Iterable[Verdict]) -> bytes:
    """Magic, the number of verdicts, and what each says beside what its log says, as framed JSON."""
    said = [framed(dumps(_said(verdict), separators=(",", ":")).encode("ascii")) for verdict in verdicts]
    return _VERDICTS + count_bytes(len(said)) + b"".join(said)


def verdicts_from_bytes(
    data: bytes, logs: Sequence[SortedLog], *, keys_given: tuple[str, ...] = (), registry: Registry | None = None
) -> list[Verdict]:
    """The verdicts on these logs that these bytes are of; StateError if they are of none."""
    source = _opened(data, _VERDICTS, "verdicts")
    if source.count() != len(logs):
        raise StateError("verdicts on another number of logs")
    verdicts = []
    for log in logs:
        try:
            verdicts.append(_verdict(parse_json(source.framed()), log, keys_given, registry))
        except (StrictJsonError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"verdicts: what is said of a log is none ({type(error).__name__})") from None
    source.expect_end()
    return verdicts


def _opened(data: bytes, magic: bytes, what: str) -> Source:
    if not data.startswith(magic):
        raise StateError(f"not {what} of version 1")
    return Source(data, len(magic))


def _said(verdict: Verdict) -> dict[str, Any]:
    return {
        **{name: _packed(getattr(verdict, name)) for name in _NUMBERS},
        **{name: getattr(verdict, name) for name in _COUNTS},
        "consistent": verdict.consistent,
        "work_spent": verdict.work_spent,
        "candidate": None if verdict.candidate is None else f"{verdict.candidate:x}",
        "route": None if verdict.route is None else verdict.route.name,
        "found": [
            [
                f"{found.payload:x}",
                found.evidence_bits,
                found.bits_paid,
                found.false_positive_rate,
                found.at_least_steps,
            ]
            for found in verdict.found
        ],
        "runner_up": None if verdict.runner_up is None else [_packed(verdict.runner_up.evidence_bits)],
    }


def _verdict(said: dict[str, Any], log: SortedLog, keys_given: tuple[str, ...], registry: Registry | None) -> Verdict:
    def holder(payload: int) -> Any:
        return None if registry is None else registry.holder(payload)

    found = []
    for digits, evidence_bits, bits_paid, rate, at_least_steps in said["found"]:
        payload = _payload(digits, log.payload_len)
        known = holder(payload)
        found.append(
            FoundIdentity(
                payload=payload,
                payload_len=log.payload_len,
                identity=None if known is None else known.name,
                revoked_at=None if known is None else known.revoked_at,
                evidence_bits=float(evidence_bits),
                bits_paid=float(bits_paid),
                false_positive_rate=float(rate),
                at_least_steps=_count(at_least_steps),
            )
        )
    candidate = None if said["candidate"] is None else _payload(said["candidate"], log.payload_len)
    runner_up = said["runner_up"]
    numbers: dict[str, Any] = {name: _unpacked(said[name]) for name in _NUMBERS}
    counts: dict[str, Any] = {name: _count(said[name]) for name in _COUNTS}
    return Verdict(
        payload_len=log.payload_len,
        consistent=_flag(said["consistent"], or_none=True),
        candidate=candidate,
        route=None if said["route"] is None else Route[said["route"]],
        work_spent=bool(_flag(said["work_spent"])),
        holder=None if candidate is None else holder(candidate),
        found=tuple(found),
        runner_up=None if runner_up is None else RunnerUp(_unpacked(runner_up[0]) or 0.0),
        keys_given=keys_given,
        tampering=log.tampering,
        tally=log.tally,
        **numbers,
        **counts,
    )


def _packed(number: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "-inf" if number == -inf else number


def _unpacked(said: object) -> float | None:
    if said is None:
        return None
    if said == "-inf":
        return -inf
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise TypeError(said)
    return float(said)


def _payload(digits: str, payload_len: int) -> int:
    payload = int(digits, 16)
    if payload >> payload_len:
        raise ValueError(digits)
    return payload


def _count(said: object) -> int:
    if type(said) is not int or said < 0:
        raise TypeError(said)
    return said


def _flag(said: object, *, or_none: bool = False) -> bool | None:
    if not isinstance(said, bool) and not (or_none and said is None):
        raise TypeError(said)
    return said if isinstance(said, bool) else None
