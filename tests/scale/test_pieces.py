import random

from rolls import KEY
from support import marked_log

from agentmark.audit.spill import part_of
from agentmark.batch.arrays import np
from agentmark.batch.columns import StepColumns
from agentmark.scale.pieces import gather, loose, noted, placed
from agentmark.verify.roll import By

BUCKETS = 3


def columns_of(file: str, *, seed: int, lines: bool = True) -> StepColumns:
    records = marked_log(KEY, steps=12, sessions=2, seed=seed)
    return StepColumns.of_records(records, file, [i + 1 if lines else None for i in range(len(records))])


def places(columns: StepColumns) -> list[tuple[str, int]]:
    return [(columns.files[columns.file[i]], int(columns.line[i])) for i in range(len(columns))]


def test_loose_pieces_come_together_by_file_and_line_in_whatever_order_they_arrive() -> None:
    whole = [columns_of("b.jsonl", seed=1), columns_of("a.jsonl", seed=2)]
    pieces = [piece for columns in whole for piece in loose(columns, By.ALL, 1)]
    pieces += [piece for columns in whole for piece in loose(columns.take(np.array([5, 3])), By.ALL, 1)]
    first = gather([piece.content for piece in pieces]).columns
    assert places(first) == sorted(places(first))
    assert len(first) == 52
    for seed in range(5):
        shuffled = random.Random(seed).sample(pieces, len(pieces))
        assert gather([piece.content for piece in shuffled]).columns.to_bytes() == first.to_bytes()


def test_without_lines_the_order_is_that_of_what_the_records_say() -> None:
    columns = columns_of("a.jsonl", seed=3, lines=False)
    rows = np.arange(len(columns))
    contents = []
    for seed in range(4):
        order = random.Random(seed).sample(rows.tolist(), len(rows))
        halves = [columns.take(np.array(order[:10])), columns.take(np.array(order[10:]))]
        pieces = [piece.content for half in halves for piece in loose(half, By.ALL, 1)]
        contents.append([record.context for record in map(gather(pieces).columns.record, rows.tolist())])
    assert contents[0] == contents[1] == contents[2] == contents[3]


def test_placed_pieces_keep_the_order_of_their_places() -> None:
    parts = [columns_of(f"{name}.jsonl", seed=i) for i, name in enumerate("cab")]
    pieces = [placed(i * 1000, 0, columns.to_bytes()).content for i, columns in enumerate(parts)]
    gathered = gather(reversed(pieces)).columns
    assert [file for file, line in places(gathered) if line == 1] == ["c.jsonl", "a.jsonl", "b.jsonl"]


def test_a_session_is_in_one_bucket_and_notes_are_in_some() -> None:
    columns = columns_of("a.jsonl", seed=4)
    for piece in loose(columns, By.SESSION, BUCKETS):
        there = gather([piece.content]).columns
        assert {part_of(session, BUCKETS) for session in there.sessions} == {piece.bucket}
    note = noted({"bad": 3}, "whatever", BUCKETS)
    assert 0 <= note.bucket < BUCKETS
    assert gather([note.content]).notes == [{"bad": 3}]
    assert len(gather([note.content]).columns) == 0


def test_no_records_are_no_pieces() -> None:
    assert loose(StepColumns.empty(), By.SESSION, BUCKETS) == []
