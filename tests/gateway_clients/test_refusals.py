"""No refusal breaks an agent: errands through the gateway at providers that refuse what today's refuse.

Every profile, both modes, three APIs, whole and streamed. An agent at the gateway ends as it ends at the provider
itself: with the errand done, or with the provider's own error, byte for byte. What came of each case is in a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from gateway_process import MODES, Gateway, is_evidence, unique_contexts
from plain_agent import APIS, Answer, FailedError, PlainAgent

from agentmark.testing import PROFILES, Errand, RefusingProvider

# Where no agent can finish, at the gateway or not: it has no key or no model.
HOPELESS = ("bad-key", "no-such-model")
# The quick part: who takes everything, who takes the least, whose streams break, and who is asked too often.
QUICK = (
    "plain",
    "claude-preserved-thinking",
    "deepseek-wants-reasoning",
    "no-n",
    "stream-cut",
    "rate-limited",
    "bad-key",
)
ERRANDS = 2

_TABLE: list[str] = []

each_case = pytest.mark.parametrize(
    ("profile", "mode"),
    [
        pytest.param(profile, mode, marks=[] if profile in QUICK else [pytest.mark.slow], id=f"{profile}-{mode}")
        for profile in PROFILES
        for mode in MODES
    ],
)


@dataclass(frozen=True)
class End:
    """How an errand ended: done and said so, or with this answer."""

    finished: bool
    answer: Answer | None = None


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Print what came of all cases, after the last."""
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n| profile | mode | finished | steps | marked | disobeyed | refused |\n|---|---|---|---|---|---|---|")
        print("\n".join(_TABLE))


def errand_at(url: str, api: str, stream: bool, seed: int) -> End:
    errand = Errand(seed, items=2)
    agent = PlainAgent(url, api, errand, stream=stream)
    try:
        return End(errand.finished(agent.run()))
    except FailedError as error:
        return End(False, error.answer)


@each_case
def test_an_agent_ends_as_it_would_at_the_provider_itself(profile: str, mode: str, tmp_path: Path) -> None:
    finished = runs = 0
    with RefusingProvider(profile) as provider, Gateway(tmp_path, provider.root_url, mode=mode) as gateway:
        for api in APIS:
            for stream in (False, True):
                for seed in range(ERRANDS):
                    with RefusingProvider(profile) as alone:
                        direct = errand_at(alone.root_url, api, stream, seed)
                    assert direct.finished or profile in HOPELESS, "an agent that fails without us would prove nothing"
                    through = errand_at(gateway.url, api, stream, seed)
                    case = f"{api}, {'streamed' if stream else 'whole'}, errand {seed}"
                    assert through.finished == direct.finished, f"{case}: {through.answer}\n{gateway.said[-3000:]}"
                    if direct.answer is not None and through.answer is not None:
                        assert through.answer.status == direct.answer.status, case
                        assert through.answer.body == direct.answer.body, case
                    runs += 1
                    finished += through.finished
        refused = len(provider.refused)
    records = gateway.records()
    unique_contexts(records)
    steps = {record.context: True for record in records}
    for record in records:
        steps[record.context] &= is_evidence(record)
    disobeyed = sum([record.enforced is False for record in records])
    marked = sum(steps.values()) / len(steps) if steps else 0.0
    _TABLE.append(
        f"| {profile} | {mode} | {finished} of {runs} | {len(steps)} | {marked:.0%} | {disobeyed} | {refused} |"
    )
    if profile in HOPELESS:
        assert not any(steps.values()), "a step is said to be marked that no model ever answered"
    elif mode == "proposals":
        # Nobody can refuse to be asked as the agent asks. A stream that was cut takes its step with it.
        assert marked == 1 or profile == "stream-cut"
