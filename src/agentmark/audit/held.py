"""An audit whose records fit in memory: one process reads and judges them, without a working folder.

What would be written to parts and read back is most of the work of an audit of one log. A run that is stopped has lost
some seconds of work, and begins anew.
"""

from collections.abc import Sequence
from typing import Any

from agentmark.audit.chunks import Chunk, ChunkKind
from agentmark.audit.judged import JudgedRow
from agentmark.audit.judging import Judged
from agentmark.audit.progress import Progress
from agentmark.audit.shard_reading import ReadJob, ShardOutcome, read_shard
from agentmark.core.payload import PayloadLike
from agentmark.verify.correction import Correction
from agentmark.verify.keyring import Keyring
from agentmark.verify.many import HeldPart, commonest_length, judge_parts, settle, survey
from agentmark.verify.verifier import Verifier

# What is held at most, in bytes of columns or of records: a million and a half steps with lists of six, in columns.
HELD_BYTES = 256 << 20


class TooMuchToHoldError(Exception):
    """The records of a packed file are more than its size let expect."""


class HeldAudit:
    """The records of an audit in memory, read under the keys as they come."""

    def __init__(self, kind: ChunkKind, keys: Keyring, most: int = HELD_BYTES) -> None:
        self._kind = kind
        self._keys = keys
        self._left = most
        self._kept: list[Any] = []
        self._current: list[Any] = []

    def read(self, job: ReadJob, progress: Progress, size: int) -> list[ShardOutcome]:
        """What each shard held; TooMuchToHoldError if all are too much."""
        so_far = [0, 0]

        def told(done: int, records: int) -> None:
            so_far[:] = so_far[0] + done, so_far[1] + records
            progress.bar(so_far[0], size, "bytes read", steps=so_far[1])

        return [read_shard(job, shard, self._kind, self, told) for shard in job.shards]

    def judged(
        self,
        verifier: Verifier,
        job: ReadJob,
        *,
        correction: Correction,
        claim: PayloadLike,
        pools: bool,
        progress: Progress,
    ) -> Judged:
        """All groups. The records are let go of as soon as they are sorted out."""
        payload_len = verifier.payload_len
        if payload_len is None and claim is not None:
            # A claim is an identity of one length, whatever a single group states.
            payload_len = commonest_length([survey(self._kind.sorted_out(self._kept, self._keys, job.by, None))])
        part = HeldPart(self._kind.sorted_out(self._kept, self._keys, job.by, payload_len))
        self._kept = []
        judged = judge_parts(
            verifier,
            [part],
            correction=correction,
            claim=claim,
            pools=pools,
            watch=lambda done, total: progress.bar(done, total, "groups judged"),
        )
        settled = settle(part.logs(), part.verdicts(), judged.settled[0])
        rows: Sequence[JudgedRow] = [JudgedRow.of(row, judged.pools) for row in settled]
        return Judged(rows=rows, pools=judged.pools, questions=judged.questions, not_pooled=judged.not_pooled)

    # --- where the chunks of a shard go ---

    def begin(self) -> None:
        self._current = []

    def add(self, chunk: Chunk) -> None:
        self._left -= chunk.nbytes
        if self._left < 0:
            raise TooMuchToHoldError
        self._current.append(self._kind.held(chunk, self._keys))

    def commit(self) -> None:
        self._kept += self._current
        self._current = []

    def drop(self) -> None:
        self._current = []
