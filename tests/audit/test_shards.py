"""Which files an audit reads, and how they are divided."""

import os
from pathlib import Path

import pytest
from support import marked_log

from agentmark import LogWriter, SharedKey
from agentmark.audit.shards import batches, find_shards, fingerprint, ranges_of
from agentmark.errors import SettingError

KEY = SharedKey(bytes(range(100, 132)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("logs/b.jsonl", "logs/a.jsonl", "logs/deep/c.jsonl.gz", "other.jsonl"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    return tmp_path


def names(*words: str, own: tuple[str, ...] = ()) -> list[str]:
    return [shard.name for shard in find_shards(words, own=map(Path, own)).shards]


@pytest.mark.usefixtures("folder")
def test_files_folders_and_patterns_are_found_in_the_order_of_their_names() -> None:
    everything = ["logs/a.jsonl", "logs/b.jsonl", "logs/deep/c.jsonl.gz"]
    assert names("logs") == everything
    assert names("logs/b.jsonl", "logs/a.jsonl") == everything[:2]
    assert names("logs/**/*.gz") == everything[2:]
    assert names("logs/*.jsonl", "other.jsonl") == [*everything[:2], "other.jsonl"]


@pytest.mark.usefixtures("folder")
def test_a_file_is_read_once_whatever_it_is_called() -> None:
    os.link("logs/a.jsonl", "z-hard.jsonl")
    Path("z-soft.jsonl").symlink_to("logs/a.jsonl")
    found = find_shards(["logs", "logs/a.jsonl", "./logs/a.jsonl", "z-hard.jsonl", "z-soft.jsonl"])
    assert [Path(shard.name).name for shard in found.shards].count("a.jsonl") == 1
    assert len(found.shards) == 3
    assert found.same_files == 4


@pytest.mark.usefixtures("folder")
def test_a_name_that_is_there_is_no_pattern() -> None:
    Path("logs/[ab].jsonl").write_text("x")
    assert names("logs/[ab].jsonl") == ["logs/[ab].jsonl"]


@pytest.mark.usefixtures("folder")
def test_what_the_audit_writes_is_not_read() -> None:
    Path("logs/results.csv").write_text("x")
    Path("logs/results.csv.work/parts").mkdir(parents=True)
    Path("logs/results.csv.work/parts/1.parts").write_text("x")
    assert names("logs", own=("logs/results.csv", "logs/results.csv.work")) == names("logs/**/[abc].*")


@pytest.mark.parametrize("word", ["nowhere.jsonl", "none/*.jsonl"])
def test_a_word_that_means_nothing_is_refused(folder: Path, word: str) -> None:
    with pytest.raises(SettingError, match=r"no such file|no file has"):
        find_shards(["logs", word])


@pytest.mark.usefixtures("folder")
def test_what_is_no_file_is_named_and_the_rest_read() -> None:
    os.mkfifo("logs/pipe")
    Path("logs/broken").symlink_to("nothing")
    Path("empty").mkdir()
    found = find_shards(["logs", "empty"])
    assert len(found.shards) == 3
    said = "\n".join(map(str, found.bad))
    assert "is a pipe" in said
    assert "is a link to nothing" in said
    assert "without any file" in said


def big_log(path: Path, steps: int = 200) -> bytes:
    with LogWriter(path) as log:
        for record in marked_log(KEY, steps=steps):
            log.write(record)
    return path.read_bytes()


def test_ranges_end_with_lines_and_are_the_whole_file(tmp_path: Path) -> None:
    content = big_log(tmp_path / "log.jsonl")
    (shard,) = find_shards([str(tmp_path / "log.jsonl")]).shards
    for size in (1000, 4096, len(content) // 2):
        ranges = ranges_of(shard, size)
        assert len(ranges) > 1
        parts = [content[piece.start : piece.end] for piece in ranges]
        assert b"".join(parts) == content
        assert all(part.endswith(b"\n") for part in parts)
    assert ranges_of(shard, len(content)) == [shard]


def test_what_is_not_lines_of_ours_stays_whole(tmp_path: Path) -> None:
    for name, content in {
        "packed": b"\x1f\x8b" + bytes(5000),
        "array.json": b'[\n{"agentmark": 1, "scheme": "F"},\n' * 200,
        "long.jsonl": big_log(tmp_path / "one.jsonl", 1)[:50] + b"x" * 5000,
    }.items():
        (tmp_path / name).write_bytes(content)
        (shard,) = find_shards([str(tmp_path / name)]).shards
        assert ranges_of(shard, 1000) == [shard]


def test_a_fingerprint_shows_a_change_that_keeps_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    content = bytearray(big_log(path))
    (shard,) = find_shards([str(path)]).shards
    before = fingerprint(shard)
    content[-10] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(shard.mtime_ns, shard.mtime_ns))
    assert fingerprint(shard) != before


def test_batches_hold_every_shard_once_in_order(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i:02}.jsonl").write_bytes(b"x" * (100 * i))
    shards = find_shards([str(tmp_path)]).shards
    found = batches(shards, 1000)
    assert [shard for batch in found for shard in batch] == list(shards)
    assert all(sum(shard.size for shard in batch) <= 1000 or len(batch) == 1 for batch in found)
    assert len(found) < len(shards)
