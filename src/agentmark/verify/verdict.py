"""What verification found, as frozen data that prints itself.

A verdict is for the holder of the key: it tells of every record. `Verdict.for_stranger` is what others may see.
"""

from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from enum import StrEnum
from math import ceil, log2
from typing import Any

from agentmark.core.payload import payload_to_text
from agentmark.core.theory import SMALLEST_RATE, equations_until_full_rank, false_positive_rate
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.identity.registry import Identity
from agentmark.record import StepRecord
from agentmark.text import counted, is_or_are, listed
from agentmark.verify.candidates import Route
from agentmark.verify.intake import COUNTED_AGAINST, LISTED_KEYS, OtherKeys, Outcome, Tally
from agentmark.verify.stranger import LISTED, NamedIdentity, StrangerView, name_of, name_parts, payload_digits

_TWO_DIGITS_UP = Context(prec=2, rounding=ROUND_CEILING)
# Searches beyond so many times the usual work limit (a day) are not advised.
WORTH_RAISING = 1e5
# A key id of ours has 16 characters.
LONGEST_KEY_ID = 32
# Rates from here on are written as 0.0047 and 1, not as 4.7e-03 and 1.0e+00.
PLAIN_FROM = 0.001


class Standing(StrEnum):
    """Where a question stands: answered, or why it is not."""

    ATTRIBUTED = "attributed"
    # Judged: the steps speak against every identity, or they could have named one and do not.
    NOT_ATTRIBUTED = "not attributed"
    # Not even full agreement of every usable step would do, or they still leave more than one identity.
    TOO_SHORT = "too short"
    # No record can be used: there is none, or all are of other keys, unmarked, or set aside.
    NOTHING_USABLE = "nothing usable"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIdentity:
    """An identity that is accepted: its own evidence and bound, and how much of the log is its at the least."""

    payload: int
    payload_len: int
    # From the registry, if one was given and holds the payload.
    identity: str | None = None
    revoked_at: str | None = None
    evidence_bits: float
    bits_paid: float
    false_positive_rate: float
    # So many of the used steps, or more, carry it; wrong with the threshold's probability at most (spec, section 9.2).
    at_least_steps: int

    @property
    def bound_text(self) -> str:
        """The bound as text that is rounded up, so that it is still a bound."""
        return rate_text(self.false_positive_rate)

    @property
    def name(self) -> str:
        """Who it is, in the words of a sentence."""
        return name_of(self.payload, self.payload_len, self.identity, self.revoked_at)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON data (docs/verdict.md)."""
        return {
            "payload": payload_digits(self.payload, self.payload_len),
            "payload_len": self.payload_len,
            "identity": self.identity,
            "revoked_at": self.revoked_at,
            "text": payload_to_text(self.payload, self.payload_len),
            "evidence_bits": self.evidence_bits,
            "bits_paid": self.bits_paid,
            "false_positive_rate": self.false_positive_rate,
            "at_least_steps": self.at_least_steps,
        }


@dataclass(frozen=True, slots=True)
class StepFinding:
    """One record and what became of it.

    Of a used step: whether it agrees with the candidate, and its evidence for it (against it, if negative). Without a
    candidate: what the step could say.
    """

    record: StepRecord
    outcome: Outcome
    evidence_bits: float = 0.0
    agrees: bool | None = None


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The best of those who are not accepted beside the candidate, to show how far behind it is. It is never named."""

    evidence_bits: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a spliced log, from position `first` to `last`: whose it is; None if not ours, or not proved."""

    first: int
    last: int
    first_record: str
    last_record: str
    payload: int | None
    identity: str | None
    evidence_bits: float
    bits_paid: float
    false_positive_rate: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "what identity does this log carry?", with the bound on its being chance."""

    payload_len: int
    threshold: float
    # Whether one payload explains every used step. None: the log does not settle it.
    consistent: bool | None
    # The payload that explains the steps best. It counts once `accepted` is true, and until then nothing shows it.
    candidate: int | None = field(repr=False)
    route: Route | None
    # For the candidate: log2 of its e-value, and the price of the identities that were tried.
    evidence_bits: float
    bits_paid: float
    # Whether the log is ours at all, whoever's: valid only against logs made without the key.
    ownership_bits: float | None
    likely_noise: float
    # What the used steps would say if every one agreed.
    potential_bits: float
    rank: int
    # Operations that looking for a payload took; whether a search was cut short by the limit; that limit, and one under
    # which the next search would have been done.
    work: int = 0
    work_spent: bool = False
    work_limit: int = DEFAULT_WORK_LIMIT
    work_needed: float | None = None
    # Whose payload the candidate is, if the registry knows. `identity` says it once it is accepted.
    holder: Identity | None = field(default=None, repr=False)
    # Every identity that is accepted, best first; the candidate is the first of them.
    found: tuple[FoundIdentity, ...] = ()
    # Used steps that contradict everyone who is found, or the candidate if nobody is: at least so many are of others.
    unexplained: int = 0
    runner_up: RunnerUp | None = None
    # The ids of the keys that it was read with.
    keys_given: tuple[str, ...] = ()
    # What the log shows of tampering, in sentences. The mark is read all the same.
    tampering: tuple[str, ...] = ()
    # What became of the records, in numbers.
    tally: Tally = field(default_factory=Tally, repr=False)
    # Used steps that agree with the candidate, and those that do not.
    agreeing: int = 0
    contradicting: int = 0
    # What became of each record. Where many logs are judged at once they are left out.
    findings: tuple[StepFinding, ...] = field(default=(), repr=False)

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes of the used steps."""
        return self.tally.schemes

    @property
    def surplus(self) -> float:
        """Evidence beyond what naming a payload costs."""
        return self.evidence_bits - self.bits_paid

    @property
    def false_positive_rate(self) -> float:
        """Bound on the chance that a log made without this key, or with another identity, is named so."""
        return false_positive_rate(self.surplus) if self.candidate is not None else 1.0

    @property
    def bound_text(self) -> str:
        """The same as text that is rounded up, so that it is still a bound."""
        return rate_text(self.false_positive_rate)

    @property
    def accepted(self) -> bool:
        return self.candidate is not None and self.false_positive_rate <= self.threshold

    @property
    def standing(self) -> Standing:
        """Where the question stands: answered, or why it is not."""
        if self.accepted:
            return Standing.ATTRIBUTED
        counts = self.counts
        if not counts[Outcome.USED]:
            against = counts[Outcome.IMPOSSIBLE] or self.not_proved
            return Standing.NOT_ATTRIBUTED if against else Standing.NOTHING_USABLE
        if self.work_spent and self.bits_needed is None:
            return Standing.NOT_ATTRIBUTED
        nothing_against = self.candidate is not None and self.contradicting == 0
        if self.potential_bits < self._takes or self._several_may_explain or nothing_against:
            return Standing.TOO_SHORT
        return Standing.NOT_ATTRIBUTED

    @property
    def payload(self) -> int | None:
        """The identity, or None while it is not accepted."""
        return self.candidate if self.accepted else None

    @property
    def identity(self) -> str | None:
        """The registry's name for the payload, or None while it is not accepted."""
        return self.holder.name if self.accepted and self.holder is not None else None

    @property
    def revoked_at(self) -> str | None:
        """Since when that identity is revoked."""
        return self.holder.revoked_at if self.accepted and self.holder is not None else None

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The keys that the used steps state."""
        return self.tally.key_ids

    @property
    def text(self) -> str | None:
        """The payload as text, if its bytes are printable text, as those of a payload made from text are."""
        return None if self.payload is None else payload_to_text(self.payload, self.payload_len)

    @property
    def counts(self) -> Counter[Outcome]:
        """How many records met which outcome."""
        return Counter(self.tally.counts)

    @property
    def counted_steps(self) -> int:
        """Steps that count, for or against: those that were used, and in public mode those that are not proved."""
        return self.counts[Outcome.USED] + self.not_proved

    @property
    def not_proved(self) -> int:
        """Marked records that state a key whose holder has not proved them; they count against everyone."""
        return sum([self.counts[outcome] for outcome in COUNTED_AGAINST])

    @property
    def context_mismatches(self) -> int:
        """Records whose raw context is not that of their digest."""
        return self.tally.mismatches

    @property
    def record_count(self) -> int:
        return self.tally.records

    @property
    def bits_needed(self) -> float | None:
        """Further evidence expected to be needed for acceptance; None if more of the same would not help."""
        if self.accepted:
            return 0.0
        missing = self._takes - self._seen_bits
        if self.work_spent and self.candidate is None and self.potential_bits >= self._takes:
            return None
        if self.bits_paid < self.payload_len and not self._several_may_explain:
            return max(missing, 1.0)
        return max(missing, equations_until_full_rank(self.rank, self.payload_len), 1.0)

    @property
    def steps_needed(self) -> int | None:
        """`bits_needed` at the rate of the steps seen so far."""
        bits = self.bits_needed
        if bits is None or self._seen_bits <= 0:
            return 0 if bits == 0.0 else None
        return ceil(bits * self.counts[Outcome.USED] / self._seen_bits)

    @property
    def _takes(self) -> float:
        """Evidence that acceptance takes."""
        return self.bits_paid - log2(self.threshold)

    @property
    def _seen_bits(self) -> float:
        """What the steps have shown so far: for a candidate if there should be one by now, else what they can show."""
        if self.route is Route.CLAIM or (self.potential_bits >= self._takes and not self._several_may_explain):
            return max(self.evidence_bits, 0.0)
        return self.potential_bits

    @property
    def _several_may_explain(self) -> bool:
        """Whether nobody was a candidate because the steps, as far as they go, leave room for more than one."""
        return self.candidate is None and self.consistent is not False and self.counts[Outcome.USED] > 0

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if len(self.found) > 1:
            return f"{len(self.found)} identities found: {self._everyone()}: {self._each_bound()}."
        if self.accepted:
            return f"Attributed to {self._named()}: {self._bound()}."
        return f"Not attributed: {self._why_not()}."

    def _named(self) -> str:
        assert self.candidate is not None
        return name_of(self.candidate, self.payload_len, self.identity, self.revoked_at)

    def _bound(self) -> str:
        return (
            "a log made without this key, or for another identity, agrees this well with probability at most "
            f"{self.bound_text} (threshold {self.threshold:g})" + self._of_others("another's")
        )

    def _everyone(self) -> str:
        named = []
        for found in self.found:
            name, *about = name_parts(found.payload, found.payload_len, found.identity, found.revoked_at)
            about += [f"at least {counted(found.at_least_steps, 'step')}", f"at most {found.bound_text}"]
            named.append(f"{name} ({', '.join(about)})")
        return listed(named, LISTED)

    def _each_bound(self) -> str:
        steps = counted(self.counted_steps, "usable step")
        return (
            f"each has at least so many of the {steps}, and a log that does not carry it agrees this well with it with "
            f"probability at most the number beside it (threshold {self.threshold:g})"
        ) + self._of_others("of none of them")

    def _of_others(self, whose: str) -> str:
        """Steps that contradict everyone who is found. Steps of others also agree by chance: there may be more."""
        count = self.unexplained
        if not count:
            return ""
        verbs = ("is", "was") if count == 1 else ("are", "were")
        of_all = counted(self.counted_steps, "step")
        return f"; at least {count:,} of the {of_all} {verbs[0]} {whose} or {verbs[1]} altered"

    def _why_not(self) -> str:
        used = self.counts[Outcome.USED]
        if used == 0:
            return self._nothing_used()
        steps = f"the {counted(used, 'usable step')}"
        if self.route is Route.CLAIM:
            return self._claim_fails(used)
        if self.consistent is False:
            return (
                f"{steps} contradict each other, as steps made under another key or identity do, and no identity "
                "explains enough of them"
            )
        if self.work_spent and self.bits_needed is None:
            return f"looking for {counted(self.payload_len, 'bit')} in {steps} was cut short by the work limit"
        return self._not_enough(used)

    def _nothing_used(self) -> str:
        counts = self.counts
        if not self.record_count:
            return "the log is empty: it holds no record"
        if counts[Outcome.IMPOSSIBLE]:
            count = counts[Outcome.IMPOSSIBLE]
            steps = "the one step" if count == 1 else f"any of the {count:,} steps"
            return f"under this key no identity leads to the choice of {steps} that can be read{self._set_aside()}"
        if self.not_proved:
            return f"no record is proved by a disclosure of its key{self._set_aside()}"
        none = "the one record cannot be used"
        if self.record_count > 1:
            none = f"none of the {counted(self.record_count, 'record')} can be used"
        return none + self._set_aside() + self._other_keys()

    def _other_keys(self) -> str:
        """With which keys the records were made that none of the keys given reads."""
        count = self.counts[Outcome.OTHER_KEY]
        if not count:
            return ""
        if count == self.record_count:
            made = "it was made" if count == 1 else "they were made"
        else:
            made = f"{count:,} {'was' if count == 1 else 'were'} made"
        return f": {made} with {_keys(self.tally.other_keys)}{self._keys_given()}"

    def _keys_given(self) -> str:
        if not self.keys_given:
            return ""
        given = f"the key{'s' if len(self.keys_given) > 1 else ''} given {is_or_are(len(self.keys_given))}"
        return f", and {given} {listed([_shortened(key_id) for key_id in self.keys_given], LISTED)}"

    def _not_enough(self, used: int) -> str:
        steps = counted(used, "usable step")
        takes = f"a bound of {self.threshold:g} takes {self._takes:.0f}"
        if self._several_may_explain and self.potential_bits >= self._takes:
            speak, leave = ("speaks", "leaves") if used == 1 else ("speak", "leave")
            return (
                f"the {steps} {speak} of {self.rank:,} of {counted(self.payload_len, 'payload bit')} and {leave} more "
                f"than one identity that may explain them{self._more_steps()}"
            )
        if self.potential_bits >= self._takes:
            best = f"the best has {max(self.evidence_bits, 0.0):.1f} bits of evidence"
            return f"no identity explains the {steps} well enough: {best}, and {takes}"
        carried = f"{steps} {'carries' if used == 1 else 'carry'} {self.potential_bits:.1f} bits of evidence"
        return f"{carried}, and naming an identity at {takes}{self._more_steps()}"

    def _more_steps(self) -> str:
        if self.steps_needed is None:
            return ""
        return f"; about {counted(self.steps_needed, 'more step')} {is_or_are(self.steps_needed)} needed"

    def _claim_fails(self, used: int) -> str:
        steps = counted(used, "usable step")
        if self.evidence_bits == float("-inf"):
            which = "the 1 usable step" if used == 1 else f"one of the {steps}"
            return f"{which} contradicts this claim, and no noise is allowed for"
        return (
            f"the {steps} {'carries' if used == 1 else 'carry'} {self.evidence_bits + 0.0:.1f} bits of evidence for "
            f"this claim, and a bound of {self.threshold:g} takes {self._takes:.0f}"
        )

    def _set_aside(self) -> str:
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in self.counts.items())
        return f" ({counts})" if counts else ""

    def for_stranger(self) -> StrangerView:
        """What those may be told who do not hold the key: whether identities are named, and which.

        All else in a verdict (its sentence and bounds included, and who is best) tells of single records, and is the
        key holder's.
        """
        if not self.accepted:
            return StrangerView(accepted=False, threshold=self.threshold)
        named = [NamedIdentity(f.payload, f.payload_len, f.identity, f.revoked_at) for f in self.found]
        return StrangerView(
            accepted=True,
            threshold=self.threshold,
            found=tuple(sorted(named, key=lambda identity: identity.payload)),
        )

    @property
    def work_note(self) -> str | None:
        """What the work limit left undone, and what can be done about it; None if that could make no difference."""
        notes = []
        unread = self.counts[Outcome.NOT_READ]
        if unread:
            was, them = ("was", "it") if unread == 1 else ("were", "them all")
            # What was read may have cost more than the limit: the bytes of a log pay for some of it.
            enough = _round_up(self.tally.full_cost)
            notes.append(
                f"{unread:,} of {counted(self.record_count, 'record')} {was} not read, because the work limit was "
                f"reached; a work limit of {enough} reads {them}"
            )
        # Steps that say too little to name anyone would not name anyone after a longer search.
        if self.work_spent and not self.accepted and self.potential_bits >= self._takes:
            notes.append(
                f"the search for a payload was cut short by the work limit of {self.work_limit}; {self._advice}"
            )
        if self.work_spent and self.accepted and self._more_may_be_found:
            notes.append(
                f"the search for further identities was cut short by the work limit of {self.work_limit}: steps that "
                "nobody named here explains may carry one; a registry needs no search, or raise the limit"
            )
        return ". ".join(notes) or None

    @property
    def _more_may_be_found(self) -> bool:
        """Whether the steps that nobody explains could name one more, at what the steps say on average."""
        if self.route is Route.CLAIM:
            return False
        return self.unexplained * self.potential_bits >= self._takes * self.counts[Outcome.USED]

    @property
    def _advice(self) -> str:
        if self.work_needed is None or self.work_needed > WORTH_RAISING * DEFAULT_WORK_LIMIT:
            return (
                f"{counted(self.payload_len, 'bit')} cannot be searched for in these steps: give the registry or a "
                "claim, which need no search, or a longer log"
            )
        return (
            "a registry or a claim needs no search, a longer log a shorter one; or raise the limit, to "
            f"{_round_up(self.work_needed)} for the next step of the search"
        )

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data (docs/verdict.md): what every rendering of it is made from.

        It names nobody who is not accepted, neither the best candidate nor the next.
        """
        second = self.runner_up
        return {
            "accepted": self.accepted,
            "standing": self.standing.value,
            "sentence": self.sentence,
            "found": [identity.as_dict() for identity in self.found],
            "payload": self._hex(self.payload),
            "payload_len": self.payload_len,
            "identity": self.identity,
            "revoked_at": self.revoked_at,
            "key_ids": list(self.key_ids),
            "keys_given": list(self.keys_given),
            "text": self.text,
            "false_positive_rate": self.false_positive_rate,
            "threshold": self.threshold,
            "route": None if self.route is None else self.route.value,
            "consistent": self.consistent,
            "schemes": list(self.schemes),
            "evidence_bits": _finite(self.evidence_bits),
            "bits_paid": self.bits_paid,
            "surplus": _finite(self.surplus),
            "ownership_bits": None if self.ownership_bits is None else _finite(self.ownership_bits),
            "likely_noise": self.likely_noise,
            "potential_bits": self.potential_bits,
            "rank": self.rank,
            "agreeing": self.agreeing,
            "contradicting": self.contradicting,
            "unexplained": self.unexplained,
            "runner_up": None if second is None else {"evidence_bits": _finite(second.evidence_bits)},
            "bits_needed": self.bits_needed,
            "steps_needed": self.steps_needed,
            "work": self.work,
            "work_spent": self.work_spent,
            "work_limit": self.work_limit,
            "work_note": self.work_note,
            "records": self.record_count,
            "outcomes": {outcome.value: count for outcome, count in self.counts.items()},
            "context_mismatches": self.context_mismatches,
            "tampering": list(self.tampering),
        }

    def _hex(self, payload: int | None) -> str | None:
        return None if payload is None else payload_digits(payload, self.payload_len)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a segment that lost its place belongs: the index of its first step, or None if no place is proved.

    `verdict` is that of the place found, or of the best of those tried; it has paid for all of them.
    """

    offset: int | None
    tried: int
    verdict: Verdict


def rate_text(rate: float) -> str:
    """A rate as text that is not smaller than the rate."""
    if rate <= SMALLEST_RATE:
        return f"{SMALLEST_RATE:.0e}"
    # In decimal, so that 9.95e-08 carries over to 1.0e-07.
    rounded = float(_TWO_DIGITS_UP.create_decimal(rate))
    return f"{rounded:.1e}" if rounded < PLAIN_FROM else f"{rounded:g}"


def _keys(stated: OtherKeys) -> str:
    names = [_shortened(key_id) for key_id in stated.commonest]
    return f"key{'s' if stated.count > 1 else ''} {listed(names, LISTED_KEYS, total=stated.count)}"


def _shortened(key_id: str) -> str:
    """A key id is whatever text a record states."""
    return key_id if len(key_id) <= LONGEST_KEY_ID else f"{key_id[:LONGEST_KEY_ID]}..."


def _round_up(operations: float) -> int:
    """To two digits, and not below."""
    unit = int("1" + "0" * (len(str(ceil(operations))) - 2))
    return ceil(operations / unit) * unit


def _finite(bits: float) -> float | None:
    """JSON has no infinity: evidence that a single step has ruled out is null."""
    return None if bits == float("-inf") else bits
