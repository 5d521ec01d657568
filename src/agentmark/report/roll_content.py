"""The report on many sessions as plain data: what its pages show and a signature covers (docs/report.md)."""

import platform
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2
from typing import TypedDict

from agentmark.core.payload import payload_to_text
from agentmark.errors import SettingError
from agentmark.report.numbers import bits_text, rate_in_words, rate_text
from agentmark.report.provenance import InputFile, Provenance
from agentmark.verify.correction import Correction, Familywise
from agentmark.verify.intake import Outcome
from agentmark.verify.roll import IdentityTotal, Pool, Roll, RollRow
from agentmark.verify.stranger import name_of, payload_digits
from agentmark.verify.verdict import FoundIdentity
from agentmark.version import __version__

ROLL_VERSION = 1
IDENTITY_VERSION = 1
# The two promises that a report can make of all names together.
FAMILYWISE = "familywise"
FALSE_DISCOVERY = "false discovery rate"
# What a page is called, of a name that may be as long and as odd as its holder likes.
SLUG_LEN = 32
# What stands on the page of an identity for a text that names somebody else.
LEFT_OUT = "left out: it names another party"


class CorrectionPart(TypedDict):
    """What is promised of all names together. `level` is the chance that any is wrong, or the share that may be."""

    kind: str
    level: str
    questions: int
    explained: str


class RollQuestionPart(TypedDict):
    claim: str | None
    claim_taken_as: str | None
    registry_size: int | None
    noise_rates: list[str]


class SummaryPart(TypedDict):
    """How many rows stand where. `pooled` are those of the short ones that speak for somebody together."""

    rows: int
    standings: dict[str, int]
    pooled: int
    identities: int
    records: int
    outcomes: dict[str, int]


class IdentityPart(TypedDict):
    """Somebody who is named. `rows` and `pooled_rows` are numbers of rows; `page` is the file of their own page."""

    number: int
    page: str
    name: str
    identity: str | None
    revoked_at: str | None
    payload: str
    payload_len: int
    text: str | None
    rows: list[int]
    pooled_rows: list[int]
    steps: int
    bound: str
    bound_in_words: str


class NamedPart(TypedDict):
    """What a row says for one identity that is named in it (its number)."""

    identity: int
    evidence_bits: str
    level_bits: str
    bound: str
    at_least_steps: int


class PoolPart(TypedDict):
    number: int
    identity: int
    rows: list[int]
    among: int
    evidence_bits: str
    level_bits: str
    bound: str
    bound_in_words: str


class RowPart(TypedDict):
    """One session, or one file. Nobody is in `named` who is not accepted."""

    number: int
    name: str
    files: list[str]
    standing: str
    sentence: str
    named: list[NamedPart]
    pool: int | None
    threshold: str
    level_bits: str
    potential_bits: str
    records: int
    used: int
    set_aside: int
    outcomes: dict[str, int]
    steps_needed: int | None
    key_ids: list[str]
    shared_contexts: int | None
    tampering: list[str]
    work_note: str | None


class RollReport(TypedDict):
    """All that the report on a roll says. No floats, no secrets; every text is as it was read."""

    agentmark_roll: int
    made_at: str
    case_number: str | None
    author: str | None
    note: str | None
    versions: dict[str, str]
    command: str
    options: list[list[str]]
    keys: list[str]
    inputs: list[InputFile]
    question: RollQuestionPart
    by: str
    sentence: str
    correction: CorrectionPart
    summary: SummaryPart
    identities: list[IdentityPart]
    pools: list[PoolPart]
    rows: list[RowPart]
    findings: list[str]
    passed_over: list[str]


class IdentityRowPart(TypedDict):
    """A session of this identity. `evidence_bits` and what follows are its own; null if it speaks in a group alone.

    `mixed`: it holds steps of somebody else as well, who is proved too.
    """

    number: int
    name: str
    files: list[str]
    evidence_bits: str | None
    level_bits: str | None
    bound: str | None
    at_least_steps: int | None
    mixed: bool
    records: int
    used: int
    set_aside: int
    outcomes: dict[str, int]
    tampering: list[str]


