"""An interrupted run is taken up where it was, by the same code only, whoever else runs the same."""

from functools import partial
from pathlib import Path

import pytest
from agentmark_lab.kit import resume
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.resume import resumable
from lab_support import counted


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
        monkeypatch.setattr(resume, "_code_digest", lambda code=code: code)
        with pytest.raises(RuntimeError, match="interrupted"):
            run_counted(tmp_path, [])
    assert len((tmp_path / "log").read_text().split()) == 6
