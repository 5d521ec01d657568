"""Writes vectors/public.json from docs/spec.md, section 12, and RFC 9381 and 8032 alone.

It shares no code with the package. The arithmetic is on affine points, with two inversions for each addition: slow,
short, and like no other that is used.
"""

import hashlib
import json
import sys
from pathlib import Path

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SUITE = b"\x03"

Point = tuple[int, int]
ZERO: Point = (0, 1)


# Edwards25519 (RFC 8032, section 5.1) --------------------------------------------------------------------------------


def add(a: Point, b: Point) -> Point:
    product = D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def times(scalar: int, point: Point) -> Point:
    total = ZERO
    for bit in bin(scalar)[2:]:
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def to_bytes(point: Point) -> bytes:
    return (point[1] + (point[0] % 2 << 255)).to_bytes(32, "little")


def from_bytes(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    odd, y = divmod(number, 2**255)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and odd):
        return None
    return (x if x % 2 == odd else P - x), y


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = from_bytes(BASE_Y.to_bytes(32, "little"))
assert BASE is not None


# ECVRF-EDWARDS25519-SHA512-TAI (RFC 9381, section 5) -----------------------------------------------------------------


def sha(*parts: bytes) -> bytes:
    return hashlib.sha512(b"".join(parts)).digest()


def secret_scalar(seed: bytes) -> int:
    low = int.from_bytes(sha(seed)[:32], "little")
    return (low & (2**254 - 8)) | 2**254


def public_key(seed: bytes) -> bytes:
    return to_bytes(times(secret_scalar(seed), BASE))


def to_curve(key: bytes, alpha: bytes) -> Point:
    for counter in range(256):
        point = from_bytes(sha(SUITE, b"\x01", key, alpha, bytes([counter, 0]))[:32])
        if point is not None:
            return times(8, point)
    raise ValueError("no point")


def prove(seed: bytes, alpha: bytes) -> bytes:
    x, key = secret_scalar(seed), public_key(seed)
    h = to_curve(key, alpha)
    gamma = times(x, h)
    k = int.from_bytes(sha(sha(seed)[32:], to_bytes(h)), "little") % Q
    c = challenge([key, *map(to_bytes, (h, gamma, times(k, BASE), times(k, h)))])
    s = (k + int.from_bytes(c, "little") * x) % Q
    return to_bytes(gamma) + c + s.to_bytes(32, "little")


def challenge(points: list[bytes]) -> bytes:
    return sha(SUITE, b"\x02", *points, b"\x00")[:16]


def output(proof: bytes) -> bytes:
    gamma = from_bytes(proof[:32])
    assert gamma is not None
    return sha(SUITE, b"\x03", to_bytes(times(8, gamma)), b"\x00")


# Sections 3 and 12 ---------------------------------------------------------------------------------------------------


def prf(key: bytes, label: str, data: bytes = b"", size: int = 64) -> bytes:
    return hashlib.blake2b(label.encode() + b"\0" + data, key=key, digest_size=size).digest()


def seed_of(secret: bytes) -> bytes:
    return prf(secret, "agentmark/1 vrf seed", size=32)


KEY_ID_INPUT = b"agentmark/1 key id\0"


def step_input(payload_len: int, context: bytes) -> bytes:
    return b"agentmark/1 step key\0" + payload_len.to_bytes(4, "big") + context


def key_case(secret: bytes, names: list[str], steps: list[tuple[int, bytes]]) -> dict[str, object]:
    seed = seed_of(secret)
    id_proof = prove(seed, KEY_ID_INPUT)
    key = public_key(seed)
    return {
        "secret": secret.hex(),
        "seed": seed.hex(),
        "public_key": key.hex(),
        "id_proof": id_proof.hex(),
        "id": prf(output(id_proof), "agentmark/1 key id", size=16).hex(),
        "fingerprint": hashlib.blake2b(b"agentmark/1 public key\0" + key, digest_size=32).hexdigest(),
        "derived": [
            {"name": name, "secret": prf(secret, "agentmark/1 derive marking", name.encode(), 32).hex()}
            for name in names
        ],
        "step_keys": [step_case(seed, payload_len, context) for payload_len, context in steps],
    }


def step_case(seed: bytes, payload_len: int, context: bytes) -> dict[str, object]:
    proof = prove(seed, step_input(payload_len, context))
    return {
        "payload_len": payload_len,
        "context": context.hex(),
        "proof": proof.hex(),
        "step_key": prf(output(proof), "agentmark/1 vrf step key", size=32).hex(),
    }


