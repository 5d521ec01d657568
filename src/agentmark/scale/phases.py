"""What a worker does with a bucket: reads its records under the keys, and runs phases of `verify.many` over its logs.

What is kept of a bucket between phases is sealed with the keys, and so is what it says. Whoever writes to the disks of
the cluster without holding the keys can make an audit fail, and can neither alter what it finds nor have the driver run
code.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.audit.judged import JudgedRow, RowTally
from agentmark.audit.results import results_schema
from agentmark.batch.groups import sort_out
from agentmark.batch.reading import read_columns
from agentmark.core.errors import AgentMarkError
from agentmark.identity.registry import Registry
from agentmark.scale.cluster import Buckets
from agentmark.scale.pieces import gather
from agentmark.scale.worker_keys import WorkerKeys, keyring_of
from agentmark.verify.keyring import SEAL_SIZE, Keyring
from agentmark.verify.many import Settled, Survey, settle, survey
from agentmark.verify.part_bytes import logs_from_bytes, logs_to_bytes, verdicts_from_bytes, verdicts_to_bytes
from agentmark.verify.roll import By, Pool
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.verdict import Verdict


class BucketError(AgentMarkError, ValueError):
    """What lies on the cluster is not what was put there with these keys."""

    def __init__(self, bucket: int) -> None:
        super().__init__(f"bucket {bucket}: what the cluster holds of it was not made with these keys, or was altered")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLogs:
    """Reads the records of a bucket under the keys, and sorts them out by log. Says what was noted on the way."""

    keys: WorkerKeys
    by: By
    payload_len: int | None

    def __call__(self, pieces: Sequence[bytes]) -> tuple[bytes, bytes]:
        keys = keyring_of(self.keys)
        gathered = gather(pieces)
        columns = gathered.columns
        logs = list(sort_out(columns, read_columns(columns, keys), self.by, self.payload_len))
        logs.sort(key=lambda log: log.name)
        return sealed(logs_to_bytes(logs), keys), said(gathered.notes, keys)


class BucketPart:
    """A part of `verify.many`. On the driver it is a number; where a phase runs, the logs of that bucket are in it."""

    def __init__(self, bucket: int) -> None:
        self.bucket = bucket
        self._logs: Sequence[SortedLog] = ()
        self._verdicts: Sequence[Verdict] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return BucketPart, (self.bucket,)

    def bring(self, logs: bytes, state: bytes, keys: Keyring, registry: Registry | None) -> None:
        """What lies in the bucket."""
        self._logs = logs_from_bytes(opened(logs, keys, self.bucket))
        if state:
            content = opened(state, keys, self.bucket)
            self._verdicts = verdicts_from_bytes(content, self._logs, keys_given=keys.ids, registry=registry)

    def logs(self) -> Sequence[SortedLog]:
        return self._logs

    def verdicts(self) -> Sequence[Verdict]:
        return self._verdicts

    def keep(self, verdicts: Sequence[Verdict], /) -> None:
        self._verdicts = verdicts


def survey_part(part: BucketPart) -> Survey:
    """What is known of the logs of a part before any answer is looked at."""
    return survey(part.logs())


@dataclass(frozen=True, slots=True)
class RunPhase:
    """A function of `verify.many`, and for each bucket what it is called with: its part, or a tuple that begins with
    it. Buckets without such are left as they are."""

    function: Callable[[Any], Any]
    items: Mapping[int, Any]
    keys: WorkerKeys
    registry: Registry | None

    def __call__(self, bucket: int, logs: bytes, state: bytes) -> tuple[bytes, bytes]:
        item = self.items.get(bucket)
        if item is None:
            return state, b""
        keys = keyring_of(self.keys)
        part = _part_of(item)
        part.bring(logs, state, keys, self.registry)
        before = part.verdicts()
        result = self.function(item)
        after = part.verdicts()
        # A phase that only looks keeps nothing, and what was kept stays as it is.
        return state if after is before else sealed(verdicts_to_bytes(after), keys), said(result, keys)


def _part_of(item: Any) -> BucketPart:
    """The part that an item of a phase is about."""
    part = item[0] if isinstance(item, tuple) else item
    assert isinstance(part, BucketPart)
    return part


class PhaseMapper:
    """`map` for `verify.many.judge_parts`: the items go to where the buckets lie."""

    def __init__(self, buckets: Buckets, keys: WorkerKeys, registry: Registry | None) -> None:
        self.buckets = buckets
        self._keys = keys
        self._keyring = keyring_of(keys)
        self._registry = registry

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        by_bucket = {_part_of(item).bucket: item for item in items}
        if not by_bucket:
            return iter(())
        self.buckets = self.buckets.apply(RunPhase(function, by_bucket, self._keys, self._registry))
        answers = self.buckets.said()
        return iter([heard(answers[bucket], self._keyring, bucket) for bucket in by_bucket])


@dataclass(frozen=True, slots=True)
class MakeRows:
    """The last phase: the rows of a bucket, which stay there, and what they come to."""

    settled: Mapping[int, Settled]
    pools: tuple[Pool, ...]
    keys: WorkerKeys
    registry: Registry | None

    def __call__(self, bucket: int, logs: bytes, state: bytes) -> tuple[bytes, bytes]:
        keys = keyring_of(self.keys)
        part = BucketPart(bucket)
        part.bring(logs, state, keys, self.registry)
        tally = RowTally()
        rows = []
        for row in settle(part.logs(), part.verdicts(), self.settled[bucket]):
            judged = JudgedRow.of(row, self.pools)
            tally.take(judged)
            rows.append(judged.to_json())
        return "\n".join(rows).encode("utf-8"), said(tally, keys)


class ResultRows:
    """Rows as the columns of the results (docs/audits.md)."""

    @property
    def schema(self) -> Any:
        import pyarrow

        return results_schema(pyarrow)

    def __call__(self, state: bytes) -> list[dict[str, Any]]:
        return [JudgedRow.from_json(line).row.as_dict() for line in state.decode("utf-8").split("\n") if line]


def sealed(content: bytes, keys: Keyring) -> bytes:
    """Bytes that only holders of the keys can make."""
    return keys.seal(content) + content


def opened(content: bytes, keys: Keyring, bucket: int) -> bytes:
    """What was sealed; refused if that was not done with these keys."""
    seal, inner = content[:SEAL_SIZE], content[SEAL_SIZE:]
    if seal != keys.seal(inner):
        raise BucketError(bucket)
    return inner


def said(answer: Any, keys: Keyring) -> bytes:
    """An object of ours for the driver."""
    return sealed(pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL), keys)


def heard(content: bytes, keys: Keyring, bucket: int) -> Any:
    """The object. Nothing that was not sealed with the keys is unpickled."""
    return pickle.loads(opened(content, keys, bucket))
