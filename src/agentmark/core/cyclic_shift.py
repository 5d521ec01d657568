"""Cyclic-shift uniform coding (Algorithms 4 and 5, App. B): truncated binary codes, turned by a shift.

A bin of n behaviors carries a complete prefix code: 2^k - t codewords of k bits and 2t of k + 1 bits, with
k = floor(log2 n) and t = n - 2^k. A bin of one carries the empty codeword, so n = 1 is not a special case.
"""

from typing import NamedTuple


class CodeWord(NamedTuple):
    """`length` bits, first bit most significant."""

    bits: int
    length: int


def short_len(bin_size: int) -> int:
    """k: the length of the shorter codewords."""
    return bin_size.bit_length() - 1


def short_count(bin_size: int) -> int:
    """2^k - t: how many codewords are short."""
    return (2 << short_len(bin_size)) - bin_size


def cyclic_shift_encode(coded_bits: int, bin_size: int, shift: int) -> tuple[int, CodeWord]:
    """Algorithm 4. `coded_bits` holds k + 1 bits; the position in the bin, and the prefix it spent."""
    length = short_len(bin_size)
    shorts = short_count(bin_size)
    prefix = coded_bits >> 1
    if prefix < shorts:
        return (prefix + shift) % bin_size, CodeWord(prefix, length)
    # The long codewords follow the short ones, two for each prefix.
    index = shorts + 2 * (prefix - shorts) + (coded_bits & 1)
    return (index + shift) % bin_size, CodeWord(coded_bits, length + 1)


def cyclic_shift_decode(position: int, bin_size: int, shift: int) -> CodeWord:
    """Algorithm 5: the codeword that leads to this position."""
    # As `short_len` and `short_count` say; every step that is read comes through here.
    length = bin_size.bit_length() - 1
    shorts = (2 << length) - bin_size
    index = (position - shift) % bin_size
    if index < shorts:
        return CodeWord(index, length)
    pair, last_bit = divmod(index - shorts, 2)
    return CodeWord((pair + shorts) << 1 | last_bit, length + 1)
