"""What verification costs, in operations: one is about a microsecond of one core.

Every number here was measured (`tools/measure_work.py` measures them again), and everything that spends or foretells
work takes it from here: the verifier's meter, the forecast of `agentmark power`, the warning of an embedder. A count of
operations is the same on every machine, so a search that is cut short is cut short at the same place on all of them.
"""

from functools import lru_cache
from math import ceil, comb, exp2, log2

from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.symbols import SYMBOL_BITS
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT

# Reading a record ----------------------------------------------------------------------------------------------------

HASH_BLOCK = 0.6
# F walks down its list once; R runs 256 races, all of them at once for each rival.
F_STEP, F_OPTION = 10.0, 0.05
R_STEP = 20.0
# The heaviest rivals cost a few logarithms each, the others little more than their hash.
HEAVY_RIVALS, HEAVY_RIVAL, LIGHT_RIVAL = 16, 10.0, 2.5
# A clock hashes the name.
NAME_BYTE = 0.001
# A part of a list is weighed for each share that the choice may have had, against every rival that is left.
PARTIAL_STEP, PARTIAL_OPTION = 450.0, 2.5
# What comes before the rows in the first block of a step, at most.
_BITS_BEFORE_ROWS = 48


def rows_cost(payload_len: int, count: int) -> float:
    """Drawing so many rows of this length, and what stands before them."""
    return HASH_BLOCK * ceil((_BITS_BEFORE_ROWS + payload_len * count) / 512)


# Record after record asks for the same.
@lru_cache(maxsize=4096)
def read_f_cost(options: int, payload_len: int) -> float:
    """At most: as many rows as the largest bin needs."""
    return F_STEP + F_OPTION * options + rows_cost(payload_len, options.bit_length())


def read_r_cost(options: int, name_bytes: int, payload_len: int) -> float:
    rivals = max(options - 1, 0)
    heavy = min(rivals, HEAVY_RIVALS)
    clocks = R_STEP + HEAVY_RIVAL * heavy + LIGHT_RIVAL * (rivals - heavy) + NAME_BYTE * name_bytes
    return clocks + rows_cost(payload_len, SYMBOL_BITS)


# Looking at what was read --------------------------------------------------------------------------------------------

# A payload's e-value at one step; and the same entered under every noise rate.
E_VALUE = 1.3
EVIDENCE_STEP = 3.2
# One step of one row's reduction in an elimination: the loop, and the XOR of so many bits.
REDUCTION, REDUCTION_BIT = 0.1, 1.5e-5
# One guess of R's search over symbols.
GUESS = 0.075
# The spectrum of a step that has eight rows, and adding it to the table of one rate.
SPECTRUM, SPECTRUM_TERM = 170.0, 0.12
# One butterfly of a transform, in Python and in NumPy.
BUTTERFLY, NUMPY_BUTTERFLY = 0.075, 0.0027
# One operation on a number that has a bit for each identity of a registry.
PLANE, PLANE_BIT = 0.06, 4e-5


def reduction_cost(rank: int, payload_len: int) -> float:
    """Reducing one row by so many pivots, half of which have a part in it."""
    return 0.2 + rank / 2 * (REDUCTION + REDUCTION_BIT * payload_len)


def elimination_cost(payload_len: int) -> float:
    """All rows up to full rank."""
    return payload_len * reduction_cost(payload_len // 2, payload_len)


def transform_cost(payload_len: int, *, with_numpy: bool) -> float:
    """One Walsh-Hadamard transform, and finding the best in its table."""
    return (NUMPY_BUTTERFLY if with_numpy else BUTTERFLY) * (payload_len + 2) * 2.0**payload_len


# Decoding with some steps wrong, and R -------------------------------------------------------------------------------

# So many wrong equations in an information set are put right by trying all of them.
FLIPS = 2
# One comparison of the rows of an information set, per bit of what it is compared on; and one trial of a flip.
SET_STEP, SET_STEP_BIT = 0.14, 1e-4
FLIP, FLIP_BIT = 0.14, 8e-5
# Shuffling the steps, once a trial.
SHUFFLED_STEP = 0.1
# A step of R that says much leaves a sixteenth of its symbols: what the steps of a basis are like in a log of a few
# hundred steps of an undecided agent.
TELLING_SYMBOLS = 16


def set_trial_cost(payload_len: int, equations: int, steps: int) -> float:
    """One information set: its elimination, and every way to put up to two of its equations right."""
    flips = comb(payload_len, 2) + payload_len
    return (
        SHUFFLED_STEP * steps
        + payload_len**2 * (SET_STEP + SET_STEP_BIT * (equations + payload_len))
        + flips * (FLIP + FLIP_BIT * equations)
    )


def set_trial_success(payload_len: int, noise: float) -> float:
    """Chance that a trial has at most two wrong equations: half of a foreign step's are right by chance."""
    wrong = noise / 2
    return sum(
        comb(payload_len, k) * wrong**k * (1 - wrong) ** (payload_len - k) for k in range(min(FLIPS, payload_len) + 1)
    )


def basis_cost(payload_len: int) -> float:
    """Rows of R up to full rank with what they are sums of, and the vectors dual to them."""
    return 4 * elimination_cost(payload_len) + 0.06 * payload_len**2 + 6 * payload_len


def guess_bits(symbol_counts: list[int], payload_len: int) -> float:
    """log2 of the fewest guesses that can determine the payload: the smallest sets, eight rows of each.

    `symbol_counts` in ascending order. Infinite if the steps do not determine the payload.
    """
    needed = ceil(payload_len / SYMBOL_BITS)
    if len(symbol_counts) < needed:
        return float("inf")
    if needed == 0:
        return 0.0
    # The last step may be needed for a few of its rows only, which have fewer values between them.
    last_rows = payload_len - SYMBOL_BITS * (needed - 1)
    return sum([log2(count) for count in symbol_counts[: needed - 1]]) + min(log2(symbol_counts[needed - 1]), last_rows)


def guess_cost(bits: float, payload_len: int) -> float:
    """So many guesses, in bits, and the basis before them."""
    return basis_cost(payload_len) + GUESS * exp2(min(bits, 1000.0))


def longest_open_payload(*, is_linear: bool, work_limit: float = DEFAULT_WORK_LIMIT) -> int:
    """The longest payload that can be read without a registry or a claim, from a clean log, within the work limit.

    A linear scheme's is read by elimination. For R it depends on the log; this is for steps that leave
    `TELLING_SYMBOLS` of their symbols.
    """

    def cost(payload_len: int) -> float:
        if is_linear:
            return elimination_cost(payload_len)
        return guess_cost(guess_bits([TELLING_SYMBOLS] * payload_len, payload_len), payload_len)

    low, high = 0, MAX_PAYLOAD_LEN
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= work_limit else (low, middle - 1)
    return low
