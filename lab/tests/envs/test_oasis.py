"""OASIS itself: short simulations on both platforms. They need `make lab-oasis`, and are skipped without it."""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.envs.oasis import PLATFORMS, Member, Trajectory, load_package, simulate
from agentmark_lab.envs.oasis_personas import load_scenario
from agentmark_lab.kit.agent_loop import BASELINE, R, chooser_for
from agentmark_lab.kit.data import MissingError

from agentmark import SharedKey, Verifier

# The package and what it brings warn of themselves.
pytestmark = pytest.mark.filterwarnings("ignore")

KEY = SharedKey(bytes(range(32)))
PAYLOAD = 0xA7
AGENTS, STEPS = 5, 7


@dataclass(frozen=True)
class Simulated:
    platform: str
    trajectories: list[Trajectory]
    database: Path

    def count(self, query: str) -> int:
        with sqlite3.connect(self.database) as connection:
            return int(connection.execute(query).fetchone()[0])

    @property
    def done(self) -> Counter[str]:
        return Counter([act.behavior for one in self.trajectories for act in one.acts if act.refusal is None])


def members(platform: str, policy: str, seed: int) -> list[Member]:
    personas = load_scenario(platform).personas[:AGENTS]
    return [
        Member(persona, chooser_for(policy, key=KEY, payload=PAYLOAD, payload_len=8, rng=Random(f"{seed} {i}")))
        for i, persona in enumerate(personas)
    ]


@pytest.fixture(scope="module", params=sorted(PLATFORMS))
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    folder = tmp_path_factory.mktemp("oasis")
    try:
        load_package(folder)
        agents = members(request.param, R, 1)
    except MissingError as missing:
        pytest.skip(str(missing))
    database = folder / "platform.db"
    trajectories = simulate(PLATFORMS[request.param], agents, steps=STEPS, seed=1, work=folder, database=database)
    return Simulated(request.param, trajectories, database)


def test_actions_land_in_the_database(simulated):
    seeds = load_scenario(simulated.platform).seeds
    done = simulated.done
    assert sum(done.values()) > 20
    assert (
        simulated.count("SELECT count(*) FROM post WHERE original_post_id IS NULL") == len(seeds) + done["create_post"]
    )
    assert simulated.count("SELECT count(*) FROM post WHERE quote_content IS NOT NULL") == done["quote_post"]
    assert simulated.count("SELECT count(*) FROM 'like'") == done["like_post"]
    assert simulated.count("SELECT count(*) FROM dislike") == done["dislike_post"]
    assert simulated.count("SELECT count(*) FROM comment_like") == done["like_comment"]
    comments = sum([len(texts) for _, texts in seeds]) + done["create_comment"]
    assert simulated.count("SELECT count(*) FROM comment") == comments
    idle = simulated.count("SELECT count(*) FROM trace WHERE action = 'do_nothing'")
    assert idle == done["do_nothing"]


def test_everyone_follows_three_to_five_from_the_start(simulated):
    done = simulated.done["follow"]
    assert 3 * AGENTS <= simulated.count("SELECT count(*) FROM follow") - done <= 5 * AGENTS
    assert simulated.count("SELECT count(*) FROM user") == AGENTS


def test_refusals_are_the_platforms_own(simulated):
    refused = [act for one in simulated.trajectories for act in one.acts if act.refusal is not None]
    for act in refused:
        assert "already exists" in act.refusal or "found" in act.refusal.lower(), act


def test_a_run_repeats_for_its_seed(simulated, tmp_path):
    platform = PLATFORMS[simulated.platform]
    agents = members(simulated.platform, R, 1)
    again = simulate(platform, agents, steps=STEPS, seed=1, work=tmp_path, database=tmp_path / "1.db")
    assert again == simulated.trajectories
    agents = members(simulated.platform, R, 1)
    other = simulate(platform, agents, steps=2, seed=2, work=tmp_path, database=tmp_path / "2.db")
    assert [one.acts for one in other] != [one.acts[:2] for one in again]


def test_the_marked_agents_are_recognised_together(simulated):
    records = [record for one in simulated.trajectories for record in one.records]
    assert len(records) == AGENTS * STEPS
    assert all(len(record.distribution.behaviors) == len(PLATFORMS[simulated.platform].actions) for record in records)
    verdict = Verifier(KEY).verify(records)
    assert verdict.accepted
    assert verdict.payload == PAYLOAD
    assert not Verifier(SharedKey(bytes(range(1, 33))), any_key_id=True).verify(records).accepted


def test_unmarked_agents_are_not(simulated, tmp_path):
    agents = members(simulated.platform, BASELINE, 1)
    platform = PLATFORMS[simulated.platform]
    played = simulate(platform, agents, steps=2, seed=1, work=tmp_path, database=tmp_path / "1.db")
    assert not Verifier(KEY, payload_len=8).verify([record for one in played for record in one.records]).accepted
