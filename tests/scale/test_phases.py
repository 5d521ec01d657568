import pickle

import pytest
from rolls import KEY, STRANGER, log_of

from agentmark.batch.columns import StepColumns
from agentmark.scale.cluster import Piece
from agentmark.scale.phases import BucketError, BucketPart, PhaseMapper, ReadLogs, heard, said, survey_part
from agentmark.scale.pieces import loose, noted
from agentmark.scale.worker_keys import CarriedKeys
from agentmark.verify.keyring import Keyring
from agentmark.verify.roll import By

KEYS = CarriedKeys(KEY)


def pieces() -> list[Piece]:
    records = [*log_of("acme", seed=1, steps=6), *log_of("globex", seed=2, steps=5)]
    columns = StepColumns.of_records(records, "a.jsonl", range(1, len(records) + 1))
    return [*loose(columns, By.SESSION, 1), noted({"bad": 0}, "x", 1)]


def read() -> tuple[bytes, bytes]:
    reading = ReadLogs(keys=KEYS, by=By.SESSION, payload_len=64)
    return reading([piece.content for piece in pieces()])


def test_a_bucket_is_read_into_its_logs_in_the_order_of_their_names() -> None:
    logs, told = read()
    assert heard(told, Keyring(KEY), 0) == [{"bad": 0}]
    part = BucketPart(0)
    part.bring(logs, b"", Keyring(KEY), None)
    assert [len(log) for log in part.logs()] == [6, 5]
    assert [log.name for log in part.logs()] == sorted(log.name for log in part.logs())
    assert read() == read()


def test_a_part_travels_as_its_number() -> None:
    part = BucketPart(7)
    part.bring(read()[0], b"", Keyring(KEY), None)
    arrived = pickle.loads(pickle.dumps(part))
    assert arrived.bucket == 7
    assert list(arrived.logs()) == []


def test_what_was_altered_or_made_with_other_keys_is_refused_before_it_is_looked_into() -> None:
    logs, told = read()
    part = BucketPart(3)
    with pytest.raises(BucketError, match=r"bucket 3: .* not made with these keys"):
        part.bring(logs[:-1] + bytes([logs[-1] ^ 1]), b"", Keyring(KEY), None)
    with pytest.raises(BucketError):
        part.bring(logs, b"", Keyring(STRANGER), None)
    with pytest.raises(BucketError):
        heard(told, Keyring(STRANGER), 3)
    with pytest.raises(BucketError):
        heard(b"", Keyring(KEY), 3)
    # Whoever has no key cannot have a pickle of their own opened.
    with pytest.raises(BucketError):
        heard(bytes(32) + pickle.dumps(print), Keyring(KEY), 3)
    assert heard(said([1, 2], Keyring(KEY)), Keyring(KEY), 3) == [1, 2]


def test_a_mapper_without_items_asks_nobody() -> None:
    class Untouched:
        def apply(self, phase: object) -> None:
            raise AssertionError(phase)

    mapper = PhaseMapper(Untouched(), KEYS, None)  # type: ignore[arg-type]
    assert list(mapper(survey_part, [])) == []
