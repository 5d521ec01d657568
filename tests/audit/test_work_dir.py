"""The working folder: its owner's alone, one audit at a time, and nothing but what was asked when it began."""

import stat
from pathlib import Path

import pytest

from agentmark.audit import work_dir as work_dir_module
from agentmark.audit.work_dir import WorkDir, WorkDirError, beside

ASKED = {"by": "session", "keys": "abcd", "payload_len": None}


def test_it_is_the_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    for name in ("open", "new/deep"):
        work_dir = WorkDir(tmp_path / name, resume=False)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
        work_dir.close()


def test_settings_are_fixed_and_what_differs_is_said(tmp_path: Path) -> None:
    path = tmp_path / "work"
    first = WorkDir(path, resume=False)
    assert first.settle(ASKED, {"part_count": 3}) == {"part_count": 3}
    first.close()
    with pytest.raises(WorkDirError, match="--resume goes on with it"):
        WorkDir(path, resume=False)
    again = WorkDir(path, resume=True)
    assert again.settle(ASKED, {"part_count": 99}) == {"part_count": 3}, "as it was decided then"
    with pytest.raises(WorkDirError) as refused:
        again.settle({"by": "file", "keys": "ffff", "payload_len": 8}, {})
    said = str(refused.value)
    assert 'by was "session" and is "file"' in said
    assert "the keys are others" in said
    assert "payload_len was not given and is 8" in said
    assert "ffff" not in said
    again.close()


def test_two_audits_do_not_share_a_folder(tmp_path: Path) -> None:
    work_dir = WorkDir(tmp_path / "work", resume=False)
    with pytest.raises(WorkDirError, match="another audit is at work"):
        WorkDir(tmp_path / "work", resume=True)
    work_dir.settle(ASKED, {})
    with pytest.raises(WorkDirError, match="another audit is at work"):
        # And not: "remove the folder".
        WorkDir(tmp_path / "work", resume=False)
    work_dir.close()
    WorkDir(tmp_path / "work", resume=True).close()


def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who ends removes the folder and then lets go: whoever waits for the lock has one that nobody else looks at."""
    first = WorkDir(tmp_path / "work", resume=False)
    locking = work_dir_module.fcntl.flock

    def flock(file: int, how: int) -> None:
        first.remove()
        (tmp_path / "work").mkdir(exist_ok=True)
        locking(file, how)

    monkeypatch.setattr(work_dir_module.fcntl, "flock", flock)
    with pytest.raises(WorkDirError, match="try again"):
        WorkDir(tmp_path / "work", resume=True)


def test_a_folder_with_other_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("dear diary")
    with pytest.raises(WorkDirError, match="other files"):
        WorkDir(tmp_path, resume=True)


@pytest.mark.parametrize("name", ["parts", "judged"])
def test_a_folder_of_the_same_name_that_no_audit_has_made_is_not_emptied(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("years of work")
    for resume in (True, False):
        with pytest.raises(WorkDirError, match="other files"):
            WorkDir(tmp_path, resume=resume)
    assert (tmp_path / name / "thesis.txt").exists()


def test_one_that_was_killed_while_it_wrote_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "work"
    WorkDir(path, resume=False).close()
    for draft in ("settings.json.tmp", "manifest.jsonl.tmp"):
        (path / draft).write_text("{")
    work_dir = WorkDir(path, resume=True)
    work_dir.settle(ASKED, {})
    work_dir.remove()
    assert not path.exists()


@pytest.mark.parametrize(
    "settings", ["", "3", "[]", "{}", '{"agentmark_audit": 1}', '{"agentmark_audit": 1, "settings": 3, "chosen": {}}']
)
def test_damaged_settings_are_named(tmp_path: Path, settings: str) -> None:
    (tmp_path / "settings.json").write_text(settings)
    work_dir = WorkDir(tmp_path, resume=True)
    with pytest.raises(WorkDirError, match="damaged"):
        work_dir.settle(ASKED, {})
    work_dir.close()


def test_a_line_of_the_manifest_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    work_dir = WorkDir(tmp_path / "work", resume=False)
    work_dir.rewrite_manifest([{"file": "a"}])
    work_dir.add_to_manifest({"file": "b"})
    with (tmp_path / "work" / "manifest.jsonl").open("a") as file:
        file.write('{"file": "c"')
    assert work_dir.manifest() == [{"file": "a"}, {"file": "b"}]
    work_dir.close()


def test_what_is_removed_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "work"
    work_dir = WorkDir(path, resume=False)
    work_dir.settle(ASKED, {})
    (work_dir.parts / "x.parts").write_bytes(b"x")
    (path / "note.txt").write_text("put here meanwhile")
    work_dir.remove()
    assert [inside.name for inside in path.iterdir()] == ["note.txt"]
    assert beside(Path("out/results.csv")) == Path("out/results.csv.work")
