"""The closed forms against brute force, and the places where the paper slips (docs/paper-map.md)."""

import random
from fractions import Fraction
from math import log2
from statistics import fmean, stdev

import pytest
from hypothesis import given
from support import dirichlet, distributions

from agentmark.core import scheme_f, scheme_r, theory
from agentmark.core.cyclic_shift import cyclic_shift_encode, short_len
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.recombination import slice_heights


@pytest.mark.parametrize("bin_size", range(1, 65))
def test_slip_1_expected_capacity_is_k_plus_t_over_2_to_the_k(bin_size: int) -> None:
    """App. B's k + 2t/n exceeds log2 n. Over uniform coded bits the mean is k + t/2^k, and 0.0861 bounds its gap."""
    k = short_len(bin_size)
    lengths = [cyclic_shift_encode(bits, bin_size, 0)[1].length for bits in range(2 << k)]
    mean = sum(lengths) / len(lengths)
    assert mean == theory.bin_capacity(bin_size)
    assert log2(bin_size) - 0.0861 <= mean <= log2(bin_size)


def test_slip_1_the_papers_formula_breaks_its_own_bound() -> None:
    assert log2(5) < 2 + 2 * 1 / 5
    assert theory.bin_capacity(5) == 2.25


def test_slip_2_embedded_bits_are_masked() -> None:
    """s_t is y xor Z (App. C), not y (section 4.4): with payload 0 every y is 0, and what is embedded is the pad."""
    distribution = BehaviorDistribution.quantise({f"b{i}": 1 for i in range(16)})
    for i in range(50):
        step_key = i.to_bytes(32, "big")
        embedded = scheme_f.encode(distribution, step_key, payload=0, payload_len=32).embedded_bits
        assert embedded.bits == scheme_f.pad_bits(scheme_f.step_bits(step_key), embedded.length)


@given(distributions())
def test_slip_3_slice_heights_are_never_negative(distribution: BehaviorDistribution) -> None:
    """App. A sorts rounded p and subtracts unrounded p. Here both are the same integers."""
    assert min(slice_heights(distribution.weights)) >= 0


def test_slip_3_as_the_paper_writes_it() -> None:
    """Rounded to two decimals these tie, and a stable sort keeps the smaller one first: d_1 < 0."""
    probabilities = [("a", 0.4989), ("b", 0.5011)]
    ordered = sorted(probabilities, key=lambda item: -round(item[1], 2))
    assert ordered[0][1] - ordered[1][1] < 0


def test_slip_4_a_bin_of_one_needs_no_special_case() -> None:
    position, spent = cyclic_shift_encode(0, 1, 0)
    assert (position, spent.length) == (0, 0)
    assert cyclic_shift_encode(1, 1, 0)[0] == 0


def test_slip_5_capacity_is_bounded_by_entropy_over_all_steps() -> None:
    """Kept to steps that embedded something, mean c_t can exceed the mean entropy of those same steps."""
    distribution = BehaviorDistribution.quantise({"a": 0.9, "b": 0.1})
    assert theory.capacity(distribution) <= theory.entropy(distribution)
    # Whenever the bin of two is drawn (20 % of the steps), one bit is embedded: more than H = 0.47.
    active = [
        embedding.capacity
        for embedding in (
            scheme_f.encode(distribution, i.to_bytes(32, "big"), payload=1, payload_len=8) for i in range(2000)
        )
        if embedding.capacity
    ]
    assert sum(active) / len(active) == 1 > theory.entropy(distribution)


@pytest.mark.parametrize(("overhead", "paper_percent"), [(0, 60.6), (2, 22.7), (4, 7.0), (6, 1.1), (8, 0.4), (14, 0.0)])
def test_slip_6_the_false_positive_table_is_a_formula(overhead: int, paper_percent: float) -> None:
    """The paper's 1,000 trials lie within four standard errors of the exact value; 61.0 % at k = 0."""
    exact = theory.consistency_probability(128 + overhead, 128)
    assert abs(100 * exact - paper_percent) < 4 * 100 * (exact * (1 - exact) / 1000) ** 0.5 + 0.05
    assert overhead != 0 or round(100 * exact, 1) == 61.0


@given(distributions())
def test_capacities_never_exceed_the_entropy(distribution: BehaviorDistribution) -> None:
    entropy = theory.entropy(distribution)
    assert theory.capacity(distribution) <= entropy + 1e-9
    assert theory.race_capacity(distribution) <= entropy + 1e-9


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_measured_evidence_of_f_matches_the_closed_form(alpha: float) -> None:
    """Mean evidence of 1,000 real steps within five standard errors of E[c_t]."""
    rng = random.Random(11)
    differences = []
    for _ in range(1000):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, 6, alpha))
        embedding = scheme_f.encode(distribution, rng.randbytes(32), payload=77, payload_len=16)
        differences.append(embedding.capacity - theory.capacity(distribution))
    assert abs(fmean(differences)) < 5 * stdev(differences) / len(differences) ** 0.5


