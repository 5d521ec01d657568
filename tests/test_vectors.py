"""The package against vectors written by independent code (`tools/*_vectors.py`, from docs/spec.md alone)."""

import json
from functools import reduce
from hashlib import blake2b, sha256
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from agentmark import (
    BehaviorDistribution,
    ContextError,
    DisclosedSteps,
    Disclosure,
    DisclosureError,
    DistributionError,
    Identity,
    KeyFileError,
    MarkingKey,
    PublicKey,
    RecordError,
    Registry,
    RegistryError,
    SharedKey,
    SigningError,
    SigningKey,
    StepRecord,
    Verifier,
    open_log,
    read_log,
)
from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.links import link_digest, start_digest
from agentmark.core import scheme_f, scheme_r
from agentmark.core.canonical import canonical_bytes
from agentmark.core.context import context_digest
from agentmark.core.cyclic_shift import cyclic_shift_decode, cyclic_shift_encode
from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.core.prf import derive_step_key
from agentmark.core.recombination import bin_weights, select_bin, slice_heights
from agentmark.core.strict_json import parse_json
from agentmark.disclosure.digest import record_digest
from agentmark.verify.prices import Prices

VECTORS = Path(__file__).parents[1] / "vectors"

# How many cases each list of each file holds: a case that is lost from a file would pass unseen.
COUNTS = {
    "chain": {"starts": 7, "links": 10, "checkpoints": 2},
    "context": {"valid": 16, "invalid": 17},
    "distribution": {"valid": 28, "invalid": 18},
    "evidence": {"claims": 31, "partial": 19, "ownership": 21, "prices": 20, "ties": 4, "several": 10},
    "files": {
        "key_files.valid": 7,
        "key_files.invalid": 21,
        "key_files.modes": 6,
        "signing_key_files.valid": 2,
        "signing_key_files.invalid": 10,
        "registries.valid": 7,
        "registries.invalid": 34,
    },
    "keys": {"keys": 6, "invalid": 9},
    "lines": {"lines": 131, "logs": 23},
    "log": {"logs": 25, "lengths": 17},
    "public": {
        "keys": 3,
        "invalid_public_keys": 7,
        "records": 5,
        "disclosures.valid": 1,
        "disclosures.invalid": 5,
    },
    "record": {"valid": 35, "invalid": 96},
    "scheme_f": {"steps": 35, "impossible": 4, "code": 2182},
    "scheme_r": {"steps": 27, "impossible": 4, "products": 25, "near_ties": 17},
}


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def cases(name: str, *members: str) -> Any:
    entries = reduce(getitem, members, load(name))
    return pytest.mark.parametrize("case", entries, ids=[str(entry.get("name", i)) for i, entry in enumerate(entries)])


def test_no_case_is_lost() -> None:
    assert sorted(path.stem for path in VECTORS.glob("*.json")) == sorted(COUNTS)
    for name, counts in COUNTS.items():
        content = load(name)
        found = {path: len(reduce(getitem, path.split("."), content)) for path in counts}
        assert found == counts, name


@cases("context", "valid")
def test_context(case: dict[str, Any]) -> None:
    assert canonical_bytes(case["fields"]).decode() == case["canonical"]
    assert context_digest(case["fields"]).hex() == case["digest"]


@cases("context", "invalid")
def test_invalid_context(case: dict[str, Any]) -> None:
    with pytest.raises(ContextError):
        context_digest(json.loads(case["json"]))


@cases("keys", "keys")
def test_keys(case: dict[str, Any]) -> None:
    key = SharedKey(bytes.fromhex(case["secret"]))
    assert key.id == case["id"]
    for tenant in case["derived"]:
        derived = key.derive(tenant["name"])
        assert derived == SharedKey(bytes.fromhex(tenant["secret"]))
        assert derived.id == tenant["id"]
    for step in case["step_keys"]:
        assert key.step_key(bytes.fromhex(step["context"]), step["payload_len"]).hex() == step["step_key"]
    for call in case["argument_digests"]:
        assert key.argument_digest(call["session"], bytes.fromhex(call["arguments"])) == call["digest"]


