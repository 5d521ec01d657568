"""Small files: what is read of them, and what is refused before it fills the memory."""

import os
import threading
from pathlib import Path

import pytest

from agentmark.files import FileError, read_small_file, write_text_file


def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_small_file(path, 100) == b"x" * 100
    with pytest.raises(FileError, match="larger than 99 bytes"):
        read_small_file(path, 99)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(FileError, match="is a device"):
        read_small_file(device, 10)


def test_a_pipe_is_read_to_the_limit_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write(content: bytes) -> None:
        try:
            with path.open("wb") as pipe:
                pipe.write(content)
        except BrokenPipeError:
            pass

    for size in (10, 1_000_000):
        writer = threading.Thread(target=write, args=(b"x" * size,))
        writer.start()
        if size == 10:
            assert read_small_file(path, 10) == b"x" * 10
        else:
            with pytest.raises(FileError, match="larger than 10 bytes"):
                read_small_file(path, 10)
        writer.join()


def test_what_the_system_refuses_is_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_small_file(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_small_file(tmp_path / "none", 10)
    with pytest.raises(FileError, match="not a name that a file can have"):
        read_small_file("a\0b", 10)


def test_what_cannot_be_written_is_told_with_its_name(tmp_path: Path) -> None:
    write_text_file(tmp_path / "file", "zürich")
    assert (tmp_path / "file").read_bytes() == "zürich".encode()
    with pytest.raises(FileError, match="cannot be written: Is a directory"):
        write_text_file(tmp_path, "text")
    with pytest.raises(FileError, match="/dev/full: cannot be written: No space left"):
        write_text_file("/dev/full", "text")
    with pytest.raises(FileError, match="not a name"):
        write_text_file("a\0b", "text")
