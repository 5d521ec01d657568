"""A verdict of public mode once more, from its report alone: without the secret, and without any other file.

What the report says of the verdict must be what its own records, disclosures and keys come to. `repeat` does, in order:

(1) the disclosures: by whom they are, and that they are as their holders made them
(2) the records, each a valid one
(3) the basis: against whom the verdict holds, and what is paid for that
(4) the verdict, by the verifier that everyone uses
(5) the comparison, member by member
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentmark.audit.stretches import find_segments
from agentmark.core.errors import AgentMarkError
from agentmark.core.payload import PayloadLike
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.disclosure.basis import PublicBasis, Statement
from agentmark.disclosure.check import DisclosedSteps, disclosed_steps
from agentmark.disclosure.document import Disclosure
from agentmark.disclosure.tenants import Tenant
from agentmark.errors import SettingError
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.public import PublicKey
from agentmark.record import StepRecord
from agentmark.report.content import build_report
from agentmark.report.disclosed_part import Carried, DisclosedPart, RestsOnPart, TenantPart, is_carried
from agentmark.report.parts import Report
from agentmark.report.provenance import Provenance
from agentmark.text import counted, is_or_are
from agentmark.verify.intake import COUNTED_AGAINST
from agentmark.verify.state import accumulate
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier
from agentmark.verify.work import READ_PER_BYTE, Work

# Of a report that differs in everything, so many differences are told.
DIFFERENCES_TOLD, RECORDS_TOLD = 6, 2
VALUE_LEN = 80
# What only a registry of public keys can tell.
NAMES_NOT_CHECKED = "whose name the public key is registered for, and when"

# What follows from the records, the disclosures and the question, and is compared.
_FOLLOWING = (
    "keys",
    "rests_on",
    "question",
    "verdict",
    "disclosed",
    "ownership",
    "growth",
    "rank_growth",
    "segments",
    "steps",
    "steps_left_out",
)
_SAYING_MOST = ("accepted", "payload", "identity", "bound", "route", "outcomes", "records")
# Of a verdict: what also depends on the identities of a registry that is not here.
_OF_THE_REGISTRY = ("runner_up", "work", "work_note")
# Of one that names nobody: what rests on the records alone, and not on who of that registry comes closest.
_OF_THE_RECORDS = (
    "accepted",
    "found",
    "payload_len",
    "schemes",
    "threshold",
    "potential_bits",
    "rank",
    "used",
    "records",
    "outcomes",
)
# And of a step: what it says of whoever that is.
_OF_WHO_COMES_CLOSEST = ("finding", "evidence_bits")


class RepeatError(AgentMarkError, ValueError):
    """A report that cannot be repeated here, as opposed to one that was altered."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"report: {fault}")
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """What came out. Only without differences may the verdict of the report be relied on."""

    # What in the report is not what its records come to, in sentences.
    differences: Sequence[str] = ()
    # What the verdict rests on; None if the disclosures or the keys in the report do not hold.
    basis: PublicBasis | None = None
    verdict: Verdict | None = None
    records: int = 0
    # What was not repeated, in sentences.
    not_repeated: Sequence[str] = ()

    @property
    def public_keys(self) -> tuple[PublicKey, ...]:
        return () if self.basis is None else self.basis.public_keys


def repeat(report: Report, *, registry: Registry | None = None, work_limit: int = DEFAULT_WORK_LIMIT) -> Repeated:
    """Judge the records of a report again. `registry` is the one that the report was made with, if it is at hand.
    `work_limit` is how much work may be asked for: whoever made the report says how much it took."""
    part = report["disclosed"]
    if part is None:
        raise RepeatError("carries no disclosure: its verdict takes the files, and perhaps the secret, to be repeated")
    if part["asked"]["work_limit"] > work_limit:
        raise RepeatError(
            f"its verdict was looked for with a work limit of {part['asked']['work_limit']:,}, which may take long; "
            "allow that much with --work-limit"
        )
    entries = sum([len(each["records"]) for each in part["disclosures"]])
    if not is_carried(records=len(part["records"]), entries=entries, disclosures=len(part["disclosures"])):
        raise RepeatError("carries more records or disclosures than any report does; judge the files with `verify`")
    try:
        # (1) to (3). What does not hold here was not so when the report was made.
        exhibit = _Exhibit.of(part, report["rests_on"])
    except AgentMarkError as error:
        return Repeated(differences=(str(error),))
    return _Repetition(report, part, exhibit, registry).repeated()


