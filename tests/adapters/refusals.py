"""No refusal breaks an agent: errands at providers that refuse what today's refuse, with and without the mark.

An adapter's test says how its framework's agent does an errand, and asks `check` for every case:

    def run(provider: RefusingProvider, errand: Errand, decider: Decider | None) -> str | None:
        ...  # an agent with errand.tools, on the framework's own client at provider's URL; what it says last

    @each_case
    def test_no_refusal_breaks_the_agent(profile, mode, tmp_path, caplog):
        check("langchain", profile, mode, run, tmp_path=tmp_path, caplog=caplog)

Without a decider, `run` must build the agent as if AgentMark were not installed. `family` says which API a profile
speaks. What came of each case is printed, and written to `.venvs/NAME/refusals.json`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest
from harness import ROOT, decider, records

from agentmark.decide.decider import SAMPLES, Decider
from agentmark.elicit.situation import Elicitor
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import PROFILES, Errand, RefusingProvider

# Where the list comes from. Each falls back as a decider does by default.
MODES: dict[str, Callable[[], Elicitor | None]] = {"proposals": lambda: None, "stated": Verbalised}
# Errands of one agent: what the first one taught about a provider is known in the second.
ERRANDS = 2

# Where no agent can finish, marked or not: it has no key or no model, or its streams break off.
HOPELESS = ("bad-key", "no-such-model", "stream-cut")

Run = Callable[[RefusingProvider, Errand, Decider | None], str | None]

each_case = pytest.mark.parametrize(
    ("profile", "mode"),
    [(profile, mode) for profile in PROFILES for mode in MODES],
    ids=[f"{profile}-{mode}" for profile in PROFILES for mode in MODES],
)


@dataclass(frozen=True)
class Row:
    """What became of a marked agent at one provider."""

    finished: bool
    # The share of its steps that are in the evidence.
    marked: float
    steps: int
    # Requests that the provider refused, and the share of all it was sent that its cache could have served.
    refused: int
    cacheable: float


@dataclass(frozen=True)
class End:
    """How an errand ended: done and said so, or with an error."""

    finished: bool
    error: Exception | None = None


def family(profile: str) -> Literal["anthropic", "gemini", "openai"]:
    """The API that the provider of a profile speaks."""
    maker = profile.partition("-")[0]
    return "anthropic" if maker == "claude" else "gemini" if maker == "gemini" else "openai"


def errands(provider: RefusingProvider, run: Run, marked_by: Decider | None) -> list[End]:
    """Send the agent on its errands, one after the other."""
    ends = []
    for seed in range(ERRANDS):
        errand = Errand(seed, items=2)
        try:
            ends.append(End(errand.finished(run(provider, errand, marked_by))))
        except Exception as error:
            ends.append(End(finished=False, error=error))
    return ends


def check(
    name: str,
    profile: str,
    mode: str,
    run: Run,
    *,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    hopeless: Sequence[str] = (),
) -> Row:
    """Compare a marked agent with an unmarked one at the same provider, and write down what came of it.

    `hopeless` are profiles at which the framework's own client fails, with the mark or without.
    """
    log = tmp_path / "run.jsonl"
    with RefusingProvider(profile) as provider:
        without = errands(provider, run, None)
    with RefusingProvider(profile) as provider, _deciding(log, mode) as marked_by:
        caplog.clear()
        marked = errands(provider, run, marked_by)
    row = _row(marked, log, provider)
    # An agent that fails without us would prove nothing.
    assert profile in (*HOPELESS, *hopeless) or all(end.finished for end in without), f"without the mark: {without}"
    print(f"{name}, {profile}, {mode}: {row}")
    _write(name, profile, mode, row)
    for bare, end in zip(without, marked, strict=True):
        if bare.finished:
            assert end.finished, f"the marked agent did not finish: {end.error!r}"
        elif bare.error is not None and not end.finished:
            assert type(end.error) is type(bare.error), f"{bare.error!r} without the mark, {end.error!r} with it"
    if not row.steps:
        assert not row.finished
        said = [warning.getMessage() for warning in caplog.records if warning.name.startswith("agentmark")]
        assert said, "the program's log has no word of it"
    elif mode == "proposals":
        # Nobody can refuse to be asked as the agent asks.
        assert row.marked == 1
    return row


def _deciding(log: Path, mode: str) -> Decider:
    return decider(log, MODES[mode](), fallback=SAMPLES)


def _row(ends: Sequence[End], log: Path, provider: RefusingProvider) -> Row:
    steps: dict[tuple[str, int], bool] = {}
    for record in records(log) if log.exists() else []:
        step = (record.session, record.step_index)
        # A second record takes a step out of the evidence.
        steps[step] = steps.get(step, True) and record.marked and record.enforced is not False
    return Row(
        finished=all(end.finished for end in ends),
        marked=round(sum(steps.values()) / len(steps), 3) if steps else 0.0,
        steps=len(steps),
        refused=len(provider.refused),
        cacheable=round(provider.cacheable_share(), 3),
    )


def _write(name: str, profile: str, mode: str, row: Row) -> None:
    """Into the table of this adapter, in the order of the profiles, without those that are no more."""
    path = ROOT / ".venvs" / name / "refusals.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    table.setdefault(profile, {})[mode] = asdict(row)
    kept = {known: table[known] for known in PROFILES if known in table}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
