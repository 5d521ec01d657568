"""The last act: somebody who has no secret reads the identity from a disclosure, and then tries to forge with it.

Marking with a key that has a public half takes the package `pynacl` (extra `public`). Without it the act is left out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap

from agentmark.core.schemes import SCHEMES, SchemeF
from agentmark.demo.next_steps import TOGETHER, NextStep
from agentmark.demo.recovery import LINE_WIDTH
from agentmark.disclosure.check import DisclosedSteps
from agentmark.disclosure.document import Disclosure
from agentmark.embed.embedder import Embedder
from agentmark.identity.registry import Registry
from agentmark.keys.public import PublicKey
from agentmark.log.jsonl import LogWriter
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark.verify.intake import Outcome
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier

MARKING_KEY, PUBLIC_KEY = "marking.json", "marking.pub.json"
LOG, FORGED, DISCLOSURE = "public.jsonl", "public-forged.jsonl", "public.disclosure.json"
OWN_NAMES = (MARKING_KEY, PUBLIC_KEY)
# What the reader of a clone types to have this act.
REMEDY = "pip install '.[public]'"
# Read by elimination: the third party has no registry to look identities up in.
SCHEME = SchemeF.name


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """What somebody reads who has a public key, a log and its disclosure; and what comes of forging with them."""

    folder: Path
    disclosed: int
    verdict: Verdict
    # The forger's log: how many choices were changed, for whom; what the secret would make of it, and the disclosure.
    changed: int
    framed: str
    by_secret: Verdict
    by_disclosure: Verdict

    @property
    def held(self) -> bool:
        """Whether it went as the act means to show."""
        return self.verdict.accepted and not self.by_disclosure.accepted

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        public = ("--disclosure", self.folder / DISCLOSURE, "--public-key", self.folder / PUBLIC_KEY, TOGETHER)
        report = self.folder / "public-report.html"
        return (
            NextStep(
                "Whose is it, without any secret?",
                ("verify", self.folder / LOG, *public, "--report", report),
            ),
            NextStep("Whoever gets that one page checks it again:", ("check-report", report)),
            NextStep(
                "And the forged log? Its records are not the disclosed ones.", ("verify", self.folder / FORGED, *public)
            ),
        )


def can_run() -> bool:
    return find_spec("nacl") is not None


def play(
    folder: Path,
    records_of: Callable[[Embedder], Iterable[StepRecord]],
    *,
    registry: Registry,
    tenant: str,
    framed: str,
) -> ThirdParty:
    """`tenant` marks with a key pair of its own and discloses; the third party reads, and then frames `framed`."""
    from agentmark.disclosure.make import disclose
    from agentmark.keys.marking import MarkingKey

    # The tenant's side. Files of an earlier demonstration are replaced.
    for name in (*OWN_NAMES, LOG, FORGED, DISCLOSURE):
        (folder / name).unlink(missing_ok=True)
    key = MarkingKey.generate()
    key.save(folder / MARKING_KEY)
    key.public.save(folder / PUBLIC_KEY)
    _write(folder / LOG, records_of(Embedder(key, tenant, registry=registry, scheme=SCHEME)))
    disclose(open_log(folder / LOG), key).save(folder / DISCLOSURE)

    # The third party's: three files, none of them secret.
    log = list(open_log(folder / LOG))
    disclosure = Disclosure.load(folder / DISCLOSURE)
    assert disclosure.public_key == PublicKey.load(folder / PUBLIC_KEY)
    steps = DisclosedSteps(disclosure)
    victim = registry.named(framed).payload
    forged = [_forged(record, steps, victim) for record in log]
    _write(folder / FORGED, forged)
    return ThirdParty(
        folder=folder,
        disclosed=len(disclosure.entries),
        verdict=Verifier(steps).verify(log),
        changed=sum([record != original for record, original in zip(forged, log, strict=True)]),
        framed=framed,
        by_secret=Verifier(key, registry=registry).verify(forged),
        by_disclosure=Verifier(steps, registry=registry).verify(forged),
    )


def _forged(record: StepRecord, steps: DisclosedSteps, payload: int) -> StepRecord:
    """The step as the key itself would have taken it for another identity: a disclosure tells what that is."""
    step_key = steps.proof_of(record).step_key
    if step_key is None or record.distribution is None:
        return record
    scheme = SCHEMES[record.scheme]
    behavior = scheme.choose(record.distribution, step_key, payload=payload, payload_len=record.payload_len)
    return record if behavior is None else replace(record, behavior=behavior)


def _write(path: Path, records: Iterable[StepRecord]) -> None:
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


def third_party_lines(act: ThirdParty | None, tenant: str) -> list[str]:
    """The act for a terminal; without the extra, what is left out."""
    if act is None:
        return [
            "Left out: a third party reads the identity without the secret, and tries to forge. It takes keys with a",
            f"public half: {REMEDY}, and run the demonstration again.",
        ]
    altered = act.by_disclosure.counts[Outcome.ALTERED]
    answers = (
        ("reads", act.verdict.sentence),
        (
            "forges",
            f"with the step keys in the disclosure it rewrites {act.changed} choices, so that the log says "
            f"{act.framed!r}. {_by_secret(act)}",
        ),
        (
            "is caught",
            f"{altered} records are not those that were disclosed. {act.by_disclosure.sentence}",
        ),
    )
    return [
        f"A third party has the public key of {tenant!r}, {act.disclosed} records and their disclosure. No secret:",
        *[line for label, sentence in answers for line in _answer(label, sentence)],
    ]


def _by_secret(act: ThirdParty) -> str:
    """How good the forgery is: whoever holds a shared key in place of the disclosure would believe it."""
    if not act.by_secret.accepted:
        return "Read with the secret itself, it would name nobody."
    return "Read with the secret itself it would pass: as with a shared key, where whoever checks can forge."


def _answer(label: str, sentence: str) -> list[str]:
    first = f"    {label + ':':<13}"
    return wrap(sentence, LINE_WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
