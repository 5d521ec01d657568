"""The benches of the store and of audits on a cluster: what they meter, and what their tables make of it."""

import asyncio
import random
from pathlib import Path

import bench_store
import pytest
from bench.pages import page_with

from agentmark import read_log


def test_every_record_that_the_bench_counts_is_in_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    seen = asyncio.run(bench_store.measured(str(path), 4, 0.3, random.Random(1)))
    records = read_log(path).records
    assert len(records) == len({record.context for record in records}) > 0
    assert 1 <= seen.per_commit <= 4
    assert 0 < seen.median_ms <= seen.late_ms
    # The last ones end after their time.
    assert seen.per_second <= len(records) / 0.3


def test_the_page_of_the_store_has_the_middle_of_the_rounds_and_the_disk() -> None:
    seen = [bench_store.Seen(rate, 1.0, 2.0, 3.0, 40.0) for rate in (100.0, 1300.0, 90.0)]
    section = bench_store.table_of({("SQLite", 1): seen}, [4.0], 5.0).section("Measured here.")
    page = page_with(bench_store.INTRODUCTION, [section])
    assert "| SQLite | 1 | 100 (90 to 1,300) | 1.0 (1.0 to 1.0) |" in page
    assert "| a bare write of 4 KiB through to the same disk |  |  |  | 4.0 (4.0 to 4.0) |" in page
    assert page.startswith("# What the store costs\n")
    assert page_with(page, [section]) == page


def test_an_audit_in_one_process_is_metered_phase_by_phase() -> None:
    pytest.importorskip("pyarrow")
    import bench_scale

    costs = bench_scale.measure("F", 1200, 1, 2)
    assert (costs.steps, costs.sessions) == (1200, 12)
    assert all(len(values) == 2 and min(values) > 0 for values in costs.worker_us.values())
    assert costs.all_us[0] == pytest.approx(sum(values[0] for values in costs.worker_us.values()))
    assert costs.bytes["input"] > costs.bytes["shuffled"] > costs.bytes["kept"] > costs.bytes["said"] > 0


def test_a_worker_with_more_steps_holds_more(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import bench_scale
    from bench.bucket_memory import peaks_mb

    few, many = [
        peaks_mb(lines, key, registry, tmp_path / f"{steps}")
        for steps in (1000, 30_000)
        for key, registry, lines in [bench_scale.fleet("F", steps, 1)]
    ]
    assert few[0] <= few[1]
    assert many[0] > few[0] + 5


def test_tables_of_an_audit_on_a_cluster_are_the_arithmetic_that_they_say() -> None:
    pytest.importorskip("pyarrow")
    import bench_scale

    costs = bench_scale.Costs(
        steps=1000,
        sessions=10,
        phases=4,
        bytes={"input": 367.0, "shuffled": 154.0, "kept": 57.0, "verdicts": 8.0, "said": 0.4},
        worker_us={"sort into buckets": [1.0, 2.0], "read under the keys": [3.0, 3.0], "judge": [32.0, 31.0]},
        driver_us=[20.0, 30.0],
        peaks={20_000: (60.0, 70.0), 80_000: (100.0, 130.0)},
    )
    assert costs.held_kb == pytest.approx(1.024)
    assert costs.python_mb == pytest.approx(50)
    by_scheme = {"F": costs}
    assert "| in all | 36.0 (36.0 to 36.0) |" in bench_scale.time_table(by_scheme).section("")
    assert "| so 200,000 steps, with Python | 250 |" in bench_scale.memory_table(by_scheme).section("")
    large = bench_scale.projection(by_scheme).section("")
    assert "| core-hours of the workers | 10 | 10,000 |" in large
    assert "| kept between phases | 0.065 TB | 65 TB |" in large
    assert "| to the driver | 0.4 GB | 0.4 TB |" in large
    assert "| buckets of 200,000 steps | 5,000 | 5,000,000 |" in large