@cases("keys", "invalid")
def test_invalid_keys(case: dict[str, Any]) -> None:
    with pytest.raises(KeyFileError):
        SharedKey(bytes.fromhex(case["secret"]))


@cases("distribution", "valid")
def test_distribution(case: dict[str, Any]) -> None:
    distribution = BehaviorDistribution.quantise([(name, number) for name, number in case["input"]])
    assert list(distribution.behaviors) == case["order"]
    assert list(distribution.weights) == case["weights"]


@cases("distribution", "invalid")
def test_invalid_distribution(case: dict[str, Any]) -> None:
    with pytest.raises(DistributionError) as caught:
        BehaviorDistribution.quantise([(name, number) for name, number in json.loads(case["json"])])
    assert caught.value.field.split("[")[0] == case["field"]


@cases("scheme_f", "steps")
def test_f_step(case: dict[str, Any]) -> None:
    """Every intermediate, then the step as a whole, then reading it."""
    payload_len = case["payload_len"]
    payload = int(case["payload"] or "0", 16)
    step_key = derive_step_key(bytes.fromhex(case["secret"]), bytes.fromhex(case["context"]), payload_len)
    distribution = BehaviorDistribution.from_weights(case["weights"])
    assert step_key.hex() == case["step_key"]
    assert list(distribution.behaviors) == case["order"]
    assert slice_heights(distribution.weights) == case["slice_heights"]
    assert bin_weights(distribution.weights) == case["bin_weights"]
    bits = scheme_f.step_bits(step_key)
    assert bits.run(0, 32) == case["draw"]
    chosen = scheme_f.draw_bin(distribution, bits)
    assert (chosen.size, chosen.shift) == (case["bin_size"], case["shift"])
    count = len(case["coded_bits"])
    assert scheme_f.coefficient_rows(bits, payload_len, count) == [int(row or "0", 16) for row in case["rows"]]
    assert f"{scheme_f.pad_bits(bits, count):0{count}b}" == case["pad"]
    position, spent = cyclic_shift_encode(int(case["coded_bits"], 2), chosen.size, chosen.shift)
    assert position == case["position"]
    assert text_of(spent.bits, spent.length) == case["embedded_bits"]
    embedding = scheme_f.encode(distribution, step_key, payload=payload, payload_len=payload_len)
    assert embedding.behavior == case["choice"]
    equations = scheme_f.decode(distribution, step_key, case["choice"], payload_len=payload_len)
    assert equations is not None
    assert [(e.coefficients, e.parity) for e in equations] == [
        (int(e["coefficients"] or "0", 16), e["parity"]) for e in case["equations"]
    ]


def test_f_code() -> None:
    for case in load("scheme_f")["code"]:
        position, spent = cyclic_shift_encode(int(case["coded_bits"], 2), case["bin_size"], case["shift"])
        assert position == case["position"]
        assert text_of(spent.bits, spent.length) == case["embedded_bits"]
        assert cyclic_shift_decode(position, case["bin_size"], case["shift"]) == spent


def test_f_appendix_c() -> None:
    case = load("scheme_f")["app_c"]
    distribution = BehaviorDistribution.from_weights(case["weights"])
    assert select_bin(distribution.weights, case["bin_draw"]).size == case["bin_size"] == 5
    assert int(float(case["shift_draw"]) * 5) == case["shift"] == 1
    chosen = select_bin(distribution.weights, case["draw"])
    assert (chosen.size, chosen.shift) == (5, 1)
    masked = int(case["message_bits"], 2) ^ int(case["pad"], 2)
    assert f"{masked:02b}" == case["coded_bits"]
    position, _ = cyclic_shift_encode(masked << 1, 5, 1)
    assert (position, distribution.behaviors[position]) == (case["position"], case["choice"]) == (3, "Check-in")


@pytest.mark.parametrize("scheme", ["f", "r"])
def test_impossible_steps(scheme: str) -> None:
    for case in load(f"scheme_{scheme}")["impossible"]:
        payload_len = case["payload_len"]
        step_key = derive_step_key(bytes.fromhex(case["secret"]), bytes.fromhex(case["context"]), payload_len)
        distribution = BehaviorDistribution.from_weights(case["weights"])
        reader = scheme_f if scheme == "f" else scheme_r
        assert reader.decode(distribution, step_key, case["choice"], payload_len=payload_len) is None


