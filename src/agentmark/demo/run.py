"""The story of the demonstration: mark, compare, damage, read back, try the wrong key; and prove it to a stranger."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agentmark.audit.progress import Progress
from agentmark.core.schemes import SCHEMES, SchemeR
from agentmark.core.statistics import Interval, wilson_interval
from agentmark.demo.courier import Episode, Planner, run_episode
from agentmark.demo.next_steps import TOGETHER, WRONG_KEY, NextStep, damaged_steps, inspect, verify
from agentmark.demo.recovery import Recovery, recover
from agentmark.demo.tenants import write_sessions
from agentmark.demo.third_party import OWN_NAMES as PUBLIC_NAMES
from agentmark.demo.third_party import ThirdParty, can_run, play
from agentmark.embed.embedder import Embedder
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.shared import SharedKey
from agentmark.log.jsonl import LogWriter
from agentmark.policies import BaselineSession, Chooser, RedGreenSession
from agentmark.record import StepRecord

TENANTS = ("acme-eu", "acme-us", "globex")
TENANT, FRAMED = "acme-eu", "globex"
PAYLOAD_LEN = 32
TEMPERATURE, SLACK = 0.8, 1.8
# As many deliveries as show what they show: AgentMark's rows within three points of the first, red-green's far below.
TOWNS, RUNS_PER_TOWN = 40, 10
LOGGED_EPISODES = 8
# The empty file by which the demonstration knows its own folder.
DEMO_SIGN = ".agentmark-demo"
TENANTS_FOLDER = "tenants"
# What a demonstration writes under names that somebody else's file may have.
OWN_NAMES = ("key.json", WRONG_KEY, "registry.jsonl", TENANTS_FOLDER, *PUBLIC_NAMES)


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """How often a policy delivered in time: Wilson's 95 % interval, and mean decisions per task."""

    label: str
    successes: int
    episodes: int
    mean_steps: float

    @property
    def rate(self) -> float:
        return self.successes / self.episodes

    @property
    def interval(self) -> Interval:
        return wilson_interval(self.successes, self.episodes)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Everything that the terminal and the page show."""

    folder: Path
    payload: int
    policies: tuple[PolicyOutcome, ...]
    recoveries: tuple[Recovery, ...]
    sample: tuple[StepRecord, ...]
    # In the folder of the tenants.
    session_count: int
    # None without the extra that it takes.
    third_party: ThirdParty | None = None

    @property
    def page(self) -> Path:
        return self.folder / "demo.html"

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to try on the files that are left behind."""
        folder, first = self.folder, self.recoveries[0]
        return (
            inspect("What does the log hold? (No key is needed to look.)", first.full),
            verify("Whose is it, all sessions together?", first.full, folder, TOGETHER),
            *damaged_steps(first.path, folder),
            verify(
                f"Whose is each of these {self.session_count} sessions?",
                folder / TENANTS_FOLDER,
                folder,
            ),
            *(() if self.third_party is None else self.third_party.next_steps),
        )


def run_demo(folder: Path, *, seed: int, progress: Progress) -> DemoResult:
    """Run the demonstration; logs, keys and registry stay in `folder`, so that the commands can be tried on them."""
    rng = random.Random(seed)
    key, registry = issue(folder)
    payload = registry.named(TENANT).payload

    progress.say(f"planning deliveries in {TOWNS} towns")
    planners = [Planner.random(rng, temperature=TEMPERATURE) for _ in range(TOWNS)]
    markers = {scheme: Embedder(key, TENANT, registry=registry, scheme=scheme) for scheme in SCHEMES}

    policies = []
    for label, new_chooser in _policies(markers, key, rng):
        progress.say(f"{label}: {TOWNS * RUNS_PER_TOWN} deliveries")
        policies.append(_outcome(label, _counted(_episodes(planners, new_chooser, RUNS_PER_TOWN), progress)))

    recoveries = []
    for scheme, marker in markers.items():
        progress.say(f"AgentMark-{scheme}: log, damage, verify")
        recoveries.append(_recover(folder, marker, key=key, registry=registry, planners=planners, rng=rng))

    by_tenant = {name: Embedder(key, name, registry=registry, scheme=SchemeR.name) for name in TENANTS}
    session_count = write_sessions(folder / TENANTS_FOLDER, by_tenant, planners, slack=SLACK, rng=rng)
    return DemoResult(
        folder=folder,
        payload=payload,
        policies=tuple(policies),
        recoveries=tuple(recoveries),
        sample=recoveries[0].damaged[:6],
        session_count=session_count,
        third_party=_third_party(folder, registry, planners, progress),
    )


