"""Links the records of a log as it grows, and signs checkpoints over them."""

from collections.abc import Callable
from dataclasses import replace

from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.links import link_digest, start_digest
from agentmark.errors import SettingError
from agentmark.keys.signing import SigningKey
from agentmark.record import StepRecord
from agentmark.times import utc_now

DEFAULT_INTERVAL = 100


class ChainWriter:
    """Links the records of one log and signs checkpoints over them. It does no I/O: a `LogWriter` feeds it.

    What it knows comes from `observe` alone, so a line that never reached the log leaves no trace in it.
    """

    def __init__(
        self,
        signing_key: SigningKey | None = None,
        *,
        every: int = DEFAULT_INTERVAL,
        clock: Callable[[], str] = utc_now,
    ) -> None:
        """Without a signing key records are linked and no checkpoint is written. `every` is in records."""
        if every < 1:
            raise SettingError("every", f"{every} is not a number of records")
        self._signing_key = signing_key
        self._every = every
        self._clock = clock
        self._heads: dict[str, Statement] = {}
        # The sessions that no checkpoint of ours covers as they now are; a dict, for its order.
        self._unsigned: dict[str, None] = {}
        self._since_checkpoint = 0
        self._previous: str | None = None

    @property
    def is_new(self) -> bool:
        """True until it has seen anything: one chain writer serves one log."""
        return not self._heads and self._previous is None

    @property
    def checkpoint_is_due(self) -> bool:
        return self._signing_key is not None and self._since_checkpoint >= self._every

    def link(self, record: StepRecord) -> StepRecord:
        """The record as it must be appended next. Call `observe` once it is in the log."""
        head = self._heads.get(record.session)
        return replace(record, prev=start_digest(record.session) if head is None else head.head)

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint to append next, to be observed likewise; None without a key, or if nothing is new."""
        if self._signing_key is None or not self._unsigned:
            return None
        return Checkpoint.sign(
            self._signing_key,
            {session: self._heads[session] for session in self._unsigned},
            total=sum([statement.count for statement in self._heads.values()]),
            previous=self._previous,
            time=self._clock(),
        )

    def observe(self, line: StepRecord | Checkpoint) -> None:
        """Take note of a line that stands in the log, whoever wrote it."""
        if isinstance(line, Checkpoint):
            self._observe_checkpoint(line)
        elif line.prev is not None:
            head = self._heads.get(line.session)
            self._heads[line.session] = Statement(1 if head is None else head.count + 1, link_digest(line))
            self._unsigned[line.session] = None
            self._since_checkpoint += 1

    def _observe_checkpoint(self, checkpoint: Checkpoint) -> None:
        # Who signs nothing has no use for checkpoints, and may lack the package that judges them.
        if self._signing_key is None or not checkpoint.is_genuine():
            return
        self._previous = checkpoint.digest
        if checkpoint.public_key != self._signing_key.public_key:
            return
        self._since_checkpoint = 0
        for session, statement in checkpoint.sessions.items():
            head = self._heads.get(session)
            # We trust what we signed above what is left: a session that was cut goes on from its signed head, so that
            # the cut stays visible. A checkpoint that states less than we saw was only moved, and says nothing new.
            if head is None or head.count <= statement.count:
                self._heads[session] = statement
                self._unsigned.pop(session, None)