@cases("scheme_r", "steps")
def test_r_step(case: dict[str, Any]) -> None:
    payload_len = case["payload_len"]
    payload = int(case["payload"] or "0", 16)
    step_key = derive_step_key(bytes.fromhex(case["secret"]), bytes.fromhex(case["context"]), payload_len)
    distribution = BehaviorDistribution.from_weights(case["weights"])
    assert step_key.hex() == case["step_key"]
    assert list(distribution.behaviors) == case["order"]
    bits = scheme_r.step_bits(step_key)
    assert scheme_r.coefficient_rows(bits, payload_len) == [int(row or "0", 16) for row in case["rows"]]
    assert f"{scheme_r.pad_bits(bits):08b}" == case["pad"]
    symbol = scheme_r.coded_symbol(step_key, payload=payload, payload_len=payload_len)
    assert symbol == case["symbol"]
    for name, x in case["x"].items():
        draw = scheme_r.clock_draw(step_key, name)
        assert draw.step == max(1, int(case["clock_blocks"][name], 16) % 256)
        assert draw.uniform(symbol) == (2 * int(x, 16) + 1) / 2**53
    clocks = scheme_r.race_clocks(distribution, step_key, symbol)
    expected = [float(case["clocks"][name]) for name in distribution.behaviors if name in case["clocks"]]
    assert clocks == pytest.approx(expected, rel=2.0**-45)
    assert scheme_r.encode(distribution, step_key, payload=payload, payload_len=payload_len) == case["choice"]
    constraint = scheme_r.decode(distribution, step_key, case["choice"], payload_len=payload_len)
    assert constraint is not None
    assert f"{constraint.symbols:064x}" == case["symbols"]


def test_r_products() -> None:
    for case in load("scheme_r")["products"]:
        assert scheme_r.PRODUCTS[case["left"]][case["right"]] == case["product"]


def test_r_near_ties() -> None:
    for case in load("scheme_r")["near_ties"]:
        assert scheme_r.race_winner([float(clock) for clock in case["clocks"]]) == case["winner"]


@cases("record", "valid")
def test_record(case: dict[str, Any]) -> None:
    record = StepRecord.from_json(case["line"])
    assert StepRecord.from_json(record.to_json()) == record


@cases("record", "invalid")
def test_invalid_record(case: dict[str, Any]) -> None:
    with pytest.raises(RecordError) as caught:
        StepRecord.from_json(case["line"])
    field = caught.value.field
    if case["name"] == "meta with 5000 digits":
        # Python's parser gives up before there is a member to name.
        assert field == "line"
        return
    # Where the spec names a member, the message may name a path within it.
    assert field == case["field"] or field.replace("[", ".").split(".")[0] == case["field"]


@cases("log", "logs")
def test_log(case: dict[str, Any]) -> None:
    key = SharedKey(bytes.fromhex(case["secret"]))
    records = [StepRecord.from_json(line) for line in case["lines"]]
    verdict = Verifier(key, payload_len=case["payload_len"], noise=0.0).verify(records)
    assert verdict.accepted == case["accepted"]
    assert verdict.candidate == (None if case["payload"] is None else int(case["payload"] or "0", 16))
    assert round(1000 * verdict.potential_bits) == case["evidence_millibits"]
    assert verdict.rank == case["rank"]


@cases("evidence", "claims")
def test_evidence_for_a_claim(case: dict[str, Any]) -> None:
    key = SharedKey(bytes.fromhex(case["secret"]))
    records = [StepRecord.from_json(line) for line in case["lines"]]
    noise = None if case["noise"] is None else float(case["noise"])
    verifier = Verifier(key, payload_len=case["payload_len"], noise=noise)
    evidence = verifier.verify(records, claim=int(case["payload"] or "0", 16)).evidence_bits
    if case["evidence_millibits"] is None:
        assert evidence == float("-inf")
    else:
        # A millibit of room: the sums are taken in another order.
        assert abs(1000 * evidence - case["evidence_millibits"]) <= 1


