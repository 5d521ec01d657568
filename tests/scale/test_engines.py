"""Daft natively, Daft on a local Ray and Spark say what one process says, row for row (law L9).

Needs the extra `scale`, and PySpark with Java: `make test-scale` makes the environment.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet, make_fleet

from agentmark.audit.bulk import BulkAudit

pytestmark = pytest.mark.slow

ENGINES = ("native", "ray", "spark")
NEEDED = {"native": "daft", "ray": "ray", "spark": "pyspark"}
RUN_ENGINE = Path(__file__).with_name("run_engine.py")
PATIENCE_S = 1200


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return make_fleet(tmp_path_factory.mktemp("fleet"), sessions=240)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder with a short name: Ray's sockets lie in it, and their paths may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="am-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def needs(engine: str) -> None:
    pytest.importorskip(NEEDED[engine], reason=f"{NEEDED[engine]} is not installed: make test-scale")
    if engine == "spark" and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark runs on Java, and there is none: apt install openjdk-17-jre-headless")


def run(engine: str, kind: str, fleet: Fleet, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, RUN_ENGINE, engine, kind, fleet.root, *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def locally(fleet: Fleet) -> dict[str, Any]:
    """What `agentmark audit` says, as JSON."""
    rows: list[dict[str, Any]] = []
    audit = BulkAudit(paths=[str(fleet.logs)], keys=fleet.keys, registry=fleet.registry, workers=1)
    summary = audit.run(on_row=lambda judged: rows.append(judged.row.as_dict()))
    answer: dict[str, Any] = json.loads(json.dumps({"summary": summary.as_dict(), "rows": rows}))
    return answer


@pytest.mark.parametrize("engine", ENGINES)
def test_files_are_judged_as_in_one_process(engine: str, fleet: Fleet, scratch: Path) -> None:
    needs(engine)
    expected = locally(fleet)
    assert run(engine, "files", fleet, "--scratch", str(scratch)) == expected
    kinds = {fleet.kinds[row["group"]] for row in expected["rows"] if row["identity"] is not None}
    assert kinds == {"whole", "damaged", "copied", "two tenants"}
    assert expected["summary"]["read"]["bad_records"] > 20


@pytest.mark.parametrize("engine", ENGINES)
def test_lines_of_a_frame_are_judged_as_in_one_process(engine: str, tmp_path: Path, scratch: Path) -> None:
    needs(engine)
    fleet = make_fleet(tmp_path, sessions=60, packed=False)
    expected, answer = locally(fleet), run(engine, "lines", fleet, "--scratch", str(scratch))
    # A frame calls files by their addresses, and knows no line numbers.
    assert [{**row, "files": len(row["files"])} for row in answer["rows"]] == [
        {**row, "files": len(row["files"])} for row in expected["rows"]
    ]
    read, expected_read = answer["summary"].pop("read"), expected["summary"].pop("read")
    assert answer["summary"] == expected["summary"]
    assert (read["records"], read["bad_records"]) == (expected_read["records"], expected_read["bad_records"])


@pytest.mark.parametrize("carried", [False, True], ids=["key files", "carried"])
@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_no_log_of_an_engine_holds_a_key(engine: str, carried: bool, tmp_path: Path, scratch: Path) -> None:
    needs(engine)
    fleet = make_fleet(tmp_path, sessions=9)
    run(engine, "files", fleet, "--scratch", str(scratch), *(["--carried"] if carried else []))
    files = [path for path in scratch.rglob("*") if path.is_file()]
    assert files or engine == "spark"
    for key in fleet.keys:
        for path in files:
            content = path.read_bytes()
            assert key._secret not in content, path
            assert key._secret.hex().encode() not in content, path


def test_every_engine_is_here() -> None:
    """In the environment of `make test-scale` nothing is left out for want of a package."""
    if find_spec("daft") is None:
        pytest.skip("the extra scale is not installed: make test-scale")
    assert all(find_spec(package) for package in NEEDED.values())
