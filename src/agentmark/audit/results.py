"""The results of a bulk audit: a row for each group, in the order of their names, as Parquet, CSV or JSON lines.

A row names nobody who is not accepted. Rows are written one after the other, and never held together.
"""

import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from agentmark.errors import MissingExtraError, SettingError
from agentmark.files import FileError
from agentmark.text import spelled_out_json, spreadsheet_cell
from agentmark.verify.intake import COUNTED_AGAINST, Outcome
from agentmark.verify.roll import Pool, RollRow
from agentmark.verify.stranger import payload_digits
from agentmark.verify.verdict import FoundIdentity, Standing, Verdict

# A group that is spread over more files names the first of them, and says how many there are.
MOST_FILES = 20
# Rows of a batch of Parquet.
PARQUET_ROWS = 5000
SUFFIXES = (".parquet", ".csv", ".jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One group and its verdict, flat: the columns of the results, in their order (docs/audits.md)."""

    group: str
    standing: str
    # Who is named first, and how many are in all. None unless accepted.
    identity: str | None
    payload: str | None
    payload_len: int
    revoked_at: str | None
    identities: int
    # The further identities that are accepted, by name or digits.
    further: tuple[str, ...]
    # Of the identity that is named, or else of the best that was tried, whoever that is.
    evidence_bits: float | None
    bits_paid: float
    # Bound on the chance of so much agreement; 1 where nobody is named.
    bound: float
    threshold: float
    # Too short alone, and explained with others by an identity: which one.
    pooled: bool
    pooled_for: str | None
    # What the steps would say if every one agreed, and about how many more it takes.
    potential_bits: float
    steps_needed: int | None
    # Why nobody is named, in a sentence; None where somebody is.
    reason: str | None
    records: int
    used: int
    # How many records came to what: `used` and these are all of them.
    impossible: int
    unreadable: int
    unmarked: int
    not_enforced: int
    other_key: int
    other_length: int
    duplicate: int
    conflicting: int
    not_read: int
    schemes: tuple[str, ...]
    key_ids: tuple[str, ...]
    file_count: int
    files: tuple[str, ...]

    @classmethod
    def of(cls, row: RollRow, pools: Mapping[int, Pool] | tuple[Pool, ...] = ()) -> "AuditRow":
        """The row of a roll, with the pool that explains it, if there is one."""
        verdict = row.verdict
        found = verdict.found
        best = found[0] if found else None
        counts = verdict.counts
        return cls(
            group=row.name,
            standing=str(verdict.standing),
            identity=None if best is None else best.identity,
            payload=None if best is None else payload_digits(best.payload, best.payload_len),
            payload_len=verdict.payload_len,
            revoked_at=None if best is None else best.revoked_at,
            identities=len(found),
            further=tuple([who(identity) for identity in found[1:]]),
            evidence_bits=_finite(verdict.evidence_bits),
            bits_paid=verdict.bits_paid,
            bound=1.0 if best is None else best.false_positive_rate,
            threshold=verdict.threshold,
            pooled=row.pool is not None,
            pooled_for=None if row.pool is None else who(pools[row.pool]),
            potential_bits=verdict.potential_bits,
            steps_needed=verdict.steps_needed,
            reason=_reason(verdict),
            records=verdict.record_count,
            used=counts[Outcome.USED],
            **{name: counts[outcome] for name, outcome in OUTCOME_COLUMNS.items()},
            schemes=verdict.schemes,
            key_ids=verdict.key_ids,
            file_count=len(row.files),
            files=tuple([_writable(path) for path in row.files[:MOST_FILES]]),
        )

    def as_dict(self) -> dict[str, Any]:
        return {column: getattr(self, column) for column in COLUMNS}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "AuditRow":
        """The row that `as_dict` gave, also after it was JSON."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(**values)


COLUMNS = tuple([column.name for column in fields(AuditRow)])
# What reading with a disclosure comes to is no part of a bulk audit, which reads with keys.
OUTCOME_COLUMNS = {
    outcome.name.lower(): outcome for outcome in Outcome if outcome not in (Outcome.USED, *COUNTED_AGAINST)
}


def who(identity: FoundIdentity | Pool) -> str:
    """By name if the registry has one, else by the digits of the payload."""
    if identity.identity is not None:
        return identity.identity
    if not identity.payload_len:
        return "the key's holder"
    return f"0x{payload_digits(identity.payload, identity.payload_len)}"


def _reason(verdict: Verdict) -> str | None:
    return None if verdict.standing is Standing.ATTRIBUTED else verdict.sentence


def _finite(bits: float) -> float | None:
    return None if bits == float("-inf") else bits + 0.0


def _writable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# Files ---------------------------------------------------------------------------------------------------------------


class RowWriter(Protocol):
    """Takes rows one after the other. As a context manager it finishes the file, or leaves none."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, row: AuditRow) -> None: ...


def check_results(path: Path) -> None:
    """Refuse a file that cannot be written, before the work is done."""
    if path.suffix not in SUFFIXES:
        raise SettingError("--out", f"{path.name} ends in none of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise SettingError(str(path), "there is no such folder")
    if path.is_dir():
        raise SettingError(str(path), "is a folder: name a file in it")
    if path.suffix == ".parquet":
        _pyarrow()


def results_writer(path: Path) -> RowWriter:
    """The writer of a file, by the end of its name."""
    check_results(path)
    return {".parquet": ParquetRows, ".csv": CsvRows, ".jsonl": JsonRows}[path.suffix](path)


class _NewFile:
    """A file that takes its name when it is finished: what is there is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")

    def __enter__(self) -> Self:
        try:
            self._begin()
        except OSError as error:
            raise FileError(self._path, f"cannot be written: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end(whole=error is None)
            if error is None:
                self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def write(self, row: AuditRow) -> None:
        raise NotImplementedError

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self, *, whole: bool) -> None:
        raise NotImplementedError


class JsonRows(_NewFile):
    """A JSON object a line, with the columns as its members."""

    def _begin(self) -> None:
        self._file = self._temporary.open("w", encoding="utf-8", newline="\n")

    def _end(self, *, whole: bool) -> None:
        self._file.close()

    def write(self, row: AuditRow) -> None:
        # A file too may be looked at in a terminal.
        self._file.write(spelled_out_json(json.dumps(row.as_dict(), ensure_ascii=False)) + "\n")


class CsvRows(_NewFile):
    """For a spreadsheet: other people's text is no formula there, and digits are no number."""

    def _begin(self) -> None:
        self._file = self._temporary.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def _end(self, *, whole: bool) -> None:
        self._file.close()

    def write(self, row: AuditRow) -> None:
        self._writer.writerow([_cell(name, value) for name, value in row.as_dict().items()])


def _cell(name: str, value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return repr(value)
        case tuple():
            return spreadsheet_cell("; ".join(value))
    # With 0x before them: without it, a spreadsheet takes 12e10 for a number.
    return f"0x{value}" if name == "payload" else spreadsheet_cell(str(value))


class ParquetRows(_NewFile):
    """A table of typed columns (extra: parquet)."""

    def _begin(self) -> None:
        self._arrow, parquet = _pyarrow()
        self._schema = results_schema(self._arrow)
        self._rows: list[dict[str, Any]] = []
        self._writer = parquet.ParquetWriter(self._temporary, self._schema, compression="zstd")

    def _end(self, *, whole: bool) -> None:
        if whole:
            self._flush()
        self._writer.close()

    def write(self, row: AuditRow) -> None:
        self._rows.append(row.as_dict())
        if len(self._rows) == PARQUET_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet


def results_schema(arrow: Any) -> Any:
    types = {
        "str": arrow.string(),
        "int": arrow.int64(),
        "float": arrow.float64(),
        "bool": arrow.bool_(),
        "tuple[str, ...]": arrow.list_(arrow.string()),
    }
    return arrow.schema(
        [
            arrow.field(name, types[kind.removesuffix(" | None")], nullable=kind.endswith("None"))
            for name, kind in _column_types().items()
        ]
    )


def _column_types() -> dict[str, str]:
    return {
        column.name: column.type.__name__ if type(column.type) is type else str(column.type)
        for column in fields(AuditRow)
    }


class Discarded:
    """Rows that nobody asked to keep."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, row: AuditRow) -> None:
        pass


def write_rows(writer: RowWriter, rows: Iterable[AuditRow]) -> None:
    with writer:
        for row in rows:
            writer.write(row)