@cases("evidence", "partial")
def test_part_of_a_list(case: dict[str, Any]) -> None:
    payload_len = case["payload_len"]
    step_key = derive_step_key(bytes.fromhex(case["secret"]), bytes.fromhex(case["context"]), payload_len)
    soft = scheme_r.decode_partial(case["weights"] or {}, step_key, case["choice"], payload_len=payload_len)
    assert list(soft.rows) == [int(row or "0", 16) for row in case["rows"]]
    assert f"{soft.pad:08b}" == case["pad"]
    assert list(soft.values) == pytest.approx([float(value) for value in case["e_values"]], rel=2.0**-40)


@cases("evidence", "ownership")
def test_ownership(case: dict[str, Any]) -> None:
    key = SharedKey(bytes.fromhex(case["secret"]))
    records = [StepRecord.from_json(line) for line in case["lines"]]
    noise = None if case["noise"] is None else float(case["noise"])
    verifier = Verifier(key, payload_len=case["payload_len"], noise=noise)
    ownership = verifier.verify(records, claim=int(case["payload"] or "0", 16)).ownership_bits
    assert ownership is not None
    if case["ownership_millibits"] is None:
        assert ownership == float("-inf")
    else:
        assert abs(1000 * ownership - case["ownership_millibits"]) <= 1


@cases("evidence", "prices")
def test_price(case: dict[str, Any]) -> None:
    payload, payload_len = int(case["payload"] or "0", 16), case["payload_len"]
    registry = None
    if case["registry"] is not None:
        entries = [
            Identity(f"n{i}", int(text or "0", 16), revoked_at="2026-01-31T09:30:00+00:00" if revoked else None)
            for i, (text, revoked) in enumerate(case["registry"])
        ]
        registry = Registry(payload_len, entries)
    prices = Prices(registry).for_tries(case["tries"])
    bits = prices.of_claim(payload_len) if case["claim"] else prices.of(payload, payload_len)
    assert round(1000 * bits) == case["price_millibits"]


@cases("evidence", "ties")
def test_of_equals_the_smallest(case: dict[str, Any]) -> None:
    registry = Registry(case["payload_len"], [Identity(text, int(text, 16)) for text in case["registry"]])
    records = [StepRecord.from_json(line) for line in case["lines"]]
    verdict = Verifier(SharedKey(bytes.fromhex(case["secret"])), registry=registry).verify(records)
    assert verdict.candidate == int(case["candidate"], 16)
    assert not verdict.accepted
    assert abs(1000 * verdict.evidence_bits - case["evidence_millibits"]) <= 1


@cases("evidence", "several")
def test_everyone_in_a_log_that_several_share(case: dict[str, Any]) -> None:
    length = case["payload_len"]
    registry = None
    if case["registry"] is not None:
        registry = Registry(length, [Identity(text, int(text, 16)) for text in case["registry"]])
    verifier = Verifier(
        SharedKey(bytes.fromhex(case["secret"])),
        payload_len=length,
        registry=registry,
        threshold=float(case["threshold"]),
        noise=None if case["noise"] is None else float(case["noise"]),
    )
    verdict = verifier.verify([StepRecord.from_json(line) for line in case["lines"]])
    # With a registry, a verifier may also name payloads that it does not hold: the vectors list its names alone.
    found = [found for found in verdict.found if registry is None or found.identity is not None]
    assert [(f"{each.payload:0{length // 4}x}", each.at_least_steps) for each in found] == [
        (said["payload"], said["at_least_steps"]) for said in case["found"]
    ]
    for identity, said in zip(found, case["found"], strict=True):
        assert abs(1000 * identity.evidence_bits - said["evidence_millibits"]) <= 1


@cases("log", "lengths")
def test_stated_length(case: dict[str, Any]) -> None:
    keys = [SharedKey(bytes.fromhex(secret)) for secret in case["secrets"]]
    records = [StepRecord.from_json(line) for line in case["lines"]]
    assert Verifier(keys).take_in(records).payload_len == case["payload_len"]


def test_chain_starts() -> None:
    for case in load("chain")["starts"]:
        assert start_digest(case["session"]) == case["prev"]


@cases("chain", "links")
def test_link(case: dict[str, Any]) -> None:
    assert link_digest(StepRecord.from_json(case["line"])) == case["digest"]


