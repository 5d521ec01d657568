"""The two samplers against their own inverses and against the theorem: round trips, marginals, impossible steps."""

import random
from collections import Counter
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from support import distributions, keys

from agentmark.core import scheme_f, scheme_r
from agentmark.core.cyclic_shift import cyclic_shift_decode, cyclic_shift_encode, short_count, short_len
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.prf import R_CLOCK, prf
from agentmark.core.recombination import bin_weights, select_bin, slice_heights
from agentmark.core.scheme_r import (
    PRODUCTS,
    TIE_GAP,
    ClockDraw,
    clock_draw,
    race_clocks,
    race_winner,
    winning_symbols,
)

TICKET = BehaviorDistribution.quantise({"Search": 0.40, "Book": 0.25, "Pay": 0.15, "Check-in": 0.12, "Modify": 0.08})


def test_appendix_c_ticket_example() -> None:
    """App. C: u1 = .62 picks T_5, u2 = .27 shifts by 1, message 01 under pad 11 leads to Check-in."""
    assert select_bin(TICKET.weights, int(0.62 * TOTAL_WEIGHT)).size == 5
    shift = int(0.27 * 5)
    assert shift == 1
    coded_bits = 0b01 ^ 0b11
    position, spent = cyclic_shift_encode(coded_bits << 1, 5, shift)
    assert TICKET.behaviors[position] == "Check-in"
    assert (spent.bits, spent.length) == (0b10, 2)
    assert cyclic_shift_decode(3, 5, shift) == spent
    # The one draw of the specification that means the same bin and the same shift.
    one_draw = select_bin(TICKET.weights, int(0.70 * TOTAL_WEIGHT))
    assert (one_draw.size, one_draw.shift) == (5, 1)


@pytest.mark.parametrize("bin_size", range(1, 201))
def test_cyclic_shift_is_a_bijection_for_every_shift(bin_size: int) -> None:
    """Every position decodes to a codeword that leads back to it, for every shift: the code is complete."""
    for shift in range(bin_size):
        for position in range(bin_size):
            code = cyclic_shift_decode(position, bin_size, shift)
            coded_bits = code.bits << (short_len(bin_size) + 1 - code.length)
            assert cyclic_shift_encode(coded_bits, bin_size, shift) == (position, code)
    shorts = short_count(bin_size)
    assert shorts * 2 ** -short_len(bin_size) + (bin_size - shorts) * 2 ** -(short_len(bin_size) + 1) == 1


@given(distributions())
def test_bins_partition_the_draws(distribution: BehaviorDistribution) -> None:
    """Bin masses sum to the total, and each behavior's slices sum to its weight (App. A's marginal identity)."""
    heights = slice_heights(distribution.weights)
    assert min(heights) >= 0
    assert sum(bin_weights(distribution.weights)) == TOTAL_WEIGHT
    for i, weight in enumerate(distribution.weights):
        assert sum(heights[i:]) == weight


@given(distributions(max_size=6), st.integers(0, TOTAL_WEIGHT - 1))
def test_bin_and_shift_share_one_exact_draw(distribution: BehaviorDistribution, draw: int) -> None:
    """Where the draw falls within the bin's mass is the shift: exactly d_k draws for each."""
    chosen = select_bin(distribution.weights, draw)
    masses = bin_weights(distribution.weights)
    height = slice_heights(distribution.weights)[chosen.size - 1]
    start = sum(masses[: chosen.size - 1]) + chosen.shift * height
    assert start <= draw < start + height
    assert 0 <= chosen.shift < chosen.size


@pytest.mark.parametrize("draw", [-1, TOTAL_WEIGHT])
def test_a_draw_outside_the_total_is_refused(draw: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        select_bin(TICKET.weights, draw)


@given(distributions(), keys(), st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 8, 64, 600]))
def test_f_reads_what_it_wrote(distribution: BehaviorDistribution, key: bytes, bits: int, payload_len: int) -> None:
    payload = bits & (1 << payload_len) - 1
    embedding = scheme_f.encode(distribution, key, payload=payload, payload_len=payload_len)
    equations = scheme_f.decode(distribution, key, embedding.behavior, payload_len=payload_len)
    assert equations is not None
    assert len(equations) == embedding.capacity
    for equation in equations:
        assert (equation.coefficients & payload).bit_count() & 1 == equation.parity


@given(distributions(max_size=8), keys(), st.integers(0, 255))
def test_r_reads_what_it_wrote(distribution: BehaviorDistribution, key: bytes, payload: int) -> None:
    behavior = scheme_r.encode(distribution, key, payload=payload, payload_len=8)
    assert behavior is not None
    constraint = scheme_r.decode(distribution, key, behavior, payload_len=8)
    assert constraint is not None
    assert constraint.allows(payload)


