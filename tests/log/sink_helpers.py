"""Records into a sink, and back from the folder it wrote."""

from pathlib import Path

from agentmark import StepRecord, open_log
from agentmark.log.read.files import log_files
from agentmark.log.sink import Sink


def write_all(sink: Sink, records: list[StepRecord]) -> None:
    for record in records:
        sink.write(record)


def read_folder(folder: Path) -> list[StepRecord]:
    return [record for path in log_files([folder]) for record in open_log(path)]
