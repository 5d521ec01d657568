"""Keys that a claimant makes until one fits: what they gain, and that more than they are charged would be noticed."""

import random
from dataclasses import replace
from itertools import pairwise
from math import log2

import pytest
from agentmark_lab.experiments.verification import public_grinding
from agentmark_lab.experiments.verification.public_grinding import Chances, best_of, random_function, real_function

from agentmark.core.evidence import Evidence


@pytest.fixture(scope="module")
def chances() -> Chances:
    return Chances.of_logs(random.Random(2), draws=300)


@pytest.mark.slow
def test_grinding_keys_gains_what_is_paid_for_it(chances: Chances) -> None:
    """The best of 2^k keys, k up to 12, on six logs with a random function and one with the real one.

    Pr[evidence of the best - k >= 8] <= 2^-8 at each of 7 x 13 points by the bound; they depend on each other, and
    nothing comes near. Their means are those that are calculated, by four standard errors at each k.
    """
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    grown = [best_of(random.Random(number), random_function, 12) for number in range(6)]
    grown.append(best_of(random.Random(15), real_function, 12))
    assert all(bits - k < 8 for of_log in grown for k, bits in enumerate(of_log))
    assert all(public_grinding._standard_errors(chances, grown, k) < 4 for k in range(13))


def test_the_best_of_more_keys_is_no_worse() -> None:
    grown = best_of(random.Random(1), random_function, 5)
    assert len(grown) == 6
    assert all(more >= fewer for fewer, more in pairwise(grown))


def test_the_chances_of_two_steps_are_those_written_down_by_hand() -> None:
    """Both agree with one in 16, at least one with 7 in 16; a step that agrees is worth 4, but for a little."""
    two = Chances.of_logs(random.Random(3), steps=2, draws=300)
    both = [bits for bits, tail in zip(two.bits, two.tail, strict=True) if tail <= 1 / 16 + 1e-9]
    assert len(both) == 300
    assert two.doublings_to(min(both)) == pytest.approx(4)
    assert two.doublings_to(two.bits[300]) == pytest.approx(-log2(7 / 16))
    evidence = Evidence()
    evidence.update_all([4.0, 4.0])
    assert two.mean_bits[2] == pytest.approx(evidence.bits, abs=0.05)
    mean, deviation = two.best_of(1)
    assert mean == pytest.approx(9 / 16 * two.mean_bits[0] + 6 / 16 * two.mean_bits[1] + 1 / 16 * two.mean_bits[2])
    assert deviation > 0
    assert two.best_of(1 << 40)[0] == pytest.approx(two.bits[-1])


def test_a_few_keys_find_what_is_calculated(chances: Chances) -> None:
    """200 logs: the mean over them is the calculated one by four standard errors, and that of twice the keys is not."""
    logs = [best_of(random.Random(number), random_function, 2) for number in range(200)]
    assert all(public_grinding._standard_errors(chances, logs, k) < 4 for k in range(3))
    assert public_grinding._standard_errors(chances, [log[1:] for log in logs], 0) > 4


def test_what_is_found_on_average_is_never_above_the_price(chances: Chances) -> None:
    assert chances.least_left() > 0
    assert all(chances.best_of(1 << k)[0] < k for k in range(40))
    assert chances.doublings_to(-log2(public_grinding.THRESHOLD)) == pytest.approx(24, abs=0.1)


def test_more_than_is_paid_for_is_noticed(chances: Chances) -> None:
    def holds(random: list[list[float]], real: list[list[float]], chances: Chances = chances) -> list[bool]:
        return [claim.holds for claim in public_grinding._findings(random, real, chances).claims]

    usual = [[-3.0, -2.2, -1.2], [-3.1, -2.0, -1.3], [-2.9, -2.1, -1.4]]
    assert holds(usual, usual[:1]) == [True, True, True]
    assert holds([[3.0, 4.0, 5.0]] * 3, usual[:1]) == [True, False, True]
    assert holds(usual, [[9.0, 9.0, 9.0]]) == [True, False, False]
    cheaper = replace(chances, bits=tuple([bits + 3 for bits in chances.bits]))
    assert not holds(usual, usual[:1], cheaper)[0]
