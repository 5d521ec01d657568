"""Audits with Spark, where the logs lie in a lakehouse.

frame = spark.read.text("s3a://logs/").withColumn("file", input_file_name())
answer = audit_spark(frame, KeyFiles("/etc/agentmark/key.json"))
answer.rows.write.parquet("s3a://results/")
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentmark.scale.audit import ClusterAnswer, ClusterAudit
from agentmark.scale.cluster import Buckets, Phase, Reader, Rows, Spreader
from agentmark.scale.spreading import FileSpreader, LineSpreader, line_columns, shard_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

BUCKETS_EACH = 4
_SHARDS = (
    "batch long, shards array<struct<path: string, name: string, size: long, mtime_ns: long, start: long, end: long>>"
)
_PIECES = "bucket int, content binary"
_BUCKETS = "bucket int, logs binary, state binary, said binary"


def audit_spark(
    frame: "DataFrame",
    audit: ClusterAudit,
    *,
    text: str = "value",
    file: str | None = None,
    line: str | None = None,
    buckets: int | None = None,
) -> ClusterAnswer:
    """Judge the records of a frame, a line of JSON in each row of the column `text`; `file` and `line` are columns that
    say where it stood."""
    given = line_columns(text, file, line)
    count = buckets or _buckets(frame.sparkSession)
    renamed = frame.select(*[frame[column].alias(name) for name, column in given.items()])
    cluster = SparkCluster(renamed, list(given), buckets=count)
    return audit.run(cluster, LineSpreader(by=audit.by, buckets=count, limits=audit.limits))


def audit_spark_files(
    session: "SparkSession", paths: Sequence[str], audit: ClusterAudit, *, buckets: int | None = None
) -> ClusterAnswer:
    """Judge what files hold, in every format that `agentmark audit` reads. All executors must see them at these
    paths."""
    count = buckets or _buckets(session)
    found, rows = shard_rows(paths)
    frame = session.createDataFrame([(row["batch"], row["shards"]) for row in rows], _SHARDS)
    cluster = SparkCluster(
        frame.repartitionById(len(rows), frame["batch"].cast("int")), ["batch", "shards"], buckets=count
    )
    spread = FileSpreader(by=audit.by, buckets=count, limits=audit.limits, work_limit=audit.work_limit)
    return audit.run(cluster, spread, found)


class SparkCluster:
    """A frame of input, in its session."""

    def __init__(self, frame: "DataFrame", columns: Sequence[str], *, buckets: int) -> None:
        self._frame = frame
        self._columns = tuple(columns)
        self._buckets = buckets

    def read(self, spread: Spreader, read: Reader) -> Buckets:
        pieces = self._frame.select(*self._columns).mapInArrow(_spreading(spread), _PIECES)
        # The partition of its own number for each bucket. A group by bucket would hash them into as many partitions,
        # of which a third is then empty and some hold four.
        placed = pieces.repartitionById(self._buckets, pieces["bucket"])
        return SparkBuckets(placed.mapInArrow(_reading(read), _BUCKETS))


class SparkBuckets:
    """A frame of a row for each bucket, kept on the disks of the executors."""

    def __init__(self, frame: "DataFrame") -> None:
        from pyspark import StorageLevel

        self._frame = frame.persist(StorageLevel.DISK_ONLY)

    def apply(self, phase: Phase) -> "SparkBuckets":
        return SparkBuckets(self._frame.mapInArrow(_applying(phase), _BUCKETS))

    def said(self) -> dict[int, bytes]:
        return {row["bucket"]: bytes(row["said"]) for row in self._frame.select("bucket", "said").collect()}

    def results(self, rows: Rows) -> "DataFrame":
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._frame.select("state").mapInArrow(_making(rows), from_arrow_schema(rows.schema))


def _buckets(session: "SparkSession") -> int:
    """A few for each core, so that one that is slow holds nobody up."""
    return BUCKETS_EACH * int(session.sparkContext.defaultParallelism)


Batches = Iterator["pa.RecordBatch"]


def _spreading(spread: Spreader) -> Callable[[Batches], Batches]:
    def pieces_of(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            pieces = spread({name: batch.column(name) for name in batch.schema.names})
            yield pa.record_batch(
                {
                    "bucket": pa.array([piece.bucket for piece in pieces], pa.int32()),
                    "content": pa.array([piece.content for piece in pieces], pa.binary()),
                }
            )

    return pieces_of


def _reading(read: Reader) -> Callable[[Batches], Batches]:
    def logs_of(batches: Batches) -> Batches:
        pieces: dict[int, list[bytes]] = defaultdict(list)
        for batch in batches:
            for row in batch.to_pylist():
                pieces[row["bucket"]].append(row["content"])
        for bucket in sorted(pieces):
            logs, said = read(pieces.pop(bucket))
            yield _rows([(bucket, logs, b"", said)])

    return logs_of


def _applying(phase: Phase) -> Callable[[Batches], Batches]:
    def done(batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                state, said = phase(row["bucket"], row["logs"], row["state"])
                yield _rows([(row["bucket"], row["logs"], state, said)])

    return done


def _making(rows: Rows) -> Callable[[Batches], Batches]:
    def made(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            for state in batch.column("state").to_pylist():
                yield pa.RecordBatch.from_pylist(rows(state), schema=rows.schema)

    return made


def _rows(rows: Sequence[tuple[Any, ...]]) -> "pa.RecordBatch":
    import pyarrow as pa

    columns = list(zip(*rows, strict=True))
    kinds = (pa.int32(), pa.binary(), pa.binary(), pa.binary())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["bucket", "logs", "state", "said"])
