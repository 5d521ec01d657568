"""The report on a bulk audit, put together while its rows pass by: the first of each identity, and what all come to."""

import json
import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from agentmark.audit.judged import AuditSummary, AuditTotal, JudgedRow, row_word
from agentmark.audit.results import AuditRow
from agentmark.audit.shard_reading import ShardOutcome
from agentmark.errors import SettingError
from agentmark.files import FileError, write_text_file
from agentmark.report.audit_page import (
    AUDIT_VERSION,
    INPUTS,
    MOST_PAGES,
    MOST_ROWS,
    AuditFilesPart,
    AuditIdentityPart,
    AuditReport,
    AuditRowPart,
    audit_files,
    page_name,
)
from agentmark.report.numbers import rate_text
from agentmark.report.provenance import InputFile
from agentmark.report.roll_content import FALSE_DISCOVERY, FAMILYWISE, CorrectionPart
from agentmark.report.roll_pieces import MOST_FILES
from agentmark.verify.correction import Familywise
from agentmark.verify.roll import Pool
from agentmark.verify.stranger import payload_digits
from agentmark.version import __version__

# Rows that are kept for all pages together, however many identities there are.
KEPT_ROWS = 100_000
# Identities in the data of the report, and files that were skipped; the results have all.
MOST_IDENTITIES, MOST_BAD = 10_000, 1000


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """Where a report goes, and the command in it that gives the same rows again."""

    folder: Path
    command: str

    def check(self) -> None:
        """Refuse a folder that cannot be written, before the work is done."""
        if self.folder.exists() and not self.folder.is_dir():
            raise SettingError(str(self.folder), "is a file; a report on an audit is a folder of pages")


@dataclass(slots=True)
class ReportRows:
    """The first rows of each identity, kept as they pass by."""

    _kept: defaultdict[tuple[int, int], list[AuditRowPart]] = field(default_factory=lambda: defaultdict(list))
    _pooled: defaultdict[int, list[AuditRowPart]] = field(default_factory=lambda: defaultdict(list))
    _left: int = KEPT_ROWS

    def take(self, judged: JudgedRow) -> None:
        for named in judged.found:
            rows = self._kept[named.payload, named.payload_len]
            if self._room(rows):
                mixed = len(judged.found) > 1
                rows.append(_row_part(judged.row, rate_text(named.bound), mixed=mixed, pooled=False))
        if judged.pool is not None and self._room(self._pooled[judged.pool]):
            self._pooled[judged.pool].append(_row_part(judged.row, "", mixed=False, pooled=True))

    def _room(self, rows: Sequence[AuditRowPart]) -> bool:
        if self._left <= 0 or len(rows) >= MOST_ROWS:
            return False
        self._left -= 1
        return True

    def of(self, total: AuditTotal, pools: Sequence[Pool]) -> list[AuditRowPart]:
        """The rows of one identity: those that name it, then those that speak for it in a pool."""
        identity = total.payload, total.payload_len
        rows = list(self._kept.get(identity, ()))
        for number, pool in enumerate(pools):
            if (pool.payload, pool.payload_len) == identity:
                rows += self._pooled.get(number, ())
        return rows[:MOST_ROWS]


