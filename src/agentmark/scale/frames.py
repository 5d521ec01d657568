"""Audits with Daft: the same code natively on one machine and on a Ray cluster.

daft.set_runner_ray("ray://head:10001")          # or nothing, for this machine
frame = daft.read_text("s3://logs/**/*.jsonl", file_path_column="file")
answer = audit_frame(frame, KeyFiles("/etc/agentmark/key.json"))
answer.rows.write_parquet("s3://results/")
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import cpu_count
from typing import TYPE_CHECKING, Any

from agentmark.errors import MissingExtraError
from agentmark.scale.audit import ClusterAnswer, ClusterAudit
from agentmark.scale.cluster import Buckets, Phase, Reader, Rows, Spreader
from agentmark.scale.spreading import FileSpreader, LineSpreader, line_columns, shard_rows

if TYPE_CHECKING:
    from daft import DataFrame

# The rows of the input that one call sorts into pieces: enough that a piece of a thousand buckets holds some.
BATCH = 50_000
BUCKETS_EACH = 4


def audit_frame(
    frame: "DataFrame",
    audit: ClusterAudit,
    *,
    text: str = "text",
    file: str | None = None,
    line: str | None = None,
    buckets: int | None = None,
    workers: int | None = None,
) -> ClusterAnswer:
    """Judge the records of a frame, a line of JSON in each row of the column `text`; `file` and `line` are columns that
    say where it stood. `workers` are processes, by default a process for each core."""
    given = line_columns(text, file, line)
    count = buckets or _buckets(workers)
    renamed = frame.select(*[frame[column].alias(name) for name, column in given.items()])
    cluster = DaftCluster(renamed, list(given), buckets=count, workers=workers)
    return audit.run(cluster, LineSpreader(by=audit.by, buckets=count, limits=audit.limits))


def audit_files(
    paths: Sequence[str], audit: ClusterAudit, *, buckets: int | None = None, workers: int | None = None
) -> ClusterAnswer:
    """Judge what files hold, in every format that `agentmark audit` reads. All workers must see them at these paths."""
    count = buckets or _buckets(workers)
    found, rows = shard_rows(paths)
    frame = _daft().from_pylist(rows)
    if on_ray():
        frame = frame.into_partitions(len(rows))
    cluster = DaftCluster(frame, ["batch", "shards"], buckets=count, workers=workers, batch_size=1)
    spread = FileSpreader(by=audit.by, buckets=count, limits=audit.limits, work_limit=audit.work_limit)
    return audit.run(cluster, spread, found)


class DaftCluster:
    """A frame of input, on whichever runner Daft is set to."""

    def __init__(
        self,
        frame: "DataFrame",
        columns: Sequence[str],
        *,
        buckets: int,
        workers: int | None = None,
        batch_size: int = BATCH,
    ) -> None:
        self._batch_size = batch_size
        self._frame = frame
        self._columns = tuple(columns)
        self._buckets = buckets
        self._workers = workers or _workers()

    def read(self, spread: Spreader, read: Reader) -> Buckets:
        kind = _daft().DataType
        frame = self._frame
        piece = kind.struct({"bucket": kind.int32(), "content": kind.binary()})
        spreading = _in_processes(
            _Spreading(spread, self._columns), kind.list(piece), self._workers, batch_size=self._batch_size
        )
        pieces = frame.select(spreading(*[frame[name] for name in self._columns]).alias("piece")).explode("piece")
        pieces = pieces.where(pieces["piece"].not_null())
        pieces = pieces.select(pieces["piece"]["bucket"].alias("bucket"), pieces["piece"]["content"].alias("content"))
        if on_ray():
            pieces = pieces.repartition(self._buckets, "bucket")
        together = pieces.groupby("bucket").agg(pieces["content"].list_agg().alias("pieces"))
        reading = _in_processes(_Reading(read), _binaries("logs", "state", "said"), self._workers, unnest=True)
        return DaftBuckets(together.select("bucket", reading(together["pieces"])), self._workers)


class DaftBuckets:
    """A frame of a row for each bucket, held by the runner: in its memory, on Ray in the object stores."""

    def __init__(self, frame: "DataFrame", workers: int) -> None:
        self._frame = frame.collect()
        self._workers = workers

    def apply(self, phase: Phase) -> "DaftBuckets":
        frame = self._frame
        applying = _in_processes(_Applying(phase), _binaries("state", "said"), self._workers, unnest=True)
        made = frame.select("bucket", "logs", applying(frame["bucket"], frame["logs"], frame["state"]))
        return DaftBuckets(made, self._workers)

    def said(self) -> dict[int, bytes]:
        return {row["bucket"]: row["said"] for row in self._frame.select("bucket", "said").to_pylist()}

    def results(self, rows: Rows) -> "DataFrame":
        import pyarrow as pa

        kind = _daft().DataType.list(_daft().DataType.from_arrow_type(pa.struct(rows.schema)))
        making = _in_processes(_Making(rows), kind, self._workers)
        made = self._frame.select(making(self._frame["state"]).alias("row")).explode("row")
        return made.where(made["row"].not_null()).select(*[made["row"][name].alias(name) for name in rows.schema.names])


@dataclass(frozen=True, slots=True)
class _Spreading:
    spread: Spreader
    names: tuple[str, ...]

    def __call__(self, *columns: Any) -> list[list[dict[str, Any]]]:
        batch = {name: column.to_arrow() for name, column in zip(self.names, columns, strict=True)}
        made = [{"bucket": piece.bucket, "content": piece.content} for piece in self.spread(batch)]
        # As many rows must come out as went in: all pieces in the first, none in the others.
        return [made, *[[]] * (len(columns[0]) - 1)]


@dataclass(frozen=True, slots=True)
class _Reading:
    read: Reader

    def __call__(self, pieces: Any) -> list[dict[str, bytes]]:
        made = [self.read(contents) for contents in pieces.to_pylist()]
        return [{"logs": logs, "state": b"", "said": said} for logs, said in made]


@dataclass(frozen=True, slots=True)
class _Applying:
    phase: Phase

    def __call__(self, *columns: Any) -> list[dict[str, bytes]]:
        made = [self.phase(*row) for row in zip(*[column.to_pylist() for column in columns], strict=True)]
        return [{"state": state, "said": said} for state, said in made]


@dataclass(frozen=True, slots=True)
class _Making:
    rows: Rows

    def __call__(self, state: Any) -> Any:
        import pyarrow as pa

        kind = pa.list_(pa.struct(self.rows.schema))
        return pa.array([self.rows(each) for each in state.to_pylist()], kind)


def _in_processes(
    call: Callable[..., Any], returns: Any, workers: int, *, batch_size: int = 1, unnest: bool = False
) -> Callable[..., Any]:
    """A function of expressions, run over batches in this many processes, each of which is handed `call` once."""
    daft = _daft()

    class Worker:
        def __init__(self, call: Callable[..., Any]) -> None:
            self.call = call

        def run(self, *columns: Any) -> Any:
            return self.call(*columns)

    Worker.run = daft.method.batch(return_dtype=returns, batch_size=batch_size, unnest=unnest)(Worker.run)  # type: ignore[method-assign]
    named = daft.cls(use_process=True, max_concurrency=workers, name_override=type(call).__name__)
    applied: Callable[..., Any] = named(Worker)(call).run
    return applied


def _binaries(*names: str) -> Any:
    kind = _daft().DataType
    return kind.struct({name: kind.binary() for name in names})


def _daft() -> Any:
    try:
        import daft
    except ImportError:
        raise MissingExtraError("daft", "scale") from None
    return daft


def on_ray() -> bool:
    """Whether Daft hands its work to Ray."""
    return str(_daft().get_or_infer_runner_type()) == "ray"


def _buckets(workers: int | None) -> int:
    """A few for each process, so that one that is slow holds nobody up."""
    return BUCKETS_EACH * (workers or _workers())


def _workers() -> int:
    """The processors of the cluster, or of this machine."""
    if on_ray():
        import ray

        if ray.is_initialized():
            return max(1, int(ray.cluster_resources().get("CPU", 1)))
    return cpu_count() or 1
