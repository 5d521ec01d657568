"""The lab: its statistics against SciPy, every experiment in its quick version, and its command line."""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from agentmark_lab import capacity, false_positives, marginals, parallel, roundtrip
from agentmark_lab import cli as lab_cli
from agentmark_lab.catalogue import EXPERIMENTS, load
from agentmark_lab.cli import add_parser
from agentmark_lab.cli import run as run_command
from agentmark_lab.data import MissingError
from agentmark_lab.experiment import Claim, Curve, Findings, Machine, Result, ResultError, Table, perform, version_here
from agentmark_lab.figures import draw
from agentmark_lab.parallel import map_chunks, resumable
from agentmark_lab.pictures import PICTURES, figures_of, overviews
from agentmark_lab.report import load_results, render_front, render_page
from agentmark_lab.stats import (
    bernstein_margin,
    bonferroni,
    chi_square_sf,
    chi_square_test,
    exact_interval,
    ks_uniform,
    lower_beta,
    mean_interval,
    student_interval,
    student_quantile,
    upper_gamma,
    wilson_interval,
)
from agentmark_lab.utility import AGAINST
from scipy import special
from scipy import stats as scipy_stats

import agentmark
from agentmark import BehaviorDistribution
from agentmark.cli.main import main
from agentmark.core import theory


def silent(message: str) -> None:
    """Progress that nobody reads."""


quick = partial(perform, quick=True, seed=1, workers=1, progress=silent)


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return run_command(parser.parse_args(["lab", *arguments]))


# Statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 99, 999, 5000])
@pytest.mark.parametrize("scaled", [0.001, 0.3, 0.9, 1.0, 1.1, 1.5, 4.0])
def test_chi_square_tail(degrees, scaled):
    statistic = degrees * scaled
    assert chi_square_sf(statistic, degrees) == pytest.approx(
        scipy_stats.chi2.sf(statistic, degrees), rel=1e-10, abs=1e-14
    )


def test_incomplete_gamma_and_beta():
    assert upper_gamma(2.5, 0) == 1
    for a, b, x in [(1, 1, 0.3), (0.5, 7, 0.02), (40, 3, 0.9), (12201, 7800, 0.61), (5, 5, 0), (5, 5, 1)]:
        assert lower_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5, 38, 90])
@pytest.mark.parametrize("power", [1.0, 1.3, 3.0, 0.2])
def test_kolmogorov_smirnov_is_exact(size, power):
    rng = random.Random(size)
    values = [rng.random() ** power for _ in range(size)]
    expected = scipy_stats.kstest(values, "uniform", method="exact").pvalue
    assert ks_uniform(values) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (10, 10), (3, 20_000), (12_200, 20_000)])
@pytest.mark.parametrize("confidence", [0.95, 0.9985])
def test_intervals_of_a_proportion(successes, trials, confidence):
    reference = scipy_stats.binomtest(successes, trials)
    for ours, method in ((wilson_interval, "wilson"), (exact_interval, "exact")):
        interval = ours(successes, trials, confidence=confidence)
        expected = reference.proportion_ci(confidence, method)
        assert interval.low == pytest.approx(expected.low, rel=1e-6, abs=1e-12)
        assert interval.high == pytest.approx(expected.high, rel=1e-6)


def test_mean_interval():
    values = [random.Random(1).gauss(3, 2) for _ in range(400)]
    values = [value + i % 7 for i, value in enumerate(values)]
    error = scipy_stats.sem(values)
    mean = sum(values) / len(values)
    interval = mean_interval(values, confidence=0.99)
    assert interval.low == pytest.approx(mean - scipy_stats.norm.ppf(0.995) * error)
    assert interval.high == pytest.approx(mean + scipy_stats.norm.ppf(0.995) * error)
    assert mean in interval
    assert bonferroni(0.95, 10) == pytest.approx(0.995)


