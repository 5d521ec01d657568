"""Numbers as text: a report holds no fractions (canonical JSON has none), and a bound is never rounded down."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite

SCALES = ("million", "billion", "trillion", "quadrillion", "quintillion")


def bits_text(bits: float | None) -> str | None:
    """Three decimals. None for evidence that is minus infinity: one step has ruled the claim out."""
    if bits is None or not isfinite(bits):
        return None
    # Adding zero turns -0.0 into 0.0, so that equal evidence has equal text.
    return f"{round(bits, 3) + 0.0:.3f}"


def rate_text(rate: float) -> str:
    """A probability in two digits, rounded up; the exponent in two digits at least, as everywhere else."""
    if rate >= 1:
        return "1"
    digits, exponent = f"{_two_digits(rate, ROUND_CEILING):.1e}".split("e")
    return f"{digits}e{int(exponent):+03d}"


def rate_in_words(rate: float) -> str:
    """ "one in 3.4 million", with the number rounded down."""
    if rate > 0.5:
        return "no bound: chance explains as much"
    count = _two_digits(1 / _two_digits(rate, ROUND_CEILING), ROUND_FLOOR)
    exponent = count.adjusted()
    if exponent < 6:
        return f"one in {int(count):,}"
    scale, place = divmod(exponent - 6, 3)
    if scale >= len(SCALES):
        return f"one in 10^{exponent} (a 1 with {exponent} zeros)"
    shown = count.scaleb(-3 * scale - 6)
    digits = f"{shown:.1f}".removesuffix(".0") if place == 0 else f"{shown:.0f}"
    return f"one in {digits} {SCALES[scale]}"


def count_text(count: int, one: str, several: str | None = None) -> str:
    """ "1 step", "2,000 steps"."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _two_digits(number: float | Decimal, rounding: str) -> Decimal:
    # Ten digits first: the binary neighbour of 3e-06 is a hair above it, and must not become 3.1e-06.
    near = Decimal(f"{number:.9e}")
    return near.quantize(Decimal(1).scaleb(near.adjusted() - 1), rounding=rounding)