@given(distributions(max_size=6), keys())
def test_r_symbol_sets_of_all_behaviors_partition_the_symbols(distribution: BehaviorDistribution, key: bytes) -> None:
    """Each of the 256 symbols has exactly one winner, and it is the one that the encoder's race names."""
    sets = {name: winning_symbols(distribution, key, name) for name in distribution.behaviors}
    assert sum(sets.values()) == 2**256 - 1
    for symbol in range(0, 256, 37):
        winner = race_winner(race_clocks(distribution, key, symbol))
        assert winner is not None
        assert sets[distribution.behaviors[winner]] >> symbol & 1


def test_a_clock_is_the_labelled_block_of_its_name_moved_by_the_symbol() -> None:
    """The prepared hash state of the race gives what the plain keyed function gives."""
    step_key, symbol = bytes(range(32)), 77
    block = int.from_bytes(prf(step_key, R_CLOCK, b"Pay", size=8), "big")
    v, g = block >> 12, max(1, block & 0xFF)
    x = (v >> 44 ^ field_product(g, symbol)) << 44 | v & (1 << 44) - 1
    clock = race_clocks(TICKET, step_key, symbol)[TICKET.position("Pay")]
    assert clock == -log((2 * x + 1) / 2**53) / TICKET.weight("Pay")


def field_product(left: int, right: int) -> int:
    """By powers of the generator x + 1 of the field, which is not how the table is made."""
    if left == 0 or right == 0:
        return 0
    powers = [1]
    while len(powers) < 255:
        last = powers[-1]
        doubled = last << 1 if last < 128 else last << 1 ^ 0x11B
        powers.append(doubled ^ last)
    return powers[(powers.index(left) + powers.index(right)) % 255]


@given(st.integers(0, 255), st.integers(0, 255))
def test_the_table_of_products_is_that_of_the_field(left: int, right: int) -> None:
    assert PRODUCTS[left][right] == field_product(left, right)


def test_every_step_but_zero_moves_to_every_place_once() -> None:
    assert all(sorted(row) == list(range(256)) for row in PRODUCTS[1:])


def test_a_step_of_zero_is_one() -> None:
    """One name in 256 draws a zero, under which no symbol would move it."""
    names = [f"name {i}" for i in range(2000)]
    blocks = [prf(bytes(32), R_CLOCK, name.encode(), size=8) for name in names]
    zeros = [name for name, block in zip(names, blocks, strict=True) if block[7] == 0]
    assert zeros
    for name in zeros:
        draw = clock_draw(bytes(32), name)
        assert draw.step == 1
        assert len({draw.uniform(symbol) for symbol in range(256)}) == 256


def test_uniforms_stay_strictly_inside_the_unit_interval() -> None:
    lowest, highest = ClockDraw.of_bits(0), ClockDraw.of_bits(2**64 - 1)
    assert min(lowest.uniforms()) == lowest.uniform(0) == 2.0**-53
    assert max(highest.uniforms()) == highest.uniform(0) == 1 - 2.0**-53


@given(distributions(max_size=40), keys())
def test_all_races_at_once_are_the_races_one_by_one(distribution: BehaviorDistribution, key: bytes) -> None:
    """What places and ratios of weights tell is what the clocks tell, for lists of any shape."""
    races = [race_clocks(distribution, key, symbol) for symbol in range(256)]
    winners = [clocks.index(min(clocks)) for clocks in races]
    for position, name in enumerate(distribution.behaviors):
        expected = sum([1 << symbol for symbol, winner in enumerate(winners) if winner == position])
        assert winning_symbols(distribution, key, name) == expected


@pytest.mark.parametrize("symbol", [0, 1, 0x53, 255])
def test_the_winner_follows_the_weights_under_every_symbol(symbol: int) -> None:
    """Chi-square of 20,000 races under one symbol against P_t; rejects at 1e-6."""
    rng = random.Random(symbol)
    counts = Counter(race_winner(race_clocks(TICKET, rng.randbytes(32), symbol)) for _ in range(20_000))
    expected = [20_000 * weight / TOTAL_WEIGHT for weight in TICKET.weights]
    assert chisquare([counts[position] for position in range(5)], expected).pvalue > 1e-6


