"""Lines taken natively: what `to_json` writes is taken, anything else is passed over, and nothing is read beyond."""

import random
from ctypes import CDLL

import pytest
from one_record import a_record
from random_steps import random_records

from agentmark import StepRecord
from agentmark.batch.arrays import np
from agentmark.batch.scanning import MOST_TEXTS, Scanned, scan


def scanned(library: CDLL, lines: list[bytes]) -> Scanned:
    block = b"".join([line + b"\n" for line in lines])
    sizes = np.array([len(line) for line in lines], np.int64)
    starts = np.cumsum(sizes + 1) - (sizes + 1)
    found = scan(library, block, starts, starts + sizes)
    assert found is not None
    return found


def a_line() -> bytes:
    return a_record().to_json().encode()


def is_taken(record: StepRecord) -> bool:
    """What the scan is for: whole lists, or none for a step without the mark; no free data."""
    return record.partial_weights is None and record.meta is None and record.raw_context is None


def test_what_is_written_is_taken_as_it_is(native_library: CDLL) -> None:
    records = [record for record in random_records(50, 800) if record.payload_len <= 4096]
    found = scanned(native_library, [record.to_json().encode() for record in records])
    assert found.taken.tolist() == [is_taken(record) for record in records]
    taken = [record for record in records if is_taken(record)]
    assert len(taken) > 600
    arrays = found.arrays
    lists = [record.distribution.as_weights() if record.distribution else {} for record in taken]
    assert [found.sessions[code] for code in arrays["session"]] == [record.session for record in taken]
    assert [found.key_ids[code] for code in arrays["key_id"]] == [record.key_id for record in taken]
    assert [found.names[code] for code in arrays["choice"]] == [record.behavior for record in taken]
    assert [found.names[code] for code in arrays["name"]] == [name for weights in lists for name in weights]
    assert arrays["weight"].tolist() == [weight for weights in lists for weight in weights.values()]
    assert arrays["length"].tolist() == [len(weights) for weights in lists]
    assert arrays["listed"].tolist() == [record.distribution is not None for record in taken]
    assert arrays["payload_len"].tolist() == [record.payload_len for record in taken]
    assert arrays["step"].tolist() == [record.step_index for record in taken]
    assert arrays["marked"].tolist() == [record.marked for record in taken]
    assert arrays["enforced"].tolist() == [-1 if record.enforced is None else record.enforced for record in taken]
    assert [context.tobytes() for context in arrays["context"]] == [record.context for record in taken]
    assert ["FR"[scheme] for scheme in arrays["scheme"]] == [record.scheme for record in taken]


OTHERS = {
    "empty": lambda line: b"",
    "cut short": lambda line: line[:-1],
    "padded": lambda line: line + b" ",
    "a carriage return": lambda line: line + b"\r",
    "another version": lambda line: line.replace(b'"agentmark":1', b'"agentmark":2'),
    "a float": lambda line: line.replace(b'"step":', b'"step":0.'),
    "a sign": lambda line: line.replace(b'"step":', b'"step":-'),
    "a leading zero": lambda line: line.replace(b'"payload_len":', b'"payload_len":0'),
    "a step beyond all": lambda line: line.replace(b'"step":', b'"step":9007199254740992'),
    "a number without an end": lambda line: line.replace(b'"step":', b'"step":' + b"9" * 40),
    "capitals in a digest": lambda line: line.replace(b'"context":"', b'"context":"A'),
    "a short digest": lambda line: line.replace(b'"context":"', b'"context":"0","x":"'),
    "another scheme": lambda line: line.replace(b'"scheme":"', b'"scheme":"X'),
    "a space": lambda line: line.replace(b'"marked":', b'"marked": '),
    "an escape": lambda line: line.replace(b'"session":"', b'"session":"\\n'),
    "a control sign": lambda line: line.replace(b'"session":"', b'"session":"\x01'),
    "an empty text": lambda line: line.replace(b'"key_id":"', b'"key_id":"","x":"'),
    "an empty list": lambda line: line[: line.index(b'"weights":{') + 11] + b"}" + line[line.index(b',"choice"') :],
    "a list without an end": lambda line: line.replace(b"},", b",", 1),
    "a name twice": lambda line: line.replace(b'"weights":{', b'"weights":{"n":1,"n":1,'),
    "a weight beyond all": lambda line: line.replace(b'"weights":{', b'"weights":{"n":4294967297,'),
    "a member twice": lambda line: line[:-1] + b',"marked":true}',
    "an unknown member": lambda line: line[:-1] + b',"more":1}',
    "unmarked without a reason": lambda line: line.replace(b'"marked":true', b'"marked":false'),
    "an empty reason": lambda line: line.replace(b'"marked":true', b'"marked":false,"reason":""'),
    "a reason in other letters": lambda line: line.replace(b'"marked":true', '"marked":true,"reason":"ü"'.encode()),
    "free data": lambda line: line[:-1] + b',"meta":{}}',
    "something else behind it": lambda line: line + line,
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS.keys())
def test_anything_else_is_passed_over(native_library: CDLL, change) -> None:
    line = a_line()
    changed = change(line)
    assert changed != line
    found = scanned(native_library, [line, changed, line])
    assert found.taken.tolist() == [True, False, True]
    assert len(found.arrays["step"]) == 2
    assert len(found.arrays["name"]) == 2 * found.arrays["length"][0]


def test_texts_that_are_none_spoil_the_block(native_library: CDLL) -> None:
    line = a_line().replace(b'"session":"', b'"session":"\xff')
    assert scan(native_library, line, np.array([0]), np.array([len(line)])) is None


def test_more_texts_than_there_is_room_for(native_library: CDLL) -> None:
    line = a_line()
    lines = [line.replace(b'"session":"', b'"session":"%d ' % i) for i in range(MOST_TEXTS + 50)]
    found = scanned(native_library, lines)
    assert MOST_TEXTS - 50 < np.count_nonzero(found.taken) <= MOST_TEXTS
    assert not found.taken[-1]


def test_lines_that_are_not_in_the_text_are_refused(native_library: CDLL) -> None:
    line = a_line()
    for start, end in ((-1, 5), (0, len(line) + 1), (5, 3)):
        with pytest.raises(ValueError, match="within"):
            scan(native_library, line, np.array([start]), np.array([end]))


def test_any_damage_is_passed_over_or_read_as_it_stands(native_library: CDLL) -> None:
    """Bytes put in, taken out and changed: what is taken is what the strict parser reads in the same line."""
    rng = random.Random(51)
    line = a_line()
    taken = 0
    for _ in range(3000):
        changed = bytearray(line)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randint(0, 2)] = bytes(rng.choices(b'{}":,0129af \\x', k=rng.randint(0, 2)))
        found = scanned(native_library, [bytes(changed).replace(b"\n", b" ")])
        if found.taken[0] and found.arrays["weight"].sum() == 1 << 32:
            record = StepRecord.from_json(bytes(changed)) if _has_choice(found) else None
            if record is not None:
                taken += 1
                assert record.distribution is not None
                assert found.arrays["step"][0] == record.step_index
                assert found.arrays["context"].tobytes() == record.context
                assert found.sessions[found.arrays["session"][0]] == record.session
    assert taken > 50


def _has_choice(found: Scanned) -> bool:
    return found.arrays["choice"][0] in found.arrays["name"]