@cases("chain", "checkpoints")
def test_checkpoint_digest(case: dict[str, Any]) -> None:
    assert Checkpoint.from_json(case["line"]).digest == case["digest"]


@cases("lines", "lines")
def test_line(case: dict[str, Any], tmp_path: Path) -> None:
    line = bytes.fromhex(case["line"]) + (b"\n" if case["line_feed"] else b"")
    assert told(tmp_path, line) == [[1, case["outcome"]]]
    if case["outcome"] == "bad":
        with pytest.raises(RecordError) as caught:
            list(open_log(tmp_path / "log", as_json_lines=True))
        field = caught.value.field
        assert field == case["field"] or field.replace("[", ".").split(".")[0] == case["field"]


@cases("lines", "logs")
def test_lines_of_a_log(case: dict[str, Any], tmp_path: Path) -> None:
    assert told(tmp_path, bytes.fromhex(case["file"])) == case["lines"]


def told(folder: Path, data: bytes) -> list[list[Any]]:
    """What each line is, as a reader tells it that passes over bad lines."""
    (folder / "log").write_bytes(data)
    log = read_log(folder / "log", skip_bad=True, as_json_lines=True)
    found = [(entry.line, "record") for entry in log.entries]
    found += [(checkpoint.line, "checkpoint") for checkpoint in log.summary.checkpoints]
    found += [(number, "cut short") for number in log.summary.torn_lines]
    found += [(int(error.where.split(":")[1]), "bad") for error in log.summary.bad_lines]
    found += [(int(error.where.split(":")[1]), "bad checkpoint") for error in log.summary.bad_checkpoints]
    return [[number, outcome] for number, outcome in sorted(found)]


@cases("files", "key_files", "valid")
def test_key_file(case: dict[str, Any], tmp_path: Path) -> None:
    path = private_file(tmp_path, case["text"])
    key = SharedKey.load(path)
    assert key.id == case["id"]
    if case["name"] in ("as written", "of a tenant"):
        key.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
        assert (tmp_path / "again.json").stat().st_mode & 0o777 == 0o600


