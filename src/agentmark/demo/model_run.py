"""A real language model with real tools, marked; its log is damaged, and its identity read back."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agentmark.audit.progress import Progress
from agentmark.core.statistics import Interval, wilson_interval
from agentmark.core.theory import entropy
from agentmark.decide.decider import Decider
from agentmark.demo.assistant import Assistant, Ending, Episode
from agentmark.demo.next_steps import TOGETHER, NextStep, damaged_steps, inspect, verify
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

LOG_NAME = "log-model.jsonl"
# Each task three times: that usually makes enough decisions to name a tenant after the damage.
DEFAULT_TASKS, DEFAULT_MINUTES = 3 * len(TASKS), 5.0
# No task takes more than three decisions when they are right.
MAX_STEPS = 6


@dataclass(frozen=True, slots=True)
class ModelDemoResult:
    """Everything that the terminal and the page show."""

    folder: Path
    model: str
    # A model whose choices are near chance: nothing is then said of its success.
    near_chance: bool
    payload: int
    # How many tasks were asked for, within how much time. Fewer were begun if the time was up.
    task_count: int
    minutes: float
    episodes: tuple[Episode, ...]
    records: tuple[StepRecord, ...]
    recovery: Recovery
    seconds: float
    cpu_s: float

    @property
    def page(self) -> Path:
        return self.folder / "model.html"

    @property
    def log(self) -> Path:
        return self.folder / LOG_NAME

    @property
    def endings(self) -> Counter[Ending]:
        return Counter(episode.ending for episode in self.episodes)

    @property
    def out_of_time(self) -> bool:
        return len(self.episodes) < self.task_count or self.endings[Ending.CUT_SHORT] > 0

    @property
    def done_interval(self) -> Interval | None:
        """Wilson's 95 % interval for the share of tasks done, of those that were not cut short."""
        finished = len(self.episodes) - self.endings[Ending.CUT_SHORT]
        return wilson_interval(self.endings[Ending.DONE], finished) if finished else None

    @property
    def never_done(self) -> list[str]:
        """The requests that were tried to the end, and never done."""
        endings: dict[str, set[Ending]] = {}
        for episode in self.episodes:
            endings.setdefault(episode.request, set()).add(episode.ending)
        return [request for request, seen in endings.items() if Ending.NOT_DONE in seen and Ending.DONE not in seen]

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

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to try on the files that are left behind."""
        return (
            inspect("What did the model decide? (No key is needed to look.)", self.log),
            verify("Whose is it, all tasks together?", self.log, self.folder, TOGETHER),
            *damaged_steps(self.recovery.path, self.folder),
        )


def run_model_demo(
    folder: Path,
    *,
    chat: Chat,
    elicitor: Elicitor,
    near_chance: bool,
    scheme: str,
    seed: int,
    task_count: int = DEFAULT_TASKS,
    minutes: float = DEFAULT_MINUTES,
    progress: Progress,
    clock: Callable[[], float] = time.perf_counter,
) -> ModelDemoResult:
    """Task after task, until all are over or the time is up; logs, keys and registry stay in `folder`."""
    rng = random.Random(seed)
    key, registry = issue(folder)
    marker = Embedder(key, TENANT, registry=registry, scheme=scheme)
    full = folder / LOG_NAME
    full.unlink(missing_ok=True)
    watch, cpu = _Watch(task_count, minutes, progress, clock), time.process_time()
    episodes = watch.episodes
    assistant = Assistant(chat, rng)
    with LogWriter(full) as log:
        while len(episodes) < task_count and (not episodes or watch.has_time()):
            task = TASKS[len(episodes) % len(TASKS)]
            decider = Decider(marker, elicitor, log)
            watch.end(assistant.work(task, decider, max_steps=MAX_STEPS, may_go_on=watch.step))
    seconds, cpu_s = watch.seconds(), time.process_time() - cpu
    records = tuple(open_log(full))
    progress.say("the log is damaged and judged")
    recovery = recover(
        full, lambda count: _foreign(marker, records, count), key=key, registry=registry, tenant=TENANT, rng=rng
    )
    return ModelDemoResult(
        folder=folder,
        model=chat.model,
        near_chance=near_chance,
        payload=registry.named(TENANT).payload,
        task_count=task_count,
        minutes=minutes,
        episodes=tuple(episodes),
        records=records,
        recovery=recovery,
        seconds=seconds,
        cpu_s=cpu_s,
    )


class _Watch:
    """Keeps the time, and says how far the work is and how long the rest will take."""

    def __init__(self, task_count: int, minutes: float, progress: Progress, clock: Callable[[], float]) -> None:
        self.episodes: list[Episode] = []
        self._task_count = task_count
        self._limit_s = 60 * minutes
        self._progress = progress
        self._clock = clock
        self._start = clock()

    def seconds(self) -> float:
        return self._clock() - self._start

    def has_time(self) -> bool:
        return self.seconds() < self._limit_s

    def step(self, steps: int) -> bool:
        """A decision of the task at hand was taken. Whether there is time for another."""
        seconds = self.seconds()
        left = self._left(steps, seconds)
        if not self.episodes and steps == 1:
            self._progress.say(f"a decision takes {seconds:.0f} s here; {left}")
        task = f"task {len(self.episodes) + 1} of {self._task_count}"
        decided = _decided(self._decisions() + steps)
        self._progress.count(self._done(), self._task_count, f"tasks done; {task}, {decided}, {left}")
        return seconds < self._limit_s

    def end(self, episode: Episode) -> None:
        """A task is over."""
        self.episodes.append(episode)
        seconds = self.seconds()
        is_last = len(self.episodes) == self._task_count or seconds >= self._limit_s
        self._progress.say(
            f"task {len(self.episodes)} of {self._task_count} {episode.ending} ({_decided(len(episode.steps))}); "
            f"{self._done()} done, {_decided(self._decisions())} in {_time(seconds)}; "
            f"{'no more to do' if is_last else self._left(0, seconds)}"
        )

    def _done(self) -> int:
        return sum(episode.ending is Ending.DONE for episode in self.episodes)

    def _decisions(self) -> int:
        return sum(len(episode.steps) for episode in self.episodes)

    def _left(self, steps: int, seconds: float) -> str:
        """How long the rest will take, `steps` into a task, from the pace so far. Tasks that are not over yet are taken
        to be like those that are, with one more that took as long as a task may."""
        decisions = self._decisions() + steps
        a_task = (self._decisions() + MAX_STEPS) / (len(self.episodes) + 1)
        to_come = max(a_task * (self._task_count - len(self.episodes)) - steps, 1)
        needed, left = to_come * seconds / decisions, max(self._limit_s - seconds, 0.0)
        return f"about {_time(needed)} left" if needed <= left else f"it stops in {_time(left)}"


def _decided(count: int) -> str:
    return "1 decision" if count == 1 else f"{count} decisions"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _foreign(marker: Embedder, records: tuple[StepRecord, ...], count: int) -> list[StepRecord]:
    """Decisions from lists like these under another provider's key, with our key id pasted on them."""
    stranger = Embedder(SharedKey.generate(), 0, payload_len=PAYLOAD_LEN, scheme=marker.scheme).session()
    lists = [record.distribution.as_weights() for record in records if record.distribution is not None]
    if not lists:
        return []
    return [replace(stranger.choose(lists[i % len(lists)]).record, key_id=marker.key_id) for i in range(count)]
