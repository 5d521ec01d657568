"""One audit on one engine, in a process of its own: engines are set once in a process, and warn as they please.

    python run_engine.py native|ray|spark files|lines FOLDER [--carried] [--scratch FOLDER]

Prints a line of JSON: the summary, and the rows in the order of their names.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(DO_NOT_TRACK="1", RAY_USAGE_STATS_ENABLED="0", DAFT_PROGRESS_BAR="0", PYSPARK_PYTHON=sys.executable)

from agentmark import Registry, SharedKey
from agentmark.scale.audit import ClusterAnswer, ClusterAudit
from agentmark.scale.worker_keys import CarriedKeys, KeyFiles

CPUS = 2
BUCKETS = 5


def asked(folder: Path, *, carried: bool) -> ClusterAudit:
    files = sorted(folder.glob("key-*.json"))
    keys = CarriedKeys([SharedKey.load(file) for file in files]) if carried else KeyFiles(*files)
    return ClusterAudit(keys=keys, registry=Registry.load(folder / "registry.jsonl"))


def on_daft(kind: str, folder: Path, audit: ClusterAudit) -> tuple[ClusterAnswer, list[dict[str, Any]]]:
    import daft

    from agentmark.scale.frames import audit_files, audit_frame

    if kind == "files":
        answer = audit_files([str(folder / "logs")], audit, buckets=BUCKETS, workers=CPUS)
    else:
        frame = daft.read_text(f"{folder / 'logs'}/**/*.jsonl", file_path_column="file")
        answer = audit_frame(frame, audit, file="file", buckets=BUCKETS, workers=CPUS)
    return answer, answer.rows.to_pylist()


def on_ray(kind: str, folder: Path, audit: ClusterAudit, scratch: str) -> tuple[ClusterAnswer, list[dict[str, Any]]]:
    import daft
    import ray

    ray.init(
        num_cpus=CPUS,
        object_store_memory=200_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=scratch,
        runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}},
    )
    try:
        daft.set_runner_ray()
        return on_daft(kind, folder, audit)
    finally:
        ray.shutdown()


def on_spark(kind: str, folder: Path, audit: ClusterAudit, scratch: str) -> tuple[ClusterAnswer, list[dict[str, Any]]]:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import input_file_name

    from agentmark.scale.spark import audit_spark, audit_spark_files

    builder = SparkSession.builder.master(f"local[{CPUS}]")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        if kind == "files":
            answer = audit_spark_files(session, [str(folder / "logs")], audit, buckets=BUCKETS)
        else:
            frame = session.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.jsonl")
            lines = frame.text(str(folder / "logs")).withColumn("file", input_file_name())
            answer = audit_spark(lines, audit, file="file", buckets=BUCKETS)
        return answer, [row.asDict() for row in answer.rows.collect()]
    finally:
        session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("native", "ray", "spark"))
    parser.add_argument("kind", choices=("files", "lines"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--carried", action="store_true")
    parser.add_argument("--scratch", default="")
    options = parser.parse_args()
    audit = asked(options.folder, carried=options.carried)
    runs: dict[str, Callable[[], tuple[ClusterAnswer, list[dict[str, Any]]]]] = {
        "native": lambda: on_daft(options.kind, options.folder, audit),
        "ray": lambda: on_ray(options.kind, options.folder, audit, options.scratch),
        "spark": lambda: on_spark(options.kind, options.folder, audit, options.scratch),
    }
    answer, rows = runs[options.engine]()
    rows.sort(key=lambda row: str(row["group"]))
    print(json.dumps({"summary": answer.summary.as_dict(), "rows": rows}))


if __name__ == "__main__":
    main()
