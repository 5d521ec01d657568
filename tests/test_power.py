"""How many steps are needed: the simulation against closed forms, against the verifier, and on the command line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from pages import check_inert
from scipy import stats
from support import marked_log

from agentmark import BehaviorDistribution, Embedder, Identity, LogWriter, Registry, SettingError, SharedKey, Verifier
from agentmark.cli import main
from agentmark.core.evidence import Evidence
from agentmark.core.theory import capacity, entropy
from agentmark.power import (
    ACTION,
    CHOSEN,
    Setup,
    Source,
    counts_of,
    dirichlet_source,
    level_bits,
    open_payload_len,
    order_statistic_ranks,
    sample_source,
    steps_needed,
)

KEY = SharedKey(bytes(range(100, 132)))
FOUR_EQUAL = sample_source([BehaviorDistribution.quantise(dict.fromkeys("abcd", 1))])
WAVERING = dirichlet_source(8, 0.6)

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("trials", "quantile"), [(200, 0.95), (100, 0.5), (73, 0.95), (20, 0.95), (1, 0.5), (3000, 0.9)]
)
def test_the_interval_covers_whatever_the_distribution(trials: int, quantile: float) -> None:
    low, high = order_statistic_ranks(trials, quantile)
    below = stats.binom(trials, quantile)
    # The quantile lies between the two ordered values when at least `low` and fewer than `high` values are up to it.
    assert below.cdf(high - 1) - below.cdf(low - 1) >= 0.95 - 1e-9
    assert below.cdf(low) > 0.025 - 1e-9, "a higher low end would fail too often"
    assert below.sf(high - 2) > 0.025 - 1e-9


def test_with_few_trials_the_interval_is_open() -> None:
    assert order_statistic_ranks(71, 0.95)[1] == 72
    assert order_statistic_ranks(72, 0.95)[1] == 72


@pytest.mark.parametrize("payload_len", [0, 8, 16])
def test_the_level_is_the_verifier_s(payload_len: int) -> None:
    verdict = Verifier(KEY, threshold=1e-4).verify(marked_log(KEY, payload=0, payload_len=payload_len))
    takes = level_bits(payload_len, threshold=1e-4)
    assert takes == pytest.approx(verdict.bits_paid + 13.2877, abs=1e-3)


def test_the_level_with_a_registry_is_the_verifier_s() -> None:
    registry = Registry(16, [Identity(f"tenant {i}", i) for i in range(1000)])
    verdict = Verifier(KEY, registry=registry).verify(marked_log(KEY, payload=7))
    assert level_bits(16, threshold=1e-6, registry_size=1000) == pytest.approx(verdict.bits_paid + 19.9316, abs=1e-3)


def test_equal_behaviors_take_a_known_number_of_steps() -> None:
    """Four equally likely behaviors carry exactly two bits under F, so every run crosses at the same step."""
    result = steps_needed(FOUR_EQUAL, Setup(scheme="F", trials=80, payload_lens=(0, 32)))
    assert result.entropy == pytest.approx(2)
    for needed in result.needed:
        evidence = Evidence()
        while evidence.bits < needed.level_bits:
            evidence.update(4.0)
        assert needed.steps == needed.low == needed.high == evidence.steps
        assert needed.crossings == (evidence.steps,) * 80


def test_bits_per_step_match_the_closed_form() -> None:
    result = steps_needed(WAVERING, Setup(scheme="F", trials=300, assumed_noise=0.0, payload_lens=(32,)))
    rng = Random(5)
    lists = [WAVERING(rng) for _ in range(4000)]
    mean_capacity = sum(map(capacity, lists)) / len(lists)
    mean_entropy = sum(map(entropy, lists)) / len(lists)
    assert result.bits_per_step == pytest.approx(mean_capacity, rel=0.05)
    assert result.entropy == pytest.approx(mean_entropy, rel=0.05)


def test_proposals_carry_what_the_counts_of_their_replies_show() -> None:
    """Of four equal behaviors two replies differ three times in four, and then carry one bit."""
    setup = Setup(scheme="F", proposals=2, trials=300, assumed_noise=0.0, payload_lens=(32,))
    result = steps_needed(FOUR_EQUAL, setup)
    assert result.agent_entropy == 2
    assert result.entropy == pytest.approx(0.75, abs=0.02)
    assert result.bits_per_step == pytest.approx(0.75, abs=0.02)
    more = steps_needed(FOUR_EQUAL, replace(setup, proposals=8))
    assert result.entropy < more.entropy < 2
    plain = steps_needed(FOUR_EQUAL, replace(setup, proposals=None))
    steps = [one.needed[0].steps for one in (plain, more, result)]
    assert None not in steps
    assert steps == sorted(steps, key=lambda count: count or 0)


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_the_steps_that_proposals_need_are_those_that_a_verifier_takes(scheme: str) -> None:
    """Runs of real sessions, whose lists are counts, are named by the step that the simulation says, or nearly so."""
    setup = Setup(scheme=scheme, proposals=4, trials=100, payload_lens=(0,), power=0.5)
    predicted = steps_needed(WAVERING, setup).needed[0]
    assert predicted.steps is not None
    rng, verifier, accepted = Random(11), Verifier(KEY), 0
    for payload in range(40):
        session = Embedder(KEY, payload, payload_len=16, scheme=scheme).session()
        records = [session.choose(counts_of(WAVERING(rng), 4, rng).as_weights()).record for _ in range(predicted.steps)]
        accepted += verifier.verify(records, claim=payload).accepted
    # Half of the runs: 40 of them lie within these limits but once in a thousand times.
    assert 9 <= accepted <= 31


def test_the_same_seed_gives_the_same_answer() -> None:
    setup = Setup(scheme="F", trials=40)
    assert steps_needed(WAVERING, setup) == steps_needed(WAVERING, setup)
    assert steps_needed(WAVERING, setup) != steps_needed(WAVERING, Setup(scheme="F", trials=40, seed=2))


def test_what_costs_more_takes_more_steps() -> None:
    def needed(source: Source = WAVERING, **settings: object) -> int:
        result = steps_needed(source, Setup(trials=40, **settings))  # type: ignore[arg-type]
        steps = result.needed[-1].steps
        assert steps is not None
        return steps

    plain = needed(scheme="F", payload_lens=(16,))
    assert needed(scheme="F", payload_lens=(16,), threshold=1e-2) < plain
    assert needed(scheme="F", payload_lens=(16,), registry_size=10) < plain
    assert needed(scheme="F", payload_lens=(16,), noise=0.2) > plain
    assert needed(scheme="F", payload_lens=(32,)) > plain
    assert needed(dirichlet_source(8, 0.1), scheme="F", payload_lens=(16,)) > plain
    race = needed(scheme="R", payload_lens=(16,))
    assert race < plain
    chosen = needed(scheme="R", payload_lens=(16,), view=CHOSEN)
    assert race < chosen < needed(scheme="R", payload_lens=(16,), view=ACTION)


def test_a_certain_agent_is_never_identified() -> None:
    certain = sample_source([BehaviorDistribution.quantise({"a": 1})])
    result = steps_needed(certain, Setup(scheme="F", trials=100, max_steps=20))
    assert all(needed.steps is needed.low is needed.high is None for needed in result.needed)
    assert result.trials < 20, "it stops once no further run can change the answer"
    assert result.bits_per_step == 0


def test_no_noise_allowed_for_and_noise_met_is_not_infinite() -> None:
    result = steps_needed(WAVERING, Setup(scheme="F", trials=30, max_steps=40, noise=0.5, assumed_noise=0.0))
    assert 0 <= result.bits_per_step < 1


def test_the_verifier_keeps_the_promise() -> None:
    """Logs of the length that the simulation asks for are attributed about as often as it says."""
    setup = Setup(scheme="F", trials=200, payload_lens=(16,), power=0.9)
    steps = steps_needed(WAVERING, setup).needed[0].steps
    assert steps is not None
    rng = Random(11)
    accepted = 0
    for i in range(100):
        key = SharedKey(rng.randbytes(32))
        session = Embedder(key, 0x5EED, payload_len=16).session(f"promise {i}")
        records = []
        for _ in range(steps):
            distribution = WAVERING(rng)
            records.append(session.choose(distribution.as_weights()).record)
        accepted += Verifier(key).verify(records).payload == 0x5EED
    # Four standard errors below 90 %: the simulation's own error is within that.
    assert accepted >= 78


@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "Q"},
        {"scheme": "F", "view": CHOSEN},
        {"scheme": "R", "view": "all"},
        {"scheme": "F", "threshold": 0.0},
        {"scheme": "F", "power": 1.0},
        {"scheme": "F", "noise": 1.0},
        {"scheme": "F", "trials": 0},
        {"scheme": "F", "registry_size": 0},
        {"scheme": "F", "registry_size": 300, "payload_lens": (8,)},
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        Setup(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "alpha"), [(0, 0.5), (5, 0.0), (5, float("nan"))])
def test_lists_that_cannot_be_drawn(size: int, alpha: float) -> None:
    with pytest.raises(SettingError):
        dirichlet_source(size, alpha)


# The command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["power", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_the_table(run: Run) -> None:
    status, out, _ = run("--n", "6", "--alpha", "0.8", "--trials", "80", "--scheme", "F", "--payload-len", "8", "16")
    assert status == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("  F ")]
    assert [row[1] for row in rows] == ["8", "16"]
    assert [row[2] for row in rows] == ["27.9", "35.9"]
    assert int(rows[0][4]) < int(rows[1][4])
    assert "Assumed: the verifier finds the payload" in out


def test_lists_of_a_log_and_of_weights(run: Run) -> None:
    with LogWriter("log.jsonl") as log:
        for record in marked_log(KEY, steps=30):
            log.write(record)
    status, out, _ = run("--log", "log.jsonl", "--trials", "20", "--json", "--registry-size", "500")
    assert status == 0
    result = json.loads(out)
    assert result["lists"] == "30 lists of log.jsonl"
    assert [part["scheme"] for part in result["results"]] == ["F", "R"]
    assert [part["payload_len"] for part in result["results"][0]["needed"]] == [16, 32], "500 names need 9 bits"
    assert result["results"][0]["needed"][0]["steps"] > result["results"][1]["needed"][0]["steps"]
    Path("weights.jsonl").write_text('{"a": 1, "b": 1}\n\n{"weights": {"c": 0.5, "d": 0.5}, "context": {}}\n')
    status, out, _ = run("--weights", "weights.jsonl", "--trials", "20", "--scheme", "F", "--json")
    assert json.loads(out)["results"][0]["entropy"] == 1


def test_plots_stand_alone(run: Run) -> None:
    lists = ("--n", "6", "--alpha", "0.8", "--trials", "20", "--scheme", "F")
    assert run(*lists, "--plot", "power.svg")[0] == 0
    drawing = ElementTree.parse("power.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawing.findall("{*}polyline")) == 4
    assert "F, 32 bits" in "".join(drawing.itertext())
    assert run(*lists, "--plot", "power.html")[0] == 0
    page = Path("power.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2, "for a screen and for a phone"
    check_inert(page)


def test_a_partial_view_is_of_scheme_r_only(run: Run) -> None:
    lists = ("--n", "4", "--alpha", "2", "--trials", "10", "--payload-len", "0", "--view", "action")
    status, out, _ = run(*lists)
    assert status == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == ["scheme", "R"]
    assert "too few runs" in out
    assert run(*lists, "--scheme", "F")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--n 5", "goes together with --alpha"),
        ("--like toolbench --n 5 --alpha 1", "give one of them"),
        ("--log none.jsonl", "none.jsonl: No such file"),
        ("--weights empty.jsonl", "holds no list"),
        ("--weights bad.jsonl", "bad.jsonl:1: distribution: weights: all are zero"),
        ("--weights twice.jsonl", "twice.jsonl:2: distribution: behaviors"),
        ("--weights array.jsonl", "array.jsonl:1: is not a JSON object"),
        ("--plot power.pdf", "neither in .svg nor in .html"),
        ("--n 1 --alpha 1 --trials 5 --max-steps 5 --plot power.svg", "nothing to plot"),
        ("--registry-size 300 --payload-len 8", "do not fit 8 bits"),
    ],
)
def test_bad_input_is_exit_two(run: Run, arguments: str, message: str) -> None:
    Path("empty.jsonl").write_text("\n")
    Path("bad.jsonl").write_text('{"a": 0}\n')
    Path("twice.jsonl").write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    Path("array.jsonl").write_text("[1]\n")
    status, _, err = run(*arguments.split())
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_no_number_of_steps_is_promised_for_what_no_search_finds() -> None:
    """R with 128 bits: the evidence is there, the payload is not found without a registry or a claim."""
    source = dirichlet_source(6, 0.3)
    alone = Setup(scheme="R", payload_lens=(32, 128), trials=20, max_steps=200)
    short, long = steps_needed(source, alone).needed
    assert short.steps is not None
    assert not short.needs_naming
    assert long.steps is None
    assert long.needs_naming
    [named] = steps_needed(source, Setup(scheme="R", payload_lens=(128,), registry_size=9, trials=20)).needed
    assert named.steps is not None
    assert not named.needs_naming
    assert open_payload_len("R") < 128 < open_payload_len("F")