class IdentityPoolPart(TypedDict):
    rows: list[int]
    among: int
    evidence_bits: str
    level_bits: str
    bound: str
    bound_in_words: str


class WhoPart(TypedDict):
    name: str
    identity: str | None
    revoked_at: str | None
    payload: str
    payload_len: int
    text: str | None
    steps: int
    bound: str
    bound_in_words: str


class IdentityReport(TypedDict):
    """All that the page of one identity says. `whole` is the SHA-256 of the report that it was taken from; `folder`:
    the command names a folder for the files; `left_out`: so many texts would have named somebody else."""

    agentmark_roll_identity: int
    whole: str
    made_at: str
    case_number: str | None
    author: str | None
    versions: dict[str, str]
    command: str
    folder: bool
    keys: list[str]
    inputs: list[InputFile]
    noise_rates: list[str]
    by: str
    sentence: str
    correction: CorrectionPart
    judged: int
    who: WhoPart
    rows: list[IdentityRowPart]
    pooled: list[IdentityRowPart]
    pools: list[IdentityPoolPart]
    passed_over: list[str]
    left_out: int


def build_roll_report(
    roll: Roll,
    *,
    provenance: Provenance,
    noise_rates: Sequence[float],
    claim: str | None = None,
    claim_taken_as: str | None = None,
    registry_size: int | None = None,
    options: Iterable[Sequence[str]] = (),
    findings: Iterable[str] = (),
    passed_over: Iterable[str] = (),
    for_stranger: bool = False,
) -> RollReport:
    """Put a roll and where it comes from together.

    `options` are those of the command without its files, each with its value (`("--key", "key.json")`): from them the
    page of an identity has a command of its own, without what names others. `findings` are sentences on tampering
    beside those of the rows. Strangers get no such report: it tells of every record.
    """
    if for_stranger:
        raise SettingError(
            "for_stranger",
            "a report on many sessions shows evidence, which is for the holder of the key; ask about one session",
        )
    totals = roll.totals
    numbers = {(total.payload, total.payload_len): i for i, total in enumerate(totals, start=1)}
    level = _level(roll.correction)
    outcomes = sum((row.verdict.counts for row in roll.rows), Counter[Outcome]())
    return RollReport(
        agentmark_roll=ROLL_VERSION,
        made_at=provenance.made_at_text,
        case_number=provenance.case_number,
        author=provenance.author,
        note=provenance.note,
        versions={"agentmark": __version__, "python": platform.python_version()},
        command=provenance.command,
        options=[list(option) for option in options],
        keys=list(provenance.key_ids),
        inputs=list(provenance.inputs),
        question=RollQuestionPart(
            claim=claim,
            claim_taken_as=claim_taken_as,
            registry_size=registry_size,
            noise_rates=[f"{rate:g}" for rate in noise_rates],
        ),
        by=str(roll.by),
        sentence=roll.sentence,
        correction=CorrectionPart(
            kind=FAMILYWISE if isinstance(roll.correction, Familywise) else FALSE_DISCOVERY,
            level=f"{level:g}",
            questions=roll.questions,
            explained=roll.correction.explained,
        ),
        summary=SummaryPart(
            rows=len(roll.rows),
            standings={str(standing): count for standing, count in sorted(roll.standings.items())},
            pooled=sum(row.pool is not None for row in roll.rows),
            identities=len(totals),
            records=outcomes.total(),
            outcomes={str(outcome): count for outcome, count in sorted(outcomes.items())},
        ),
        identities=[_identity_part(number, total, len(totals)) for number, total in enumerate(totals, start=1)],
        pools=[
            _pool_part(number, pool, numbers, pool_threshold(roll)) for number, pool in enumerate(roll.pools, start=1)
        ],
        rows=[_row_part(number, row, numbers) for number, row in enumerate(roll.rows, start=1)],
        findings=list(findings),
        passed_over=list(passed_over),
    )


