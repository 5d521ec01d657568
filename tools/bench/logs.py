"""Logs of any size, marked with the real schemes, many times faster than a session makes them.

What an agent does once a step (round its list, write it as JSON) is done once for each list here: steps draw theirs
from a pool. What the mark does is done for every step: its context, its keys, its choice. `check` compares a sample of
what was written with what the `Embedder` chooses.
"""

import json
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from agentmark import Embedder, Registry, SharedKey, StepRecord
from agentmark.core import scheme_f, scheme_r
from agentmark.core.context import Places
from agentmark.core.cyclic_shift import cyclic_shift_encode, short_len
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.recombination import slice_heights
from agentmark.core.rlnc import row_parities
from agentmark.core.statistics import dirichlet, named

PAYLOAD_LEN = 32
POOL = 2000
# Lists of an agent that is neither sure nor without an idea.
ALPHA = 1.0
# A damaged session has lost one step in eight, and of the others every twentieth choice is somebody else's.
LOST, OVERWRITTEN = 1 / 8, 1 / 20


class MarkedList:
    """One list, with what every step that draws it needs again."""

    def __init__(self, distribution: BehaviorDistribution) -> None:
        self.distribution = distribution
        self.text = json.dumps(distribution.as_weights(), separators=(",", ":"))
        self.names = [json.dumps(name) for name in distribution.behaviors]
        self._heights = slice_heights(distribution.weights)
        self._ends = list(accumulate([size * height for size, height in enumerate(self._heights, start=1)]))
        self._sums = list(accumulate(distribution.weights))

    def choose_f(self, step_key: bytes, payload: int) -> int:
        """The position that F chooses (`scheme_f.encode`), its bin looked up in place of walked to."""
        bits = scheme_f.step_bits(step_key)
        draw = bits.run(0, scheme_f.DRAW_BITS)
        place = bisect_right(self._ends, draw)
        size = place + 1
        if size == 1:
            return 0
        shift = (draw - (self._ends[place - 1] if place else 0)) // self._heights[place]
        count = short_len(size) + 1
        rows = scheme_f.coefficient_rows(bits, PAYLOAD_LEN, count)
        position, _ = cyclic_shift_encode(row_parities(rows, payload) ^ scheme_f.pad_bits(bits, count), size, shift)
        return position

    def choose_r(self, step_key: bytes, payload: int) -> int | None:
        chosen = scheme_r.encode(self.distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN)
        return None if chosen is None else self.distribution.position(chosen)

    def choose_plainly(self, rng: random.Random) -> int:
        """Without the mark, as likely as the list says."""
        return bisect_right(self._sums, rng.randrange(TOTAL_WEIGHT))


@dataclass(frozen=True)
class Mix:
    """What a folder of logs holds."""

    scheme: str
    options: int
    sessions: int
    steps: int
    identities: int = 1
    # Shares of sessions: damaged; with three steps that somebody else's choices replace; and made without the mark.
    damaged: float = 0.0
    spliced: float = 0.0
    unmarked: float = 0.0
    seed: int = 1

    @property
    def step_count(self) -> int:
        """Before anything is lost."""
        return self.sessions * self.steps


