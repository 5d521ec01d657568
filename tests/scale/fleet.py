"""A platform's folder: sessions of several tenants and keys; some damaged, copied, unmarked, short or foreign."""

import gzip
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentmark import Embedder, Registry, SharedKey, StepRecord

TENANTS = ("acme", "globex", "initech", "umbrella")
OPTIONS = tuple([f"tool-{number}" for number in range(8)])
KINDS = ("whole", "whole", "whole", "damaged", "unmarked", "short", "copied", "of another key", "two tenants")


@dataclass
class Fleet:
    """The folder, its keys and its registry; and what each session is."""

    root: Path
    registry: Registry = field(default_factory=lambda: Registry(payload_len=32))
    keys: tuple[SharedKey, SharedKey] = (SharedKey(bytes(range(100, 132))), SharedKey(bytes(range(7, 39))))
    kinds: dict[str, str] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)
    steps: int = 0

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def key_files(self) -> list[Path]:
        return [self.root / f"key-{number}.json" for number in range(len(self.keys))]

    @property
    def registry_file(self) -> Path:
        return self.root / "registry.jsonl"


def make_fleet(root: Path, *, sessions: int, packed: bool = True, seed: int = 1) -> Fleet:
    """Sessions of F and R under two keys, spread over files of several sessions each; the seed decides everything but
    the session ids."""
    fleet = Fleet(root)
    rng = random.Random(seed)
    for name in TENANTS:
        fleet.registry.issue(name)
    fleet.logs.mkdir(parents=True)
    stranger = SharedKey(bytes(range(150, 182)))
    lines: dict[str, list[str]] = {}
    for number in range(sessions):
        kind, tenant = KINDS[number % len(KINDS)], TENANTS[number % len(TENANTS)]
        key = stranger if kind == "of another key" else fleet.keys[number % 2]
        session = Embedder(key, tenant, registry=fleet.registry, scheme="FR"[number % 3 % 2]).session(f"s-{number:05d}")
        fleet.kinds[session.id], fleet.makers[session.id] = kind, tenant
        count = 3 if kind == "short" else rng.randint(20, 40)
        records = [session.choose(_weights(rng)).record for _ in range(count)]
        if kind == "two tenants":
            other = TENANTS[(number + 1) % len(TENANTS)]
            second = Embedder(key, other, registry=fleet.registry, scheme="R").session()
            records += [replace(second.choose(_weights(rng)).record, session=session.id) for _ in range(count)]
        file = f"host-{number % 5}/day-{number // 40:03d}.jsonl"
        mine = [record.to_json() for record in _damaged(records, kind, rng)]
        if number % 11 == 4:
            mine.insert(len(mine) // 2, '{"agentmark": 1, "scheme": "F"}')
        lines.setdefault(file, []).extend(mine)
        if kind == "copied":
            # The same session in another file, one choice altered.
            copies = [*mine[:-1], replace(records[-1], behavior=OPTIONS[0]).to_json()]
            lines.setdefault(f"copies/{number % 3}.jsonl", []).extend(copies)
        fleet.steps += len(mine)
    for number, (file, content) in enumerate(sorted(lines.items())):
        path = fleet.logs / file
        path.parent.mkdir(exist_ok=True)
        text = "".join([f"{line}\n" for line in content])
        if number % 7 == 3:
            text = text[:-25]  # A crash in the middle of a line.
        if packed and number % 4 == 1:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode("utf-8")))
        else:
            path.write_text(text, encoding="utf-8")
    for key, key_file in zip(fleet.keys, fleet.key_files, strict=True):
        key.save(key_file)
    fleet.registry.save(fleet.registry_file)
    return fleet


def _weights(rng: random.Random) -> dict[str, float]:
    return {name: rng.gammavariate(1.0, 1.0) for name in OPTIONS}


def _damaged(records: Sequence[StepRecord], kind: str, rng: random.Random) -> list[StepRecord]:
    if kind == "unmarked":
        return [replace(record, marked=False, reason="elicitation failed") for record in records]
    if kind == "damaged":
        kept = [record for record in records if rng.random() > 0.15]
        kept = [replace(record, behavior=rng.choice(OPTIONS)) if rng.random() < 0.1 else record for record in kept]
        # Some lists lost a part, and some records stand twice.
        kept = [_thinned(record) if record.scheme == "R" and rng.random() < 0.2 else record for record in kept]
        return rng.sample([*kept, *kept[:4]], len(kept) + min(len(kept), 4))
    return list(records)


def _thinned(record: StepRecord) -> StepRecord:
    """The record with the weights of three options alone, the chosen one among them."""
    assert record.distribution is not None
    whole = record.distribution.as_weights()
    kept = dict.fromkeys([record.behavior, *list(whole)[:2]])
    return replace(record, distribution=None, partial_weights={name: whole[name] for name in kept})
