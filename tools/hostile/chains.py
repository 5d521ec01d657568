"""Logs whose checkpoints cost more than their records."""

import gzip
import itertools
from pathlib import Path
from typing import Any

from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.keys.signing import SigningKey
from hostile.files import MAX_SIZE, HostileFile, Maker
from hostile.records import forged, line_of, lines_up_to

TIME = "2026-01-02T03:04:05+00:00"


def _signer(maker: Maker) -> SigningKey:
    return SigningKey(maker.rng("signer").randbytes(32))


def _statements(count: int, *, head: str = "00" * 32) -> dict[str, Statement]:
    return {f"s{number}": Statement(1, head) for number in range(count)}


def _checkpoint(maker: Maker, sessions: dict[str, Statement], **members: Any) -> bytes:
    facts: dict[str, Any] = {"total": 1, "previous": None, "time": TIME} | members
    return Checkpoint.sign(_signer(maker), sessions, **facts).to_json().encode() + b"\n"


def repeated_checkpoint(maker: Maker, path: Path) -> None:
    record = line_of(forged(maker.rng("repeated"), maker.key_id, 0, session="s0"))
    line = _checkpoint(maker, _statements(1))
    path.write_bytes(record + line * ((MAX_SIZE - len(record)) // len(line)))


def forged_signatures(maker: Maker, path: Path) -> None:
    """Checkpoints that all differ, each with a signature that has to be checked to be refused."""
    rng = maker.rng("signatures")
    content = Checkpoint.from_json(_checkpoint(maker, _statements(1))).as_dict()
    lines = (line_of(content | {"total": total, "signature": rng.randbytes(64).hex()}) for total in itertools.count(1))
    path.write_bytes(lines_up_to(MAX_SIZE, lines))


def wide_checkpoint(maker: Maker, path: Path) -> None:
    path.write_bytes(_checkpoint(maker, _statements(9_500)))


def packed_wide_checkpoints(maker: Maker, path: Path) -> None:
    """A chain of checkpoints that each state 5,000 sessions."""
    statements, previous, lines = _statements(5_000), None, []
    for total in range(1, 21):
        line = _checkpoint(maker, statements, total=total, previous=previous)
        previous = Checkpoint.from_json(line).digest
        lines.append(line)
    path.write_bytes(gzip.compress(b"".join(lines), mtime=0))


def linked_to_nothing(maker: Maker, path: Path) -> None:
    """Records of one session, each linked to a record that is not there."""
    rng = maker.rng("links")
    lines = (
        line_of(forged(rng, maker.key_id, step, weights={"b0": 1 << 32}, prev=rng.randbytes(32).hex()))
        for step in itertools.count()
    )
    path.write_bytes(lines_up_to(MAX_SIZE, lines))


FILES = (
    HostileFile("checkpoint-repeated", "jsonl", "one genuine checkpoint, over and over", repeated_checkpoint),
    HostileFile("checkpoint-forged", "jsonl", "checkpoints with signatures of nobody", forged_signatures),
    HostileFile("checkpoint-wide", "jsonl", "a checkpoint of 9,500 sessions", wide_checkpoint),
    HostileFile("checkpoints-packed", "jsonl.gz", "20 checkpoints of 5,000 sessions each", packed_wide_checkpoints),
    HostileFile("links", "jsonl", "records linked to records that are not there", linked_to_nothing),
)
