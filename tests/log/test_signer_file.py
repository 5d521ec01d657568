"""The file of a signer's own: appended to, replaced, shared, and never taken for one if it is not."""

import os
from pathlib import Path

import pytest

from agentmark.chain.checkpoint import Statement
from agentmark.chain.state import Note, SignerState, Withdrawal
from agentmark.errors import SettingError
from agentmark.keys.signing import SigningKey
from agentmark.log import signer_file
from agentmark.log.signer_file import SignerFile, StateNews, signer_file_beside

KEY = SigningKey(bytes(range(7, 39)))
NOTES = tuple([Note("s", Statement(i, f"{i:064x}")) for i in range(1, 6)])
NOTHING = StateNews(state=SignerState(), anew=True, whole=False)


def new_file(path: Path, state: SignerState | None = None) -> SignerFile:
    file = SignerFile(path, KEY)
    file.replace(state or SignerState())
    return file


def test_it_has_a_name_for_each_key_and_is_its_owners() -> None:
    other = SigningKey(bytes(range(8, 40)))
    beside = signer_file_beside(Path("a/run.jsonl"), KEY)
    assert beside == Path(f"a/run.jsonl.{KEY.public_key[:16]}.signer")
    assert beside != signer_file_beside(Path("a/run.jsonl"), other)


def test_writers_tell_each_other_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert SignerFile(path, KEY).news() == NOTHING
    ours = new_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert ours.news() is None
    theirs = SignerFile(path, KEY)
    assert theirs.news() == StateNews(state=SignerState(), anew=True, whole=True)
    ours.append(NOTES[0])
    theirs_news = theirs.news()
    assert theirs_news == StateNews(state=SignerState(notes=NOTES[:1]), anew=False, whole=True)
    theirs.append(Withdrawal(NOTES[0].statement.head))
    theirs.append(NOTES[1])
    news = ours.news()
    assert news is not None
    assert news.state.notes == (Withdrawal(NOTES[0].statement.head), NOTES[1])
    assert ours.news() is None
    # A state stands for all before it, in the same file or in a new one.
    later = SignerState(sessions={"s": NOTES[1].statement})
    ours.append(later)
    ours.append(NOTES[2])
    expected = StateNews(state=SignerState(sessions=later.sessions, notes=NOTES[2:3]), anew=True, whole=True)
    assert theirs.news() == expected
    ours.replace(later)
    ours.append(NOTES[2])
    assert theirs.news() == expected
    assert sorted(path.parent.iterdir()) == [path]


def test_it_begins_anew_when_it_has_grown_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signer_file, "MAX_SIZE", 2000)
    path = tmp_path / "state"
    file = new_file(path)
    sizes = []
    for _ in range(20):
        for note in NOTES:
            file.append(note)
        file.append(SignerState())
        sizes.append(path.stat().st_size)
    assert max(sizes) < 4000
    assert sizes.count(min(sizes)) > 5
    assert SignerFile(path, KEY).news() == StateNews(state=SignerState(), anew=True, whole=True)


def test_a_note_that_did_not_fit_on_the_disk_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it, or a part: what follows must fit what is there."""
    write = os.write
    for taken in (0, 30):
        path = tmp_path / f"state-{taken}"
        file = new_file(path)
        file.append(NOTES[0])

        def full_disk(descriptor: int, data: bytes, taken: int = taken) -> int:
            write(descriptor, data[:taken])
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full_disk)
            with pytest.raises(OSError, match="No space"):
                file.append(NOTES[1])
        news = file.news()
        assert news == StateNews(state=SignerState(notes=NOTES[:1]), anew=True, whole=taken == 0)
        if taken:
            file.replace(SignerState(sessions={"s": NOTES[0].statement}))
        file.append(NOTES[2])
        read = SignerFile(path, KEY).news()
        assert read is not None
        assert read.whole
        assert read.state.notes[-1] == NOTES[2]


def test_a_first_line_that_is_only_a_note_is_no_state(tmp_path: Path) -> None:
    path = tmp_path / "state"
    tagged = SignerFile(path, KEY)._seal.seal(NOTES[0])
    path.write_bytes(tagged)
    assert SignerFile(path, KEY).news() == NOTHING


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path, victim = tmp_path / "state", tmp_path / "victim"
    new_file(victim)
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    file = SignerFile(path, KEY)
    assert file.news() == NOTHING
    if kind == "folder":
        with pytest.raises(SettingError, match="is a folder where a signer keeps its state; move it away"):
            file.replace(SignerState())
        path.rename(tmp_path / "state.tmp")
        with pytest.raises(SettingError, match=r"state\.tmp: is a folder"):
            file.replace(SignerState())
    else:
        before = victim.read_bytes()
        file.replace(SignerState())
        assert victim.read_bytes() == before
        assert not path.is_symlink()