@pytest.mark.parametrize("degrees", [1, 9, 23, 199, 5000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_student_quantile(degrees: int, confidence: float):
    assert student_quantile(confidence, degrees) == pytest.approx(scipy_stats.t.ppf((1 + confidence) / 2, degrees))


def test_student_interval():
    rng = random.Random(2)
    values = [rng.gauss(3, 2) for _ in range(12)]
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.9)
    interval = student_interval(values, confidence=0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_bernstein_margin_covers():
    # Rare events, where the normal approximation fails: Binomial(trials, p), whose tails are known exactly.
    for trials, p in [(40, 0.001), (400, 0.01), (20_000, 0.3)]:
        margin = bernstein_margin(p * (1 - p), 1, trials)
        binomial = scipy_stats.binom(trials, p)
        outside = binomial.sf(trials * (p + margin)) + binomial.cdf(trials * (p - margin) - 1e-9)
        assert outside <= 0.05


def test_chi_square_without_pooling():
    observed, expected = [18, 22, 35, 25], [20.0, 20.0, 30.0, 30.0]
    test = chi_square_test(observed, expected)
    reference = scipy_stats.chisquare(observed, expected)
    assert test.degrees == 3
    assert test.statistic == pytest.approx(reference.statistic)
    assert test.p_value == pytest.approx(reference.pvalue)


@pytest.mark.parametrize(
    ("expected", "degrees"),
    [
        ([90.0, 4.0, 3.0, 3.0], 1),  # the small cells make a cell of their own
        ([50.0, 46.0, 2.0, 2.0], 1),  # still below five: the smaller large cell joins them
        ([50.0, 40.0, 10.0, 0.0], 2),  # a cell that expects none is not a cell
        ([98.0, 1.0, 1.0, 0.0], 0),
    ],
)
def test_small_cells_are_pooled(expected, degrees):
    observed = [round(mean) for mean in expected]
    test = chi_square_test(observed, expected)
    assert test.degrees == degrees
    assert (test.p_value is None) == (degrees == 0)


def test_a_count_where_none_is_expected_refutes():
    assert chi_square_test([99, 1], [100.0, 0.0]).p_value == 0


# Experiments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_version_passes_and_is_kept(name, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTMARK_WORK", str(tmp_path / "work"))
    monkeypatch.delenv("AGENTMARK_GGUF", raising=False)
    monkeypatch.delenv("AGENTMARK_MODEL", raising=False)
    try:
        result = quick(load(name))
    except MissingError as missing:
        pytest.skip(str(missing))
    assert result.passed, result.claims
    assert result.name == name
    assert result.command == f"agentmark lab run {name} --quick"
    assert result.claims
    assert all(len(row) == len(table.columns) for table in result.tables for row in table.rows)
    path = result.save(tmp_path / "new")
    assert path.name == f"{name}.json"
    assert Result.load(path) == result


def test_workers_do_not_change_the_outcome():
    one, two = [false_positives.run(quick=True, seed=3, workers=workers, progress=silent).data for workers in (1, 2)]
    assert one == two


def test_another_seed_gives_other_draws():
    one, two = [false_positives.run(quick=True, seed=seed, workers=1, progress=silent).data for seed in (1, 2)]
    assert one != two


def biased_sampler(scheme: str, seed: int) -> marginals.Sampler:
    """Takes the likeliest behavior a little too often: one step in twenty-five."""
    honest = marginals.marked_sampler(scheme, seed)

    def sample(distribution: BehaviorDistribution, context: bytes) -> str:
        return distribution.behaviors[0] if context[0] < 256 // 25 else honest(distribution, context)

    return sample


def position_sampler(scheme: str, seed: int) -> marginals.Sampler:
    """Ignores the weights."""
    return lambda distribution, context: distribution.behaviors[context[0] % len(distribution)]


def test_marginals_fail_for_a_sampler_that_ignores_the_weights():
    findings = marginals.check(position_sampler, quick=True, seed=1, workers=1, progress=silent)
    assert not findings.passed
    assert findings.claims[0].sentence.startswith("DOES NOT HOLD")


def test_marginals_detect_a_slight_bias():
    distribution = marginals.distributions(1)["paper's App. C"]
    p_values = {}
    for make_sampler in (marginals.marked_sampler, biased_sampler):
        chunk = marginals.DrawChunk("bias", distribution, "F", 1, 0, 40_000, make_sampler)
        p_values[make_sampler] = marginals.fit(distribution, marginals.count_choices(chunk)).p_value
    assert p_values[marginals.marked_sampler] > 0.001
    assert p_values[biased_sampler] < 1e-6


def test_marginals_refute_what_is_not_in_the_list():
    distribution = BehaviorDistribution.quantise({"a": 1.0})
    assert marginals.fit(distribution, Counter({"a": 10})).p_value is None
    assert marginals.fit(distribution, Counter({"a": 9, "z": 1})).p_value == 0


def test_there_are_twenty_distributions():
    cases = marginals.distributions(1)
    assert len(cases) == 20
    assert {1, 2, 3, 5, 10, 20, 50, 100, 1000} <= {len(distribution) for distribution in cases.values()}
    assert 1 in cases["two weights of 2^-32"].weights


def test_roundtrip_notices_a_wrong_payload():
    chunk = roundtrip.StepChunk("F", 200, 1, 0)
    assert roundtrip.run_chunk(chunk).outcomes == {roundtrip.READ: 200}
    rng = random.Random(1)
    key = roundtrip.random_key(rng)
    for scheme in ("F", "R"):
        session = roundtrip.Embedder(key, 0x5EED, payload_len=16, scheme=scheme).session("s")
        outcomes = {
            roundtrip.read_back(session.choose({"a": 1, "b": 1, "c": 1}), key, 0x5EED ^ 0x8001, rng, Counter())
            for _ in range(50)
        }
        assert outcomes - {roundtrip.READ}


def test_reordering_keeps_the_content_and_changes_the_order():
    rng = random.Random(1)
    line = json.dumps({"a": {"x": 1, "y": 2, "z": [{"p": 1, "q": 2}]}, "b": 2, "c": "\u641c"})
    texts = {roundtrip.reordered(line, rng) for _ in range(50)}
    assert len(texts) > 20
    assert all(json.loads(text) == json.loads(line) for text in texts)


def test_a_trial_trims_to_exactly_the_wanted_equations():
    verdicts = false_positives.trial(false_positives.UNMARKED, random.Random(1))
    assert len(verdicts) == len(false_positives.OVERHEADS)
    # Once contradicted, always contradicted.
    assert verdicts == sorted(verdicts, reverse=True)


@pytest.mark.parametrize("probability", [2.0**-32, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 2.0**-32, 1.0])
def test_race_capacity_two_ways(probability):
    weight = round(probability * 2**32)
    rest = {"b": 2**32 - weight} if weight < 2**32 else {}
    distribution = BehaviorDistribution.from_weights({"a": weight, **rest})
    moments = [capacity.race_moment(w / 2**32, power=1) for w in distribution.weights]
    assert theory.race_capacity(distribution) == pytest.approx(sum(moments), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_stop_when_their_parent_is_killed_or_interrupted(how, tmp_path):
    """They would go on for minutes otherwise, and nobody would take what they bring."""
    parent = subprocess.Popen(
        [sys.executable, "-c", SLEEPY, str(tmp_path)], cwd=Path(__file__).parent, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: len(list(tmp_path.glob("*"))) == 2)
        workers = [int(path.name) for path in tmp_path.glob("*")]
    finally:
        parent.send_signal(how)
        parent.wait(timeout=60)
    wait_until(lambda: not any(alive(pid) for pid in workers))


SLEEPY = """
import sys
from functools import partial
from agentmark_lab.parallel import map_chunks
from test_lab import sleep_long

if __name__ == "__main__":
    map_chunks(partial(sleep_long, sys.argv[1]), [0, 1], workers=2, progress=print, label="x")
"""


def sleep_long(folder: str, _: int) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(120)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def counted(log: Path, broken: Path, chunk: int) -> tuple[int, float]:
    if chunk == 3 and broken.exists():
        raise RuntimeError("interrupted")
    with log.open("a", encoding="utf-8") as lines:
        lines.write(f"{chunk}\n")
    return chunk, float("inf")


def run_counted(folder: Path, said: list[str], *, label: str = "x", workers: int = 1) -> list[tuple[int, float]]:
    work = partial(counted, folder / "log", folder / "broken")
    with resumable(folder / "kept"):
        return map_chunks(work, [0, 1, 2, 3], workers=workers, progress=said.append, label=label)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_is_taken_up_where_it_was(tmp_path, workers):
    said: list[str] = []
    (tmp_path / "broken").touch()
    # What one part of an experiment has done is not mistaken for another's.
    for label in ("x", "y"):
        with pytest.raises(RuntimeError, match="interrupted"):
            run_counted(tmp_path, said, label=label, workers=workers)
    log = tmp_path / "log"
    assert sorted(log.read_text().split()) == ["0", "0", "1", "1", "2", "2"]
    (tmp_path / "broken").unlink()
    assert run_counted(tmp_path, said, workers=workers) == [(chunk, float("inf")) for chunk in range(4)]
    assert sorted(log.read_text().split()) == ["0", "0", "1", "1", "2", "2", "3"]
    assert "x: 3 of 4 chunks are done already" in said
    # It has come to its end: once more means anew.
    assert not (tmp_path / "kept").exists()
    run_counted(tmp_path, said, workers=workers)
    assert len(log.read_text().split()) == 11


def test_what_other_code_has_done_is_done_again(tmp_path, monkeypatch):
    (tmp_path / "broken").touch()
    for code in ("a", "b", "b"):
        monkeypatch.setattr(parallel, "_code_digest", lambda code=code: code)
        with pytest.raises(RuntimeError, match="interrupted"):
            run_counted(tmp_path, [])
    assert len((tmp_path / "log").read_text().split()) == 6


def test_an_interrupt_is_no_fault_of_ours(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab_cli, "perform", interrupted)
    assert main(["lab", "run", "marginals"]) == 130
    said = capsys.readouterr().err
    assert "marginals: the same command takes it up where it was" in said
    assert said.endswith("agentmark: interrupted\n")
    assert "Traceback" not in said


def test_a_result_names_the_commit_of_its_own_code(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "agentmark" / "__init__.py"
    package.parent.mkdir()
    package.write_text("")
    (tmp_path / "other").write_text("")
    monkeypatch.setattr(agentmark, "__file__", str(package))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert version_here() == agentmark.__version__
    # Somebody else's checkout, in which it is merely installed.
    git("init")
    git("add", "other")
    git("commit", "-m", "theirs")
    assert version_here() == agentmark.__version__
    git("add", "agentmark")
    git("commit", "-m", "ours")
    assert re.fullmatch(rf"{agentmark.__version__} at [0-9a-f]{{10}}", version_here())
    (tmp_path / "other").write_text("changed")
    assert not version_here().endswith("with changes")
    package.write_text("changed = True")
    assert version_here().endswith("with changes")


# Results and command line --------------------------------------------------------------------------------------------


def some_result(**changes) -> Result:
    table = Table("Numbers", ["what", "count"], [["a | b", 1234], ["c", 0.5]], "Counted twice.")
    content = {
        "name": "marginals",
        "title": "A title",
        "command": "agentmark lab run marginals",
        "seed": 1,
        "quick": False,
        "machine": Machine.here(),
        "version": "0.1.0",
        "seconds": 12.3,
        "passed": True,
        "claims": ["Holds: it is so."],
        "tables": [table],
        "data": {"x": [1, 2.5, None]},
    }
    return Result(**{**content, **changes})


def test_page_shows_claims_tables_and_circumstances():
    page = render_page(some_result())
    for line in (
        "# A title",
        "- Holds: it is so.",
        "| what | count |",
        "| a \\| b | 1,234 |",
        "Counted twice.",
        "    agentmark lab run marginals",
        "Seed 1, 12 s",
    ):
        assert line in page
    assert "Warning" not in page


def test_the_command_names_the_models_of_an_experiment_that_asks_some(monkeypatch):
    def command_of(**members) -> str:
        kept = {"NAME": "x", "TITLE": "y", "run": lambda **_: Findings([], []), **members}
        return quick(SimpleNamespace(**kept)).command

    monkeypatch.delenv("AGENTMARK_MODEL", raising=False)
    monkeypatch.setenv("AGENTMARK_GGUF", os.pathsep.join(["/models/a.gguf", "/b.gguf"]))
    assert command_of() == "agentmark lab run x --quick"
    asking = command_of(ASKS_MODELS=True)
    assert asking == f"AGENTMARK_GGUF=a.gguf{os.pathsep}b.gguf agentmark lab run x --quick"
    monkeypatch.setenv("AGENTMARK_MODEL", "http://localhost/v1 m")
    assert command_of(ASKS_MODELS=True) == "agentmark lab run x --quick --model http://localhost/v1 m"


def test_page_warns_of_quick_and_failed_runs():
    assert "Warning: a quick run" in render_page(some_result(quick=True))
    assert "Warning: not every claim holds" in render_page(some_result(passed=False))


def test_the_overview_is_drawn_from_the_tables_on_utility(tmp_path):
    rows = [
        ["0.05", "baseline", ""],
        ["0.05", "red-green", "-8.9 (-11.8 to -6.0)"],
        ["0.05", "AgentMark-F", "+0.5 (-0.6 to +1.7)"],
        ["0.15", "AgentMark-F", "+1.4 (+0.4 to +2.4)"],
    ]
    table = Table("BFCL multi-turn base", ["epsilon", "policy", AGAINST], rows)
    [figure] = overviews([some_result(), some_result(tables=[table])])
    assert figure.x_names == ["BFCL\nmulti-turn\nε 0.05", "BFCL\nmulti-turn\nε 0.15"]
    assert figure.curves == [
        Curve("AgentMark-F", [0, 1], [0.5, 1.4], [-0.6, 0.4], [1.7, 2.4]),
        Curve("red-green", [0], [-8.9], [-11.8], [-6.0]),
    ]
    # A language model stands beside them where enough episodes were played to compare.
    model = ["Some-1B-Instruct.Q4", "AgentMark-F", "+0.2 (-0.8 to +1.1)", "-0.6 to +1.0"]
    played = Table("t", ["model", "policy", AGAINST, "TOST interval"], [model])
    few = Table("t", ["model", "policy", AGAINST], [model[:3]])
    assert overviews([some_result(tables=[few])]) == []
    [with_model] = overviews([some_result(tables=[table, few, played])])
    assert with_model.x_names == [*figure.x_names, "ToolBench\nSome\n1B"]
    first = [path.read_bytes() for path in draw(figure, tmp_path)]
    assert [path.read_bytes() for path in draw(figure, tmp_path)] == first
    assert overviews([some_result()]) == []
    assert "![What a mark costs the agent" in render_front([some_result(tables=[table])])


def test_a_table_is_drawn_where_an_experiment_brings_no_figure():
    rows = [
        ["F", 10, "0.069 (0.062 to 0.078)"],
        ["F", 20, "over 900"],
        ["R", 20, "1,234"],
        ["R", 20, "7 (6 to no upper limit)"],
        ["R", 30, "2.3e-04 (1.7e-04 to 3.1e-04)"],
    ]
    table = Table("Episodes", ["scheme", "steps", "uniquely recovered"], rows)
    [figure] = figures_of(some_result(name="single_episode", tables=[table]))
    assert (figure.name, figure.x_names) == ("single_episode", ["10", "20", "30"])
    assert figure.curves == [
        Curve("F", [0], [0.069], [0.062], [0.078]),
        Curve("R", [1, 2], [1234, 2.3e-4], [1234, 1.7e-4], [1234, 3.1e-4]),
    ]
    drawn = figures_of(some_result(name="single_episode", tables=[table], figures=[figure, figure]))
    assert drawn == [figure, figure]
    assert figures_of(some_result(name="roundtrip")) == []


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_name_columns_that_the_results_have(name):
    path = Path(__file__).parents[2] / "results" / f"{name}.json"
    [figure] = figures_of(replace(Result.load(path), figures=[]))
    assert all(curve.y for curve in figure.curves)


def test_results_come_in_the_order_of_the_catalogue(tmp_path):
    for name in ("speed", "zebra", "roundtrip"):
        some_result(name=name).save(tmp_path)
    assert [result.name for result in load_results(tmp_path)] == ["roundtrip", "speed", "zebra"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"machine": {}, "tables": []}'])
def test_a_damaged_result_is_named(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(ResultError, match=r"broken\.json"):
        Result.load(path)
    assert command("table", "--out", str(tmp_path), "--docs", str(tmp_path / "page.md")) == 2


def test_a_missed_aim_is_reported_and_does_not_fail():
    findings = Findings([Claim("fast", holds=False, aim=True), Claim("right", holds=True)], [])
    assert findings.passed
    assert [claim.sentence for claim in findings.claims] == ["Aim not met: fast", "Holds: right"]
    assert not Findings([Claim("right", holds=False)], []).passed


def test_commands(tmp_path, capsys):
    assert command("list") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in EXPERIMENTS)
    out, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    assert command("table", "--out", str(out), "--docs", str(page)) == 2
    arguments = ("--quick", "--seed", "2", "--workers", "1", "--out", str(out))
    assert command("run", "false_positives", *arguments) == 0
    captured = capsys.readouterr()
    assert "passed" in captured.out
    assert "trials" in captured.err
    assert command("table", "--out", str(out), "--docs", str(page)) == 0
    written = (page.with_suffix("") / "false_positives.md").read_text(encoding="utf-8")
    assert "agentmark lab run false_positives --quick --seed 2" in written


def test_unknown_name_exits_with_two(capsys):
    assert command("run", "nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


def test_failed_experiment_exits_with_one(tmp_path, monkeypatch):
    failed = Findings([Claim("it is so.", holds=False)], [])
    monkeypatch.setattr(false_positives, "run", lambda **_: failed)
    assert command("run", "false_positives", "--out", str(tmp_path)) == 1
    assert not Result.load(tmp_path / "false_positives.json").passed


def test_workers_must_be_positive():
    with pytest.raises(SystemExit) as exit_info:
        command("run", "speed", "--workers", "0")
    assert exit_info.value.code == 2


def test_module_entry_point(monkeypatch, capsys):
    from agentmark_lab import __main__ as entry

    monkeypatch.setattr("sys.argv", ["lab", "list"])
    assert entry.main() == 0
    assert "roundtrip" in capsys.readouterr().out