def _row_part(row: AuditRow, bound: str, *, mixed: bool, pooled: bool) -> AuditRowPart:
    return AuditRowPart(
        name=row.group,
        bound=bound,
        used=row.used,
        set_aside=row.records - row.used,
        mixed=mixed,
        pooled=pooled,
        files=list(row.files[:3]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAbout:
    """What a report states beside what was found."""

    noise_rates: Sequence[float]
    registry_size: int | None
    results: str | None


def write_report(
    asked: ReportAsked,
    summary: AuditSummary,
    rows: ReportRows,
    outcomes: Sequence[ShardOutcome],
    about: ReportAbout,
) -> None:
    """Write the pages, their data, and the list of the inputs into the folder."""
    inputs = _inputs(outcomes)
    listed = "".join([json.dumps(line) + "\n" for line in inputs])
    report = _report(asked, about, summary, inputs, sha256(listed.encode("utf-8")).hexdigest())
    paged = summary.totals[:MOST_PAGES]
    files = audit_files(report, [rows.of(total, summary.pools) for total in paged])
    try:
        asked.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(asked.folder, f"cannot be made: {error.strerror}") from None
    for name, content in {**files, INPUTS: listed}.items():
        write_text_file(asked.folder / name, content)


def _inputs(outcomes: Sequence[ShardOutcome]) -> list[dict[str, object]]:
    """A line for each file, of which several ranges may have been read."""
    found: dict[str, dict[str, object]] = {}
    records: defaultdict[str, int] = defaultdict(int)
    for outcome in outcomes:
        records[outcome.path] += outcome.records
        line = found.setdefault(
            outcome.path,
            {"file": outcome.name, "bytes": outcome.size, "sha256": None, "records": 0, "skipped": None},
        )
        line["records"] = records[outcome.path]
        line["sha256"] = line["sha256"] or outcome.sha256
        line["skipped"] = line["skipped"] or outcome.failed
    return list(found.values())


def _report(
    asked: ReportAsked,
    about: ReportAbout,
    summary: AuditSummary,
    inputs: Sequence[dict[str, object]],
    manifest_sha256: str,
) -> AuditReport:
    correction, read = summary.correction, summary.read
    familywise = isinstance(correction, Familywise)
    level = correction.threshold if isinstance(correction, Familywise) else correction.rate
    return AuditReport(
        agentmark_audit=AUDIT_VERSION,
        made_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        case_number=None,
        author=None,
        versions={"agentmark": __version__, "python": platform.python_version()},
        command=asked.command,
        keys=list(summary.key_ids_given),
        noise_rates=[f"{rate:g}" for rate in about.noise_rates],
        claim=summary.claim,
        claim_taken_as=summary.claim_taken_as,
        registry_size=about.registry_size,
        by=str(summary.by),
        row_word=row_word(summary.by),
        sentence=summary.sentence,
        correction=CorrectionPart(
            kind=FAMILYWISE if familywise else FALSE_DISCOVERY,
            level=f"{level:g}",
            questions=summary.questions,
            explained=correction.explained,
        ),
        rows=summary.rows,
        standings={str(standing): count for standing, count in sorted(summary.standings.items())},
        outcomes={str(outcome): count for outcome, count in sorted(summary.outcomes.items()) if count},
        pooled=summary.pooled,
        pools=[pool.sentence for pool in summary.pools],
        identities=_identities(summary.totals[:MOST_IDENTITIES]),
        read=AuditFilesPart(
            files=read.shards,
            bytes=read.size,
            records=read.records,
            bad_records=read.bad_records,
            bad_files=[str(bad) for bad in read.bad_shards[:MOST_BAD]],
            notes=list(read.notes),
            more_notes=read.more_notes,
            manifest=INPUTS,
            manifest_sha256=manifest_sha256,
        ),
        inputs=[
            InputFile(kind="log", path=str(line["file"]), size=_number(line["bytes"]), sha256=_text(line["sha256"]))
            for line in inputs[:MOST_FILES]
        ],
        results=about.results,
    )


def _identities(totals: Sequence[AuditTotal]) -> list[AuditIdentityPart]:
    parts = []
    for number, total in enumerate(totals, start=1):
        part = AuditIdentityPart(
            name=total.name,
            identity=total.identity,
            revoked_at=total.revoked_at,
            payload=payload_digits(total.payload, total.payload_len),
            payload_len=total.payload_len,
            rows=total.rows,
            pooled_rows=total.pooled_rows,
            steps=total.steps,
            bound=rate_text(total.worst_rate),
            page="",
        )
        if number <= MOST_PAGES:
            part["page"] = page_name(number, part, len(totals))
        parts.append(part)
    return parts


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