def _third_party(folder: Path, registry: Registry, planners: list[Planner], progress: Progress) -> ThirdParty | None:
    if not can_run():
        return None
    progress.say("a third party without the secret: read, forge, be caught")

    def records_of(marker: Embedder) -> list[StepRecord]:
        episodes = _episodes(planners[:LOGGED_EPISODES], marker.session, 1)
        return [record for episode in episodes for record in episode.records]

    return play(folder, records_of, registry=registry, tenant=TENANT, framed=FRAMED)


def issue(folder: Path) -> tuple[SharedKey, Registry]:
    """A new key, somebody else's, and a registry of the tenants, saved in the folder. Those of an earlier demonstration
    are replaced; anybody else's are not touched: whoever loses a key loses its logs."""
    folder.mkdir(parents=True, exist_ok=True)
    sign = folder / DEMO_SIGN
    strange = [name for name in OWN_NAMES if (folder / name).exists() and not sign.exists()]
    if strange:
        raise SettingError(str(folder), f"holds a {strange[0]} that is not the demonstration's; choose another folder")
    sign.touch()
    key = SharedKey.generate()
    for name, fresh in (("key.json", key), (WRONG_KEY, SharedKey.generate())):
        (folder / name).unlink(missing_ok=True)
        fresh.save(folder / name)
    registry = Registry(PAYLOAD_LEN)
    for tenant in TENANTS:
        registry.issue(tenant)
    registry.save(folder / "registry.jsonl")
    return key, registry


def _policies(
    markers: dict[str, Embedder], key: SharedKey, rng: random.Random
) -> Iterator[tuple[str, Callable[[], Chooser]]]:
    yield "unmarked", lambda: BaselineSession(rng)
    for scheme, marker in markers.items():
        yield f"AgentMark-{scheme}", marker.session
    yield "red-green, bias 2", lambda: RedGreenSession(key, rng=rng)


def _episodes(planners: list[Planner], new_chooser: Callable[[], Chooser], runs: int) -> Iterator[Episode]:
    for planner in planners:
        for _ in range(runs):
            yield run_episode(planner, new_chooser(), slack=SLACK)


def _counted(episodes: Iterable[Episode], progress: Progress) -> Iterator[Episode]:
    for done, episode in enumerate(episodes, start=1):
        progress.count(done, TOWNS * RUNS_PER_TOWN, "deliveries")
        yield episode


def _outcome(label: str, episodes: Iterable[Episode]) -> PolicyOutcome:
    seen = list(episodes)
    steps = sum(episode.steps for episode in seen) / len(seen)
    return PolicyOutcome(label, sum(episode.success for episode in seen), len(seen), steps)


def _recover(
    folder: Path,
    marker: Embedder,
    *,
    key: SharedKey,
    registry: Registry,
    planners: list[Planner],
    rng: random.Random,
) -> Recovery:
    """One tenant's agent works a shift; its log loses 40 % of its records, foreign ones join, and all is shuffled."""
    full = folder / f"log-{marker.scheme}.jsonl"
    full.unlink(missing_ok=True)
    with LogWriter(full) as log:
        for episode in _episodes(planners[:LOGGED_EPISODES], marker.session, 1):
            for record in episode.records:
                log.write(record)
    foreign = partial(_foreign_records, marker, planners[-1])
    return recover(full, foreign, key=key, registry=registry, tenant=TENANT, rng=rng)


def _foreign_records(marker: Embedder, planner: Planner, count: int) -> list[StepRecord]:
    """Decisions of an agent under another provider's key, with our key id pasted on them."""
    stranger = Embedder(SharedKey.generate(), 0, payload_len=PAYLOAD_LEN, scheme=marker.scheme)
    records: list[StepRecord] = []
    while len(records) < count:
        records += run_episode(planner, stranger.session(), slack=SLACK).records
    return [replace(record, key_id=marker.key_id) for record in records[:count]]
