"""An interrupted run is taken up where it was, by the same code only, whoever else runs the same."""

import shutil
from functools import partial
from pathlib import Path

import agentmark_lab
import pytest
from agentmark_lab.kit import resume
from agentmark_lab.kit.options import ModelChoice
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.resume import resumable
from lab_support import counted, silent

import agentmark


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
    said: list[str] = []
    for code in ("a", "b", "b"):
        monkeypatch.setattr(resume, "_code_digest", lambda code=code: code)
        with pytest.raises(RuntimeError, match="interrupted"):
            run_counted(tmp_path, said)
    assert len((tmp_path / "log").read_text().split()) == 6
    assert [line for line in said if "done" in line] == [
        "x: 3 of 4 chunks were done by other code, and are done again",
        "x: 3 of 4 chunks are done already",
    ]


def test_a_change_in_the_library_or_in_the_lab_is_other_code(tmp_path, monkeypatch):
    for package in (agentmark, agentmark_lab):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        monkeypatch.setattr(package, "__file__", str(folder / "__init__.py"))
    found = [resume._code_digest()]
    (tmp_path / "agentmark" / "core.py").write_text("x = 1\n")
    found.append(resume._code_digest())
    (tmp_path / "agentmark_lab" / "kit.py").write_text("x = 1\n")
    found.append(resume._code_digest())
    (tmp_path / "agentmark_lab" / "notes.txt").write_text("not code")
    assert len(set(found)) == 3
    assert resume._code_digest() == found[2]


def test_a_run_that_ends_does_not_trip_another_that_goes_on(tmp_path):
    """The first removes the folder of both while the second is in the middle of a chunk."""
    folder = tmp_path / "kept"

    def chunk_of_the_second(chunk: int) -> int:
        if chunk == 1:
            with resumable(folder):
                assert map_chunks(abs, [0], workers=1, progress=silent, label="x") == [0]
            assert not folder.exists()
        return -chunk

    with resumable(folder):
        assert map_chunks(chunk_of_the_second, [0, 1, 2], workers=1, progress=silent, label="y") == [0, -1, -2]
    assert not folder.exists()


def test_what_is_removed_between_the_look_and_the_reading_is_done_again(tmp_path):
    kept = resume.Kept(tmp_path / "kept", "code")
    assert kept.found_or_done(abs, "x", -3) == 3
    assert kept.states("x", [-3]).done == 1
    shutil.rmtree(kept.folder)
    assert kept.found_or_done(lambda chunk: "anew", "x", -3) == "anew"


def test_a_key_does_not_decide_what_is_kept(tmp_path):
    kept = resume.Kept(tmp_path, "code")
    kept.found_or_done(str, "x", ModelChoice("m", "u", "one"))
    assert kept.states("x", [ModelChoice("m", "u", "another")]).done == 1
    assert kept.states("x", [ModelChoice("n", "u", "one")]).done == 0
    assert all(b"one" not in path.read_bytes() for path in tmp_path.iterdir())
