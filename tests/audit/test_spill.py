"""Parts on disk: what is written comes back, in order, and a file that is there is whole."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.audit.spill import SpillError, SpillWriter, part_of, read_blocks


@given(st.lists(st.tuples(st.integers(0, 6), st.binary(max_size=20)), max_size=30))
def test_blocks_come_back_by_part_in_the_order_written(tmp_path_factory: pytest.TempPathFactory, blocks: list) -> None:  # type: ignore[type-arg]
    path = tmp_path_factory.mktemp("spill") / "x.parts"
    with SpillWriter(path, 7) as writer:
        for part, content in blocks:
            writer.write(part, content)
    assert path.stat().st_size == writer.size
    for part in range(7):
        assert list(read_blocks(path, part)) == [content for mine, content in blocks if mine == part]


def test_what_was_written_since_a_mark_can_be_dropped(tmp_path: Path) -> None:
    with SpillWriter(tmp_path / "x", 2) as writer:
        writer.write(0, b"kept")
        mark = writer.mark()
        writer.write(0, b"dropped")
        writer.write(1, b"dropped")
        writer.back_to(mark)
        writer.write(1, b"later")
    assert list(read_blocks(tmp_path / "x", 0)) == [b"kept"]
    assert list(read_blocks(tmp_path / "x", 1)) == [b"later"]


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    with suppress(RuntimeError), SpillWriter(tmp_path / "x", 1) as writer:
        writer.write(0, b"half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with SpillWriter(path, 3) as writer:
        writer.write(1, b"content")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], b"\0" * len(whole)):
        path.write_bytes(damaged)
        with pytest.raises(SpillError, match="begin anew"):
            list(read_blocks(path, 1))


def test_parts_are_the_same_everywhere_and_even() -> None:
    assert [part_of(name, 1000) for name in ("", "session-1", "Zürich", "\udcff")] == [876, 604, 848, 362]
    counts = [0] * 8
    for i in range(8000):
        counts[part_of(f"session-{i}", 8)] += 1
    # Binomial with mean 1000 and deviation 30: five of them either way.
    assert all(850 < count < 1150 for count in counts)