RACE_LISTS = {
    "fair coin": [1, 1],
    "one in ten": [9, 1],
    "App. C": [40, 25, 15, 12, 8],
    "peaked": [91] + [1] * 9,
    "twenty alike": [1] * 20,
}


@pytest.mark.parametrize("shape", RACE_LISTS)
def test_a_race_carries_more_than_the_closed_form_and_less_than_the_entropy(shape: str) -> None:
    """E[-log2 q_t] over 1,500 step keys, each with its exact mean over the symbols.

    Not below the closed form by four standard errors, and above it by at most 2.5 % of the entropy.
    """
    distribution = BehaviorDistribution.quantise({f"b{i}": weight for i, weight in enumerate(RACE_LISTS[shape])})
    rng = random.Random(shape)
    evidence = []
    for _ in range(1500):
        step_key = rng.randbytes(32)
        counts = [scheme_r.winning_symbols(distribution, step_key, name).bit_count() for name in distribution.behaviors]
        evidence.append(sum([count / 256 * (8 - log2(count)) for count in counts if count]))
    error = 4 * stdev(evidence) / len(evidence) ** 0.5
    closed, entropy = theory.race_capacity(distribution), theory.entropy(distribution)
    assert closed - error < fmean(evidence) < min(entropy, closed + 0.025 * entropy) + error


def test_rank_distribution_against_every_small_matrix() -> None:
    from itertools import product

    from agentmark.core.linear import LinearSystem
    from agentmark.core.rlnc import Equation

    counts = [0] * 4
    for rows in product(range(8), repeat=4):
        system = LinearSystem(3)
        for row in rows:
            system.update(Equation(row, 0))
        counts[system.rank] += 1
    assert theory.rank_distribution(4, 3) == pytest.approx([count / 8**4 for count in counts])
    mean = sum(Fraction(count, 8**4) / 2 ** (4 - rank) for rank, count in enumerate(counts))
    assert theory.consistency_probability(4, 3) == pytest.approx(float(mean))


def test_the_papers_rank_and_success_bounds_hold() -> None:
    for rows in range(8, 20):
        assert theory.full_rank_bound(rows, 8) <= theory.full_rank_probability(rows, 8)
    assert theory.full_rank_probability(7, 8) == 0.0
    assert theory.success_bound({7: 0.5, 12: 0.5}, 8) == 0.5 * (1 - 2.0**-4)
    assert theory.equations_until_full_rank(8, 8) == 0
    assert 1.6 < theory.equations_until_full_rank(0, 64) - 64 < 1.61


# Table 1 of the paper, ToolBench T1 to T6: bits a step, bits a task, mean and deviation of the steps of AgentMark-F,
# added tokens a step in percent, added seconds a step.
TABLE_1_TOOLBENCH = [
    (0.51, 5.28, 5.6, 4.7, 9.64, -1.67),
    (0.48, 4.89, 8.6, 4.8, -16.96, -1.41),
    (0.46, 4.62, 4.8, 4.6, -3.29, -2.40),
    (0.49, 5.10, 6.5, 4.3, 10.97, -1.54),
    (0.48, 4.85, 7.8, 5.6, 5.24, -0.83),
    (0.49, 4.90, 9.6, 6.1, -14.77, 0.24),
]


def test_the_papers_bits_on_toolbench_do_not_fit_its_cap_of_ten_steps() -> None:
    """Slip 7: a task has as many bits as its steps together, and at most ten of those."""
    ratios = [task / step for step, task, *_ in TABLE_1_TOOLBENCH]
    assert [round(ratio, 1) for ratio in ratios] == [10.4, 10.2, 10.0, 10.4, 10.1, 10.0]
    assert sum([(task - 0.005) / (step + 0.005) > 10 for step, task, *_ in TABLE_1_TOOLBENCH]) == 3
    # Numbers between 0 and 10 with mean m deviate by at most the root of m (10 - m).
    mean, deviation = TABLE_1_TOOLBENCH[-1][2:4]
    assert round((mean * (10 - mean)) ** 0.5, 1) == 2.0 < deviation


def test_the_papers_average_of_added_tokens_is_not_that_of_its_rows() -> None:
    """Slip 8: it says -6.25 %; the seconds beside it are averaged rightly."""
    tokens, seconds = ([row[column] for row in TABLE_1_TOOLBENCH] for column in (4, 5))
    assert round(fmean(tokens), 1) == -1.5
    assert round(fmean(seconds), 2) == -1.27
