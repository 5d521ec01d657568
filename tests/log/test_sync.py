"""fsync: never, always, at intervals."""

import os
from pathlib import Path
from typing import Any

import pytest
from log_run import the_run
from sink_helpers import write_all

from agentmark import LogWriter, SettingError
from agentmark.log.sync import Syncer


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that were forced onto the disk."""
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    return calls


@pytest.mark.parametrize(("fsync", "count"), [(False, 0), ("never", 0), (True, 5), ("always", 5)])
def test_fsync_never_or_always(tmp_path: Path, synced: list[int], fsync: Any, count: int) -> None:
    with LogWriter(tmp_path / "run.jsonl", fsync=fsync) as log:
        write_all(log, the_run()[:5])
    assert len(synced) == count


def test_fsync_at_intervals_of_records_of_time_and_at_the_end(tmp_path: Path, synced: list[int]) -> None:
    now = [0.0]
    syncer = Syncer("interval", every_s=10, every_records=3, clock=lambda: now[0])
    log = LogWriter(tmp_path / "run.jsonl", fsync=syncer)
    write_all(log, the_run()[:4])
    assert len(synced) == 1
    now[0] = 10
    log.write(the_run()[4])
    assert len(synced) == 2
    log.close()
    assert len(synced) == 2, "nothing was waiting"


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="sometimes"):
        LogWriter(tmp_path / "run.jsonl", fsync="sometimes")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="not an interval"):
        Syncer("interval", every_records=0)