@pytest.mark.parametrize("other", [1, 2, 0x80, 0xFF])
def test_the_clocks_of_two_names_are_independent_under_every_symbol(other: int) -> None:
    """A grid of 8 x 8 cells over the u of two names, 20,000 step keys; rejects at 1e-6."""
    rng = random.Random(other)
    cells: Counter[tuple[int, int]] = Counter()
    for _ in range(20_000):
        step_key = rng.randbytes(32)
        cells[int(8 * clock_draw(step_key, "a").uniform(other)), int(8 * clock_draw(step_key, "b").uniform(other))] += 1
    assert chisquare([cells[a, b] for a in range(8) for b in range(8)]).pvalue > 1e-6


@pytest.mark.parametrize(("payload", "wrong"), [(0x1234, 0x1235), (0x1234, 0xEDCB), (0, 1)])
def test_given_the_choice_the_symbol_of_a_wrong_payload_is_uniform(payload: int, wrong: int) -> None:
    """What the bounds rest on: pairs of symbols need not be independent in the race, but rows and pad make them so.

    20,000 steps; the top four bits of the wrong payload's symbol, for each of the five choices; rejects at 1e-6.
    """
    rng = random.Random(payload ^ wrong)
    seen: dict[str, Counter[int]] = {name: Counter() for name in TICKET.behaviors}
    for _ in range(20_000):
        step_key = rng.randbytes(32)
        choice = scheme_r.encode(TICKET, step_key, payload=payload, payload_len=16)
        assert choice is not None
        seen[choice][scheme_r.coded_symbol(step_key, payload=wrong, payload_len=16) >> 4] += 1
    for counts in seen.values():
        assert chisquare([counts[bits] for bits in range(16)]).pvalue > 1e-6


def test_near_ties_are_not_decided_by_the_last_bits_of_a_logarithm() -> None:
    assert race_winner([1.0, 1.0]) is None
    assert race_winner([1.0, 1.0 + TIE_GAP]) is None
    assert race_winner([1.0 + 3 * TIE_GAP, 1.0, 5.0]) == 1
    assert race_winner([7.0]) == 0


def test_a_behavior_of_weight_zero_never_wins_and_reads_as_impossible() -> None:
    distribution = BehaviorDistribution.quantise({"a": 1.0, "b": 1.0, "never": 0.0})
    rng = random.Random(1)
    for _ in range(200):
        step_key = rng.randbytes(32)
        assert scheme_f.encode(distribution, step_key, payload=1, payload_len=4).behavior != "never"
        assert scheme_r.encode(distribution, step_key, payload=1, payload_len=4) != "never"
        assert scheme_f.decode(distribution, step_key, "never", payload_len=4) is None
        assert scheme_r.decode(distribution, step_key, "never", payload_len=4) is None


@pytest.mark.parametrize("scheme", ["F", "R"])
@pytest.mark.parametrize("payload", [0, 0xFFFF, 0x1234])
def test_the_marginal_is_the_distribution_whatever_the_payload(scheme: str, payload: int) -> None:
    """Chi-square of 20,000 choices against P_t; rejects at 1e-6 (the lab's `marginals` does this at scale)."""
    counts: Counter[str] = Counter()
    rng = random.Random(f"{scheme}{payload}")
    for _ in range(20_000):
        step_key = rng.randbytes(32)
        if scheme == "F":
            counts[scheme_f.encode(TICKET, step_key, payload=payload, payload_len=16).behavior] += 1
        else:
            counts[scheme_r.encode(TICKET, step_key, payload=payload, payload_len=16) or "tie"] += 1
    assert set(counts) == set(TICKET.behaviors)
    observed = [counts[name] for name in TICKET.behaviors]
    expected = [20_000 * weight / TOTAL_WEIGHT for weight in TICKET.weights]
    assert chisquare(observed, expected).pvalue > 1e-6


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_choices_at_different_steps_are_independent(scheme: str) -> None:
    """Pairs of consecutive choices against the product of the marginals: no step leaks into the next."""
    rng = random.Random(5)
    previous, pairs = "Search", Counter[tuple[str, str]]()
    for _ in range(20_000):
        step_key = rng.randbytes(32)
        if scheme == "F":
            behavior = scheme_f.encode(TICKET, step_key, payload=9, payload_len=16).behavior
        else:
            behavior = scheme_r.encode(TICKET, step_key, payload=9, payload_len=16) or "tie"
        pairs[previous, behavior] += 1
        previous = behavior
    cells = [(a, b) for a in TICKET.behaviors for b in TICKET.behaviors]
    expected = [20_000 * TICKET.probability(a) * TICKET.probability(b) for a, b in cells]
    assert chisquare([pairs[cell] for cell in cells], expected).pvalue > 1e-6
