"""Links the records of a log as it grows, and signs checkpoints over those that its own signer wrote."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.links import link_digest, start_digest
from agentmark.chain.state import Note, SignerState, Withdrawal
from agentmark.errors import SettingError
from agentmark.keys.signing import SigningKey, check_public_key
from agentmark.record import RecordError, StepRecord
from agentmark.times import utc_now

DEFAULT_INTERVAL = 100
# When the sessions to state make a line of about this many bytes, a checkpoint is due: no reader takes one of 16 MiB.
# One session alone must not make more; a character takes up to six bytes.
MAX_STATED = 2 << 20
MAX_SESSION = MAX_STATED // 6


@dataclass(frozen=True, slots=True)
class LinkedRecord:
    """A record as it is to be appended, and what there is to note before."""

    record: StepRecord
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What reading state and log together has shown: what to withdraw, and what to tell a person."""

    withdrawn: Withdrawal | None
    # Records of ours that are not in the log any more, and whether our last checkpoint is not.
    lost: int
    cut: bool
    # Linked records that no writer with our key noted, since the last settlement.
    foreign: int


class ChainWriter:
    """Links the records of one log and signs checkpoints over them. It does no I/O: a `LogWriter` feeds it.

    With a signing key it vouches for what writers with that key wrote, and for nothing else: of the lines that it finds
    in the log, those count that were noted before they were written, or that a checkpoint of its key states.
    """

    def __init__(
        self,
        signing_key: SigningKey | None = None,
        *,
        every: int = DEFAULT_INTERVAL,
        predecessors: Iterable[str] = (),
        clock: Callable[[], str] = utc_now,
    ) -> None:
        """Without a signing key records are linked and no checkpoint is written. `every` is in records.

        `predecessors` are the public keys that signed this log before: what their checkpoints state is taken over.
        """
        if every < 1:
            raise SettingError("every", f"{every} is not a number of records")
        self.signing_key = signing_key
        self._every = every
        self._predecessors = tuple([check_public_key(key) for key in predecessors])
        if self._predecessors and signing_key is None:
            raise SettingError("predecessors", "are those of a signing key; give one")
        self._clock = clock
        self._heads: dict[str, Statement] = {}
        # The sessions that no checkpoint of ours covers as they now are; a dict, for its order.
        self._unsigned: dict[str, None] = {}
        self._unsigned_size = 0
        self._since_checkpoint = 0
        self._previous: str | None = None
        # Our last checkpoint, all that count for us, and one that should be in the log and was not met yet.
        self._checkpoint: Checkpoint | None = None
        self._checkpoints_met: set[str] = set()
        self._awaited: Checkpoint | None = None
        # Those that were met in the log before it was cut or replaced: none of them is later than what we know.
        self._checkpoints_past: set[str] = set()
        # What was noted since the last checkpoint, by link; which of it was found; which of it came last.
        self._noted: dict[str, Note] = {}
        self._found: set[str] = set()
        self._last_note: Note | None = None
        # Linked records behind our last checkpoint that nobody noted, and how many of them were told of.
        self._foreign = 0
        self._foreign_told = 0

    def anew(self) -> Self:
        """A chain writer with the same settings that has seen nothing."""
        return type(self)(self.signing_key, every=self._every, predecessors=self._predecessors, clock=self._clock)

    @property
    def is_new(self) -> bool:
        """True until it has seen anything: one chain writer serves one log."""
        return not self._heads and self._previous is None and not self._noted

    @property
    def checkpoint_is_due(self) -> bool:
        is_due = self._since_checkpoint >= self._every or self._unsigned_size >= MAX_STATED
        return self.signing_key is not None and is_due

    # Its own lines.

    def link(self, record: StepRecord) -> LinkedRecord:
        """The record as it must be appended next. Call `appended` once it is in the log."""
        if len(record.session) > MAX_SESSION:
            raise RecordError("chain", "session", f"has a name of more than {MAX_SESSION} characters")
        head = self._heads.get(record.session)
        linked = replace(record, prev=start_digest(record.session) if head is None else head.head)
        count = 1 if head is None else head.count + 1
        return LinkedRecord(linked, Note(record.session, Statement(count, link_digest(linked))))

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint to append next, to be reported likewise; None without a key, or with nothing new to say.

        One that states no session is signed after linked records of others: it shows that they are none of ours.
        """
        if self.signing_key is None or not (self._unsigned or (self._foreign and self._heads)):
            return None
        return Checkpoint.sign(
            self.signing_key,
            {session: self._heads[session] for session in self._unsigned},
            total=sum([statement.count for statement in self._heads.values()]),
            previous=self._previous,
            time=self._clock(),
        )

    def appended(self, line: LinkedRecord | Checkpoint) -> None:
        """Take note that our line stands in the log."""
        if isinstance(line, Checkpoint):
            self._take_over(line)
        elif self.signing_key is None:
            self._grow(line.note)
        else:
            self._noted[line.note.statement.head] = line.note
            self._confirm(line.note)

    # What others wrote, or an earlier writer with the same key.

    def found(self, line: StepRecord | Checkpoint) -> None:
        """Take note of a line that stands in the log. Call `settle` behind the last one."""
        if isinstance(line, Checkpoint):
            # Who signs nothing has no use for checkpoints, and may lack the package that judges them.
            if self.signing_key is not None and line.is_genuine():
                self._take_over(line)
        elif line.prev is not None:
            self._find_record(line.session, link_digest(line))

    def _find_record(self, session: str, head: str) -> None:
        if self.signing_key is None:
            # Links alone cannot tell who wrote a record: whatever is here is the chain.
            last = self._heads.get(session)
            self._grow(Note(session, Statement(1 if last is None else last.count + 1, head)))
        elif head in self._noted:
            self._confirm(self._noted[head])
        else:
            self._foreign += 1

    def _take_over(self, checkpoint: Checkpoint) -> None:
        assert self.signing_key is not None
        digest = checkpoint.digest
        if digest in self._checkpoints_met:
            # A copy, which says nothing new.
            return
        self._previous = digest
        if checkpoint.public_key not in (self.signing_key.public_key, *self._predecessors):
            return
        self._believe(checkpoint)
        self._checkpoints_met.add(digest)
        if checkpoint.public_key == self.signing_key.public_key:
            self._checkpoint = checkpoint
            self._since_checkpoint = self._unsigned_size = 0
            if self._awaited is not None and self._awaited.digest == digest:
                self._awaited = None

    def _believe(self, checkpoint: Checkpoint) -> None:
        for session, statement in checkpoint.sessions.items():
            head = self._heads.get(session)
            # We trust what was signed above what is left: a session that was cut goes on from its signed head, so that
            # the cut stays visible. A checkpoint that states less than we know was only moved, and says nothing new.
            if head is None or head.count <= statement.count:
                self._heads[session] = statement
                self._unsigned.pop(session, None)
        self._noted = {head: note for head, note in self._noted.items() if not _states(checkpoint, note)}
        self._found &= self._noted.keys()
        # Whoever reads the log sees which records stand before a checkpoint and are in none.
        self._foreign = self._foreign_told = 0

    def _confirm(self, note: Note) -> None:
        if note.statement.head not in self._found:
            self._found.add(note.statement.head)
            self._grow(note)

    def _grow(self, note: Note) -> None:
        head = self._heads.get(note.session)
        if head is None or head.count < note.statement.count:
            self._heads[note.session] = note.statement
            if note.session not in self._unsigned:
                self._unsigned_size += 6 * len(note.session) + 120
            self._unsigned[note.session] = None
            self._since_checkpoint += 1

    # What writers with its key told each other, and will tell the next.

    @property
    def is_unsettled(self) -> bool:
        """Whether `settle` would say anything: a note or checkpoint that may be missing, a record nobody noted."""
        is_missing = self._awaited is not None or len(self._found) < len(self._noted)
        return is_missing or self._foreign > self._foreign_told

    def note(self, note: Note | Withdrawal) -> None:
        """Take note of what is about to be appended, or of what never was."""
        self._last_note = None
        if isinstance(note, Withdrawal):
            self._noted.pop(note.head, None)
        elif not self._knows(note):
            self._noted[note.statement.head] = note
            self._last_note = note

    def remember(self, state: SignerState) -> None:
        """Take note of all that a state file holds, before the log is read on."""
        known = self._checkpoints_met | self._checkpoints_past
        if state.checkpoint is not None and state.checkpoint.digest not in known:
            self._awaited = state.checkpoint
        for session, statement in state.sessions.items():
            self.note(Note(session, statement))
        # What the beginning of a state file states was in the log when it was written.
        self._last_note = None
        for note in state.notes:
            self.note(note)

    def read_again(self) -> None:
        """The log was cut or replaced: all of it will be found anew, and what we wrote and is not there is lost."""
        if self._last_note is not None and self._last_note.statement.head in self._found:
            self._last_note = None
        self._found = set()
        self._checkpoints_past |= self._checkpoints_met
        self._checkpoints_met = set()
        self._awaited = self._awaited or self._checkpoint
        self._previous = None
        self._foreign = self._foreign_told = 0

    def settle(self) -> Settlement:
        """Draw the sum, once state and log were read to their ends while nobody else could write."""
        withdrawn = None
        last = None if self._last_note is None else self._last_note.statement.head
        if last is not None and last in self._noted and last not in self._found:
            # Its writer was stopped between note and record. Whoever cuts off the last record looks the same.
            withdrawn = Withdrawal(last)
            self.note(withdrawn)
        lost = [note for head, note in self._noted.items() if head not in self._found]
        for note in lost:
            # It was written and is gone. Its session goes on behind it, so that this shows.
            self._confirm(note)
        cut = self._awaited is not None
        if self._awaited is not None:
            self._believe(self._awaited)
            # Stated again by the next checkpoint, because the one that states them is gone.
            self._unsigned |= dict.fromkeys(self._awaited.sessions)
            self._checkpoint, self._previous = self._awaited, self._awaited.digest
            self._checkpoints_met.add(self._previous)
            self._awaited = None
        foreign = self._foreign - self._foreign_told
        self._foreign_told = self._foreign
        return Settlement(withdrawn=withdrawn, lost=len(lost), cut=cut, foreign=foreign)

    @property
    def state(self) -> SignerState:
        """All that the next writer has to know beyond what the log holds under our signature."""
        return SignerState(
            checkpoint=self._checkpoint, sessions={session: self._heads[session] for session in self._unsigned}
        )

    def agrees_with(self, state: SignerState) -> bool:
        """Whether a state file, with its notes, says no less than we know."""
        told = dict(state.sessions)
        told |= {note.session: note.statement for note in state.notes if isinstance(note, Note)}
        return state.checkpoint == self._checkpoint and all(
            told.get(session) == self._heads[session] for session in self._unsigned
        )

    def _knows(self, note: Note) -> bool:
        head = self._heads.get(note.session)
        return head is not None and head.count >= note.statement.count


def _states(checkpoint: Checkpoint, note: Note) -> bool:
    statement = checkpoint.sessions.get(note.session)
    return statement is not None and statement.count >= note.statement.count