def canonical(content: object) -> bytes:
    """RFC 8785 for the texts used here, which are ASCII, and whole numbers."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def record_digest(record: dict[str, object]) -> str:
    members = ("agentmark", "scheme", "key_id", "payload_len", "session", "step", "context", "choice", "marked")
    content = {name: record[name] for name in members}
    content["weights"] = record.get("weights") or None
    content["partial"] = record.get("partial", False)
    content["enforced"] = record.get("enforced")
    message = b"agentmark/1 disclosed record\0" + canonical(content)
    return hashlib.blake2b(message, digest_size=32).hexdigest()


def step_proof(seed: bytes, record: dict[str, object]) -> bytes:
    payload_len, context = int(str(record["payload_len"])), bytes.fromhex(str(record["context"]))
    return prove(seed, step_input(payload_len, context))


def disclosure(secret: bytes, key: dict[str, object], records: list[dict[str, object]]) -> dict[str, object]:
    seed = seed_of(secret)
    content: dict[str, object] = {
        "agentmark_disclosure": 1,
        "public_key": {
            "agentmark_public_key": 1,
            "id": key["id"],
            "public_key": key["public_key"],
            "id_proof": key["id_proof"],
        },
        "records": [
            {
                "digest": record_digest(record),
                "context": record["context"],
                "payload_len": record["payload_len"],
                "proof": step_proof(seed, record).hex(),
            }
            for record in records
        ],
    }
    return content | {"proof": prove(seed, b"agentmark/1 disclosure\0" + canonical(content)).hex()}


def some_bytes(label: str, size: int = 32) -> bytes:
    return hashlib.blake2b(f"agentmark/1 public vectors {label}".encode(), digest_size=size).digest()


def a_record(key_id: object, number: int, **members: object) -> dict[str, object]:
    return {
        "agentmark": 1,
        "scheme": "R",
        "key_id": key_id,
        "payload_len": 16,
        "session": "s1",
        "step": number,
        "context": some_bytes(f"context {number}").hex(),
        "weights": {"a": 2**31, "b": 2**30, "c": 2**30},
        "choice": "b",
        "marked": True,
    } | members


def main() -> None:
    secrets = [some_bytes(f"secret {i}") for i in range(3)]
    steps = [(payload_len, some_bytes(f"step {payload_len}")) for payload_len in (0, 1, 16, 4096)]
    keys = [key_case(secret, ["acme", "b\u00fcro"], steps) for secret in secrets]
    first = keys[0]
    records = [
        a_record(first["id"], 0),
        a_record(first["id"], 1, scheme="F", payload_len=0),
        a_record(first["id"], 2, enforced=False),
        a_record(first["id"], 3, enforced=True, partial=True, weights={"b": 2**30}),
        a_record(first["id"], 4, weights=None, partial=True),
    ]
    made = disclosure(secrets[0], first, records)
    moved = json.loads(json.dumps(made))
    moved["records"][0]["proof"], moved["records"][1]["proof"] = (
        moved["records"][1]["proof"],
        moved["records"][0]["proof"],
    )
    invalid = [
        ("proofs of two records exchanged, not signed anew", moved),
        ("a record left out, not signed anew", made | {"records": made["records"][1:]}),  # type: ignore[index]
        ("another key's", made | {"public_key": disclosure(secrets[1], keys[1], [])["public_key"]}),
        ("a member more", made | {"note": "x"}),
        ("another version", made | {"agentmark_disclosure": 2}),
    ]
    y8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
    bad_keys = [
        ("the identity", (1).to_bytes(32, "little")),
        ("of order 2", (P - 1).to_bytes(32, "little")),
        ("of order 4", bytes(32)),
        ("of order 8", y8.to_bytes(32, "little")),
        ("of mixed order", to_bytes(add(from_bytes(bytes.fromhex(str(first["public_key"]))) or ZERO, (0, P - 1)))),
        ("y beyond the field", (P + 3).to_bytes(32, "little")),
        ("no point", (2).to_bytes(32, "little")),
    ]
    content = {
        "version": 1,
        "keys": keys,
        "invalid_public_keys": [{"name": name, "public_key": data.hex()} for name, data in bad_keys],
        "records": [{"line": json.dumps(record), "digest": record_digest(record)} for record in records],
        "disclosures": {
            "valid": [{"name": "five records", "text": json.dumps(made)}],
            "invalid": [{"name": name, "text": json.dumps(bad)} for name, bad in invalid],
        },
    }
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "vectors"
    (folder / "public.json").write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
