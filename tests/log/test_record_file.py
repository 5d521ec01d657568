"""New files of records: whole under their name, or not there."""

from pathlib import Path

import pytest
from one_record import a_record

from agentmark import SettingError, read_log
from agentmark.files import FileError
from agentmark.log.record_file import check_record_file, new_record_file


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_file_is_there_when_all_is_written(tmp_path: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"out{ending}"
    with new_record_file(out) as write:
        write(a_record())
        assert not out.exists()
    assert read_log(out).records == [a_record()]
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_that_failed_is_not_there(tmp_path: Path) -> None:
    def fail() -> None:
        with new_record_file(tmp_path / "out.jsonl") as write:
            write(a_record())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    def come_second() -> None:
        with new_record_file(out) as write:
            write(a_record())
            out.write_text("theirs")

    with pytest.raises(SettingError, match="nothing is written over"):
        come_second()
    assert out.read_text() == "theirs"
    with pytest.raises(SettingError, match="nothing is written over"):
        check_record_file(out)


def test_names_that_say_nothing_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"does not end in \.jsonl"):
        check_record_file(tmp_path / "out.txt")
    with (
        pytest.raises(FileError, match="cannot be written: No such file"),
        new_record_file(tmp_path / "no" / "o.jsonl"),
    ):
        pass
