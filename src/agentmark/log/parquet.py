"""Records as a Parquet table: one row a record, a column a field (docs/convert.md; extra: parquet).

Records that were read from other logs go in here, for archives and for audits of many of them. An agent logs to one of
the sinks: a Parquet file can be read only once it is closed.
"""

import io
import json
import os
from collections.abc import Mapping
from typing import Any, Self

from agentmark.errors import MissingExtraError
from agentmark.files import FileError
from agentmark.record import StepRecord

# The table says in its own metadata which layout it has.
LAYOUT_KEY = "agentmark_steps"
LAYOUT_VERSION = "1"

TEXT, WHOLE, TRUTH, DIGEST, TEXTS, WHOLES = (
    "text",
    "integers",
    "booleans",
    "32 bytes",
    "lists of text",
    "lists of integers",
)
# The columns, in their order. What is null in a row is absent in the record.
LAYOUT = {
    "scheme": TEXT,
    "key_id": TEXT,
    "payload_len": WHOLE,
    "session": TEXT,
    "step": WHOLE,
    "context": DIGEST,
    "names": TEXTS,
    "weights": WHOLES,
    "partial": TRUTH,
    "choice": TEXT,
    "marked": TRUTH,
    "reason": TEXT,
    "enforced": TRUTH,
    "prev": DIGEST,
    "meta": TEXT,
    "raw_context": TEXT,
}

# A row group is read at once. It is full at so many rows, entries of lists, or bytes of free text.
GROUP_ROWS = 1 << 16
GROUP_ENTRIES = 1 << 20
GROUP_TEXT = 32 << 20


class ParquetRecords:
    """Writes records to a new file, in their order, a row group at a time. It is whole once it is closed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingExtraError("pyarrow", "parquet") from None
        self._arrow = pyarrow
        self._schema = _schema(pyarrow)
        try:
            # Refused if there is one.
            self._file = io.BufferedWriter(io.FileIO(path, "xb"))
        except OSError as error:
            raise FileError(path, f"cannot be written: {error.strerror}") from None
        self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self._begin()

    def _begin(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in LAYOUT}
        self._entries = self._text = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, record: StepRecord) -> None:
        for name, value in row_of(record).items():
            self._columns[name].append(value)
            if isinstance(value, list):
                self._entries += len(value)
            elif isinstance(value, str):
                self._text += len(value)
        full = len(self._columns["step"]) >= GROUP_ROWS
        if full or self._entries >= GROUP_ENTRIES or self._text >= GROUP_TEXT:
            self._flush()

    def _flush(self) -> None:
        if self._columns["step"]:
            self._writer.write_table(self._arrow.table(self._columns, schema=self._schema), row_group_size=GROUP_ROWS)
        self._begin()

    def close(self) -> None:
        """Write what is left, and the table of contents, without which nobody can read the file."""
        if not self._file.closed:
            self._flush()
            self._writer.close()
            self._file.close()


def _schema(arrow: Any) -> Any:
    kinds = {
        TEXT: arrow.string(),
        WHOLE: arrow.int64(),
        TRUTH: arrow.bool_(),
        DIGEST: arrow.binary(32),
        TEXTS: arrow.list_(arrow.string()),
        WHOLES: arrow.list_(arrow.int64()),
    }
    return arrow.schema([(name, kinds[kind]) for name, kind in LAYOUT.items()], metadata={LAYOUT_KEY: LAYOUT_VERSION})


def row_of(record: StepRecord) -> dict[str, Any]:
    """A record as a row. A list is null where none is logged, and where nothing is left of one."""
    content = record.as_dict()
    weights = content["weights"]
    return {
        "scheme": record.scheme,
        "key_id": record.key_id,
        "payload_len": record.payload_len,
        "session": record.session,
        "step": record.step_index,
        "context": record.context,
        "names": None if weights is None else list(weights),
        "weights": None if weights is None else list(weights.values()),
        "partial": record.partial_weights is not None,
        "choice": record.behavior,
        "marked": record.marked,
        "reason": record.reason,
        "enforced": record.enforced,
        "prev": None if record.prev is None else bytes.fromhex(record.prev),
        "meta": _json_text(record.meta),
        "raw_context": _json_text(record.raw_context),
    }


def _json_text(members: Mapping[str, Any] | None) -> str | None:
    return None if members is None else json.dumps(members, ensure_ascii=False, separators=(",", ":"))
