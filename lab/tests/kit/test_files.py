"""Files appear all at once, and what is made once is kept."""

from pathlib import Path

import pytest
from agentmark_lab.kit.files import folder_made_once, made_once, write_whole


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by another run that has come to its end, twice in a row."""
    place = tmp_path / "kept" / "x.json"
    honest, removals = Path.write_bytes, iter([1, 2])

    def write(path: Path, content: bytes) -> int:
        if next(removals, None) is not None:
            path.parent.rmdir()
        return honest(path, content)

    monkeypatch.setattr(Path, "write_bytes", write)
    write_whole(place, b"all of it")
    assert [path.name for path in place.parent.iterdir()] == ["x.json"]
    assert place.read_bytes() == b"all of it"


def test_a_folder_that_is_always_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, content: bytes) -> int:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "x", b"")


def test_what_is_made_once_is_not_made_again(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> dict[str, tuple[int, int]]:
        made.append(1)
        return {"a": (1, 2)}

    # The first sees what JSON makes of it, as later ones do.
    assert made_once(tmp_path / "x.json", make) == {"a": [1, 2]}
    assert made_once(tmp_path / "x.json", make) == {"a": [1, 2]}
    assert len(made) == 1


def test_of_several_that_make_a_folder_at_once_one_counts(tmp_path: Path) -> None:
    place = tmp_path / "unpacked"

    def fill(folder: Path) -> None:
        (folder / "mine").write_text("slow")
        # Meanwhile another process, with a draft of its own, was faster.
        place.mkdir()
        (place / "theirs").write_text("fast")

    folder_made_once(place, fill)
    assert [path.name for path in place.iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["unpacked"]


def test_a_folder_that_could_not_be_filled_is_not_there(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        folder_made_once(tmp_path / "unpacked", fill)
    assert not (tmp_path / "unpacked").exists()
