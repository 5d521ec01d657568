"""From whatever is left of a log to a verdict. The checklist of the specification (section 9), and who does what:

(1) Set aside records of other keys.                                   `intake.read_record`, record by record
(2) Fix the payload length, and set aside records of another.          `intake.sort_out`, over all records
(3) Set aside unmarked steps, and those the agent did not obey.        `intake.sort_out`
(4) Count each context once; copies that disagree count not at all.    `intake.sort_out`
(5) Read what each step says of the payload.                           `intake.read_record`
(6) Look for payloads that may explain the steps.                      `candidates.Searcher`, with `search/`
(7) Judge each as a claim, with every try paid for.                    `judge.Judge`, with `weighing.Weighing`

(1) and (5) need the key and one record at a time: `state.LogState` accumulates them, on one machine or many. The rest
needs all records and no key, and happens once.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from math import fsum

from agentmark.core.context import context_digest, context_fields
from agentmark.core.payload import PayloadLike, check_payload_len
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.disclosure.basis import PublicBasis, Statement
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_OFFSETS, DEFAULT_THRESHOLD, MAX_OFFSETS
from agentmark.verify.intake import Intake, reading_cost
from agentmark.verify.judge import Judge
from agentmark.verify.keyring import AnyKey, Keyring
from agentmark.verify.prices import Prices
from agentmark.verify.state import LogState, accumulate
from agentmark.verify.verdict import Placement, Segment, Verdict

# What all places together may spend, in work limits: on reading, and on searching. Each may search this much in any
# case, which is enough for a clean run of steps.
PLACES_PART = 50
LEAST_WORK = 20_000


class Verifier:
    """Reads identities back. Any subset of records, in any order, from any number of sessions, by the same call."""

    def __init__(
        self,
        key: AnyKey | Iterable[AnyKey],
        *,
        payload_len: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        registry: Registry | None = None,
        noise: float | None = None,
        any_key_id: bool = False,
        work_limit: int = DEFAULT_WORK_LIMIT,
    ) -> None:
        """Several keys serve logs that cross a key rotation: each record is read with the key it names. In place of a
        key, `DisclosedSteps` serves what its holder disclosed.

        `payload_len` is by default the one that most steps state. `noise` is the share of foreign or altered steps
        to expect; by default a mixture of rates is tried, and 0 tolerates none. `any_key_id` reads every record with
        the one key given, for logs whose key ids were altered or lost. `work_limit` is what looking for a payload may
        cost, in operations of about a microsecond; a verdict says when it was reached.
        """
        self.keys = Keyring(key, any_key_id=any_key_id)
        self.judge = Judge(threshold=threshold, noise=noise, prices=Prices(registry), work_limit=work_limit)
        if payload_len is None and registry is not None:
            payload_len = registry.payload_len
        if registry is not None and payload_len != registry.payload_len:
            raise SettingError("payload_len", f"{payload_len} differs from the registry's {registry.payload_len}")
        self.payload_len = None if payload_len is None else check_payload_len(payload_len)

    @property
    def threshold(self) -> float:
        return self.judge.threshold

    @property
    def noise_rates(self) -> tuple[float, ...]:
        return self.judge.noise_rates

    def verify(self, records: Iterable[StepRecord], *, claim: PayloadLike = None) -> Verdict:
        """Judge a log: what identity does it carry, or (with `claim`) does it carry this one?

        A claim is a number, bytes or bits; in text, a name in the registry or (without one) text that fits. "No
        watermark here" is a verdict; only broken input raises.
        """
        return self.judge.verdict(self.take_in(records), claim)

    def control(self, records: Iterable[StepRecord], *, claim: PayloadLike = None) -> Verdict:
        """The same log read with fresh random keys: what a stranger's key finds in it."""
        return self.judge.verdict(self.sort_out(accumulate(records, self.keys.strangers())), claim)

    def segments(self, records: Iterable[StepRecord]) -> tuple[Segment, ...]:
        """Divide a log, in the order given, into stretches of one identity each, or of none that is ours."""
        return self.judge.segments(self.take_in(records))

    def locate(
        self,
        session: str,
        records: Sequence[StepRecord],
        *,
        offsets: Iterable[int] = range(DEFAULT_OFFSETS),
        claim: PayloadLike = None,
    ) -> Placement:
        """Place a run of consecutive steps whose digests and indices are lost, given their session.

        Every offset tried is paid for. The contexts must have bound nothing but session and step.
        """
        tried = list(islice(offsets, MAX_OFFSETS + 1))
        if not 1 <= len(tried) <= MAX_OFFSETS:
            raise SettingError("offsets", f"there must be at least one, and at most {MAX_OFFSETS:,}")
        paying = self._for_places(len(tried), records)
        best: Placement | None = None
        for offset in tried:
            verdict = paying.verify(placed_at(records, session, offset), claim=claim)
            if best is None or verdict.surplus > best.verdict.surplus:
                best = Placement(offset if verdict.accepted else None, len(tried), verdict)
            if verdict.accepted:
                break
        assert best is not None
        return best

    def _for_places(self, count: int, records: Iterable[StepRecord]) -> "Verifier":
        """Pays for every place, and shares the work among them: at nearly all of them nothing is to be found."""
        allowed = PLACES_PART * self.judge.work_limit
        needed = count * fsum([reading_cost(record) for record in records])
        if needed > allowed:
            raise SettingError(
                "offsets",
                f"to read these records at {count:,} places takes {needed:.1e} operations, and a work limit of "
                f"{self.judge.work_limit:,} allows {allowed:.1e}: fewer places or records, or a higher limit",
            )
        paying = self.for_tries(count)
        paying.judge = replace(paying.judge, work_limit=min(self.judge.work_limit, max(allowed // count, LEAST_WORK)))
        return paying

    def for_tries(self, tries: int) -> "Verifier":
        """A verifier that pays for this many questions of which its own is one: offsets, keys, logs judged apart."""
        twin = copy(self)
        twin.judge = self.judge.for_tries(tries)
        return twin

    def resting_on(self, basis: PublicBasis) -> "Verifier":
        """A verifier whose bounds hold for this statement of public mode: what it takes is paid for."""
        paying = self.for_tries(basis.tries)
        if basis.statement is Statement.CLAIMED_BY_HOLDER:
            paying.judge = replace(paying.judge, prices=paying.judge.prices.by_a_claimant())
        return paying

    def take_in(self, records: Iterable[StepRecord]) -> Intake:
        """Read and sort a log without judging it."""
        return self.sort_out(accumulate(records, self.keys))

    def sort_out(self, state: LogState) -> Intake:
        """Which records of an accumulated state count, for the payload length of this verifier."""
        intake = state.intake(self.payload_len, disclosed=self.keys.disclosed)
        return replace(intake, keys_given=self.keys.ids)


def placed_at(records: Iterable[StepRecord], session: str, offset: int) -> list[StepRecord]:
    """The records as consecutive steps of a session, from this step on."""
    return [
        replace(record, session=session, step_index=step, context=context_digest(context_fields(session, step)))
        for step, record in enumerate(records, start=offset)
    ]
