"""Write the test vectors in vectors/: a second implementation of docs/spec.md that shares no code with the package.

It is written for reading next to the specification, not for speed: bits are text of 0 and 1, numbers are fractions.
Run `python tools/make_vectors.py`; the files do not depend on the machine. What a line of a log is (sections 8 and 8.2)
is told by `tools/spec_reader.py`, which shares no code with the package either.
"""

import functools
import hashlib
import itertools
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import spec_reader

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
TOTAL = 2**32
PRECISE = Context(prec=34)

Case = dict[str, Any]
Weights = dict[str, int]
Pairs = list[tuple[str, int | float]]


# Section 1: notation


def u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def blake2b(message: bytes, key: bytes, size: int) -> bytes:
    return hashlib.blake2b(message, key=key, digest_size=size).digest()


def bits_of(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def integer_of(bits: str) -> int:
    return int(bits, 2) if bits else 0


def parity(number: int) -> int:
    return bin(number).count("1") % 2


def xor(left: str, right: str) -> str:
    return "".join("1" if a != b else "0" for a, b in zip(left, right, strict=True))


# Section 2: context

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def canonical_character(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character


def canonical(value: Any) -> str:
    """The canonical bytes of section 2, as text."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(value)
        case str():
            return '"' + "".join(map(canonical_character, value)) + '"'
        case list():
            return "[" + ",".join(map(canonical, value)) + "]"
    members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
    return "{" + ",".join(canonical(name) + ":" + canonical(member) for name, member in members) + "}"


def context_digest(fields: Case) -> bytes:
    return blake2b(b"agentmark/1 context" + b"\0" + canonical(fields).encode(), b"", 32)


# Section 3: keys and the keyed function


def prf(key: bytes, label: str, data: bytes, size: int = 64) -> bytes:
    return blake2b(label.encode("ascii") + b"\0" + data, key, size)


def key_id(secret: bytes) -> str:
    return prf(secret, "agentmark/1 key id", b"", 8).hex()


def argument_digest(secret: bytes, session: str, arguments: bytes) -> str:
    name = session.encode()
    return prf(secret, "agentmark/1 arguments", len(name).to_bytes(4, "big") + name + arguments, 4).hex()


def derived_key(secret: bytes, name: str) -> bytes:
    return prf(secret, "agentmark/1 derive", name.encode(), 32)


def step_key_of(secret: bytes, length: int, context: bytes) -> bytes:
    return prf(secret, "agentmark/1 step key", u32(length) + context, 32)


# Section 4: distribution


def quantise(pairs: Pairs) -> Weights:
    """The weights by name, in the order of the input."""
    numbers = {name: Fraction(number) for name, number in pairs}
    total = sum(numbers.values())
    weights = {name: math.floor(number * TOTAL / total) for name, number in numbers.items()}
    remainders = {name: number * TOTAL - weights[name] * total for name, number in numbers.items()}
    missing = TOTAL - sum(weights.values())
    for name in sorted(numbers, key=lambda name: (-remainders[name], name.encode()))[:missing]:
        weights[name] += 1
    return weights


def canonical_order(weights: Weights) -> list[str]:
    return sorted(weights, key=lambda name: (-weights[name], name.encode()))


# Section 5: payload and coding


# Where the pad and the rows begin among the bits of a step.
PAD_AT = {"F": 32, "R": 0}
ROWS_AT = {"F": 48, "R": 8}


def step_bits(step_key: bytes, scheme: str, start: int, end: int) -> str:
    """Bits `start` to `end - 1` of the joined blocks."""
    joined = ""
    for block in itertools.count():
        if len(joined) >= end:
            return joined[start:end]
        joined += bits_of(prf(step_key, f"agentmark/1 {scheme} step", u32(block)))
    raise AssertionError


def rows(step_key: bytes, scheme: str, length: int, count: int) -> list[int]:
    starts = [ROWS_AT[scheme] + j * length for j in range(count)]
    return [integer_of(step_bits(step_key, scheme, start, start + length)) for start in starts]


def pad(step_key: bytes, scheme: str, count: int) -> str:
    return step_bits(step_key, scheme, PAD_AT[scheme], PAD_AT[scheme] + count)


def coded_bits(row_list: list[int], pad_bits: str, payload: int) -> str:
    return xor("".join(str(parity(row & payload)) for row in row_list), pad_bits)


# Section 6: AgentMark-F


def slice_heights(ordered: list[int]) -> list[int]:
    return [weight - below for weight, below in itertools.pairwise([*ordered, 0])]


def bin_weights(heights: list[int]) -> list[int]:
    return [k * height for k, height in enumerate(heights, start=1)]


def bin_and_shift(heights: list[int], draw: int) -> tuple[int, int]:
    before = 0
    for k, bin_weight in enumerate(bin_weights(heights), start=1):
        if before <= draw < before + bin_weight:
            return k, (draw - before) // heights[k - 1]
        before += bin_weight
    raise AssertionError("the bins hold every draw")


def short_bits_and_count(bin_size: int) -> tuple[int, int]:
    """`l`, the bits of a short codeword, and `s`, how many codewords are short."""
    short_bits = 0
    while 2 ** (short_bits + 1) <= bin_size:
        short_bits += 1
    return short_bits, 2 ** (short_bits + 1) - bin_size


def code(bin_size: int, shift: int, coded: str) -> tuple[int, str]:
    """The position and the embedded bits."""
    short_bits, short_count = short_bits_and_count(bin_size)
    x, r = integer_of(coded[:short_bits]), integer_of(coded[short_bits])
    if x < short_count:
        return (x + shift) % bin_size, coded[:short_bits]
    return (short_count + 2 * (x - short_count) + r + shift) % bin_size, coded


def codeword(bin_size: int, shift: int, position: int) -> str:
    short_bits, short_count = short_bits_and_count(bin_size)
    index = (position - shift) % bin_size
    if index < short_count:
        return f"{index:0{short_bits}b}" if short_bits else ""
    beyond = index - short_count
    return f"{short_count + beyond // 2:0{short_bits}b}{beyond % 2}"


def f_draw(step_key: bytes) -> int:
    return integer_of(step_bits(step_key, "F", 0, 32))


def f_bin_and_shift(step_key: bytes, weights: Weights) -> tuple[int, int]:
    heights = slice_heights([weights[name] for name in canonical_order(weights)])
    return bin_and_shift(heights, f_draw(step_key))


def f_step(secret: bytes, context: bytes, weights: Weights, payload: int, length: int) -> Case:
    """One marked step, with everything on the way, as section 11 lists it."""
    step_key = step_key_of(secret, length, context)
    order = canonical_order(weights)
    heights = slice_heights([weights[name] for name in order])
    bin_size, shift = f_bin_and_shift(step_key, weights)
    count = short_bits_and_count(bin_size)[0] + 1
    row_list, pad_bits = rows(step_key, "F", length, count), pad(step_key, "F", count)
    coded = coded_bits(row_list, pad_bits, payload)
    position, embedded = code(bin_size, shift, coded)
    equations = f_equations(step_key, weights, order[position], length) or []
    assert all(parity(row & payload) == right for row, right in equations)
    assert len(equations) == len(embedded)
    return {
        **step_inputs(secret, context, weights, payload, length),
        "order": order,
        "slice_heights": heights,
        "bin_weights": bin_weights(heights),
        "draw": f_draw(step_key),
        "bin_size": bin_size,
        "shift": shift,
        "rows": [hex_integer(row, length) for row in row_list],
        "pad": pad_bits,
        "coded_bits": coded,
        "embedded_bits": embedded,
        "position": position,
        "choice": order[position],
        "equations": [{"coefficients": hex_integer(row, length), "parity": right} for row, right in equations],
    }


def f_equations(step_key: bytes, weights: Weights, choice: str, length: int) -> list[tuple[int, int]] | None:
    """Reading a step of F: its equations as (row, right-hand side), or None if it is impossible under this key."""
    bin_size, shift = f_bin_and_shift(step_key, weights)
    position = canonical_order(weights).index(choice)
    if position >= bin_size:
        return None
    word = codeword(bin_size, shift, position)
    right_sides = xor(word, pad(step_key, "F", len(word)))
    return list(zip(rows(step_key, "F", length, len(word)), map(int, right_sides), strict=True))


# Section 7: AgentMark-R


@functools.cache
def field_product(left: int, right: int) -> int:
    """In GF(2^8) modulo x^8 + x^4 + x^3 + x + 1: multiply the polynomials, then divide and keep the rest."""
    total = 0
    for power in range(8):
        if right >> power & 1:
            total ^= left << power
    for power in range(14, 7, -1):
        if total >> power & 1:
            total ^= 0b1_0001_1011 << power - 8
    return total


@functools.cache
def clock_block(step_key: bytes, name: str) -> int:
    return int.from_bytes(prf(step_key, "agentmark/1 R clock", name.encode(), 8), "big")


def x_under(block: int, symbol: int) -> int:
    """The 52 bits of a name under a symbol."""
    v, g = block // 2**12, max(1, block % 256)
    return (v // 2**44 ^ field_product(g, symbol)) * 2**44 + v % 2**44


@functools.cache
def clock(x: int, weight: float) -> float:
    """The logarithm is rounded correctly, so that the vectors do not depend on a maths library."""
    u = (2 * x + 1) / 2**53
    return -float(PRECISE.ln(Decimal(u))) / weight


def clocks(step_key: bytes, symbol: int, weights: Weights) -> dict[str, float]:
    running = [name for name in canonical_order(weights) if weights[name] > 0]
    return {name: clock(x_under(clock_block(step_key, name), symbol), weights[name]) for name in running}


def winner(times: list[float]) -> int | None:
    """The index of the smallest clock, or None for a near tie."""
    smallest, *others = sorted(times)
    if others and others[0] - smallest <= 2**-40 * smallest:
        return None
    return times.index(smallest)


def r_step(secret: bytes, context: bytes, weights: Weights, payload: int, length: int) -> Case:
    """One step as section 11 lists it, without the set read back; the choice of a near tie is None."""
    step_key = step_key_of(secret, length, context)
    row_list, pad_bits = rows(step_key, "R", length, 8), pad(step_key, "R", 8)
    symbol = integer_of(coded_bits(row_list, pad_bits, payload))
    times = clocks(step_key, symbol, weights)
    first = winner(list(times.values()))
    return {
        **step_inputs(secret, context, weights, payload, length),
        "order": canonical_order(weights),
        "rows": [hex_integer(row, length) for row in row_list],
        "pad": pad_bits,
        "symbol": symbol,
        "clock_blocks": {name: f"{clock_block(step_key, name):016x}" for name in times},
        "x": {name: f"{x_under(clock_block(step_key, name), symbol):013x}" for name in times},
        "clocks": {name: repr(time) for name, time in times.items()},
        "choice": None if first is None else list(times)[first],
    }


def r_symbols(step_key: bytes, weights: Weights, choice: str) -> set[int]:
    """Reading a step of R: the symbols under which the logged behavior has the smallest clock."""
    if weights[choice] == 0:
        return set()
    races = {symbol: clocks(step_key, symbol, weights) for symbol in range(256)}
    return {symbol for symbol, times in races.items() if times[choice] == min(times.values())}


# Section 9: verification


def rank(row_list: list[int]) -> int:
    echelon: list[int] = []
    for row in row_list:
        rest = functools.reduce(lambda rest, earlier: min(rest, rest ^ earlier), echelon, row)
        if rest:
            echelon.append(rest)
    return len(echelon)


def eliminate(equations: list[tuple[int, int]], length: int) -> list[int]:
    """The payload that satisfies all equations, if it is the only one: Gaussian elimination, right-hand side last."""
    pivots: dict[int, int] = {}
    for row, right in equations:
        line = 2 * row + right
        for lead in sorted(pivots, reverse=True):
            if line >> lead & 1:
                line ^= pivots[lead]
        if line == 1:
            return []
        if line:
            pivots[line.bit_length() - 1] = line
    payload = 0
    for lead, line in sorted(pivots.items()):
        if parity(line >> 1 & payload) != line % 2:
            payload |= 1 << (lead - 1)
    return [payload] if len(pivots) == length else []


def agrees(payload: int, equations: list[tuple[int, int]], sets: list[tuple[list[int], str, set[int]]]) -> bool:
    return all(parity(row & payload) == right for row, right in equations) and all(
        integer_of(coded_bits(row_list, pad_bits, payload)) in symbols for row_list, pad_bits, symbols in sets
    )


def counted_records(records: list[Case], own_id: str, length: int) -> list[Case]:
    """Steps 1 to 4."""
    own = [record for record in records if record["key_id"] == own_id and record["payload_len"] == length]
    undone = {record["context"] for record in own if record.get("enforced") is False}
    copies: dict[str, list[Case]] = {}
    for record in own:
        if record["marked"] and record["context"] not in undone:
            copies.setdefault(record["context"], []).append(record)
    kept = [(next((r for r in same if not r.get("partial")), same[0]), same) for same in copies.values()]
    return [one for one, same in kept if all(is_copy(record, one) for record in same)]


def is_copy(record: Case, kept: Case) -> bool:
    """Step 4: equal, or a part of what is kept."""
    if any(record[member] != kept[member] for member in ("scheme", "key_id", "choice")):
        return False
    if record.get("partial") and not kept.get("partial"):
        return all(kept["weights"].get(name) == weight for name, weight in (record["weights"] or {}).items())
    return bool(record["weights"] == kept["weights"]) and bool(record.get("partial")) == bool(kept.get("partial"))


def verify(records: list[Case], secret: bytes, length: int) -> Case:
    equations: list[tuple[int, int]] = []
    sets: list[tuple[list[int], str, set[int]]] = []
    used = 0
    for record in counted_records(records, key_id(secret), length):
        step_key = step_key_of(secret, length, bytes.fromhex(record["context"]))
        if record["scheme"] == "F":
            read = f_equations(step_key, record["weights"], record["choice"], length)
            equations += read or []
            used += read is not None
        elif symbols := r_symbols(step_key, record["weights"], record["choice"]):
            sets.append((rows(step_key, "R", length, 8), pad(step_key, "R", 8), symbols))
    if not sets and not used:
        found = []
    elif sets:
        found = [payload for payload in range(2**length) if agrees(payload, equations, sets)]
    else:
        found = eliminate(equations, length)
    evidence = len(equations) + math.fsum(8 - math.log2(len(symbols)) for _, _, symbols in sets)
    all_rows = [row for row, _ in equations] + [row for row_list, _, _ in sets for row in row_list]
    bound = min(1, 2 ** -(evidence - rank(all_rows)))
    return {
        "accepted": len(found) == 1 and bound <= 1e-6,
        "payload": hex_integer(found[0], length) if len(found) == 1 else None,
        "evidence_millibits": round(1000 * evidence),
        "rank": rank(all_rows),
    }


# Section 9.2: evidence with noise

MIXTURE = [(0.0, 1 / 2), *((rate, 1 / 16) for rate in (0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95))]
GUESSES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55)


def exponential(number: float) -> float:
    """Rounded correctly, like the logarithm of the clocks."""
    return float(PRECISE.exp(Decimal(number)))


def part_exponents(step_key: bytes, symbol: int, logged: Weights, choice: str) -> list[float]:
    """The exponents whose exponentials sum up to l(symbol): how likely the choice wins, given a part of the list."""

    def race(name: str, share: float) -> float:
        return clock(x_under(clock_block(step_key, name), symbol), share)

    not_logged = (TOTAL - sum(logged.values())) / TOTAL
    rivals = [race(name, weight / TOTAL) for name, weight in logged.items() if name != choice and weight > 0]
    if choice in logged:
        shares = [(logged[choice] / TOTAL, not_logged)] if logged[choice] > 0 else []
    else:
        shares = [(guess, not_logged - guess) for guess in GUESSES if guess <= not_logged]
        if rivals and not_logged > 0:
            shares.append((not_logged, 0.0))
    times = [(race(choice, share), rest) for share, rest in shares]
    return [-rest * time for time, rest in times if all(time < rival for rival in rivals)]


def part_e_values(step_key: bytes, logged: Weights, choice: str) -> list[float]:
    """e_t by symbol, all zero if the step is impossible."""
    exponents = [part_exponents(step_key, symbol, logged, choice) for symbol in range(256)]
    largest = max((exponent for some in exponents for exponent in some), default=0.0)
    likelihoods = [math.fsum(exponential(exponent - largest) for exponent in some) for some in exponents]
    mean = math.fsum(likelihoods) / 256
    return [value / mean if mean > 0 else 0.0 for value in likelihoods]


def step_e_value(record: Case, secret: bytes, payload: int, length: int) -> float | None:
    """e_t(payload), or None for a step that is left out."""
    step_key = step_key_of(secret, length, bytes.fromhex(record["context"]))
    if record["scheme"] == "F":
        equations = (
            None if record.get("partial") else f_equations(step_key, record["weights"], record["choice"], length)
        )
        if equations is None:
            return None
        return 2.0 ** len(equations) if agrees(payload, equations, []) else 0.0
    if record.get("partial"):
        by_symbol = part_e_values(step_key, record["weights"] or {}, record["choice"])
    else:
        symbols = r_symbols(step_key, record["weights"], record["choice"])
        by_symbol = [256 / len(symbols) if symbol in symbols else 0.0 for symbol in range(256)]
    symbol = integer_of(coded_bits(rows(step_key, "R", length, 8), pad(step_key, "R", 8), payload))
    return by_symbol[symbol] if any(by_symbol) else None


def evidence_millibits(records: list[Case], secret: bytes, payload: int, length: int, noise: str | None) -> int | None:
    counted = counted_records(records, key_id(secret), length)
    read = [step_e_value(record, secret, payload, length) for record in counted]
    values = [value for value in read if value is not None]
    return mixed_millibits(values, noise)


def mixed_millibits(values: list[float], noise: str | None) -> int | None:
    """log2 of the mixture over the rates, in thousandths; None for minus infinity."""
    rates = MIXTURE if noise is None else [(float(noise), 1.0)]
    mean = math.fsum(prior * math.prod((1 - rate) * value + rate for value in values) for rate, prior in rates)
    if mean == 0:
        return None
    millibits = 1000 * math.log2(mean)
    assert abs(millibits % 1 - 0.5) > 1e-6, "rounding must not depend on the last place"
    return round(millibits)


# Section 9, step 2


def stated_length(records: list[Case], key_ids: list[str]) -> int:
    """L, where none is given: each context counts once for a length, and readable steps before all others."""
    stated: dict[int, set[str]] = defaultdict(set)
    readable: dict[int, set[str]] = defaultdict(set)
    for record in records:
        if record["key_id"] not in key_ids:
            continue
        length = record["payload_len"]
        stated[length].add(record["context"])
        if record["marked"] and not (record["scheme"] == "F" and record.get("partial")):
            readable[length].add(record["context"])
    counts = [(len(readable[length]), len(stated[length]), length) for length in stated]
    return max(counts)[2] if counts else 0


# Section 9.4: ownership and prices


def ownership_millibits(records: list[Case], secret: bytes, payload: int, length: int, noise: str | None) -> int | None:
    values = []
    for record in counted_records(records, key_id(secret), length):
        if not record.get("partial"):
            e_value = step_e_value(record, secret, payload, length)
            values.append(TOTAL / record["weights"][record["choice"]] if e_value else 0.0)
    return mixed_millibits(values, noise)


def price(length: int, registry: list[int] | None, payload: int, *, claimed: bool, tries: int) -> float:
    """In bits."""
    if claimed:
        share = Fraction(1)
    elif not registry:
        share = Fraction(1, 2**length)
    elif payload in registry:
        share = Fraction(1, 2 * len(registry)) + Fraction(1, 2 ** (length + 1))
    else:
        share = Fraction(1, 2 ** (length + 1))
    return math.log2(share.denominator) - math.log2(share.numerator) + math.log2(tries)


def least_steps(values: list[float], needed_bits: float, noise: str | None) -> int:
    """Section 9.2: the fewest steps that, taken away where they say most, leave less than is needed."""
    rates = MIXTURE if noise is None else [(float(noise), 1.0)]
    largest = sorted([value for value in values if value > 1], reverse=True)
    for count in range(len(largest) + 1):
        left = math.fsum(
            prior
            * math.prod((1 - rate) * value + rate for value in values)
            / math.prod((1 - rate) * value + rate for value in largest[:count])
            for rate, prior in rates
        )
        assert abs(math.log2(left) - needed_bits) > 1e-6 if left else True, "rounding must not decide"
        if left < 2**needed_bits:
            return count
    return len(largest)


def found_identities(
    records: list[Case], length: int, registry: list[int] | None, threshold: str, noise: str | None
) -> list[Case]:
    """Everyone who passes, by weighing every payload that there is: best first, of equals the smallest."""
    found = []
    counted = counted_records(records, key_id(SECRET), length)
    for payload in range(2**length) if registry is None else registry:
        read = [step_e_value(record, SECRET, payload, length) for record in counted]
        values = [value for value in read if value is not None]
        millibits = mixed_millibits(values, noise)
        paid = price(length, registry, payload, claimed=False, tries=1)
        needed = paid - math.log2(float(threshold))
        if millibits is None or millibits < 1000 * needed:
            continue
        steps = least_steps(values, needed, noise)
        said = named("payload evidence_millibits at_least_steps", hex_integer(payload, length), millibits, steps)
        found.append((paid - millibits / 1000, payload, said))
    return [said for _, _, said in sorted(found, key=lambda each: each[:2])]


# Section 8a: the chain


def canonical_record(record: Case) -> str:
    """The canonical bytes of a record, as text."""
    members = {name: value for name, value in record.items() if value is not None or name == "weights"}
    if not members.get("partial", True):
        del members["partial"]
    return canonical(members)


def chain_digest(use: str, data: bytes) -> str:
    return blake2b(f"agentmark/1 {use}".encode() + b"\0" + data, b"", 32).hex()


# Section 11: vectors. First their common parts and the fixed inputs.


def hex_integer(number: int, bits: int) -> str:
    return f"{number:0{(bits + 3) // 4}x}" if bits else ""


def fixed(label: str) -> bytes:
    """32 bytes that look random: the source of secrets, contexts and payloads."""
    return blake2b(b"agentmark/1 vectors" + b"\0" + label.encode(), b"", 32)


def fixed_payload(label: str, length: int) -> int:
    return integer_of("".join(bits_of(fixed(f"payload {label} {i}")) for i in range(length // 256 + 1))[:length])


SECRET = fixed("secret")
OTHER_SECRET = fixed("other secret")
WIDE, ASTRAL = "\uff5e", "\U0001f600"  # WIDE is first in UTF-8, ASTRAL in UTF-16.
TICKET: Pairs = [("Search", 0.40), ("Book", 0.25), ("Pay", 0.15), ("Check-in", 0.12), ("Modify", 0.08)]


def even(count: int) -> Pairs:
    return [(f"b{j}", 1) for j in range(count)]


def falling(count: int) -> Pairs:
    return [(f"b{j}", 2 * count - j) for j in range(count)]


def step_inputs(secret: bytes, context: bytes, weights: Weights, payload: int, length: int) -> Case:
    return {
        "secret": secret.hex(),
        "context": context.hex(),
        "weights": weights,
        "payload": hex_integer(payload, length),
        "payload_len": length,
        "step_key": step_key_of(secret, length, context).hex(),
    }


def first_step(
    step: Callable[..., Case], name: str, pairs: Pairs, length: int, wanted: Callable[[Case], bool] = lambda _: True
) -> Case:
    """The first of a fixed sequence of contexts under which the step is the wanted one."""
    weights, payload = quantise(pairs), fixed_payload(name, length)
    contexts = (fixed(f"context {name} {number}") for number in itertools.count())
    cases = (step(SECRET, context, weights, payload, length) for context in contexts)
    return {"name": name, **next(case for case in cases if wanted(case))}


def impossible_case(name: str, pairs: Pairs, choice: str, reads: Callable[[bytes, Weights, str], bool]) -> Case:
    """A step, under the first of a fixed sequence of contexts that makes it unreadable."""
    weights = quantise(pairs)
    contexts = (fixed(f"impossible {name} {number}") for number in itertools.count())
    context = next(c for c in contexts if not reads(step_key_of(SECRET, 8, c), weights, choice))
    return {
        "name": name,
        "secret": SECRET.hex(),
        "payload_len": 8,
        "context": context.hex(),
        "weights": weights,
        "choice": choice,
    }


def bulk_hash(label: str, data: bytes) -> bytes:
    return blake2b(f"agentmark/1 bulk {label}".encode() + b"\0" + data, b"", 64)


def bulk_input(i: int) -> tuple[bytes, Weights, int, int]:
    """Context, weights, payload and L of bulk step i."""
    seed = bulk_hash("step", u32(i))
    length = (0, 1, 8, 16, 32, 64, 128)[seed[33] % 7]
    payload = integer_of(bits_of(bulk_hash("payload", u32(i)))[:length])
    heads = [int.from_bytes(bulk_hash("weight", u32(i) + u32(j))[:4], "big") for j in range(1 + seed[32] % 40)]
    numbers = [head >> (seed[34 + (j % 8)] % 32) for j, head in enumerate(heads)]
    if not any(numbers):
        numbers[0] = 1
    return seed[:32], quantise([(f"b{j}", number) for j, number in enumerate(numbers)]), payload, length


@functools.cache
def bulk_inputs() -> list[tuple[bytes, Weights, int, int]]:
    return [bulk_input(i) for i in range(10_000)]


def bulk_sha256(step: Callable[..., Case]) -> str:
    secret = bulk_hash("secret", b"")[:32]
    choices = [step(secret, *inputs)["choice"] or "?" for inputs in bulk_inputs()]
    return hashlib.sha256("".join(f"{i} {choice}\n" for i, choice in enumerate(choices)).encode()).hexdigest()


# Section 11: the cases of each file


def nested(levels: int, inside: Any) -> Any:
    """The value inside this many levels of lists and objects."""
    for level in range(levels):
        inside = {"in": inside} if level % 2 else [inside]
    return inside


def context_vectors() -> Case:
    start = {"session": "00112233445566778899aabbccddeeff", "step": 0}
    valid: dict[str, Case] = {
        "default: session and step": start,
        "members out of order": {"step": 7, "z": 1, "session": "s", "a": 2, "Z": 3, "": 4},
        "UTF-16 order: above U+FFFF before U+E000..U+FFFF": start | {WIDE: 1, ASTRAL: 2, "\ue000": 3, "\ud7ff": 4},
        "UTF-16 order inside a nested object": start | {"observation": {"\uffff": 1, "\U00010000": 2, "\u20ac": 3}},
        "a name that begins another": start | {"ab": 1, "a": 2, "a\x00": 3},
        "every character below U+0020": start | {"text": "".join(map(chr, range(0x20)))},
        "control characters in a name": start | {"\n\x1f": 1, "\x7f": 2, "\r": 3},
        "quotes, backslash, solidus": start | {"text": '"quoted" \\ / </script>'},
        "not escaped": start | {"text": "\x7f\x80\u2028\u2029\u20ac" + ASTRAL},
        "not normalised": start | {"\u00e9": "e\u0301", "e\u0301": "\u00e9"},
        "integers": start | {"n": [0, -1, 10, 2**53 - 1, -(2**53 - 1), -1000000000000000]},
        "true, false and null": start | {"flags": [True, False, None], "none": None},
        "nested lists and objects": start | {"history": [[], {}, [{"b": [1, {"d": 2, "c": []}], "a": {}}], ""]},
        "large step": {"session": "\u4f1a\u8a71", "step": 2**53 - 1},
        # The context is level 1. A text or a number is not a level.
        "64 levels, the last empty": start | {"x": nested(62, [])},
        "64 levels, with text in the last": start | {"x": nested(63, "deep")},
    }
    cases = [
        {"name": name, "fields": fields, "canonical": canonical(fields), "digest": context_digest(fields).hex()}
        for name, fields in valid.items()
    ]
    invalid = [
        ("fraction", "0.5", "a number with a fraction"),
        ("fraction of zero", "1.0", "a number with a fraction"),
        ("exponent", "1e3", "a number with an exponent"),
        ("integer above 2^53 - 1", "9007199254740992", "a larger integer"),
        ("integer below -(2^53 - 1)", "-9007199254740992", "a larger integer"),
        ("deep fraction", '[{"x":[0.1]}]', "a number with a fraction"),
        ("deep large integer", '{"x":[18446744073709551616]}', "a larger integer"),
        ("lone high surrogate", '"\\ud83d"', "not text"),
        ("lone low surrogate", '["\\ude00"]', "not text"),
        ("surrogates in the wrong order", '"\\ude00\\ud83d"', "not text"),
        ("lone surrogate in a name", '{"\\ud800":1}', "not text"),
        ("not a number", "NaN", "not a JSON value"),
        ("infinity", "-Infinity", "not a JSON value"),
        ("65 levels, the last empty", json.dumps(nested(63, []), separators=(",", ":")), "nested too deep"),
        ("65 levels, with text in the last", json.dumps(nested(64, "deep"), separators=(",", ":")), "nested too deep"),
        ("65 levels of objects", '{"x":' * 64 + "0" + "}" * 64, "nested too deep"),
    ]
    texts = [(name, '{"session":"s","step":0,"x":' + text + "}", reason) for name, text, reason in invalid]
    texts.append(("a list", '["session","step"]', "not an object"))
    return {"valid": cases, "invalid": [named("name json reason", *text) for text in texts]}


def named(names: str, *values: Any) -> Case:
    return dict(zip(names.split(), values, strict=True))


def step_key_case(secret: bytes, length: int, context: bytes) -> Case:
    step_key = step_key_of(secret, length, context)
    return {"payload_len": length, "context": context.hex(), "step_key": step_key.hex()}


def keys_vectors() -> Case:
    def key(secret: bytes) -> Case:
        tenants = [(name, derived_key(secret, name)) for name in ("acme", "acme/eu", "caf\u00e9", ASTRAL)]
        contexts = [context_digest({"session": fixed("session").hex()[:32], "step": step}) for step in range(3)]
        called = [("s", b"{}"), ("s", b'{"q":"tea"}'), ("s{", b"}"), ("caf\u00e9", b'{"q":"tea"}')]
        return {
            "secret": secret.hex(),
            "id": key_id(secret),
            "derived": [{"name": name, "secret": tenant.hex(), "id": key_id(tenant)} for name, tenant in tenants],
            "step_keys": [step_key_case(secret, length, c) for length, c in zip((0, 32, 4096), contexts, strict=True)],
            "argument_digests": [
                {"session": session, "arguments": data.hex(), "digest": argument_digest(secret, session, data)}
                for session, data in called
            ],
        }

    invalid = [
        ("empty", b"", "not 32 bytes"),
        ("one byte short", SECRET[:31], "not 32 bytes"),
        ("one byte long", SECRET + b"\x5a", "not 32 bytes"),
        ("64 bytes", SECRET + OTHER_SECRET, "not 32 bytes"),
        ("all zero", bytes(32), "plainly not random"),
        ("typed text", b"correct horse battery staple 123", "plainly not random"),
        ("hexadecimal digits as bytes", SECRET.hex()[:32].encode(), "plainly not random"),
        ("every byte from 20 to 7e", bytes([0x20, 0x7E, *range(0x30, 0x4E)]), "plainly not random"),
        ("17 different bytes", bytes([*range(0x80, 0x91), *[0x80] * 15]), "plainly not random"),
    ]
    # As close to those that are refused as an accepted one can be.
    close = [
        bytes([*range(0x80, 0x92), *[0x80] * 14]),
        bytes([0x7F, *range(0x30, 0x4F)]),
        bytes([0x1F, *range(0x30, 0x4F)]),
    ]
    return {
        "keys": [key(SECRET), key(OTHER_SECRET), key(derived_key(SECRET, "acme")), *map(key, close)],
        "invalid": [named("name secret reason", name, secret.hex(), reason) for name, secret, reason in invalid],
    }


def distribution_vectors() -> Case:
    unit = 2.0**-32
    valid: dict[str, Pairs] = {
        "the ticket example": TICKET,
        "ties of weights": [("d", 1), ("b", 1), ("a", 1), ("c", 1)],
        "ties broken by UTF-8, not UTF-16": [(ASTRAL, 1), (WIDE, 1)],
        "remainders tie, broken by name": [("c", 1), ("b", 1), ("a", 1)],
        "remainders tie, two missing": [("e", 1), ("d", 1), ("c", 1), ("b", 1), ("a", 1), ("f", 1), ("g", 0)],
        "remainders tie, broken by UTF-8, not UTF-16": [(ASTRAL, 1), (WIDE, 1), ("\U0001f601", 1)],
        "remainders differ by less than a double": [("z", 2**60 + 1), ("a", 2**60), ("b", 2**60)],
        "zeros": [("zero", 0), ("half", 0.5), ("none", 0.0), ("other", 0.5), ("minus", -0.0)],
        "zeros while entries are missing": [("0", 0), ("x", 1), ("y", 1), ("z", 1)],
        "one behavior": [("only", 0.3)],
        "one behavior, least double": [("only", 5e-324)],
        "one positive": [("a", 0), ("b", 1e-9), ("c", 0.0)],
        "tiny numbers vanish": [("big", 1.0), ("tiny", 1e-12), ("tinier", 1e-300)],
        "a little below half a unit vanishes": [("big", 1.0), ("small", 0.49 * unit)],
        "three quarters of a unit stay": [("big", 1.0), ("small", 0.75 * unit)],
        "exactly half units": [("b", 2**33 - 2), ("a", 1), ("c", 1)],
        "sum below 1": [("a", 0.2), ("b", 0.1)],
        "sum above 1": [("a", 3), ("b", 250.5), ("c", 17)],
        "integers": [("a", 7), ("b", 11), ("c", 13)],
        "integers beyond doubles": [("a", 10**400), ("b", 3 * 10**400), ("c", 1)],
        "0.1 + 0.2 is not 0.3": [("b", 0.3), ("a", 0.1 + 0.2), ("c", 0.4)],
        "ten tenths": [(f"n{9 - j}", 0.1) for j in range(10)],
        "rounded thirds": [("a", 0.3333333333333333), ("b", 0.3333333333333333), ("c", 0.3333333333333334)],
        "all of the range of doubles": [("a", 1e308), ("b", 1.7976931348623157e308), ("c", 5e-324), ("d", 1e300)],
        "least doubles": [("a", 5e-324), ("b", 1e-323), ("c", 5e-324)],
        "names are not normalised": [("e\u0301", 0.5), ("\u00e9", 0.5)],
        "names": [
            ("aa", 1),
            ("a", 1),
            ("A", 1),
            ("\u4e2d", 1),
            ("a b", 1),
            ("\x00", 1),
            ("\uffff", 1),
            ("10", 1),
            ("9", 1),
        ],
        "hundred": [(f"b{j}", (j * 37 + 11) % 101) for j in range(100)],
    }
    cases = []
    for name, pairs in valid.items():
        weights = quantise(pairs)
        order = canonical_order(weights)
        cases.append(named("name input order weights", name, pairs, order, [weights[behavior] for behavior in order]))
    invalid = [
        ("negative", '[["a",0.5],["b",-0.1]]', "weights", "negative"),
        ("negative integer", '[["a",2],["b",-1]]', "weights", "negative"),
        ("not a number", '[["a",NaN],["b",1]]', "weights", "not finite"),
        ("infinity", '[["a",Infinity],["b",1]]', "weights", "not finite"),
        ("minus infinity", '[["a",-Infinity],["b",1]]', "weights", "not finite"),
        ("nearest double is infinite", '[["a",1e400],["b",1]]', "weights", "not finite"),
        ("all zero", '[["a",0],["b",0.0]]', "weights", "none is positive"),
        ("nearest double is zero", '[["a",1e-400]]', "weights", "none is positive"),
        ("empty list", "[]", "behaviors", "none is positive"),
        ("empty name", '[["",0.5],["b",0.5]]', "behaviors", "empty name"),
        ("duplicate name", '[["a",0.5],["b",0.25],["a",0.25]]', "behaviors", "names not all different"),
        ("duplicate name by escape", '[["a",0.5],["\\u0061",0.5]]', "behaviors", "names not all different"),
        ("name is not text", '[[1,0.5],["b",0.5]]', "behaviors", "name is not text"),
        ("lone surrogate", '[["\\ud800",0.5],["b",0.5]]', "behaviors", "name is not text"),
        ("boolean", '[["a",true],["b",1]]', "weights", "not a number"),
        ("text", '[["a","0.5"],["b",0.5]]', "weights", "not a number"),
        ("null", '[["a",null],["b",1]]', "weights", "not a number"),
        ("list", '[["a",[1]],["b",1]]', "weights", "not a number"),
    ]
    return {"valid": cases, "invalid": [named("name json field reason", *case) for case in invalid]}


def f_cases() -> list[Case]:
    def bin_of(size: int, *, bits: int | None = None, wraps: bool | None = None) -> Callable[[Case], bool]:
        def wanted(case: Case) -> bool:
            wrapped = case["position"] < case["shift"]
            right_bits = bits is None or len(case["embedded_bits"]) == bits
            return case["bin_size"] == size and right_bits and (wraps is None or wrapped == wraps)

        return wanted

    unicode_names: Pairs = [(ASTRAL, 1), (WIDE, 1), ("e\u0301", 1), ("\u00e9", 1), ("\u4e2d\u6587", 1)]
    zeros: Pairs = [("none", 0), ("a", 5), ("b", 5), ("never", 0), ("c", 2)]
    table: list[tuple[str, Pairs, int, Callable[[Case], bool]]] = [
        ("one behavior", [("only", 1)], 16, bin_of(1)),
        ("one positive weight", [("a", 0), ("b", 1), ("c", 0)], 16, bin_of(1)),
        ("bin of one among five", TICKET, 16, bin_of(1)),
        ("bin of two", TICKET, 16, bin_of(2, bits=1)),
        ("bin of three, short codeword", TICKET, 16, bin_of(3, bits=1)),
        ("bin of three, long codeword", TICKET, 16, bin_of(3, bits=2)),
        ("bin of four", TICKET, 16, bin_of(4, bits=2, wraps=False)),
        ("bin of four, wraps around", TICKET, 16, bin_of(4, bits=2, wraps=True)),
        ("bin of five, short codeword", TICKET, 16, bin_of(5, bits=2, wraps=False)),
        ("bin of five, long codeword", TICKET, 16, bin_of(5, bits=3, wraps=False)),
        ("bin of five, short codeword, wraps around", TICKET, 16, bin_of(5, bits=2, wraps=True)),
        ("bin of five, long codeword, wraps around", TICKET, 16, bin_of(5, bits=3, wraps=True)),
        ("eight equal weights: other bins are empty", even(8), 32, bin_of(8, bits=3)),
        ("three equal weights: a slice of one more", even(3), 8, bin_of(3)),
        ("ties: bins without mass", [("a", 4), ("b", 4), ("c", 1), ("d", 1), ("e", 1)], 32, bin_of(2)),
        ("ties: the last bin", [("a", 4), ("b", 4), ("c", 1), ("d", 1), ("e", 1)], 32, bin_of(5)),
        ("zero weights", zeros, 8, bin_of(2)),
        ("zero weights, bin of three", zeros, 8, bin_of(3)),
        ("unicode names, in UTF-8 order", unicode_names, 32, bin_of(5, bits=3)),
        ("a weight that vanishes", [("big", 1.0), ("tiny", 1e-12)], 8, bin_of(1)),
        ("hundred behaviors", falling(100), 128, bin_of(100, bits=6)),
        ("hundred behaviors, long codeword, several row blocks", falling(100), 600, bin_of(100, bits=7, wraps=True)),
        ("hundred behaviors, smaller bin", falling(100), 88, lambda case: 2 <= case["bin_size"] < 100),
        ("the longest payload", TICKET, 4096, bin_of(5, bits=3)),
    ]
    cases = [first_step(f_step, name, pairs, length, wanted) for name, pairs, length, wanted in table]
    lengths = (0, 1, 8, 16, 32, 88, 128, 513, 600)
    cases += [first_step(f_step, f"L = {length}", even(6), length, bin_of(6)) for length in lengths]
    # Four rows that end with the first block, and four that go beyond it.
    return cases + [first_step(f_step, f"eight behaviors, L = {length}", even(8), length) for length in (116, 117)]


def f_vectors() -> Case:
    def reads(step_key: bytes, weights: Weights, choice: str) -> bool:
        return f_equations(step_key, weights, choice, 0) is not None

    impossible = [
        impossible_case("last of five", TICKET, "Modify", reads),
        impossible_case("second of two", [("a", 3), ("b", 1)], "b", reads),
        impossible_case("weight zero", [("a", 1), ("b", 1), ("z", 0)], "z", reads),
        impossible_case("tie outside the bin", [(WIDE, 1), (ASTRAL, 1), ("a", 8)], ASTRAL, reads),
    ]
    codes = []
    for bin_size in range(1, 17):
        count = short_bits_and_count(bin_size)[0] + 1
        for shift, coded in itertools.product(range(bin_size), itertools.product("01", repeat=count)):
            position, embedded = code(bin_size, shift, "".join(coded))
            assert codeword(bin_size, shift, position) == embedded
            codes.append(
                named(
                    "bin_size shift coded_bits position embedded_bits",
                    bin_size,
                    shift,
                    "".join(coded),
                    position,
                    embedded,
                )
            )
    return {
        "steps": f_cases(),
        "impossible": impossible,
        "code": codes,
        "app_c": app_c(),
        "bulk_sha256": bulk_sha256(f_step),
    }


def app_c() -> Case:
    weights = quantise(TICKET)
    order = canonical_order(weights)
    heights = slice_heights([weights[name] for name in order])
    bin_draw, draw = (TOTAL * percent // 100 for percent in (62, 70))
    bin_size, shift = bin_and_shift(heights, draw)
    assert bin_and_shift(heights, bin_draw)[0] == bin_size
    assert math.floor(Fraction("0.27") * bin_size) == shift
    message, pad_bits = "01", "11"
    coded = xor(message, pad_bits)
    position, embedded = code(bin_size, shift, coded + "0")
    assert embedded == coded
    return {
        "input": TICKET,
        "weights": weights,
        "order": order,
        "slice_heights": heights,
        "bin_weights": bin_weights(heights),
        "bin_draw": bin_draw,
        "shift_draw": "0.27",
        "draw": draw,
        "bin_size": bin_size,
        "shift": shift,
        "message_bits": message,
        "pad": pad_bits,
        "coded_bits": coded,
        "position": position,
        "choice": order[position],
    }


def r_cases() -> list[Case]:
    def wins(name: str) -> Callable[[Case], bool]:
        return lambda case: case["choice"] == name

    def has_g(number: int) -> Callable[[Case], bool]:
        return lambda case: any(int(block, 16) % 256 == number for block in case["clock_blocks"].values())

    unicode_names: Pairs = [(ASTRAL, 3), (WIDE, 3), ("e\u0301", 1), ("\u00e9", 1)]
    cases = [
        first_step(r_step, "one behavior", [("only", 1)], 16),
        first_step(r_step, "one positive weight", [("a", 0), ("b", 1), ("c", 0)], 16),
        first_step(r_step, "two behaviors, the likely one", [("a", 0.9), ("b", 0.1)], 8, wins("a")),
        first_step(r_step, "two behaviors, the unlikely one", [("a", 0.9), ("b", 0.1)], 8, wins("b")),
        first_step(r_step, "a weight of 2^-12", [("a", 4095), ("b", 1)], 8, wins("b")),
        first_step(r_step, "five behaviors", TICKET, 16, wins("Modify")),
        first_step(r_step, "twenty behaviors", falling(20), 32, wins("b19")),
        first_step(r_step, "zero weights", [("none", 0), ("a", 5), ("b", 5), ("never", 0), ("c", 2)], 8),
        first_step(r_step, "unicode names", unicode_names, 8, wins(ASTRAL)),
        first_step(r_step, "not normalised", unicode_names, 8, wins("e\u0301")),
        first_step(r_step, "symbol 0", TICKET, 16, lambda case: case["symbol"] == 0),
        first_step(r_step, "symbol 255", TICKET, 16, lambda case: case["symbol"] == 255),
    ]
    cases += [first_step(r_step, f"g = {number}", TICKET, 16, has_g(number)) for number in (0, 1, 2, 128, 255)]
    cases += [
        first_step(r_step, f"L = {length}", even(5), length) for length in (0, 1, 8, 16, 32, 63, 64, 88, 128, 600)
    ]
    for case in cases:
        symbols = r_symbols(bytes.fromhex(case["step_key"]), case["weights"], case["choice"])
        assert case["symbol"] in symbols
        case["symbols"] = f"{sum(1 << symbol for symbol in symbols):064x}"
    return cases


def r_vectors() -> Case:
    def reads(step_key: bytes, weights: Weights, choice: str) -> bool:
        return bool(r_symbols(step_key, weights, choice))

    ulp, gap = 2.0**-52, 2.0**-40
    races = [
        [1.0],
        [2.5e-10],
        [1.0, 2.0],
        [2.0, 1.0],
        [1.0, 1.0],
        [1.0, 1.0 + ulp],
        [1.0, 1.0 + gap - ulp],
        [1.0, 1.0 + gap],
        [1.0, 1.0 + gap + ulp],
        [1.0 + gap + ulp, 1.0],
        [3e-10, 3e-10 * (1 + 0.999 * gap)],
        [3e-10, 3e-10 * (1 + 1.001 * gap)],
        [5.0, 1.0, 5.0],
        [5.0, 1.0, 5.0, 1.0 + gap],
        [5.0, 1.0, 5.0, 1.0 + 2 * gap],
        [1e-26, 1e-26],
        [2.5e-26, 36.7],
    ]
    # 0x53 and 0xca are inverse to each other (FIPS 197, 4.2); the others reach every bit of both.
    factors = [(0, 0), (0, 255), (1, 255), (0x57, 0x83), (0x57, 0x13), (0x53, 0xCA), (255, 255), (2, 128), (128, 2)]
    factors += [(1 << power, 0xB5) for power in range(8)] + [(0xB5, 1 << power) for power in range(8)]
    return {
        "steps": r_cases(),
        "impossible": [
            impossible_case("weight zero", [("a", 1), ("b", 1), ("z", 0)], "z", reads),
            impossible_case("weight zero beside one behavior", [("only", 1), ("z", 0)], "z", reads),
            impossible_case("least weight", [("a", TOTAL - 1), ("b", 1)], "b", reads),
            impossible_case("small weight", [("a", 500), (ASTRAL, 499), ("b", 1)], "b", reads),
        ],
        "products": [{"left": left, "right": right, "product": field_product(left, right)} for left, right in factors],
        "near_ties": [{"clocks": [repr(time) for time in race], "winner": winner(race)} for race in races],
        "bulk_sha256": bulk_sha256(r_step),
    }


# Section 8: records, and their vectors


def line_of(record: Case) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def marked_record(
    scheme: str, session: str, step: int, pairs: Pairs, payload_bits: str, *, secret: bytes = SECRET
) -> Case:
    context, weights = context_digest({"session": session, "step": step}), quantise(pairs)
    payload, length = integer_of(payload_bits), len(payload_bits)
    choose = f_step if scheme == "F" else r_step
    return {
        "agentmark": 1,
        "scheme": scheme,
        "key_id": key_id(secret),
        "payload_len": length,
        "session": session,
        "step": step,
        "context": context.hex(),
        "weights": weights,
        "choice": choose(secret, context, weights, payload, length)["choice"],
        "marked": True,
    }


def short_names(count: int) -> list[str]:
    """Different names of two letters and digits (none is "z", none is "only")."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
    return [first + second for first, second in itertools.islice(itertools.product(letters, repeat=2), count)]


def record_vectors() -> Case:
    session, bits = fixed("record session").hex()[:32], "1011111011101111"
    base = marked_record("F", session, 3, TICKET, bits)
    half = {"a": TOTAL // 2, "b": TOTAL // 2}
    context = {"session": session, "step": 3}
    seen = context | {"seen": [WIDE, None, {"x": -1}]}
    meta = {"model": "m-1", "nested": [True, None, {"n": -(2**53 - 1)}]}
    unmarked = base | {"marked": False, "reason": "context used before"}
    part = base | {"partial": True}
    part_r = marked_record("R", session, 9, TICKET, bits) | {"partial": True}
    many = {name: 0 for name in short_names(4095)} | {"only": TOTAL}
    spaced = json.dumps(dict(reversed(base.items())), indent=None, separators=(" , ", " :\t"))
    valid = {
        "F": line_of(base),
        "R": line_of(marked_record("R", session, 4, TICKET, bits)),
        "members in another order, white space": spaced,
        "escapes": json.dumps(marked_record("F", "\u4f1a\u8a71" + ASTRAL, 0, [(ASTRAL, 1), (WIDE, 1)], "1")),
        "no escapes": line_of(marked_record("F", "\u4f1a\u8a71" + ASTRAL, 0, [(ASTRAL, 1), (WIDE, 1)], "1")),
        "optional members are null": line_of(base | {"enforced": None, "raw_context": None, "meta": None}),
        "reason is null on a marked step": line_of(base | {"reason": None}),
        "unmarked, with weights": line_of(unmarked),
        "unmarked, weights are null": line_of(unmarked | {"weights": None, "choice": "anything"}),
        "enforced": line_of(base | {"enforced": True}),
        "not enforced": line_of(base | {"enforced": False}),
        "raw context": line_of(base | {"raw_context": context}),
        "raw context with an observation": line_of(base | {"context": context_digest(seen).hex(), "raw_context": seen}),
        "meta": line_of(base | {"meta": meta}),
        "empty meta": line_of(base | {"meta": {}}),
        "payload_len 0": line_of(marked_record("F", session, 5, TICKET, "")),
        "payload_len 4096": line_of(marked_record("F", session, 6, TICKET, "01" * 2048)),
        "step 0": line_of(marked_record("R", session, 0, TICKET, "00000101")),
        "one behavior": line_of(marked_record("R", session, 7, [("only", 1)], "00000101")),
        "zero weights": line_of(marked_record("F", session, 8, [("a", 1), ("z", 0), ("b", 1)], "00000101")),
        "choice of weight zero": line_of(base | {"weights": {"a": TOTAL, "z": 0}, "choice": "z"}),
        "partial, weights are null": line_of(part | {"weights": None}),
        "partial, R, weights are null": line_of(part_r | {"weights": None}),
        "partial, only the choice": line_of(part_r | {"weights": {part_r["choice"]: 1}}),
        "partial, the choice is not in it": line_of(part_r | {"weights": half | {"b": 0}, "choice": "c"}),
        "partial, all weights": line_of(part_r),
        "partial, sum W, the choice is not in it": line_of(part_r | {"weights": half, "choice": "c"}),
        "partial, sum zero": line_of(part_r | {"weights": {"a": 0}, "choice": "c"}),
        "partial, unmarked": line_of(part | {"marked": False, "reason": "context used before", "weights": {"a": 1}}),
        "partial is false, all weights": line_of(base | {"partial": False}),
        "partial is null, all weights": line_of(base | {"partial": None}),
        "4096 behaviors": line_of(base | {"weights": many, "choice": "only"}),
        "meta of 64 levels": line_of(base | {"meta": {"x": nested(63, 1)}}),
        "raw context of 64 levels": line_of(base | {"raw_context": context | {"x": nested(63, 1)}}),
        "U+FEFF inside a name is text": line_of(base | {"weights": {"\ufeff": TOTAL}, "choice": "\ufeff"}),
    }
    changed: list[tuple[str, Case, str, str]] = [
        ("version 2", {"agentmark": 2}, "agentmark", "not version 1"),
        ("version as text", {"agentmark": "1"}, "agentmark", "not version 1"),
        ("version as boolean", {"agentmark": True}, "agentmark", "not version 1"),
        ("version with a fraction", {"agentmark": 1.0}, "agentmark", "a number with a fraction"),
        ("unknown scheme", {"scheme": "X"}, "scheme", "not F or R"),
        ("lower-case scheme", {"scheme": "f"}, "scheme", "not F or R"),
        ("key_id is a number", {"key_id": 7}, "key_id", "not text"),
        ("negative payload_len", {"payload_len": -1}, "payload_len", "not in 0..4096"),
        ("large payload_len", {"payload_len": 4097}, "payload_len", "not in 0..4096"),
        ("boolean payload_len", {"payload_len": True}, "payload_len", "not an integer"),
        ("payload_len with a fraction", {"payload_len": 16.0}, "payload_len", "a number with a fraction"),
        ("empty session", {"session": ""}, "session", "empty"),
        ("session is a number", {"session": 1}, "session", "not text"),
        ("negative step", {"step": -1}, "step", "negative"),
        ("boolean step", {"step": False}, "step", "not an integer"),
        ("step with a fraction", {"step": 3.0}, "step", "a number with a fraction"),
        ("step as text", {"step": "3"}, "step", "not an integer"),
        ("short digest", {"context": base["context"][:-2]}, "context", "not 64 digits"),
        ("long digest", {"context": base["context"] + "00"}, "context", "not 64 digits"),
        ("upper-case digest", {"context": "AB" * 32}, "context", "not lower-case hexadecimal"),
        ("digest is not hexadecimal", {"context": "g" * 64}, "context", "not lower-case hexadecimal"),
        ("weights sum below W", {"weights": half | {"a": 1}, "choice": "a"}, "weights", "sum is not W"),
        ("weights sum above W", {"weights": half | {"c": 1}, "choice": "a"}, "weights", "sum is not W"),
        ("no weights", {"weights": {}}, "weights", "sum is not W"),
        ("weights are a list", {"weights": [["a", TOTAL]], "choice": "a"}, "weights", "not an object"),
        ("float weight", {"weights": half | {"a": 2.0**31}, "choice": "a"}, "weights", "a number with a fraction"),
        ("text weight", {"weights": half | {"c": "0"}, "choice": "a"}, "weights", "not an integer"),
        ("boolean weight", {"weights": half | {"c": False}, "choice": "a"}, "weights", "not an integer"),
        ("null weight", {"weights": half | {"c": None}, "choice": "a"}, "weights", "not an integer"),
        ("negative weight", {"weights": {"a": TOTAL + 1, "b": -1}, "choice": "a"}, "weights", "negative"),
        ("empty name of a behavior", {"weights": half | {"": 0}, "choice": "a"}, "weights", "empty name"),
        ("choice is not among the weights", {"choice": "Fly"}, "choice", "not among the weights"),
        ("unmarked, choice not among weights", unmarked | {"choice": "Fly"}, "choice", "not among the weights"),
        ("choice is a number", {"choice": 1}, "choice", "not text"),
        ("marked without weights", {"weights": None}, "weights", "null on a marked step"),
        ("marked is text", {"marked": "true"}, "marked", "not true or false"),
        ("marked is a number", {"marked": 1}, "marked", "not true or false"),
        ("unmarked without reason", {"marked": False}, "reason", "required when unmarked"),
        ("unmarked, reason is null", {"marked": False, "reason": None}, "reason", "required when unmarked"),
        ("reason is a number", unmarked | {"reason": 1}, "reason", "not text"),
        ("enforced is text", {"enforced": "no"}, "enforced", "not true or false"),
        ("enforced is a number", {"enforced": 0}, "enforced", "not true or false"),
        ("raw_context is text", {"raw_context": "{}"}, "raw_context", "not an object"),
        (
            "raw_context with a fraction",
            {"raw_context": context | {"x": 0.5}},
            "raw_context",
            "a number with a fraction",
        ),
        ("meta is a list", {"meta": []}, "meta", "not an object"),
        ("meta with a float", {"meta": {"temperature": 0.7}}, "meta", "a number with a fraction"),
        ("meta with a deep float", {"meta": {"x": [{"y": 1.0}]}}, "meta", "a number with a fraction"),
        ("meta with a large integer", {"meta": {"x": 2**53}}, "meta", "a larger integer"),
        ("unknown member", {"payload": "beef"}, "payload", "unknown member"),
        ("unknown member, null", {"note": None}, "note", "unknown member"),
        ("partial is text", {"partial": "true"}, "partial", "not true or false"),
        ("partial is a number", {"partial": 1}, "partial", "not true or false"),
        ("partial, sum above W", part | {"weights": half | {"c": 1}}, "weights", "sum above W"),
        ("partial, no weights", part | {"weights": {}}, "weights", "no members; null says none"),
        ("partial, negative weight", part | {"weights": half | {"c": -1}}, "weights", "negative"),
        ("partial, null weight", part | {"weights": {"a": None}}, "weights", "not an integer"),
        ("partial, empty name", part | {"weights": {"": 1}}, "weights", "empty name"),
        ("partial, empty choice", part | {"weights": None, "choice": ""}, "choice", "empty"),
        ("partial is false, sum below W", {"partial": False, "weights": {"a": 1}, "choice": "a"}, "weights", "not W"),
        (
            "partial is false, choice not among weights",
            {"partial": False, "choice": "Fly"},
            "choice",
            "not among the weights",
        ),
        ("partial is false, weights are null", {"partial": False, "weights": None}, "weights", "null and marked"),
        ("partial is null, weights are null", {"partial": None, "weights": None}, "weights", "null and marked"),
        ("4097 behaviors", {"weights": many | {"z": 0}, "choice": "only"}, "weights", "more than 4096 members"),
        ("meta of 65 levels", {"meta": {"x": nested(64, 1)}}, "meta", "nested too deep"),
        ("meta of 65 levels, the last empty", {"meta": {"x": nested(63, [])}}, "meta", "nested too deep"),
        ("raw_context of 65 levels", {"raw_context": context | {"x": nested(64, 1)}}, "raw_context", "nested too deep"),
    ]
    line = line_of(base)
    texts = [
        ("meta with an exponent", line[:-1] + ',"meta":{"x":1e3}}', "meta", "a number with an exponent"),
        ("step with an exponent", line.replace('"step":3', '"step":3e0'), "step", "a number with an exponent"),
        ("lone surrogate in session", line_of(base | {"session": "?"}).replace("?", "\\ud800"), "session", "not text"),
        ("lone surrogate in meta", line[:-1] + ',"meta":{"x":"\\udc00"}}', "meta", "not text"),
        ("duplicated name", line[:-1] + ',"step":4}', "step", "a name appears twice"),
        ("duplicated name, same value", line[:-1] + ',"marked":true}', "marked", "a name appears twice"),
        ("duplicated name by escape", line[:-1] + ',"\\u0073tep":3}', "step", "a name appears twice"),
        ("duplicated name in meta", line[:-1] + ',"meta":{"x":1,"x":1}}', "x", "a name appears twice"),
        ("duplicated name in weights", line.replace('"Pay":', '"Book":0,"Pay":'), "Book", "a name appears twice"),
        ("cut off", line[:-20], "line", "not JSON"),
        ("two values", line + line, "line", "not JSON"),
        ("not a JSON number", line[:-1] + ',"meta":{"x":NaN}}', "line", "not JSON"),
        ("plain text", "Search", "line", "not JSON"),
        ("a list", "[" + line + "]", "record", "not an object"),
        ("text", '"record"', "record", "not an object"),
        ("null", "null", "record", "not an object"),
        ("byte order mark", "\ufeff" + line, "line", "a byte order mark"),
        ("byte order mark after white space", " \ufeff" + line, "line", "a byte order mark"),
        ("byte order mark at the end", line + "\ufeff", "line", "not JSON"),
        ("meta with 5000 digits", line[:-1] + ',"meta":{"x":' + "7" * 5000 + "}}", "meta", "a larger integer"),
    ]
    for member in base:
        rest = {name: value for name, value in base.items() if name != member}
        texts.append((f"without {member}", line_of(rest), member, "missing member"))
    invalid = [(name, line_of(base | change), field, reason) for name, change, field, reason in changed] + texts
    return {
        "valid": [named("name line", name, line) for name, line in valid.items()],
        "invalid": [named("name line field reason", *case) for case in invalid],
    }


PAYLOAD_BITS = {0: "", 8: "01011010", 10: "1011000111", 16: "1010011011100011"}
LISTS: list[Pairs] = [TICKET, even(8), falling(6), [("yes", 0.7), ("no", 0.3)], [(ASTRAL, 1), (WIDE, 1), ("a", 2)]]


def log(
    label: str, schemes: str, length: int, steps: int, secret: bytes = SECRET, *, lists: list[Pairs] | None = None
) -> list[Case]:
    session = fixed(f"log session {label}").hex()[:32]
    choices = lists or ([even(16)] if "R" in schemes else LISTS)
    places = [(i, schemes[i % len(schemes)], choices[i % len(choices)]) for i in range(steps)]
    return [marked_record(s, session, i, pairs, PAYLOAD_BITS[length], secret=secret) for i, s, pairs in places]


def shuffled(records: list[Case]) -> list[Case]:
    return sorted(records, key=lambda record: fixed(line_of(record)))


def moved(record: Case, *, readable: bool = True) -> Case:
    """A record of F with another choice."""
    step_key = step_key_of(SECRET, record["payload_len"], bytes.fromhex(record["context"]))
    for name in canonical_order(record["weights"]):
        equations = f_equations(step_key, record["weights"], name, record["payload_len"])
        if name != record["choice"] and (equations is not None) == readable:
            return record | {"choice": name}
    return record


def log_vectors() -> Case:
    clean_f, clean_r = log("clean F", "F", 16, 40), log("clean R", "R", 10, 14)
    mixed, zero = log("mixed", "FR", 8, 16), log("L = 0", "F", 0, 30)
    own_id = {"key_id": key_id(SECRET)}
    foreign = log("foreign", "F", 16, 25, OTHER_SECRET)
    unmarked = {"marked": False, "reason": "context used before"}
    again = [record | {"meta": {"copy": 1}, "session": "another"} for record in clean_f[::4]]
    conflicts = [moved(clean_f[2]), moved(clean_f[11]), clean_f[12] | {"scheme": "R"}]
    set_aside = [moved(clean_f[0]) | unmarked, clean_f[1] | {"enforced": False}]
    bodies = [
        ("clean F", 16, clean_f),
        ("clean R", 10, clean_r),
        ("mixed F and R", 8, mixed),
        ("40% dropped, shuffled: F", 16, shuffled(clean_f)[: len(clean_f) * 6 // 10]),
        ("40% dropped, shuffled: mixed", 8, shuffled(mixed)[: math.ceil(len(mixed) * 0.6)]),
        ("duplicates count once", 16, shuffled(clean_f[:14] + clean_f[:14] + again[:4])),
        ("duplicates, enough without them", 16, clean_f + again),
        ("conflicting copies erase their steps", 16, shuffled(clean_f + conflicts)),
        ("records of another key are set aside", 16, shuffled(clean_f + foreign)),
        ("records of another payload_len are set aside", 16, shuffled(clean_f + zero + mixed)),
        ("unmarked and unenforced records are set aside", 16, clean_f + set_aside),
        ("two lengths as common: the larger", 16, shuffled(clean_f[:30] + zero)),
        ("impossible steps are erasures", 16, [moved(record, readable=False) for record in clean_f]),
        ("one altered step contradicts the others", 16, [moved(clean_f[0]), *clean_f[1:]]),
        ("too few steps: not found", 16, clean_f[:6]),
        ("too few steps: found, weak", 16, clean_f[:14]),
        ("too few steps: R", 10, clean_r[:5]),
        ("wrong key: all set aside", 16, foreign),
        ("wrong key under our key id", 16, [record | own_id for record in foreign]),
        ("L = 0", 0, zero),
        ("L = 0, too few steps", 0, zero[:5]),
        ("L = 0, wrong key under our key id", 0, [r | own_id for r in log("zero", "F", 0, 30, OTHER_SECRET)]),
        ("empty", 16, []),
        ("empty, L = 0", 0, []),
        ("L = 0, every record of another key", 0, log("zero", "F", 0, 30, OTHER_SECRET)),
    ]
    logs = []
    for name, length, records in bodies:
        inputs = named("name secret payload_len lines", name, SECRET.hex(), length, list(map(line_of, records)))
        logs.append(inputs | verify(records, SECRET, length))
    return {"logs": logs, "lengths": length_vectors()}


def length_vectors() -> list[Case]:
    """Section 9, step 2: logs of several lengths, and L where none is given."""
    eight, sixteen = log("length 8", "F", 8, 6), log("length 16", "F", 16, 6)
    parts = [part(record, record["choice"]) for record in log("length parts", "F", 16, 8)]
    r_parts = [part(record) for record in log("length R parts", "R", 16, 7, lists=[TICKET])]
    unmarked = [r | {"marked": False, "reason": "context used before"} for r in log("length unmarked", "F", 16, 20)]
    foreign = log("length foreign", "F", 16, 9, OTHER_SECRET)
    both = [SECRET, OTHER_SECRET]
    cases: list[tuple[str, list[bytes], list[Case]]] = [
        ("one length", [SECRET], eight),
        ("most steps", [SECRET], eight + sixteen[:5]),
        ("as many: the longer", [SECRET], sixteen + eight),
        ("as many: the longer, in another order", [SECRET], eight + sixteen),
        ("copies count once", [SECRET], eight[:4] + sixteen[:3] * 9),
        ("unmarked steps do not decide", [SECRET], eight[:2] + unmarked),
        ("all steps decide among equals", [SECRET], eight[:4] + sixteen[:4] + [unmarked[0] | {"payload_len": 8}]),
        ("unmarked steps alone", [SECRET], unmarked),
        ("parts of F are not readable", [SECRET], eight[:3] + parts),
        ("parts of R are", [SECRET], eight + r_parts),
        ("steps that were not enforced count", [SECRET], eight[:3] + [r | {"enforced": False} for r in sixteen[:4]]),
        ("conflicting copies count as one step", [SECRET], eight[:2] + [sixteen[0], moved(sixteen[0])] * 4),
        ("one context under two lengths counts for both", [SECRET], [eight[0], eight[0] | {"payload_len": 16}]),
        ("records of another key do not count", [SECRET], eight[:3] + foreign),
        ("with both keys they do", both, eight[:3] + foreign),
        ("none of our key", [SECRET], foreign),
        ("empty", [SECRET], []),
    ]
    return [
        {
            "name": name,
            "secrets": [secret.hex() for secret in secrets],
            "lines": list(map(line_of, records)),
            "payload_len": stated_length(records, [key_id(secret) for secret in secrets]),
        }
        for name, secrets, records in cases
    ]


# Section 9.2: claims and parts of lists


def part(record: Case, *names: str) -> Case:
    """The record with only these weights."""
    kept = {name: weight for name, weight in record["weights"].items() if name in names}
    return record | {"weights": kept or None, "partial": True}


def claim_vectors() -> list[Case]:
    def ours(records: list[Case]) -> list[Case]:
        return [record | {"key_id": key_id(SECRET)} for record in records]

    short_lists: list[Pairs] = [TICKET, even(8), [(ASTRAL, 5), (WIDE, 3), ("a", 2)]]
    clean_f, clean_r = log("claim F", "F", 16, 20), log("claim R", "R", 10, 6, lists=short_lists)
    mixed, zero = log("claim mixed", "FR", 8, 8, lists=short_lists), log("claim L = 0", "F", 0, 12)
    zero_r = log("claim L = 0, R", "R", 0, 4, lists=short_lists)
    other_f, other_r = log("claim other F", "F", 16, 12, OTHER_SECRET), log("claim other R", "R", 10, 4, OTHER_SECRET)
    foreign_f, foreign_r = shuffled(clean_f + ours(other_f[:6])), shuffled(clean_r + ours(other_r[:2]))
    impossible_r = clean_r[0] | {"weights": {"a": TOTAL - 1, "b": 1}, "choice": "b"}
    impossible_f = [moved(record, readable=False) for record in log("claim moved", "F", 16, 20, lists=[TICKET])]
    again = [record | {"meta": {"copy": 1}, "session": "another"} for record in clean_f[::5]]
    conflicts = [
        moved(clean_f[1]),
        clean_f[6] | {"scheme": "R"},
        clean_f[8] | {"weights": {clean_f[8]["choice"]: TOTAL}},
    ]
    set_aside = [
        moved(clean_f[0]) | {"marked": False, "reason": "context used before"},
        clean_f[3] | {"enforced": False},
        moved(clean_f[4]) | {"marked": False, "reason": "context used before", "enforced": False},
    ]
    parts = [part(r, *list(r["weights"])[:2], *([r["choice"]] if i % 2 else [])) for i, r in enumerate(clean_r)]
    strange_parts = [
        parts[0] | {"weights": {name: weight - 1 for name, weight in parts[0]["weights"].items()}},
        part(clean_r[1]) | {"weights": {"no such name": 1}},
    ]
    right = {length: integer_of(bits) for length, bits in PAYLOAD_BITS.items()}
    wrong = right[16] ^ 1
    claims: list[tuple[str, int, list[Case], int, str | None]] = [
        ("F", 16, clean_f, right[16], None),
        ("F, noise 0", 16, clean_f, right[16], "0"),
        ("F, noise 0.1", 16, clean_f, right[16], "0.1"),
        ("F, noise 0.5", 16, clean_f, right[16], "0.5"),
        ("R", 10, clean_r, right[10], None),
        ("F and R", 8, mixed, right[8], None),
        ("foreign steps: F", 16, foreign_f, right[16], None),
        ("foreign steps: F, noise 0", 16, foreign_f, right[16], "0"),
        ("foreign steps: F, noise 0.1", 16, foreign_f, right[16], "0.1"),
        ("foreign steps: F, noise 0.5", 16, foreign_f, right[16], "0.5"),
        ("foreign steps: R", 10, foreign_r, right[10], None),
        ("impossible steps are left out: F", 16, impossible_f, right[16], "0"),
        ("impossible steps are left out: R", 10, [impossible_r, *clean_r[1:]], right[10], "0"),
        ("wrong claim", 16, clean_f, wrong, None),
        ("wrong claim, noise 0", 16, clean_f, wrong, "0"),
        ("wrong claim: R", 10, clean_r, right[10] ^ 2**9, None),
        ("wrong key: all set aside", 16, other_f, right[16], None),
        ("wrong key under our key id: F", 16, ours(other_f), right[16], None),
        ("wrong key under our key id: R", 10, ours(other_r), right[10], "0.5"),
        ("duplicates count once, conflicting copies erase", 16, shuffled(clean_f + again + conflicts), right[16], None),
        ("unmarked and unenforced records", 16, clean_f + set_aside, right[16], None),
        ("parts of lists", 10, parts, right[10], None),
        ("parts of lists among whole ones", 10, clean_r[:3] + parts[3:], right[10], "0.1"),
        ("parts of lists: wrong claim", 10, parts, right[10] ^ 5, None),
        ("a part beside the whole is a copy", 10, shuffled(clean_r + parts[:2]), right[10], None),
        ("a part that is not of the whole erases", 10, shuffled(clean_r + strange_parts), right[10], None),
        ("two parts that differ erase", 10, [*clean_r[1:], parts[0], part(clean_r[0])], right[10], None),
        (
            "steps of F cannot be read from a part",
            16,
            [part(r, "b0") for r in clean_f[:5]] + clean_f[5:],
            right[16],
            "0",
        ),
        ("L = 0: F", 0, zero, 0, None),
        ("L = 0: F and R, with foreign steps", 0, zero + zero_r + ours(log("x", "F", 0, 4, OTHER_SECRET)), 0, None),
        ("empty", 16, [], right[16], None),
    ]
    names = "name secret payload_len lines payload noise evidence_millibits"
    cases = []
    for name, length, records, payload, noise in claims:
        claim = [name, SECRET.hex(), length, list(map(line_of, records)), hex_integer(payload, length), noise]
        cases.append(named(names, *claim, evidence_millibits(records, SECRET, payload, length, noise)))
    return cases


def part_vectors() -> list[Case]:
    """Readings of parts. Lists are given by their weights, in parts of W."""
    ticket, high = quantise(TICKET), TOTAL // 100
    wide = {ASTRAL: 30 * high, WIDE: 20 * high, "e\u0301": 10 * high, "\u00e9": 5 * high}
    cases: list[tuple[str, int, Weights | None, str]] = [
        ("all weights", 8, ticket, "Book"),
        ("only the choice", 8, {"Pay": ticket["Pay"]}, "Pay"),
        ("only the choice, most of the mass", 16, {"Search": 90 * high}, "Search"),
        ("only the choice, small", 16, {"rare": TOTAL // 50}, "rare"),
        ("only the choice, tiny: every exponential underflows", 16, {"rare": 2048}, "rare"),
        ("none", 8, None, "Book"),
        ("none, L = 0", 0, None, ASTRAL),
        ("the first three, with the choice", 10, {name: ticket[name] for name in ("Search", "Book", "Pay")}, "Book"),
        ("the first three, without the choice", 10, {n: ticket[n] for n in ("Search", "Book", "Pay")}, "Modify"),
        ("only a rival", 8, {"Search": ticket["Search"]}, "Check-in"),
        ("a rival of weight zero", 8, {"Search": ticket["Search"], "Zero": 0, "Book": ticket["Book"]}, "Search"),
        ("only a rival of weight zero", 8, {"Zero": 0}, "Search"),
        ("choice of weight zero", 8, {"Search": ticket["Search"], "Zero": 0}, "Zero"),
        ("names beyond ASCII, with the choice", 128, wide, "\u00e9"),
        ("names beyond ASCII, without the choice", 8, wide, "\u4f1a"),
        ("nearly all the mass, with the choice", 8, {"a": 60 * high, "b": TOTAL - 60 * high - 1}, "b"),
        ("nearly all the mass, without the choice: only r fits", 8, {"a": 60 * high, "b": 39 * high}, "c"),
        ("one guess fits", 8, {"a": 60 * high, "b": 37 * high}, "c"),
        ("all the mass, without the choice", 8, {"a": TOTAL // 2, "b": TOTAL // 2}, "c"),
    ]
    names = "name secret context payload_len weights choice rows pad e_values"
    vectors = []
    for name, length, weights, choice in cases:
        context = fixed(f"part {name}")
        step_key = step_key_of(SECRET, length, context)
        row_list = [hex_integer(row, length) for row in rows(step_key, "R", length, 8)]
        e_values = [repr(value) for value in part_e_values(step_key, weights or {}, choice)]
        step = [name, SECRET.hex(), context.hex(), length, weights, choice, row_list, pad(step_key, "R", 8)]
        vectors.append(named(names, *step, e_values))
    return vectors


def ownership_vectors() -> list[Case]:
    short_lists: list[Pairs] = [TICKET, even(8), [(ASTRAL, 5), (WIDE, 3), ("a", 2)]]
    clean_f, clean_r = log("own F", "F", 16, 20), log("own R", "R", 10, 6, lists=short_lists)
    mixed = log("own mixed", "FR", 8, 8, lists=short_lists)
    zero = log("own L = 0", "F", 0, 12)
    other = [r | {"key_id": key_id(SECRET)} for r in log("own other", "F", 16, 8, OTHER_SECRET)]
    parts = [part(record, record["choice"]) for record in clean_r]
    all_there = [record | {"partial": True} for record in clean_r[:2]]
    impossible = [moved(r, readable=False) for r in log("own moved", "F", 16, 12, lists=[TICKET])]
    never = clean_r[0] | {"weights": clean_r[0]["weights"] | {"z": 0}, "choice": "z"}
    certain = log("own certain", "F", 16, 3, lists=[[("only", 1)]])
    right = {length: integer_of(bits) for length, bits in PAYLOAD_BITS.items()}
    cases: list[tuple[str, int, list[Case], int, str | None]] = [
        ("F", 16, clean_f, right[16], None),
        ("F, noise 0", 16, clean_f, right[16], "0"),
        ("R", 10, clean_r, right[10], None),
        ("R, noise 0.1", 10, clean_r, right[10], "0.1"),
        ("F and R", 8, mixed, right[8], None),
        ("wrong claim", 16, clean_f, right[16] ^ 1, None),
        ("wrong claim, noise 0", 16, clean_f, right[16] ^ 1, "0"),
        ("steps that carry nothing add nothing", 16, clean_f[:5] + certain, right[16], None),
        ("impossible steps disagree", 16, clean_f[:10] + impossible, right[16], None),
        ("impossible steps disagree, noise 0", 16, clean_f[:10] + impossible, right[16], "0"),
        ("a choice of weight zero disagrees", 10, [never, *clean_r[1:]], right[10], None),
        ("foreign steps under our key id", 16, clean_f[:10] + other, right[16], None),
        ("parts alone: nothing", 10, parts, right[10], None),
        ("parts are left out", 10, clean_r[:3] + parts[3:], right[10], None),
        ("a part that holds the whole list is left out", 10, all_there + clean_r[2:], right[10], None),
        ("a part that no symbol allows is left out, noise 0", 10, [*clean_r[1:], part(never, "z")], right[10], "0"),
        ("parts of F are left out", 16, clean_f[:6] + [part(r, "b0") for r in clean_f[6:]], right[16], None),
        ("a part beside the whole: the whole counts", 10, clean_r + parts, right[10], None),
        ("copies count once", 16, clean_f + clean_f[:5], right[16], None),
        ("L = 0", 0, zero, 0, None),
        ("no step is left", 16, [], right[16], None),
    ]
    names = "name secret payload_len lines payload noise ownership_millibits"
    return [
        named(
            names,
            name,
            SECRET.hex(),
            length,
            list(map(line_of, records)),
            hex_integer(payload, length),
            noise,
            ownership_millibits(records, SECRET, payload, length, noise),
        )
        for name, length, records, payload, noise in cases
    ]


def price_vectors() -> list[Case]:
    """Registries as lists of payloads and whether they are revoked."""
    names = [(3, False), (42, True), (65535, False)]
    cases: list[tuple[str, int, list[tuple[int, bool]] | None, int, bool, int]] = [
        ("without registry", 16, None, 42, False, 1),
        ("without registry, L = 0", 0, None, 0, False, 1),
        ("without registry, L = 4096", 4096, None, 1, False, 1),
        ("a registry without entries", 16, [], 42, False, 1),
        ("registered", 16, names, 3, False, 1),
        ("registered and revoked", 16, names, 42, False, 1),
        ("not registered", 16, names, 4, False, 1),
        ("registered, the only one", 16, names[:1], 3, False, 1),
        ("every payload is registered", 2, [(payload, payload > 1) for payload in range(4)], 2, False, 1),
        ("registered, L = 0", 0, [(0, False)], 0, False, 1),
        ("registered, L = 1", 1, [(1, False)], 1, False, 1),
        ("not registered, L = 1", 1, [(1, False)], 0, False, 1),
        ("registered, L = 4096", 4096, names, 42, False, 1),
        ("not registered, L = 4096", 4096, names, 43, False, 1),
        ("fifty entries", 32, [(7 * i, i % 3 == 0) for i in range(50)], 70, False, 1),
        ("a claim", 16, None, 42, True, 1),
        ("a claim, with a registry", 16, names, 42, True, 1),
        ("one of 1000 questions", 16, None, 42, False, 1000),
        ("registered, one of 3 questions", 16, names, 3, False, 3),
        ("a claim, one of 8 questions", 16, names, 3, True, 8),
    ]
    vectors = []
    for name, length, registry, payload, claimed, tries in cases:
        entries = None if registry is None else [payload for payload, _ in registry]
        bits = price(length, entries, payload, claimed=claimed, tries=tries)
        listed = None if registry is None else [[hex_integer(m, length), revoked] for m, revoked in registry]
        members = "name payload_len registry payload claim tries price_millibits"
        case = [name, length, listed, hex_integer(payload, length), claimed, tries, round(1000 * bits)]
        vectors.append(named(members, *case))
    return vectors


def tie_vectors() -> list[Case]:
    """Two registered payloads that a log supports alike: the smaller is the candidate."""
    records = log("tie", "F", 16, 1, lists=[even(4)])
    right = integer_of(PAYLOAD_BITS[16])
    evidence = evidence_millibits(records, SECRET, right, 16, None)
    alike = [m for m in range(2**16) if m != right and step_e_value(records[0], SECRET, m, 16)]
    pairs = [(right, alike[0]), (alike[0], right), (right, alike[-1]), (alike[-1], alike[7])]
    lines = list(map(line_of, records))
    return [
        {
            "name": f"tie {number}",
            "secret": SECRET.hex(),
            "payload_len": 16,
            "lines": lines,
            "registry": [hex_integer(payload, 16) for payload in pair],
            "candidate": hex_integer(min(pair), 16),
            "evidence_millibits": evidence,
        }
        for number, pair in enumerate(pairs, start=1)
    ]


def several_vectors() -> list[Case]:
    """Logs that several identities share, and everyone whom they name."""
    bits = {8: ["01011010", "11000011", "00111001"], 16: ["1010011011100011", "0001110010101111", "1111000000001101"]}

    def carried(label: str, scheme: str, length: int, number: int, steps: int) -> list[Case]:
        session = fixed(f"several session {label} {number}").hex()[:32]
        lists = [even(8), TICKET] if scheme == "F" else [even(8)]
        return [
            marked_record(scheme, session, step, lists[step % len(lists)], bits[length][number])
            for step in range(steps)
        ]

    def foreign(label: str, scheme: str, length: int, steps: int) -> list[Case]:
        session = fixed(f"several foreign {label}").hex()[:32]
        made = [marked_record(scheme, session, i, even(8), bits[length][0], secret=OTHER_SECRET) for i in range(steps)]
        return [record | {"key_id": key_id(SECRET)} for record in made]

    names = [integer_of(text) for text in bits[16]]
    registry = [*names, 3, 42]
    two = carried("two", "F", 8, 0, 50) + carried("two", "F", 8, 1, 44)
    three = [record for number in range(3) for record in carried("three", "F", 16, number, 36)]
    cases: list[tuple[str, int, list[Case], list[int] | None, str, str | None]] = [
        ("one identity, all steps its own", 8, carried("one", "F", 8, 0, 30), None, "1e-06", None),
        ("two identities, any payload", 8, shuffled(two), None, "1e-06", None),
        ("two identities, at a stricter threshold", 8, shuffled(two), None, "1e-09", None),
        ("two identities, at a threshold that nobody reaches", 8, shuffled(two), None, "1e-60", None),
        ("two identities, one noise rate", 8, shuffled(two), None, "1e-06", "0.5"),
        ("three identities, a registry of five", 16, shuffled(three), registry, "1e-06", None),
        ("three identities, a registry of the first two", 16, shuffled(three), names[:2], "1e-06", None),
        (
            "two identities and steps of others",
            16,
            shuffled(three[:72] + foreign("two", "F", 16, 24)),
            registry,
            "1e-06",
            None,
        ),
        (
            "two identities, R",
            16,
            shuffled(carried("R", "R", 16, 0, 20) + carried("R", "R", 16, 2, 26)),
            registry,
            "1e-06",
            None,
        ),
        (
            "one identity and steps of others, R",
            16,
            carried("R", "R", 16, 0, 20) + foreign("R", "R", 16, 6),
            registry,
            "1e-06",
            None,
        ),
    ]
    vectors = []
    for name, length, records, listed, threshold, noise in cases:
        entries = None if listed is None else [hex_integer(payload, length) for payload in listed]
        members = "name secret payload_len lines registry threshold noise found"
        found = found_identities(records, length, listed, threshold, noise)
        lines = list(map(line_of, records))
        vectors.append(named(members, name, SECRET.hex(), length, lines, entries, threshold, noise, found))
    return vectors


def evidence_vectors() -> Case:
    return {
        "claims": claim_vectors(),
        "partial": part_vectors(),
        "ownership": ownership_vectors(),
        "prices": price_vectors(),
        "ties": tie_vectors(),
        "several": several_vectors(),
    }


# Section 8a: links and checkpoints


def linked(records: list[Case]) -> list[Case]:
    """The records with their links, each session by itself."""
    last: dict[str, str] = {}
    chained = []
    for record in records:
        start = chain_digest("chain start", record["session"].encode())
        chained.append(record | {"prev": last.get(record["session"], start)})
        last[record["session"]] = chain_digest("chain", canonical_record(chained[-1]).encode())
    return chained


def checkpoint(sessions: dict[str, tuple[int, str]], total: int, previous: str | None, number: int) -> Case:
    """A checkpoint with a signature that nobody made: its digest is over whatever stands there."""
    return {
        "agentmark_checkpoint": 1,
        "sessions": {session: {"count": count, "head": head} for session, (count, head) in sessions.items()},
        "total": total,
        "previous": previous,
        "time": f"2026-01-31T09:30:{number:02}+00:00",
        "public_key": fixed("public key").hex(),
        "signature": fixed(f"signature {number}").hex() + fixed(f"signature {number}, the rest").hex(),
    }


def some_chain() -> tuple[list[Case], list[Case]]:
    """Records of three sessions, and two checkpoints."""
    first, second = log("chain F", "F", 16, 3), log("chain R", "R", 10, 2, lists=[TICKET])
    odd = marked_record("F", "\u4f1a\u8a71" + ASTRAL, 7, [(ASTRAL, 1), (WIDE, 1)], "1")
    strange = [
        first[0] | {"meta": {"z": [1, None, True], "a": {"\uffff": 1, ASTRAL: 2}}, "enforced": True},
        second[0] | {"partial": True, "weights": {"Search": TOTAL // 4, "Book": 1}},
        odd | {"raw_context": {"session": odd["session"], "step": 7}},
        first[1] | {"marked": False, "reason": "because\n\x1f"},
        second[1] | {"partial": True, "weights": None},
        first[2] | {"marked": False, "reason": "no list", "weights": None},
    ]
    records = linked(strange)
    heads: dict[str, tuple[int, str]] = {}
    checkpoints: list[Case] = []
    for number, record in enumerate(records, start=1):
        digest = chain_digest("chain", canonical_record(record).encode())
        heads[record["session"]] = (heads.get(record["session"], (0, ""))[0] + 1, digest)
        if number in (4, 6):
            previous = chain_digest("checkpoint digest", canonical(checkpoints[-1]).encode()) if checkpoints else None
            grown = heads if not checkpoints else {r["session"]: heads[r["session"]] for r in records[4:]}
            checkpoints.append(checkpoint(dict(grown), number, previous, number))
    return records, checkpoints


def chain_vectors() -> Case:
    sessions = ["s", "00112233445566778899aabbccddeeff", "\u4f1a\u8a71", ASTRAL, "e\u0301", "\u00e9", "a\x00b"]
    records, checkpoints = some_chain()
    spelled = [
        ("in another order, with white space and escapes", json.dumps(dict(reversed(records[2].items())))),
        ("null members are left out", line_of(records[0] | {"reason": None, "partial": None, "raw_context": None})),
        ("partial: false is left out", line_of(records[0] | {"partial": False})),
        ("-0 is 0", line_of(records[0]).replace('"step":0', '"step":-0')),
    ]
    sources = [records[2], records[0], records[0], records[0]]
    digests = [chain_digest("chain", canonical_record(record).encode()) for record in records]
    links = [named("name line digest", f"record {i}", line_of(r), digests[i]) for i, r in enumerate(records)]
    links += [
        named("name line digest", name, line, digests[records.index(source)])
        for (name, line), source in zip(spelled, sources, strict=True)
    ]
    return {
        "starts": [{"session": s, "prev": chain_digest("chain start", s.encode())} for s in sessions],
        "links": links,
        "checkpoints": [
            named(
                "name line digest",
                f"checkpoint {number}",
                line_of(stated),
                chain_digest("checkpoint digest", canonical(stated).encode()),
            )
            for number, stated in enumerate(checkpoints, start=1)
        ],
    }


# Section 8.2: lines


def stored_gzip(data: bytes) -> bytes:
    """RFC 1952 and 1951, stored blocks: the same bytes whatever the compressor."""
    blocks = [data[i : i + 65535] for i in range(0, len(data), 65535)] or [b""]
    body = b""
    for number, block in enumerate(blocks, start=1):
        size = len(block).to_bytes(2, "little")
        body += bytes([number == len(blocks)]) + size + bytes(255 - byte for byte in size) + block
    tail = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return bytes.fromhex("1f8b0800000000000003") + body + tail


def line_cases() -> list[tuple[str, bytes, bool]]:
    """Names, lines without their line feed, and whether they have one."""
    record = marked_record("F", "\u4f1a\u8a71", 3, TICKET, "1011111011101111")
    line = line_of(record).encode()
    chained = some_chain()[1][0]
    stated = line_of(chained).encode()
    after_weights = line.index(b'"choice"')

    def meta(value: str) -> bytes:
        return line[:-1] + f',"meta":{{"x":{value}}}}}'.encode()

    def changed(old: str, new: str) -> bytes:
        assert old.encode() in line
        return line.replace(old.encode(), new.encode())

    ended = [
        ("a record", line),
        ("white space around it", b" \t\x0b\x0c" + line + b" \t\x0b\x0c\r"),
        ("white space of JSON in it", line.replace(b",", b" ,\t").replace(b":", b":\r ")),
        ("other white space in it", line.replace(b",", b",\x0c", 1)),
        ("no-break space around it", b"\xc2\xa0" + line),
        ("a byte order mark", b"\xef\xbb\xbf" + line),
        ("a byte order mark behind white space", b" \xef\xbb\xbf" + line),
        ("UTF-16", line.decode().encode("utf-16-le").replace(b"\n", b"")),
        ("not UTF-8", line.replace(b'"step"', b'"st\xff"')),
        ("an overlong character", changed('"F"', '"F').replace(b'"F', b'"F\xc0\xaf"')),
        ("a surrogate in UTF-8", line[:-1] + b',"meta":{"x":"\xed\xa0\x80"}}'),
        ("an escaped pair of surrogates", meta('"\\ud83d\\ude00"')),
        ("an escaped lone surrogate", meta('"\\ud83d"')),
        ("two escaped lone surrogates", meta('"\\ude00\\ud83d"')),
        ("a lone surrogate in a name of meta", line[:-1] + b',"meta":{"\\udfff":1}}'),
        ("a lone surrogate in a name of weights", changed('"Search":', '"\\ud800":')),
        ("a lone surrogate in the choice", changed(f'"choice":"{record["choice"]}"', '"choice":"\\ud800"')),
        ("a lone surrogate in the session", changed('"session":"', '"session":"\\udead')),
        ("a control character in text", meta('"\x01"')),
        ("an escaped zero", meta('"\\u0000"')),
        ("step -0", changed('"step":3', '"step":-0')),
        ("step 3.0", changed('"step":3', '"step":3.0')),
        ("step 3e0", changed('"step":3', '"step":3e0')),
        ("step 03", changed('"step":3', '"step":03')),
        ("step +3", changed('"step":3', '"step":+3')),
        ("step .3", changed('"step":3', '"step":.3')),
        ("step 3.", changed('"step":3', '"step":3.')),
        ("step 2^53 - 1", changed('"step":3', '"step":9007199254740991')),
        ("step 2^53", changed('"step":3', '"step":9007199254740992')),
        ("step of forty digits", changed('"step":3', '"step":' + "1" * 40)),
        ("version 1.0", changed('"agentmark":1', '"agentmark":1.0')),
        ("version 1e0", changed('"agentmark":1', '"agentmark":1e0')),
        ("version -1", changed('"agentmark":1', '"agentmark":-1')),
        ("version true", changed('"agentmark":1', '"agentmark":true')),
        ("payload_len -0", changed('"payload_len":16', '"payload_len":-0')),
        ("payload_len 16.0", changed('"payload_len":16', '"payload_len":16.0')),
        ("a weight of -0", changed('"Search":', '"Zero":-0,"Search":')),
        ("a weight of 0.0", changed('"Search":', '"Zero":0.0,"Search":')),
        ("a weight of -1", changed('"Search":', '"Zero":-1,"Search":')),
        ("a weight of 2^64", changed('"Search":', '"Zero":18446744073709551616,"Search":')),
        ("-0 in meta", meta("-0")),
        ("-(2^53 - 1) in meta", meta("-9007199254740991")),
        ("-2^53 in meta", meta("-9007199254740992")),
        ("1.0 in meta", meta("1.0")),
        ("1E2 in meta", meta("1E2")),
        ("-0.0 in meta", meta("-0.0")),
        ("NaN", meta("NaN")),
        ("Infinity", meta("-Infinity")),
        ("a name twice", line[:-1] + b',"step":3}'),
        ("a name twice by escape", line[:-1] + b',"st\\u0065p":3}'),
        ("a name twice in weights", changed('"Search":', '"Book":0,"Search":')),
        ("a name twice in meta", line[:-1] + b',"meta":{"x":{"y":1,"y":1}}}'),
        ("meta of 64 levels", meta("[" * 63 + "]" * 63)),
        ("meta of 65 levels", meta("[" * 64 + "]" * 64)),
        ("a comma too many", line[:-1] + b",}"),
        ("single quotes", line.replace(b'"', b"'")),
        ("a comment", line + b" // a comment"),
        ("two records", line + line),
        ("a list", b"[" + line + b"]"),
        ("an empty object", b"{}"),
        ("an object of another kind", b'{"level":"info"}'),
        ("free text", b"Search"),
        ("a number", b"1"),
        # Cut short, and then closed by the next writer.
        ("the first byte", line[:1]),
        ("a part of the first name", line[:5]),
        ("the first name", line[:11]),
        ("behind the version", line[:14]),
        ("behind a comma", line[:15]),
        ("inside weights", line[: after_weights - 9]),
        ("behind weights", line[: after_weights - 1]),
        ("inside a name", line[: after_weights + 4]),
        ("inside a literal", line[:-3]),
        ("all but the last brace", line[:-1]),
        ("inside a character", line[: line.index(b"\xe8\xa9") + 2]),
        ("inside an escape", b'{"agentmark":1,"session":"\\'),
        ("inside an escaped code", b'{"agentmark":1,"session":"\\u4f'),
        ("a minus", b'{"agentmark":-'),
        ("a point", b'{"agentmark":1.'),
        ("an exponent", b'{"agentmark":1e+'),
        ("a name twice, and then cut", b'{"agentmark":1,"agentmark":1'),
        ("trailing white space", line[: after_weights - 1] + b" \t"),
        ("hundreds of levels", b'{"agentmark":' + b"[" * 300),
        # Not cut short: nothing that follows could help.
        ("garbage", b'{"agentmark":1 garbage'),
        ("garbage behind a comma", b'{"agentmark":1,garbage'),
        ("a leading zero", b'{"agentmark":01'),
        ("two points", b'{"agentmark":1..'),
        ("half a literal and more", b'{"agentmark":trx'),
        ("a wrong bracket", b'{"agentmark":[1}'),
        ("a wrong escape", b'{"agentmark":"\\x'),
        ("a wrong code", b'{"agentmark":"\\u00g'),
        ("zero bytes", line[:40] + b"\0" * 8),
        ("a broken character", b'{"agentmark":1,"session":"\xe4"'),
        ("half a surrogate in UTF-8", b'{"agentmark":1,"session":"\xed\xa0'),
        ("half a character outside of text", b'{"agentmark":1\xe4\xbc'),
        ("cut short, but not as our lines begin", b'{"scheme":"F","agentmark":1'),
        ("white space before the first name", b'{ "agentmark":1'),
        # Checkpoints.
        ("a checkpoint", stated),
        ("a checkpoint in another order", json.dumps(dict(reversed(chained.items()))).encode()),
        ("a checkpoint, cut short", stated[:100]),
        ("a checkpoint, broken", b'{"agentmark_checkpoint":1 garbage'),
        ("a checkpoint, broken, in another order", b'{"total":1,"agentmark_checkpoint":1 garbage'),
        ("a checkpoint with a name twice", stated[:-1] + b',"total":4}'),
        ("a checkpoint of version 2", stated.replace(b'_checkpoint":1', b'_checkpoint":2')),
        ("a checkpoint without signature", line_of({k: v for k, v in chained.items() if k != "signature"}).encode()),
        ("a checkpoint with another member", stated[:-1] + b',"note":1}'),
        ("a checkpoint in local time", stated.replace(b"+00:00", b"+01:00")),
        ("a checkpoint in UTC as Z", stated.replace(b"+00:00", b"Z")),
        ("a checkpoint with parts of a second", stated.replace(b"+00:00", b".123456789+00:00")),
        ("a checkpoint with ten digits of a second", stated.replace(b"+00:00", b".1234567890Z")),
        ("a checkpoint without zone", stated.replace(b"+00:00", b"")),
        ("a checkpoint in the zone -00:00", stated.replace(b"+00:00", b"-00:00")),
        ("a checkpoint with a space for T", stated.replace(b"31T09", b"31 09")),
        ("a checkpoint without seconds", stated.replace(b"09:30:04", b"09:30")),
        ("a checkpoint of the 32nd", stated.replace(b"-31T", b"-32T")),
        ("a checkpoint with NaN", stated.replace(b'"total":4', b'"total":NaN')),
        ("a checkpoint with NaN, in another order", b'{"total":NaN,"agentmark_checkpoint":1}'),
        ("a checkpoint behind a byte order mark", b"\xef\xbb\xbf" + stated),
        ("a checkpoint by an escaped name", stated.replace(b'"agentmark_check', b'"\\u0061gentmark_check')),
        ("a checkpoint that says it is a record", stated[:-1] + b',"agentmark":1}'),
        ("a record that mentions checkpoints", meta('"agentmark_checkpoint"')),
        ("a checkpoint in a list", b"[" + stated + b"]"),
    ]
    last = [
        ("last line: a record", line),
        ("last line: cut short", line[:60]),
        ("last line: cut short, in another order", b'{"scheme":"F","agentm'),
        ("last line: cut short, another's", b'{"level":"in'),
        ("last line: an empty object", b"{}"),
        ("last line: garbage", b'{"agentmark":1 garbage'),
        ("last line: free text", b"Search"),
        ("last line: a list, cut short", b'[{"agentmark":1'),
        ("last line: a number", b"1"),
        ("last line: a byte order mark", b"\xef\xbb\xbf" + line[:60]),
    ]
    return [(name, text, True) for name, text in ended] + [(name, text, False) for name, text in last]


def lines_vectors() -> Case:
    lines = []
    for name, line, has_line_feed in line_cases():
        outcome, told = spec_reader.read_line(line.strip(spec_reader.WHITE_SPACE), has_line_feed=has_line_feed)
        field = told if outcome == "bad" else None
        lines.append(named("name line line_feed outcome field", name, line.hex(), has_line_feed, outcome, field))
    records, checkpoints = some_chain()
    texts = [line_of(entry).encode() for entry in [*records[:4], checkpoints[0], *records[4:], checkpoints[1]]]
    plain = b"\n".join(texts) + b"\n"
    packed = stored_gzip(plain)
    cut = len(texts[0]) + 30
    files = {
        "a log": plain,
        "without the last line feed": plain[:-1],
        "carriage returns": plain.replace(b"\n", b"\r\n"),
        "carriage returns alone": plain.replace(b"\n", b"\r"),
        "blank lines": b"\n \t\r\n" + plain.replace(b"\n", b"\n\n") + b"\n  ",
        "a byte order mark": b"\xef\xbb\xbf" + plain,
        "cut inside the last line": plain[:-30],
        "cut in the middle, and continued": texts[0] + b"\n" + texts[1][:50] + b"\n" + texts[2] + b"\n",
        "cut in the middle, and continued on the same line": texts[0] + b"\n" + texts[1][:50] + texts[2] + b"\n",
        "a bad line in the middle": texts[0] + b"\nfree text\n" + texts[1] + b"\n",
        "a bad checkpoint in the middle": texts[0] + b"\n" + texts[4][:-1] + b',"x":1}\n' + texts[1] + b"\n",
        "nothing": b"",
        "white space": b" \r\n\n\t\n",
        "packed": packed,
        "packed in two members": stored_gzip(plain[:cut]) + stored_gzip(plain[cut:]),
        "packed, with padding": packed + bytes(16),
        "packed, nothing": stored_gzip(b""),
        "packed, cut inside a line": packed[: 15 + cut],
        "packed, cut behind a line": packed[: 15 + len(texts[0]) + 1],
        "packed, cut before the first line": packed[:12],
        "packed, cut behind the last line": packed[:-8],
        "packed, a wrong checksum": packed[:-8] + bytes(4) + packed[-4:],
        "packed, followed by something else": packed + b"garbage",
    }
    logs = []
    for name, data in files.items():
        outcomes = [[number, outcome] for number, outcome, _ in spec_reader.read_log(data)]
        logs.append(named("name file lines", name, data.hex(), outcomes))
    return {"lines": lines, "logs": logs}


# Sections 3.1 and 5.1: files

# RFC 8032, section 7.1, test 1: a seed and its public key.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def key_file_vectors() -> Case:
    id_of, digits = key_id(SECRET), SECRET.hex()
    tenant = derived_key(SECRET, "acme")
    written = json.dumps({"agentmark_key": 1, "id": id_of, "secret": digits}) + "\n"
    of_tenant = json.dumps({"agentmark_key": 1, "id": key_id(tenant), "secret": tenant.hex()}) + "\n"
    valid = [
        ("as written", written, id_of),
        ("of a tenant", of_tenant, key_id(tenant)),
        ("without id", f'{{"agentmark_key": 1, "secret": "{digits}"}}', id_of),
        ("id is null", f'{{"agentmark_key": 1, "id": null, "secret": "{digits}"}}', id_of),
        ("capitals", f'{{"agentmark_key": 1, "secret": "{digits.upper()}"}}', id_of),
        ("white space, another order", f'\n{{\n "secret":\t"{digits}",\r\n "agentmark_key":1}}\n\n', id_of),
        ("another member", written.replace('"id"', '"note": [1.5, null], "id"'), id_of),
    ]
    invalid = [
        ("version 2", written.replace('key": 1', 'key": 2'), "not version 1"),
        ("version 1.0", written.replace('key": 1', 'key": 1.0'), "a number with a fraction"),
        ("version true", written.replace('key": 1', 'key": true'), "not an integer"),
        ("version as text", written.replace('key": 1', 'key": "1"'), "not an integer"),
        ("without version", f'{{"id": "{id_of}", "secret": "{digits}"}}', "no version"),
        ("without secret", f'{{"agentmark_key": 1, "id": "{id_of}"}}', "no secret"),
        ("id of another key", written.replace(id_of, key_id(OTHER_SECRET)), "not the id of the secret"),
        ("id in capitals", written.replace(id_of, id_of.upper()), "not the id of the secret"),
        ("a digit short", written.replace(digits, digits[:-1]), "not 64 digits"),
        ("a byte short", f'{{"agentmark_key": 1, "secret": "{digits[:-2]}"}}', "not 64 digits"),
        ("spaces between digits", written.replace(digits, digits[:30] + "  " + digits[32:]), "not hexadecimal"),
        ("secret is null", '{"agentmark_key": 1, "secret": null}', "not text"),
        ("plainly not random", f'{{"agentmark_key": 1, "secret": "{"00" * 32}"}}', "plainly not random"),
        ("a name twice", written.replace("{", f'{{"secret": "{digits}", '), "a name appears twice"),
        ("NaN", written.replace('"id"', '"x": NaN, "id"'), "not JSON"),
        ("a byte order mark", "\ufeff" + written, "a byte order mark"),
        ("a list", f"[{written}]", "not an object"),
        ("empty", "", "not JSON"),
        ("cut short", written[:-5], "not JSON"),
        ("the digits alone", digits, "not an object"),
        ("a signing key", json.dumps({"agentmark_signing_key": 1, "public_key": PUBLIC_KEY, "secret": SEED}), "kind"),
    ]
    modes = [("0600", True), ("0400", True), ("0700", True), ("0640", False), ("0604", False), ("0610", False)]
    return {
        "valid": [named("name text id", *case) for case in valid],
        "invalid": [named("name text reason", *case) for case in invalid],
        "modes": [named("text mode accepted", written, mode, accepted) for mode, accepted in modes],
    }


def signing_key_file_vectors() -> Case:
    content = {"agentmark_signing_key": 1, "public_key": PUBLIC_KEY, "secret": SEED}
    written = json.dumps(content) + "\n"
    valid = [
        ("as written", written),
        ("another order, another member", json.dumps({"note": 1, **dict(reversed(content.items()))})),
    ]
    invalid = [
        ("version 2", written.replace('key": 1', 'key": 2'), "not version 1"),
        ("version true", written.replace('key": 1', 'key": true'), "not an integer"),
        ("without public key", json.dumps({"agentmark_signing_key": 1, "secret": SEED}), "no public key"),
        ("public key of another", written.replace(PUBLIC_KEY, fixed("public key").hex()), "not that of the seed"),
        ("public key in capitals", written.replace(PUBLIC_KEY, PUBLIC_KEY.upper()), "not that of the seed"),
        ("seed in capitals", written.replace(SEED, SEED.upper()), "not lower case"),
        ("a byte short", written.replace(SEED, SEED[:-2]), "not 64 digits"),
        ("without seed", json.dumps({"agentmark_signing_key": 1, "public_key": PUBLIC_KEY}), "no seed"),
        ("a shared key", json.dumps({"agentmark_key": 1, "id": key_id(SECRET), "secret": SECRET.hex()}), "kind"),
        ("a name twice", written.replace("{", '{"agentmark_signing_key": 1, '), "a name appears twice"),
    ]
    return {
        "valid": [named("name text public_key", *case, PUBLIC_KEY) for case in valid],
        "invalid": [named("name text reason", *case) for case in invalid],
    }


def registry_text(length: Any, entries: list[Case], end: str = "\n") -> str:
    lines = [{"agentmark_registry": 1, "payload_len": length}, *entries]
    return "".join(json.dumps(line, ensure_ascii=False) + end for line in lines)


def registry_file_vectors() -> Case:
    def entry(
        name: Any, payload: Any, *, issued: str | None = "2026-01-31T09:30:00+00:00", revoked: Any = None
    ) -> Case:
        return {"name": name, "payload": payload, "issued_at": issued, "revoked_at": revoked}

    two = [entry("acme/billing-bot", "002a"), entry("caf\u00e9 " + ASTRAL, "ffff", revoked="2026-02-28T00:00:00+00:00")]
    short = [{"name": "a", "payload": "1"}, {"name": "b", "payload": "AbC", "note": 1.5}]
    valid: list[tuple[str, str, int, list[Case]]] = [
        ("as written", registry_text(16, two), 16, two),
        ("no entries", registry_text(16, []), 16, []),
        ("L = 0", registry_text(0, [entry("ours", "0")]), 0, [entry("ours", "0")]),
        ("carriage returns", registry_text(16, two, "\r\n"), 16, two),
        ("blank lines", registry_text(16, two, "\n \n\n"), 16, two),
        ("without the last line feed", registry_text(16, two)[:-1], 16, two),
        (
            "fewer digits, capitals, members that are absent or more",
            registry_text(16, short),
            16,
            [entry("a", "0001", issued=None), entry("b", "0abc", issued=None)],
        ),
    ]
    head = registry_text(16, [])
    invalid = [
        ("empty", "", "no head"),
        ("a blank line before the head", "\n" + registry_text(16, two), "no head"),
        ("no head", registry_text(16, two)[len(head) :], "no head"),
        ("version 2", registry_text(16, two).replace('registry": 1', 'registry": 2'), "not version 1"),
        ("version true", registry_text(16, two).replace('registry": 1', 'registry": true'), "not an integer"),
        ("version 1.0", registry_text(16, two).replace('registry": 1', 'registry": 1.0'), "a fraction"),
        ("no payload_len", '{"agentmark_registry": 1}\n', "no payload_len"),
        ("payload_len 4097", registry_text(4097, []), "not in 0..4096"),
        ("payload_len as text", registry_text("16", []), "not an integer"),
        ("payload_len true", registry_text(True, []), "not an integer"),
        ("one name twice", registry_text(16, [entry("a", "1"), entry("a", "2")]), "a name twice"),
        ("one payload twice", registry_text(16, [entry("a", "1"), entry("b", "0001")]), "a payload twice"),
        ("a revoked payload again", registry_text(16, [two[1], entry("b", "ffff")]), "a payload twice"),
        ("a payload too long", registry_text(16, [entry("a", "10000")]), "not below 2^L"),
        ("L = 0, payload 1", registry_text(0, [entry("a", "1")]), "not below 2^L"),
        ("L = 0, empty payload", registry_text(0, [entry("a", "")]), "no digits"),
        ("payload with 0x", registry_text(16, [entry("a", "0x2a")]), "not hexadecimal"),
        ("payload with a sign", registry_text(16, [entry("a", "+2a")]), "not hexadecimal"),
        ("payload with an underscore", registry_text(16, [entry("a", "2_a")]), "not hexadecimal"),
        ("payload with a space", registry_text(16, [entry("a", " 2a")]), "not hexadecimal"),
        ("payload in other digits", registry_text(16, [entry("a", "\u0662")]), "not hexadecimal"),
        ("payload is a number", registry_text(16, [entry("a", 42)]), "not text"),
        ("no payload", head + '{"name": "a"}\n', "no payload"),
        ("empty name", registry_text(16, [entry("", "1")]), "empty name"),
        ("name is a number", registry_text(16, [entry(7, "1")]), "not text"),
        ("name of two lines", registry_text(16, [entry("a\nb", "1")]), "a line feed in a name"),
        ("lone surrogate in a name", head + '{"name": "\\ud800", "payload": "1"}\n', "not text"),
        ("issued_at is a number", head + '{"name": "a", "payload": "1", "issued_at": 7}\n', "not text or null"),
        (
            "lone surrogate in issued_at",
            head + '{"name": "a", "payload": "1", "issued_at": "\\ud800"}\n',
            "not text or null",
        ),
        ("revoked_at is false", registry_text(16, [entry("a", "1", revoked=False)]), "not text or null"),
        ("a name twice in one object", head + '{"name": "a", "name": "b", "payload": "1"}\n', "a name appears twice"),
        ("cut short", registry_text(16, two)[:-20], "not JSON"),
        ("a list", head + '["a", "1"]\n', "not an object"),
        ("a byte order mark", "\ufeff" + head, "a byte order mark"),
    ]
    return {
        "valid": [named("name text payload_len entries", *case) for case in valid],
        "invalid": [named("name text reason", *case) for case in invalid],
    }


def file_vectors() -> Case:
    return {
        "key_files": key_file_vectors(),
        "signing_key_files": signing_key_file_vectors(),
        "registries": registry_file_vectors(),
    }


FILES: dict[str, Callable[[], Case]] = {
    "context.json": context_vectors,
    "keys.json": keys_vectors,
    "distribution.json": distribution_vectors,
    "scheme_f.json": f_vectors,
    "scheme_r.json": r_vectors,
    "record.json": record_vectors,
    "log.json": log_vectors,
    "evidence.json": evidence_vectors,
    "chain.json": chain_vectors,
    "lines.json": lines_vectors,
    "files.json": file_vectors,
}


def main() -> None:
    VECTORS.mkdir(exist_ok=True)
    for name, vectors in FILES.items():
        text = json.dumps({"version": 1, **vectors()}, ensure_ascii=False, indent=1)
        (VECTORS / name).write_bytes(text.encode() + b"\n")


if __name__ == "__main__":
    main()
