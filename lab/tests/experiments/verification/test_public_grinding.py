"""Keys that a claimant makes until one fits: what they gain, and that more than they are charged would be noticed."""

import random
from itertools import pairwise

import pytest
from agentmark_lab.experiments.verification import public_grinding
from agentmark_lab.experiments.verification.public_grinding import Line, best_of, random_function, real_function


@pytest.mark.slow
def test_grinding_keys_gains_what_is_paid_for_it() -> None:
    """The best of 2^k keys, k up to 12, on six logs with a random function and one with the real one.

    Pr[evidence of the best - k >= 8] <= 2^-8 at each of 7 x 13 points by the bound; they depend on each other, and
    nothing comes near. The gain of a doubling is fitted, and is at most the bit that is paid; by that line a bound of
    10^-6 takes more than a million keys even if nobody paid for them.
    """
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    grown = [best_of(random.Random(number), random_function, 12) for number in range(6)]
    grown.append(best_of(random.Random(15), real_function, 12))
    assert all(bits - k < 8 for of_log in grown for k, bits in enumerate(of_log))
    line = Line.through([sum(bits) / len(bits) for bits in zip(*grown, strict=True)])
    assert line.begin < 0
    assert 0.5 < line.slope < 1.1, "a bit for each doubling, less what the mixture of noise rates costs"
    assert line.doublings_to(1e-6) > 20


def test_the_best_of_more_keys_is_no_worse() -> None:
    grown = best_of(random.Random(1), random_function, 5)
    assert len(grown) == 6
    assert all(more >= fewer for fewer, more in pairwise(grown))


def test_the_line_through_grown_evidence_is_the_line() -> None:
    line = Line.through([1.0, 1.5, 2.0, 2.5])
    assert (line.begin, line.slope) == pytest.approx((1.0, 0.5))
    assert Line(-0.0684, 1.0).doublings_to(1e-6) == pytest.approx(20, abs=1e-3)


def test_more_than_is_paid_for_is_noticed() -> None:
    usual = [[-3.0, -2.2, -1.2], [-3.1, -2.0, -1.3], [-2.9, -2.1, -1.4]]
    assert [claim.holds for claim in public_grinding._findings(usual, usual[:1]).claims] == [True, True]
    steep = [[2 * k + bits for k, bits in enumerate(grown)] for grown in usual]
    assert [claim.holds for claim in public_grinding._findings(steep, usual[:1]).claims] == [False, True]
    lucky = [[9.0, 9.0, 9.0]]
    assert [claim.holds for claim in public_grinding._findings(usual, lucky).claims] == [True, False]
