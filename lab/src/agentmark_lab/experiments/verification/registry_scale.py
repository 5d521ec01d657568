"""A million identities against a thousand steps, one in five foreign, in one process."""

import time
from dataclasses import dataclass
from random import Random

from agentmark.identity.registry import Identity, Registry
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.worlds import ALFWORLD, Agent, shuffled

NAME = "registry_scale"
TITLE = "Which of a million identities?"

IDENTITIES = 1_000_000
STEPS = 1_000
QUICK_IDENTITIES = 20_000
QUICK_STEPS = 100
FOREIGN = 0.2
PAYLOAD_LEN = 32


@dataclass(frozen=True, slots=True)
class Scan:
    """One log against the whole registry. The bare scan is one AND and one parity for each identity."""

    scheme: str
    intake_s: float
    verify_s: float
    bare_scan_s: float
    right: bool
    accepted: bool
    evidence_bits: float
    bits_paid: float
    runner_up_bits: float | None
    used: int

    @property
    def ratio(self) -> float:
        return self.verify_s / self.bare_scan_s


def run(options: Options, progress: Progress) -> Findings:
    """In this process only, whatever the workers: it is a measurement of time."""
    identities, steps = (QUICK_IDENTITIES, QUICK_STEPS) if options.quick else (IDENTITIES, STEPS)
    rng = generator(options.seed, NAME)
    progress(f"a registry of {identities:,} identities")
    payloads = rng.sample(range(1 << PAYLOAD_LEN), identities)
    start = time.perf_counter()
    registry = Registry(PAYLOAD_LEN, [Identity(f"tenant {i}", payload) for i, payload in enumerate(payloads)])
    built_s = time.perf_counter() - start
    scans = []
    for scheme in ("F", "R"):
        progress(f"{scheme}: {steps:,} steps")
        scans.append(_scan(scheme, registry, payloads, steps, rng))
    return _findings(scans, identities, steps, built_s)


def _scan(scheme: str, registry: Registry, payloads: list[int], steps: int, rng: Random) -> Scan:
    key = random_key(rng)
    payload = rng.choice(payloads)
    agent = Agent(ALFWORLD, key, payload, PAYLOAD_LEN, scheme)
    foreign = round(FOREIGN * steps)
    records = shuffled(rng, agent.log(rng, steps - foreign) + agent.foreign_log(rng, foreign))
    bare_scan_s = bare_scan(payloads, rng.getrandbits(PAYLOAD_LEN))
    verifier = Verifier(key, registry=registry)
    start = time.perf_counter()
    verifier.take_in(records)
    intake_s = time.perf_counter() - start
    start = time.perf_counter()
    verdict = verifier.verify(records)
    verify_s = time.perf_counter() - start
    return Scan(
        scheme,
        intake_s,
        verify_s,
        bare_scan_s,
        verdict.candidate == payload,
        verdict.accepted,
        verdict.evidence_bits,
        verdict.bits_paid,
        None if verdict.runner_up is None else verdict.runner_up.evidence_bits,
        len([finding for finding in verdict.findings if finding.agrees is not None]),
    )


def bare_scan(payloads: list[int], row: int) -> float:
    """The least that looking at every identity once can cost in this language: seconds, the fastest of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        parities = [(payload & row).bit_count() & 1 for payload in payloads]
        times.append(time.perf_counter() - start)
        if len(parities) != len(payloads):
            raise RuntimeError("the scan is not complete")
    return min(times)


def _findings(scans: list[Scan], identities: int, steps: int, built_s: float) -> Findings:
    claims = [
        Claim(
            f"{scan.scheme}: of {identities:,} identities of {PAYLOAD_LEN} bits the right one is named from {steps:,} "
            f"steps of which {FOREIGN:.0%} are foreign, with {scan.evidence_bits:.0f} bits ({scan.bits_paid:.1f} paid "
            f"for the tries); {scan.verify_s:.1f} s, {scan.ratio:.0f} bare scans of the table.",
            scan.right and scan.accepted,
        )
        for scan in scans
    ]
    claims += [
        Claim(
            f"{scan.scheme}: {scan.verify_s:.1f} s are less than a tenth of one bare pass for each step "
            f"({steps:,} x {scan.bare_scan_s * 1000:.0f} ms).",
            scan.verify_s < steps * scan.bare_scan_s / 10,
            aim=True,
        )
        for scan in scans
    ]
    rows: list[list[Cell]] = [
        [
            scan.scheme,
            f"{scan.verify_s:.2f}",
            f"{scan.intake_s:.2f}",
            f"{scan.bare_scan_s:.3f}",
            f"{scan.ratio:.0f}",
            scan.used,
            f"{scan.evidence_bits:.1f}",
            f"{scan.bits_paid:.1f}",
            "none" if scan.runner_up_bits is None else f"{scan.evidence_bits - scan.runner_up_bits:.1f}",
        ]
        for scan in scans
    ]
    columns = ["scheme", "verify (s)", "of which reading the steps", "bare scan (s)", "ratio", "usable steps"]
    note = (
        f"{identities:,} identities, {steps:,} ALFWorld-like steps, {FOREIGN:.0%} foreign, one process; the registry "
        f"was built in {built_s:.1f} s beforehand. The bare scan takes one AND and one parity of each identity with "
        "one row, in Python; a verification looks at every identity and every step. The log's own evidence is ahead "
        "of the runner-up by the last column."
    )
    tables = [Table("One verification", [*columns, "evidence (bits)", "paid", "ahead by (bits)"], rows, note)]
    data = {
        "identities": identities,
        "steps": steps,
        "registry_s": built_s,
        "scans": [
            {
                "scheme": scan.scheme,
                "verify_s": scan.verify_s,
                "intake_s": scan.intake_s,
                "bare_scan_s": scan.bare_scan_s,
                "right": scan.right,
                "accepted": scan.accepted,
                "evidence_bits": scan.evidence_bits,
                "runner_up_bits": scan.runner_up_bits,
            }
            for scan in scans
        ],
    }
    return Findings(claims, tables, data)