class Logs:
    """A folder: logs in JSON lines, the key, the registry, and who made which session."""

    def __init__(self, root: Path, mix: Mix) -> None:
        self.root = root
        self.mix = mix
        rng = random.Random(mix.seed)
        self.key = SharedKey(rng.randbytes(32))
        self.registry = Registry(payload_len=PAYLOAD_LEN)
        for number in range(mix.identities):
            self.registry.issue(f"tenant-{number:04d}")
        self._payloads = [self.registry.named(f"tenant-{number:04d}").payload for number in range(mix.identities)]
        # Whose session it is, and what became of it.
        self.maker: dict[str, str] = {}
        self.kind: dict[str, str] = {}
        self.written = 0
        self._rng = rng
        self._lists = [
            MarkedList(BehaviorDistribution.quantise(named(dirichlet(rng, ALPHA, mix.options)))) for _ in range(POOL)
        ]
        root.mkdir(parents=True, exist_ok=True)
        self.key_file, self.registry_file = root / "key.json", root / "registry.jsonl"
        self.logs = root / "logs"

    def write(self, *, file_count: int = 1) -> "Logs":
        """Write all sessions, as many to a file."""
        self.key.save(self.key_file)
        self.registry.save(self.registry_file)
        self.logs.mkdir()
        each = -(-self.mix.sessions // file_count)
        for number in range(file_count):
            with (self.logs / f"run-{number:04d}.jsonl").open("w", encoding="ascii") as file:
                for session in range(number * each, min((number + 1) * each, self.mix.sessions)):
                    lines = self._session(session)
                    self.written += len(lines)
                    file.writelines(lines)
        return self

    @property
    def files(self) -> list[Path]:
        return sorted(self.logs.iterdir())

    def _session(self, number: int) -> list[str]:
        mix, rng = self.mix, self._rng
        session = rng.randbytes(16).hex()
        tenant = number % mix.identities
        place = rng.random()
        kinds = (("unmarked", mix.unmarked), ("damaged", mix.damaged), ("spliced", mix.spliced))
        ends = accumulate([share for _, share in kinds])
        kind = next((name for (name, _), end in zip(kinds, ends, strict=True) if place < end), "clean")
        self.maker[session], self.kind[session] = f"tenant-{tenant:04d}", kind
        chosen = list(self._choices(session, self._payloads[tenant], marked=kind != "unmarked"))
        foreign: Sequence[int] = ()
        if kind == "spliced":
            foreign = rng.sample(range(len(chosen)), 3)
        elif kind == "damaged":
            chosen = [step for step in chosen if rng.random() >= LOST]
            foreign = [i for i in range(len(chosen)) if rng.random() < OVERWRITTEN]
        for i in foreign:
            step, context, drawn, _ = chosen[i]
            chosen[i] = (step, context, drawn, rng.randrange(len(drawn.names)))
        head = (
            f'{{"agentmark":1,"scheme":"{mix.scheme}","key_id":"{self.key.id}","payload_len":{PAYLOAD_LEN},'
            f'"session":"{session}","step":'
        )
        return [
            f'{head}{step},"context":"{context}","weights":{drawn.text},"choice":{drawn.names[position]},'
            '"marked":true}\n'
            for step, context, drawn, position in chosen
        ]

    def _choices(self, session: str, payload: int, *, marked: bool) -> Iterator[tuple[int, str, MarkedList, int]]:
        """Step, context, list and position of the choice, of every step of a session."""
        places, rng, key, lists = Places(session), self._rng, self.key, self._lists
        is_f = self.mix.scheme == "F"
        for step in range(self.mix.steps):
            drawn = lists[int(rng.random() * POOL)]
            context = places.digest(step)
            position: int | None = None
            if marked:
                step_key = key.step_key(context, PAYLOAD_LEN)
                position = drawn.choose_f(step_key, payload) if is_f else drawn.choose_r(step_key, payload)
            if position is None:
                # Not marked, or a near tie of R, which a session samples without the mark as well.
                position = drawn.choose_plainly(rng)
            yield step, context.hex(), drawn, position

    def check(self, sample: int = 300) -> int:
        """Whether clean sessions hold what the Embedder would have chosen; how many steps were compared."""
        compared = 0
        for path in self.files:
            with path.open("rb") as lines:
                for line in lines:
                    record = StepRecord.from_json(line)
                    if self.kind[record.session] == "clean" and self._rng.random() < 0.3:
                        embedder = Embedder(
                            self.key, self.maker[record.session], registry=self.registry, scheme=self.mix.scheme
                        )
                        assert record.distribution is not None
                        chosen = embedder.choose_in_context(record.distribution, record.context)
                        assert chosen in (record.behavior, None), f"{record.where}: {chosen} is what the mark says"
                        compared += 1
                    if compared >= sample:
                        return compared
        return compared
