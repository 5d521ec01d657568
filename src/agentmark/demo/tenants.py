"""A folder as an auditor gets it: the sessions of three tenants in one heap, and some of them hardly begun."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentmark.demo.courier import Planner, run_episode
from agentmark.embed.embedder import Embedder
from agentmark.log.jsonl import LogWriter
from agentmark.record import StepRecord

SESSIONS_PER_TENANT = 8
# The last ones of each tenant, of which only a beginning is left: too little to name anyone by itself, and
# sometimes enough together.
SHORT_PER_TENANT, SHORT_STEPS = 3, 10
# A session is a shift: one delivery seldom takes enough decisions to tell who made them.
DELIVERIES_PER_SESSION = 3


def write_sessions(
    folder: Path, markers: Mapping[str, Embedder], planners: Sequence[Planner], *, slack: float, rng: random.Random
) -> int:
    """One file a session, in no order and under names that tell nobody whose they are. Says how many there are."""
    folder.mkdir(exist_ok=True)
    owners = [tenant for tenant in markers for _ in range(SESSIONS_PER_TENANT)]
    rng.shuffle(owners)
    seen = dict.fromkeys(markers, 0)
    for number, tenant in enumerate(owners, start=1):
        seen[tenant] += 1
        records = _shift(markers[tenant], rng.sample(planners, DELIVERIES_PER_SESSION), slack=slack)
        is_short = seen[tenant] > SESSIONS_PER_TENANT - SHORT_PER_TENANT
        path = folder / f"session-{number:02}.jsonl"
        path.unlink(missing_ok=True)
        with LogWriter(path) as log:
            for record in records[:SHORT_STEPS] if is_short else records:
                log.write(record)
    return len(owners)


def _shift(marker: Embedder, planners: Sequence[Planner], *, slack: float) -> list[StepRecord]:
    session = marker.session()
    return [record for planner in planners for record in run_episode(planner, session, slack=slack).records]
