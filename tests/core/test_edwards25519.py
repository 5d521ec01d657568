"""The group: its laws on random points, and the encodings that are refused."""

from random import Random

import pytest
from vrf_examples import SMALL_ORDER

from agentmark.core import edwards25519 as ed


def random_point(random: Random) -> ed.Point:
    while True:
        point = ed.decode_point(random.randbytes(32))
        if point is not None:
            return point


def test_encoding_a_point_and_decoding_it_gives_the_same_bytes() -> None:
    random = Random(1)
    for _ in range(50):
        text = ed.encode_point(random_point(random))
        point = ed.decode_point(text)
        assert point is not None
        assert ed.encode_point(point) == text


def test_multiples_add_up() -> None:
    random = Random(2)
    for _ in range(10):
        point = random_point(random)
        first, second = random.getrandbits(250), random.getrandbits(120)
        together = ed.multiply_sum((first + second, point))
        assert ed.equal(ed.add(ed.multiply_sum((first, point)), ed.multiply_sum((second, point))), together)
        assert ed.equal(ed.multiply_sum((first, point), (second, point)), together)
        assert ed.equal(ed.add(point, point), ed.double(point))
        assert ed.equal(ed.add(point, ed.negate(point)), ed.IDENTITY)


def test_the_base_point_has_prime_order_and_its_multiples_too() -> None:
    assert ed.has_prime_order(ed.BASE)
    assert ed.has_prime_order(ed.multiply_sum((12345, ed.BASE)))
    assert not ed.has_prime_order(ed.multiply_sum((0, ed.BASE)))


@pytest.mark.parametrize("text", SMALL_ORDER)
def test_points_of_small_order_are_told_and_so_is_what_they_are_added_to(text: bytes) -> None:
    point = ed.decode_point(text)
    assert point is not None
    assert not ed.has_prime_order(point)
    assert ed.equal(ed.clear_cofactor(point), ed.IDENTITY)
    mixed = ed.add(point, ed.BASE)
    assert ed.has_prime_order(mixed) == ed.equal(point, ed.IDENTITY)


@pytest.mark.parametrize(
    "text",
    [
        ed.P.to_bytes(32, "little"),
        (ed.P + 1).to_bytes(32, "little"),
        (2**255 - 1).to_bytes(32, "little"),
        (1 | 1 << 255).to_bytes(32, "little"),
        (ed.P - 1 | 1 << 255).to_bytes(32, "little"),
        (2).to_bytes(32, "little"),
        bytes(31),
        bytes(33),
        b"",
    ],
)
def test_second_spellings_and_what_is_no_point_are_refused(text: bytes) -> None:
    assert ed.decode_point(text) is None