def _level(correction: Correction) -> float:
    return correction.threshold if isinstance(correction, Familywise) else correction.rate


def pool_threshold(roll: Roll) -> float:
    """What a pool's bound is compared with: as every row's."""
    return min([row.verdict.threshold for row in roll.rows], default=_level(roll.correction))


def _identity_part(number: int, total: IdentityTotal, count: int) -> IdentityPart:
    return IdentityPart(
        number=number,
        page=_page_name(number, total, count),
        name=name_of(total.payload, total.payload_len, total.identity, total.revoked_at),
        identity=total.identity,
        revoked_at=total.revoked_at,
        payload=payload_digits(total.payload, total.payload_len),
        payload_len=total.payload_len,
        text=payload_to_text(total.payload, total.payload_len),
        rows=[i + 1 for i in total.rows],
        pooled_rows=[i + 1 for i in total.pooled_rows],
        steps=total.steps,
        bound=rate_text(total.worst_rate),
        bound_in_words=rate_in_words(total.worst_rate),
    )


def _page_name(number: int, total: IdentityTotal, count: int) -> str:
    """identity-01-acme.html: the number makes it unique, on disks too that do not tell letters by their case."""
    called = total.identity or payload_digits(total.payload, total.payload_len)
    slug = re.sub("[^a-z0-9]+", "-", called.lower())[:SLUG_LEN].strip("-")
    return "-".join(["identity", f"{number:0{max(2, len(str(count)))}}", *([slug] if slug else [])]) + ".html"


def _pool_part(number: int, pool: Pool, numbers: dict[tuple[int, int], int], threshold: float) -> PoolPart:
    return PoolPart(
        number=number,
        identity=numbers[pool.payload, pool.payload_len],
        rows=[i + 1 for i in pool.rows],
        among=pool.among,
        evidence_bits=_bits(pool.evidence_bits),
        level_bits=_bits(pool.bits_paid - log2(threshold)),
        bound=rate_text(pool.false_positive_rate),
        bound_in_words=rate_in_words(pool.false_positive_rate),
    )


def _row_part(number: int, row: RollRow, numbers: dict[tuple[int, int], int]) -> RowPart:
    verdict = row.verdict
    counts = verdict.counts
    return RowPart(
        number=number,
        name=_as_text(row.name),
        files=[_as_text(path) for path in row.files],
        standing=str(verdict.standing),
        sentence=verdict.sentence,
        named=[
            _named_part(found, numbers[found.payload, found.payload_len], verdict.threshold) for found in verdict.found
        ],
        pool=None if row.pool is None else row.pool + 1,
        threshold=f"{verdict.threshold:g}",
        level_bits=_bits(verdict.bits_paid - log2(verdict.threshold)),
        potential_bits=_bits(verdict.potential_bits),
        records=verdict.record_count,
        used=counts[Outcome.USED],
        set_aside=verdict.record_count - counts[Outcome.USED],
        outcomes={str(outcome): count for outcome, count in sorted(counts.items())},
        steps_needed=verdict.steps_needed,
        key_ids=list(verdict.key_ids),
        shared_contexts=row.shared_contexts,
        tampering=list(verdict.tampering),
        work_note=verdict.work_note,
    )


def _named_part(found: FoundIdentity, number: int, threshold: float) -> NamedPart:
    return NamedPart(
        identity=number,
        evidence_bits=_bits(found.evidence_bits),
        level_bits=_bits(found.bits_paid - log2(threshold)),
        bound=rate_text(found.false_positive_rate),
        at_least_steps=found.at_least_steps,
    )


def _as_text(name: str) -> str:
    """A file name that is not UTF-8, as the list of files has it."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _bits(bits: float) -> str:
    return bits_text(bits) or "0.000"
