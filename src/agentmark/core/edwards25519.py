"""The group of edwards25519 (RFC 8032, section 5.1), on Python's integers: for checking, where every input is public.

Nothing here takes the same time for every number. A secret scalar belongs in a library that does.
"""

from collections.abc import Iterator

P = 2**255 - 19
# The order of the prime-order subgroup, and the cofactor.
ORDER = 2**252 + 27742317777372353535851937790883648493
COFACTOR = 8
POINT_SIZE = 32

_D = -121665 * pow(121666, -1, P) % P
_2D = 2 * _D % P
_SQRT_M1 = pow(2, (P - 1) // 4, P)

# Extended coordinates (X, Y, Z, T) with x = X/Z, y = Y/Z, x y = T/Z.
Point = tuple[int, int, int, int]
IDENTITY: Point = (0, 1, 1, 0)

WINDOW_BITS = 4


def decode_point(data: bytes) -> Point | None:
    """RFC 8032, section 5.1.3; None for bytes that are no point, or not the one spelling of it."""
    if len(data) != POINT_SIZE:
        return None
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if y >= P:
        return None
    # x^2 = (y^2 - 1) / (d y^2 + 1), and its root with one exponentiation.
    u, v = (y * y - 1) % P, (_D * y * y + 1) % P
    v3 = v * v * v % P
    x = u * v3 * pow(u * v3 * v3 * v, (P - 5) // 8, P) % P
    square = v * x * x % P
    if square == P - u and u:
        x = x * _SQRT_M1 % P
    elif square != u:
        return None
    if x == 0 and sign:
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def encode_point(point: Point) -> bytes:
    """RFC 8032, section 5.1.2."""
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(POINT_SIZE, "little")


def add(left: Point, right: Point) -> Point:
    """RFC 8032, section 5.1.4: complete, so that no case is special."""
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a = (y1 - x1) * (y2 - x2) % P
    b = (y1 + x1) * (y2 + x2) % P
    c = t1 * _2D * t2 % P
    d = 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def double(point: Point) -> Point:
    x, y, z, _ = point
    a, b = x * x % P, y * y % P
    h = a + b
    e = h - (x + y) * (x + y)
    g = a - b
    f = 2 * z * z + g
    return e * f % P, g * h % P, f * g % P, e * h % P


def negate(point: Point) -> Point:
    x, y, z, t = point
    return -x % P, y, z, -t % P


def equal(left: Point, right: Point) -> bool:
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


def multiply_sum(*terms: tuple[int, Point]) -> Point:
    """The sum of scalar * point over all terms, with the doublings shared (Straus)."""
    tables = [_multiples(point) for _, point in terms]
    digits = [_digits(scalar) for scalar, _ in terms]
    total = IDENTITY
    for place in reversed(range(max(map(len, digits)))):
        for _ in range(WINDOW_BITS):
            total = double(total)
        for table, mine in zip(tables, digits, strict=True):
            if place < len(mine) and mine[place]:
                total = add(total, table[mine[place]])
    return total


def clear_cofactor(point: Point) -> Point:
    """8 P: in the prime-order subgroup, whatever P was."""
    return double(double(double(point)))


def has_prime_order(point: Point) -> bool:
    """Whether a point lies in the prime-order subgroup and is not its identity."""
    return not equal(point, IDENTITY) and equal(multiply_sum((ORDER, point)), IDENTITY)


def _multiples(point: Point) -> list[Point]:
    table = [IDENTITY, point]
    while len(table) < 1 << WINDOW_BITS:
        table.append(add(table[-1], point))
    return table


def _digits(scalar: int) -> list[int]:
    """Windows of the scalar, least significant first."""
    return list(_windows(scalar)) or [0]


def _windows(scalar: int) -> Iterator[int]:
    while scalar:
        yield scalar & (1 << WINDOW_BITS) - 1
        scalar >>= WINDOW_BITS


def _base_point() -> Point:
    base = decode_point((4 * pow(5, -1, P) % P).to_bytes(POINT_SIZE, "little"))
    assert base is not None
    return base


BASE = _base_point()
