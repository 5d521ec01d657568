"""Many sessions as a case: files read once, sessions put together across them, chains and faults by file."""

from pathlib import Path

import pytest
from support import marked_log

from agentmark import LogWriter, SettingError, SharedKey, StepRecord
from agentmark.audit.case import Case, LostPlace, ReportOrder
from agentmark.audit.roll_case import RollCase
from agentmark.chain.writer import ChainWriter
from agentmark.verify.correction import FalseDiscovery
from agentmark.verify.roll import By

KEY = SharedKey(bytes(range(32)))
STRANGER = SharedKey(bytes(range(160, 192)))


def write(path: Path, records: list[StepRecord]) -> Path:
    with LogWriter(path) as log:
        for record in records:
            log.write(record)
    return path


class Counts:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[int, int | None]] = {}

    def say(self, message: str) -> None:
        pass

    def count(self, done: int, total: int | None, what: str) -> None:
        self.last[what] = done, total


@pytest.fixture
def rotated(tmp_path: Path) -> list[Path]:
    """Two sessions of forty steps each, in three files."""
    first, second = (marked_log(KEY, payload=payload, steps=40) for payload in (1, 2))
    return [
        write(tmp_path / "log.1", first[:25]),
        write(tmp_path / "log.2", first[25:] + second[:20]),
        write(tmp_path / "log.3", second[20:]),
    ]


def test_a_session_is_put_together_across_files(rotated: list[Path], read_steps: list[str]) -> None:
    counts = Counts()
    answer = RollCase(case=Case(logs=rotated, keys=[KEY])).answer(progress=counts)
    assert [(row.verdict.payload, row.used) for row in answer.roll.rows] == [(1, 40), (2, 40)]
    assert [row.files for row in answer.roll.rows] == [
        tuple(map(str, rotated[:2])),
        tuple(map(str, rotated[1:])),
    ]
    # Each record is read under the key once.
    assert len(read_steps) == 80
    assert counts.last["sessions judged"] == (2, 2)


def test_by_file_the_rows_are_the_files(rotated: list[Path]) -> None:
    roll = RollCase(case=Case(logs=rotated, keys=[KEY]), by=By.FILE).answer().roll
    assert [row.name for row in roll.rows] == [str(path) for path in rotated]
    assert [row.used for row in roll.rows] == [25, 35, 20]


def test_the_order_of_the_files_makes_no_difference(rotated: list[Path]) -> None:
    there = RollCase(case=Case(logs=rotated, keys=[KEY])).answer().roll
    back = RollCase(case=Case(logs=rotated[::-1], keys=[KEY])).answer().roll
    assert [row.verdict.evidence_bits for row in back.rows] == [row.verdict.evidence_bits for row in there.rows]
    assert [row.files for row in back.rows] == [row.files for row in there.rows]


def test_only_the_sessions_that_are_asked_about(rotated: list[Path]) -> None:
    answer = RollCase(case=Case(logs=rotated, keys=[KEY], sessions=["F 2"])).answer()
    assert [row.verdict.payload for row in answer.roll.rows] == [2]
    with pytest.raises(SettingError, match="2 sessions begin with 'F'"):
        Case(logs=rotated, keys=[KEY], sessions=["F"]).read()


def test_a_random_key_names_nobody(rotated: list[Path]) -> None:
    control = RollCase(case=Case(logs=rotated, keys=[KEY], control=True)).answer().control
    assert control is not None
    assert (control.attributed, control.judged) == (0, 2)


def test_nothing_usable_names_both_keys(rotated: list[Path]) -> None:
    answer = RollCase(case=Case(logs=rotated, keys=[STRANGER])).answer()
    assert answer.nothing_usable
    assert (list(answer.key_ids_there), list(answer.key_ids_given)) == ([KEY.id], [STRANGER.id])


def test_chains_are_those_of_files_and_faults_are_told(tmp_path: Path, rotated: list[Path]) -> None:
    chained = tmp_path / "chained.jsonl"
    with LogWriter(chained, chain=ChainWriter()) as log:
        for record in marked_log(KEY, payload=3, steps=10):
            log.write(record)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(rotated[0].read_bytes() + b"no record\n")
    answer = RollCase(case=Case(logs=[*rotated, chained, damaged], keys=[KEY], skip_bad=True)).answer()
    assert [chain["log"] for chain in answer.chains] == [str(chained)]
    assert any("damaged.jsonl" in line for line in answer.passed_over)
    # The same file twice is the same steps twice.
    assert answer.roll.rows[0].used == 40


def test_a_report_states_the_files_and_the_promise(rotated: list[Path]) -> None:
    case = Case(logs=rotated, keys=[KEY], report=ReportOrder(command="agentmark verify", case_number="7"))
    report = RollCase(case=case, correction=FalseDiscovery(0.01)).answer().report
    assert report is not None
    assert len(report["inputs"]) == 3
    assert report["case_number"] == "7"
    assert report["correction"]["kind"] == "false discovery rate"


def test_a_lost_place_is_no_question_for_many(rotated: list[Path]) -> None:
    with pytest.raises(SettingError, match="one session"):
        RollCase(case=Case(logs=rotated, keys=[KEY], place=LostPlace(session="s")))
