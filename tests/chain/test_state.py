"""The lines of a state file: only the holder of the signing key makes them, and only in their order."""

import json
from hashlib import blake2b

import pytest
from chained_logs import SIGNER, STRANGER, checkpoints_of, one_session

from agentmark.chain.checkpoint import Statement
from agentmark.chain.state import Note, SignerState, StateSeal, Withdrawal

CONTENTS = [
    SignerState(checkpoint=checkpoints_of(one_session())[0], sessions={"s é \u202e": Statement(3, "ab" * 32)}),
    Note("s é \u202e", Statement(4, "cd" * 32)),
    Withdrawal("cd" * 32),
    SignerState(),
]


def sealed() -> list[bytes]:
    seal = StateSeal(SIGNER)
    return [seal.seal(content) for content in CONTENTS]


def test_lines_are_read_back() -> None:
    seal = StateSeal(SIGNER)
    assert [seal.open(line) for line in sealed()] == CONTENTS


def test_a_line_is_what_the_page_says() -> None:
    tag = b""
    for line in sealed():
        assert line.isascii()
        before, (tag, body) = tag, line.removesuffix(b"\n").split(b" ", maxsplit=1)
        message = b"agentmark/1 signer state\0" + before + b"\0" + body
        assert tag.decode() == blake2b(message, key=bytes(range(7, 39)), digest_size=16).hexdigest()
        json.loads(body)
    first = json.loads(sealed()[0].split(b" ", maxsplit=1)[1])
    assert list(first) == ["agentmark_signer", "salt", "checkpoint", "sessions"]


def test_no_line_counts_out_of_its_place() -> None:
    lines = sealed()
    for i in range(len(lines)):
        for j, line in enumerate(lines):
            seal = StateSeal(SIGNER)
            for before in lines[:i]:
                seal.open(before)
            assert (seal.open(line) is None) == (i != j)


def test_no_line_of_another_file_or_key_counts() -> None:
    """Two files of one signer differ in their first line, and with it in all."""
    ours, other = sealed(), sealed()
    assert ours[0] != other[0]
    seal = StateSeal(SIGNER)
    seal.open(ours[0])
    assert seal.open(other[1]) is None
    assert StateSeal(STRANGER).open(ours[0]) is None


@pytest.mark.parametrize("place", range(3))
def test_a_line_with_any_byte_changed_or_cut_off_does_not_count(place: int) -> None:
    lines = sealed()
    for at in range(0, len(lines[place]), 3):
        seal = StateSeal(SIGNER)
        for before in lines[:place]:
            seal.open(before)
        changed = bytearray(lines[place])
        changed[at] ^= 1
        assert seal.open(bytes(changed)) is None
        assert seal.open(lines[place][:at]) is None
        assert seal.open(lines[place]) == CONTENTS[place], "what was refused changes nothing"


def test_a_state_of_another_version_is_none_of_ours() -> None:
    tag = SIGNER.tag(b"agentmark/1 signer state", b"\0" + (body := b'{"agentmark_signer":2}'))
    assert StateSeal(SIGNER).open(tag + b" " + body + b"\n") is None