@cases("files", "key_files", "invalid")
def test_invalid_key_file(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(KeyFileError):
        SharedKey.load(private_file(tmp_path, case["text"]))


def test_modes_of_key_files(tmp_path: Path) -> None:
    for case in load("files")["key_files"]["modes"]:
        path = private_file(tmp_path, case["text"], case["mode"])
        if case["accepted"]:
            SharedKey.load(path)
        else:
            with pytest.raises(KeyFileError, match="read by others"):
                SharedKey.load(path)


@cases("files", "signing_key_files", "valid")
def test_signing_key_file(case: dict[str, Any], tmp_path: Path) -> None:
    path = private_file(tmp_path, case["text"])
    key = SigningKey.load(path)
    assert key.public_key == case["public_key"]
    if case["name"] == "as written":
        key.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@cases("files", "signing_key_files", "invalid")
def test_invalid_signing_key_file(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SigningError):
        SigningKey.load(private_file(tmp_path, case["text"]))


@cases("files", "registries", "valid")
def test_registry_file(case: dict[str, Any], tmp_path: Path) -> None:
    path = private_file(tmp_path, case["text"])
    registry = Registry.load(path)
    assert registry.payload_len == case["payload_len"]
    expected = [
        Identity(entry["name"], int(entry["payload"], 16), entry["issued_at"], entry["revoked_at"])
        for entry in case["entries"]
    ]
    assert list(registry) == expected
    if case["name"] in ("as written", "no entries", "L = 0"):
        registry.save(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
        assert (tmp_path / "again.jsonl").stat().st_mode & 0o777 == 0o600


@cases("files", "registries", "invalid")
def test_invalid_registry_file(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RegistryError):
        Registry.load(private_file(tmp_path, case["text"]))


def private_file(folder: Path, text: str, mode: str = "0600") -> Path:
    path = folder / "file"
    path.unlink(missing_ok=True)
    path.write_bytes(text.encode())
    path.chmod(int(mode, 8))
    return path


@pytest.mark.parametrize("scheme", ["f", "r"])
def test_bulk(scheme: str) -> None:
    """One hash over 10,000 random steps."""
    secret = bulk_hash("secret")[:32]
    lines = sha256()
    for i in range(10_000):
        context, distribution, payload, payload_len = bulk_step(i)
        step_key = derive_step_key(secret, context, payload_len)
        if scheme == "f":
            choice = scheme_f.encode(distribution, step_key, payload=payload, payload_len=payload_len).behavior
        else:
            choice = scheme_r.encode(distribution, step_key, payload=payload, payload_len=payload_len) or "?"
        lines.update(f"{i} {choice}\n".encode())
    assert lines.hexdigest() == load(f"scheme_{scheme}")["bulk_sha256"]


@cases("public", "keys")
def test_public_keys_and_proofs(case: dict[str, Any]) -> None:
    content = {"agentmark_public_key": 1} | {name: case[name] for name in ("id", "public_key", "id_proof")}
    key = PublicKey.from_dict(content)
    assert key.fingerprint == case["fingerprint"]
    for step in case["step_keys"]:
        proof, context = bytes.fromhex(step["proof"]), bytes.fromhex(step["context"])
        step_key = key.step_key(context, step["payload_len"], proof)
        assert step_key is not None
        assert step_key.hex() == step["step_key"]
        assert key.step_key(context, step["payload_len"] + 1, proof) is None


@cases("public", "keys")
def test_marking_keys(case: dict[str, Any]) -> None:
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    key = MarkingKey(bytes.fromhex(case["secret"]))
    assert (key.id, key.public.point.hex(), key.public.id_proof.hex()) == (
        case["id"],
        case["public_key"],
        case["id_proof"],
    )
    for step in case["step_keys"]:
        context = bytes.fromhex(step["context"])
        assert key.step_key(context, step["payload_len"]).hex() == step["step_key"]
        assert key.prove_step(context, step["payload_len"]).hex() == step["proof"]
    for derived in case["derived"]:
        assert key.derive(derived["name"]) == MarkingKey(bytes.fromhex(derived["secret"]))


@cases("public", "invalid_public_keys")
def test_invalid_public_keys(case: dict[str, Any]) -> None:
    with pytest.raises(KeyFileError, match="prime order"):
        PublicKey.of(bytes.fromhex(case["public_key"]), bytes(80))


@cases("public", "records")
def test_digest_of_a_disclosed_record(case: dict[str, Any]) -> None:
    assert record_digest(StepRecord.from_json(case["line"])) == case["digest"]


@cases("public", "disclosures", "valid")
def test_disclosure(case: dict[str, Any]) -> None:
    steps = DisclosedSteps(Disclosure.from_dict(parse_json(case["text"])))
    for record in load("public")["records"]:
        assert steps.proof_of(StepRecord.from_json(record["line"])).step_key is not None


@cases("public", "disclosures", "invalid")
def test_invalid_disclosure(case: dict[str, Any]) -> None:
    with pytest.raises(DisclosureError):
        Disclosure.from_dict(parse_json(case["text"]))


def bulk_hash(label: str, data: bytes = b"") -> bytes:
    return blake2b(f"agentmark/1 bulk {label}".encode() + b"\0" + data).digest()


def bulk_step(i: int) -> tuple[bytes, BehaviorDistribution, int, int]:
    u32 = i.to_bytes(4, "big")
    seed = bulk_hash("step", u32)
    payload_len = (0, 1, 8, 16, 32, 64, 128)[seed[33] % 7]
    payload = int.from_bytes(bulk_hash("payload", u32), "big") >> (512 - payload_len)
    numbers = {}
    for j in range(1 + seed[32] % 40):
        number = int.from_bytes(bulk_hash("weight", u32 + j.to_bytes(4, "big"))[:4], "big")
        numbers[f"b{j}"] = number >> (seed[34 + j % 8] % 32)
    if not any(numbers.values()):
        numbers["b0"] = 1
    distribution = BehaviorDistribution.quantise(numbers)
    assert sum(distribution.weights) == TOTAL_WEIGHT
    return seed[:32], distribution, payload, payload_len


def text_of(bits: int, length: int) -> str:
    return f"{bits:0{length}b}" if length else ""