@dataclass(frozen=True, slots=True)
class _Exhibit:
    """What a report carries, read back and checked."""

    steps: list[DisclosedSteps]
    basis: PublicBasis
    records: list[StepRecord]
    disclosures: list[Disclosure] = field(default_factory=list)

    @classmethod
    def of(cls, part: DisclosedPart, rests_on: RestsOnPart | None) -> "_Exhibit":
        if rests_on is None:
            raise RepeatError("does not say what its verdict rests on")
        disclosures = [
            Disclosure.from_dict(content, source=f"number {number} in the report")
            for number, content in enumerate(part["disclosures"], start=1)
        ]
        keys = {disclosure.public_key.id: disclosure.public_key for disclosure in disclosures}
        records = [
            StepRecord.from_json(line, where=f"number {number} in the report")
            for number, line in enumerate(part["records"], start=1)
        ]
        if rests_on["statement"] not in list(Statement):
            raise RepeatError(f"the statement that it rests on, {rests_on['statement'][:VALUE_LEN]!r}, is none")
        basis = PublicBasis(
            public_keys=tuple(keys.values()),
            statement=Statement(rests_on["statement"]),
            keys_registered=rests_on["keys_registered"],
            tenants=tuple([_tenant(tenant, keys) for tenant in rests_on["tenants"]]),
        )
        return cls(disclosed_steps(disclosures, keys.values()), basis, records, disclosures)


def _tenant(said: TenantPart, keys: dict[str, PublicKey]) -> Tenant:
    if said["key_id"] not in keys:
        raise RepeatError(f"names the holder of key {said['key_id'][:VALUE_LEN]!r}, which disclosed nothing in it")
    return Tenant(said["name"], keys[said["key_id"]], said["registered_at"], said["revoked_at"])


class _StatedRegistry(Registry):
    """A registry of which the report has those that it names, and the size."""

    def __init__(self, payload_len: int, identities: Iterable[Identity], size: int) -> None:
        super().__init__(payload_len)
        for identity in identities:
            self._enter(identity)
        self._size = max(size, len(self._by_name))

    def __len__(self) -> int:
        return self._size


