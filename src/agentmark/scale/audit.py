"""An audit on a cluster: what is asked, how the phases follow each other, and what came of it.

The phases are those of `agentmark audit`, and so are the functions that run in them (law L9): what differs is who
brings the parts to the functions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.audit.bulk import MOST_NOTES, read_totals
from agentmark.audit.case import claim_as_asked, claim_as_taken
from agentmark.audit.chunks import FAST
from agentmark.audit.judged import AuditSummary, ReadTotals, RowTally
from agentmark.audit.shard_reading import ShardOutcome
from agentmark.audit.shards import FoundShards
from agentmark.core.payload import PayloadLike
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.identity.registry import Registry
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.scale.cluster import Cluster, Spreader
from agentmark.scale.phases import BucketPart, MakeRows, PhaseMapper, ReadLogs, ResultRows, heard, survey_part
from agentmark.scale.worker_keys import WorkerKeys, check_worker_keys
from agentmark.verify.correction import Correction, Familywise
from agentmark.verify.many import commonest_length, judge_parts
from agentmark.verify.roll import By
from agentmark.verify.verifier import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAudit:
    """What is asked. Everything in it travels to the workers, but for the keys: of these, where they find them."""

    keys: WorkerKeys
    registry: Registry | None = None
    by: By = By.SESSION
    # Familywise, unless said otherwise: many groups are many questions.
    correction: Correction | None = None
    claim: PayloadLike = None
    payload_len: int | None = None
    noise: float | None = None
    work_limit: int = DEFAULT_WORK_LIMIT
    limits: Limits = DEFAULT_LIMITS
    # Whether identities are looked for that explain short groups together.
    pools: bool = True

    def __post_init__(self) -> None:
        """What cannot be meant is refused now, on the driver."""
        check_worker_keys(self.keys)
        self.verifier()

    def verifier(self) -> Verifier:
        """The verifier of the question."""
        return Verifier(
            self.keys.keys(),
            payload_len=self.payload_len,
            registry=self.registry,
            noise=self.noise,
            any_key_id=self.keys.any_key_id,
            work_limit=self.work_limit,
        )

    @property
    def asked_correction(self) -> Correction:
        return self.correction or Familywise()

    def run(self, cluster: Cluster, spread: Spreader, found: FoundShards | None = None) -> "ClusterAnswer":
        """All phases, one after the other. `found` are the files, if there are files."""
        verifier = self.verifier()
        payload_len = verifier.payload_len
        buckets = cluster.read(spread, ReadLogs(keys=self.keys, by=self.by, payload_len=payload_len))
        notes = [note for bucket, said in buckets.said().items() for note in heard(said, verifier.keys, bucket)]
        mapper = PhaseMapper(buckets, self.keys, self.registry)
        parts = [BucketPart(bucket) for bucket in sorted(buckets.said())]
        if payload_len is None and self.claim is not None:
            # A claim is an identity of one length, whatever a single log states: what was sorted out is sorted anew.
            payload_len = commonest_length(mapper(survey_part, parts))
            mapper.buckets = cluster.read(spread, ReadLogs(keys=self.keys, by=self.by, payload_len=payload_len))
        judged = judge_parts(
            verifier, parts, correction=self.asked_correction, claim=self.claim, pools=self.pools, mapper=mapper
        )
        settled = {part.bucket: each for part, each in zip(parts, judged.settled, strict=True)}
        done = mapper.buckets.apply(MakeRows(settled, judged.pools, self.keys, self.registry))
        tally = RowTally()
        for bucket, said in sorted(done.said().items()):
            tally.merge(heard(said, verifier.keys, bucket))
        summary = AuditSummary(
            by=self.by,
            rows=tally.rows,
            standings=tally.standings,
            outcomes=tally.outcomes,
            pooled=tally.pooled,
            totals=tally.totals(judged.pools),
            pools=judged.pools,
            questions=judged.questions,
            correction=self.asked_correction,
            read=_read(notes, found),
            key_ids_given=verifier.keys.ids,
            claim=claim_as_asked(self.claim),
            claim_taken_as=claim_as_taken(self.claim, self.registry),
            engine=FAST,
        )
        return ClusterAnswer(summary, done.results(ResultRows()))


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What all logs come to; and a row for each, as a frame of the engine: on the cluster until it is written."""

    summary: AuditSummary
    rows: Any


def _read(notes: Iterable[dict[str, Any]], found: FoundShards | None) -> ReadTotals:
    if found is not None:
        batches = sorted(notes, key=lambda note: int(note["batch"]))
        outcomes = [ShardOutcome.from_dict(outcome) for note in batches for outcome in note["outcomes"]]
        return read_totals(outcomes, found)
    return _of_lines(list(notes))


def _of_lines(notes: Sequence[dict[str, Any]]) -> ReadTotals:
    listed = sorted([text for note in notes for text in note["notes"]])
    bad = sum([note["bad"] for note in notes])
    return ReadTotals(
        records=sum([note["records"] for note in notes]),
        bad_records=bad,
        notes=tuple(listed[:MOST_NOTES]),
        more_notes=bad - min(len(listed), MOST_NOTES),
        key_ids=tuple(sorted({key_id for note in notes for key_id in note["key_ids"]})),
    )
