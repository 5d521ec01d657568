"""A real language model with real tools, marked; its log is damaged, and its identity read back."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agentmark.core.theory import entropy
from agentmark.decide.decider import Decider
from agentmark.demo.assistant import Assistant, Episode
from agentmark.demo.office import TASKS
from agentmark.demo.recovery import Recovery, recover
from agentmark.demo.run import PAYLOAD_LEN, TENANT, issue
from agentmark.elicit.chat import Chat
from agentmark.elicit.situation import Elicitor
from agentmark.embed.embedder import Embedder
from agentmark.keys.shared import SharedKey
from agentmark.log.jsonl import LogWriter
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord

MIN_DECISIONS, MAX_STEPS = 60, 8


@dataclass(frozen=True, slots=True)
class ModelDemoResult:
    """Everything that the terminal and the page show."""

    folder: Path
    model: str
    # A model whose choices are near chance: nothing is then said of its success.
    near_chance: bool
    payload: int
    episodes: tuple[Episode, ...]
    records: tuple[StepRecord, ...]
    recovery: Recovery
    seconds: float
    cpu_s: float

    @property
    def elicitors(self) -> list[str]:
        return sorted({str((record.meta or {}).get("elicitor", "none")) for record in self.records})

    @property
    def unmarked(self) -> int:
        return sum(not record.marked for record in self.records)

    @property
    def mean_entropy(self) -> float:
        """Of the recorded lists, in bits; a decision without one counts as none."""
        lists = [record.distribution for record in self.records if record.distribution is not None]
        return sum(map(entropy, lists)) / len(self.records)

    @property
    def missing_share(self) -> float | None:
        """The mean share of the model's probability that went to no option, where it is known."""
        known = [(record.meta or {}).get("missing_ppm") for record in self.records]
        shares = [ppm / 1e6 for ppm in known if ppm is not None]
        return sum(shares) / len(shares) if shares else None


def run_model_demo(
    folder: Path,
    *,
    chat: Chat,
    elicitor: Elicitor,
    near_chance: bool,
    scheme: str,
    seed: int,
    progress: Callable[[str], None],
) -> ModelDemoResult:
    """Task after task until there are enough decisions; logs, key and registry stay in `folder`."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    key, registry = issue(folder)
    marker = Embedder(key, TENANT, registry=registry, scheme=scheme)
    full = folder / "log-model.jsonl"
    full.unlink(missing_ok=True)
    start, cpu = time.perf_counter(), time.process_time()
    episodes, decisions = list[Episode](), 0
    assistant = Assistant(chat, rng)
    with LogWriter(full) as log:
        while decisions < MIN_DECISIONS:
            task = TASKS[len(episodes) % len(TASKS)]
            episode = assistant.work(task, Decider(marker, elicitor, log), max_steps=MAX_STEPS)
            episodes.append(episode)
            decisions += len(episode.steps)
            progress(
                f"task {len(episodes)}, {len(episode.steps)} decisions; "
                f"{decisions} of {MIN_DECISIONS} after {time.perf_counter() - start:.0f} s"
            )
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    records = tuple(open_log(full))
    progress("the log is damaged and judged")
    recovery = recover(
        full, lambda count: _foreign(marker, records, count), key=key, registry=registry, tenant=TENANT, rng=rng
    )
    payload = registry.named(TENANT).payload
    return ModelDemoResult(folder, chat.model, near_chance, payload, tuple(episodes), records, recovery, seconds, cpu_s)


def _foreign(marker: Embedder, records: tuple[StepRecord, ...], count: int) -> list[StepRecord]:
    """Decisions from lists like these under another provider's key, with our key id pasted on them."""
    stranger = Embedder(SharedKey.generate(), 0, payload_len=PAYLOAD_LEN, scheme=marker.scheme).session()
    lists = [record.distribution.as_weights() for record in records if record.distribution is not None]
    return [replace(stranger.choose(lists[i % len(lists)]).record, key_id=marker.key_id) for i in range(count)]