class _Repetition:
    """One report at work: the question of it once more, and the answer beside what it says."""

    def __init__(self, report: Report, part: DisclosedPart, exhibit: _Exhibit, registry: Registry | None) -> None:
        self._report = report
        self._part = part
        self._exhibit = exhibit
        self._given = registry

    def repeated(self) -> Repeated:
        try:
            again, verdict = self._judged()
        except (AgentMarkError, ValueError, OverflowError) as error:
            return Repeated(differences=(f"its question cannot have been asked: {error}",), basis=self._exhibit.basis)
        # (5) As JSON, for a list and a tuple are the same there.
        differences = self._records_against(verdict)
        differences += _differences(self._compared(self._report), self._compared(json.loads(json.dumps(again))))
        differences += self._findings(again["findings"])
        more = len(differences) - DIFFERENCES_TOLD
        return Repeated(
            differences=differences[:DIFFERENCES_TOLD] + ([f"and {more:,} more differences"] if more > 0 else []),
            basis=self._exhibit.basis,
            verdict=verdict,
            records=len(self._exhibit.records),
            not_repeated=self._not_repeated(len(again["findings"])),
        )

    def _judged(self) -> tuple[Report, Verdict]:
        """(4) The same question, asked again, and the report that it makes."""
        asked, exhibit = self._part["asked"], self._exhibit
        registry = self._registry()
        claim = self._claim(registry)
        verifier = Verifier(
            exhibit.steps,
            payload_len=asked["payload_len"],
            threshold=float(asked["threshold"]),
            registry=registry,
            noise=None if asked["noise"] is None else float(asked["noise"]),
            work_limit=asked["work_limit"],
        ).resting_on(exhibit.basis)
        # Reading follows the size of the files, of which the lines in here are the most.
        size = sum([len(line.encode("utf-8", "surrogatepass")) for line in self._part["records"]])
        reading = Work(min(asked["reading_limit"], max(asked["work_limit"], 2 * READ_PER_BYTE * size)))
        intake = verifier.sort_out(accumulate(exhibit.records, verifier.keys, reading))
        verdict = verifier.judge.verdict(intake, claim)
        segments, hints = find_segments(
            verifier.judge, intake, verdict, asked=asked["segments"], progress=lambda _: None
        )
        missing = [each.missing(exhibit.records) for each in exhibit.steps] if asked["all_sessions"] else []
        again = build_report(
            verdict,
            # A random key's verdict is not repeated, and not compared.
            control=verdict,
            intake=intake,
            noise_rates=verifier.noise_rates,
            provenance=Provenance(made_at=datetime.now(UTC), command="", key_ids=verifier.keys.ids),
            claim=self._report["question"]["claim"],
            claim_taken_as=self._report["question"]["claim_taken_as"],
            registry_size=None if registry is None else len(registry),
            findings=[*hints, *[sentence for sentence in missing if sentence is not None]],
            segments=segments,
            carried=Carried(
                basis=exhibit.basis,
                disclosures=exhibit.disclosures,
                records=exhibit.records,
                asked=asked,
                registry=registry,
                claim=claim if isinstance(claim, str) and registry is not None else None,
            ),
        )
        return again, verdict

    def _registry(self) -> Registry | None:
        size = self._report["question"]["registry_size"]
        if size is None:
            return None
        if self._given is not None:
            return self._given
        identities = [
            Identity(said["name"], int(said["payload"] or "0", 16), revoked_at=said["revoked_at"])
            for said in self._part["identities"]
        ]
        return _StatedRegistry(self._report["verdict"]["payload_len"], identities, size)

    def _claim(self, registry: Registry | None) -> PayloadLike:
        """The claim as it was taken (`case.claim_as_taken`)."""
        question = self._report["question"]
        claim, taken_as = question["claim"], question["claim_taken_as"]
        if (claim is None) != (taken_as is None):
            raise SettingError("claim", "is stated, or what it was taken as, and not both")
        if claim is None or taken_as is None:
            return None
        if taken_as == "a number":
            return int(claim, 16)
        if taken_as == "bytes":
            return bytes.fromhex(claim.removeprefix("0x"))
        if taken_as == "bits":
            return [int(digit) for digit in claim.removeprefix("0b")]
        if (registry is not None) != (taken_as == "a name in the registry"):
            raise SettingError("claim", f"{claim[:VALUE_LEN]!r} is not {taken_as[:VALUE_LEN]}")
        return claim

    @property
    def _registry_is_missing(self) -> bool:
        return self._report["question"]["registry_size"] is not None and self._given is None

    @property
    def _nobody_of_a_registry(self) -> bool:
        """Whether the report says that nobody is named whom a registry holds that is not here."""
        nobody = not self._report["verdict"]["found"] and self._report["question"]["claim"] is None
        return self._registry_is_missing and nobody

    def _compared(self, report: Any) -> dict[str, Any]:
        compared = {name: report[name] for name in _FOLLOWING}
        verdict = report["verdict"]
        # Of many differences the first are told: those first that say most.
        first = {name: verdict[name] for name in _SAYING_MOST}
        compared["verdict"] = first | {name: value for name, value in verdict.items() if name not in first}
        if self._nobody_of_a_registry:
            compared = _without(compared, ("ownership", "growth", "segments"))
            compared["verdict"] = {name: verdict[name] for name in _OF_THE_RECORDS}
            compared["steps"] = [_without(step, _OF_WHO_COMES_CLOSEST) for step in report["steps"]]
        elif self._registry_is_missing:
            compared["verdict"] = _without(compared["verdict"], _OF_THE_REGISTRY)
        return compared

    def _records_against(self, verdict: Verdict) -> list[str]:
        """Records that the report counts as proved, and that its disclosures do not prove: the first few."""
        said = self._report["steps"]
        found = [
            f"record number {number} in the report ({finding.record.where}) is {finding.outcome}"
            for number, finding in enumerate(verdict.findings[: len(said)], start=1)
            if finding.outcome in COUNTED_AGAINST and said[number - 1]["outcome"] != finding.outcome
        ]
        return found[:RECORDS_TOLD]

    def _findings(self, expected: Sequence[str]) -> list[str]:
        said = self._report["findings"]
        return [f"findings does not say: {sentence}" for sentence in expected if sentence not in said]

    def _left_out(self) -> list[str]:
        """What was disclosed and is not here, where the report is about some of the sessions."""
        there = [each.missing(self._exhibit.records) for each in self._exhibit.steps]
        return [f"the report is about chosen sessions. If they were all: {each}" for each in there if each is not None]

    def _chosen(self) -> list[str]:
        """What whoever asked may have tried several of; by default it does not depend on what the log says."""
        asked = self._part["asked"]
        given = (("the share of foreign steps", asked["noise"]), ("the payload length", asked["payload_len"]))
        chosen = [words for words, value in given if value is not None]
        if not chosen:
            return []
        return [
            f"that {' and '.join(chosen)} asked for {is_or_are(len(chosen))} not the best of several that were tried: "
            "each is a question more, and nobody paid for it"
        ]

    def _not_repeated(self, findings: int) -> list[str]:
        report = self._report
        said = [
            "that the records are those of the files: compare the SHA-256 of the files, and what was passed over",
            "the control, which takes a random key; time, author, case and note",
        ]
        basis = self._exhibit.basis
        if basis.statement is Statement.CLAIMED_BY_HOLDER:
            keys = counted(basis.keys_registered, "registered key")
            said.append(f"the conditions of the claim, and that the claimant had {keys}")
        if report["question"]["claim"] is not None and basis.statement is Statement.STRANGERS:
            length = counted(report["verdict"]["payload_len"], "bit")
            said.append(f"that the claim was made before anyone looked at the log: found in it, it costs {length} more")
        said += self._chosen()
        if not self._part["asked"]["all_sessions"]:
            said += self._left_out()
        if basis.tenants:
            said.append(NAMES_NOT_CHECKED)
        if self._nobody_of_a_registry:
            said.append("that nobody of the registry is named: it takes the registry (--registry)")
        elif self._registry_is_missing:
            size = counted(report["question"]["registry_size"] or 0, "identity", "identities")
            said.append(
                f"that the registry held {size} before anyone looked at the log, and which name has which number "
                "(--registry): one that was made to fit saves nearly all that naming an identity costs"
            )
            said.append("how near the next of that registry comes, and what looking for it took")
        if report["chains"]:
            said.append("the chains of the logs")
        if len(report["findings"]) > findings:
            said.append(f"{counted(len(report['findings']) - findings, 'finding')} on files and chains")
        return said


def _without(content: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def _differences(said: Any, found: Any, where: str = "") -> Iterator[str]:
    """Where two values part, in sentences that name the place."""
    if isinstance(said, dict) and isinstance(found, dict) and said.keys() == found.keys():
        for name in said:
            yield from _differences(said[name], found[name], f"{where}.{name}" if where else name)
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for number, (left, right) in enumerate(zip(said, found, strict=True)):
            yield from _differences(left, right, f"{where}[{number}]")
    elif said != found or type(said) is not type(found):
        yield f"{where} says {_shown(said)}, and its records and proofs say {_shown(found)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_LEN else f"{text[:VALUE_LEN]}..."
