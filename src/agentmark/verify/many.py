"""Many logs, each judged alone, with every question paid for (spec, section 9.6).

(1) Read each log by itself.                                          `LogState`, one for each `Group`
(2) Sort each out: its own payload length, its own copies.            `intake.sort_out`
(3) Count the questions, before any answer is looked at.              `_Questions`
(4) Judge each: a first look at all, then a longer one where needed.  `_Looks`, with `judge.Judge`
(5) Look for identities that explain short logs together.             `pooling.pool_short_logs`
(6) Settle the threshold, and state every verdict under it.           `correction`, `_settled`

Nothing here depends on the order of the groups. How an identity came to be looked for makes no difference to its price,
so one that is named in one log is looked for in all others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import log2

from agentmark.core.payload import PayloadLike
from agentmark.verify.correction import Correction
from agentmark.verify.intake import Intake
from agentmark.verify.judge import Judge
from agentmark.verify.pooling import ShortLog, WeighedPool, pool_short_logs
from agentmark.verify.roll import By, Pool, Roll, RollRow
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.state import LogState
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier

# What all searches together may cost, in work limits: a first look at every log, and longer ones where that was cut
# short. Each log may have this much in any case, which is enough for one that is clean.
LOOKS_PART = 2
LEAST_LOOK = 10_000
# So many of the identities that were found are looked for in the other logs, those of the most logs first.
MOST_OFFERED = 256

# How many logs are judged, of how many.
Watch = Callable[[int, int], None]


def unwatched(_done: int, _total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One of many logs: a session, or a file. Names are told apart; no two groups have the same."""

    name: str
    files: tuple[str, ...]
    # What its records say, read under the verifier's keys (`state.accumulate`).
    state: LogState


def judge_roll(
    verifier: Verifier,
    groups: Iterable[Group],
    *,
    by: By = By.SESSION,
    correction: Correction,
    claim: PayloadLike = None,
    pools: bool = True,
    watch: Watch = unwatched,
) -> Roll:
    """What identity does each of these logs carry, or (with a claim) which of them carry this one?

    The correction takes the place of the verifier's own threshold. Without `pools`, logs that are too short alone are
    left at that.
    """
    ordered = sorted(groups, key=lambda group: group.name)
    # (2) A claim is an identity of one length, whatever a single log states.
    payload_len = verifier.payload_len
    if payload_len is None and claim is not None:
        payload_len = _commonest_length([group.state.intake() for group in ordered])
    intakes = [replace(group.state.intake(payload_len), keys_given=verifier.keys.ids) for group in ordered]
    # (3) Which logs can speak, and how loud, depends on the key's draws and not on its pads: it says nothing of whose
    # they are.
    asked = _Questions.of(intakes, verifier.judge, correction, claimed=claim is not None, pools=pools)
    judge = replace(
        verifier.judge.for_tries(correction.tries_paid(asked.count)), threshold=correction.strictest(asked.count)
    )
    # (4)
    looks = _Looks(judge, intakes, claim, watch)
    verdicts = looks.verdicts()
    # (5)
    pooled: list[WeighedPool] = []
    if asked.short:
        short_logs = [ShortLog(i, ordered[i].state) for i in asked.short]
        weighed = pool_short_logs(judge, short_logs, asked.pool_len, claim=claim, offered=looks.found_so_far())
        # One that no log speaks for is not shown, so it must not count among the names either.
        pooled = [pool for pool in weighed if pool.explains]
    # (6)
    surpluses = [verdicts[i].surplus for i in asked.usable] + [max([pool.surplus for pool in pooled], default=0.0)]
    final = replace(judge, threshold=correction.settled(surpluses[: asked.count], asked.count))
    settled = [_settled(final, intake, verdict, claim) for intake, verdict in zip(intakes, verdicts, strict=True)]
    accepted = _assigned([pool for pool in pooled if pool.passes(final.threshold)])
    pool_of = {row: i for i, pool in enumerate(accepted) for row in pool.rows}
    shared = _shared_contexts(intakes)
    rows = [
        RollRow(name=group.name, files=group.files, verdict=settled[i], pool=pool_of.get(i), shared_contexts=shared[i])
        for i, group in enumerate(ordered)
    ]
    return Roll(
        by=by,
        rows=tuple(rows),
        pools=tuple([_pool(pool, judge, len(asked.short)) for pool in accepted]),
        questions=asked.count,
        correction=correction,
    )


@dataclass(frozen=True, slots=True)
class _Questions:
    """What is asked: a question for each log that has a usable step, and one for the short ones together."""

    usable: tuple[int, ...]
    # Too short whatever the others show, and of the payload length that most of them have.
    short: tuple[int, ...]
    pool_len: int

    @property
    def count(self) -> int:
        return len(self.usable) + bool(self.short)

    @classmethod
    def of(
        cls, intakes: Sequence[Intake], judge: Judge, correction: Correction, *, claimed: bool, pools: bool
    ) -> "_Questions":
        usable = tuple([i for i, intake in enumerate(intakes) if intake.used])
        # The most that any payload can have: what is too short by this is never named alone, whatever is drawn.
        potential = {i: intakes[i].readings.most_bits for i in usable}

        def too_short(questions: int) -> list[int]:
            prices = judge.prices.for_tries(correction.tries_paid(questions))
            bar = -log2(correction.mildest(questions))
            return [
                i
                for i in usable
                if potential[i] < bar + (prices.of_claim if claimed else prices.of(None, intakes[i].payload_len))
            ]

        short = too_short(len(usable)) if pools and usable else []
        if len(short) > 1:
            # The question about them is a question more.
            short = too_short(len(usable) + 1)
        pool_len = _commonest_length([intakes[i] for i in short])
        together = [i for i in short if intakes[i].payload_len == pool_len]
        return cls(usable, tuple(together) if len(together) > 1 else (), pool_len)


class _Looks:
    """Looks for identities in every log, within bounds that hold for all of them together.

    All first looks cost LOOKS_PART work limits, or LEAST_LOOK for each log if that is more. Then what was found is
    looked for in the rest, which costs little; and LOOKS_PART work limits are shared among those that were cut short.
    """

    def __init__(self, judge: Judge, intakes: Sequence[Intake], claim: PayloadLike, watch: Watch) -> None:
        self._judge = judge
        self._intakes = intakes
        self._claim = claim
        self._watch = watch
        self._verdicts: list[Verdict] = []

    def verdicts(self) -> list[Verdict]:
        usable = sum([bool(intake.used) for intake in self._intakes])
        first = self._limited(max(LOOKS_PART * self._judge.work_limit // max(usable, 1), LEAST_LOOK))
        for done, intake in enumerate(self._intakes):
            self._watch(done, len(self._intakes))
            self._verdicts.append(first.verdict(intake, self._claim))
        if self._claim is None:
            self._recognise(first)
            unsettled = [i for i in self._open() if self._verdicts[i].work_spent]
            longer = self._limited(LOOKS_PART * self._judge.work_limit // max(len(unsettled), 1))
            if longer.work_limit > first.work_limit:
                for i in unsettled:
                    self._watch(len(self._intakes), len(self._intakes))
                    self._verdicts[i] = longer.verdict(self._intakes[i])
                self._recognise(first)
        self._watch(len(self._intakes), len(self._intakes))
        return self._verdicts

    def found_so_far(self) -> list[tuple[int, int]]:
        """The identities that are named (payload and its length), those of the most logs first."""
        named = Counter((found.payload, found.payload_len) for verdict in self._verdicts for found in verdict.found)
        return sorted(named, key=lambda who: (-named[who], who))[:MOST_OFFERED]

    def _recognise(self, judge: Judge) -> None:
        """Look for what was found in one log in those where nobody was."""
        found = self.found_so_far()
        for i in self._open() if found else ():
            intake = self._intakes[i]
            offered = [payload for payload, payload_len in found if payload_len == intake.payload_len]
            known = judge.recognised(SortedLog.of(intake), offered)
            if known:
                self._verdicts[i] = judge.verdict(intake, offered=known)

    def _open(self) -> list[int]:
        """Logs that could name somebody and do not."""
        return [
            i
            for i, verdict in enumerate(self._verdicts)
            if not verdict.accepted and verdict.potential_bits >= verdict.bits_paid - log2(verdict.threshold)
        ]

    def _limited(self, work_limit: int) -> Judge:
        return replace(self._judge, work_limit=max(1, min(work_limit, self._judge.work_limit)))


def _settled(final: Judge, intake: Intake, verdict: Verdict, claim: PayloadLike) -> Verdict:
    """The verdict under the threshold of the whole roll. Who is named at a stricter one already is named at this."""
    if verdict.threshold == final.threshold:
        return verdict
    restated = replace(verdict, threshold=final.threshold)
    if not restated.accepted or verdict.candidate is None:
        return restated
    named = [found.payload for found in verdict.found]
    judge = replace(final, work_limit=verdict.work_limit)
    again = judge.verdict(intake, claim, offered=named or [verdict.candidate])
    # It is offered what it found itself: the route is still the one by which that was found.
    return replace(again, route=verdict.route) if again.candidate == verdict.candidate else again


def _commonest_length(intakes: Iterable[Intake]) -> int:
    """The payload length of most logs that have a usable step; of equals, the longer."""
    lengths = Counter(intake.payload_len for intake in intakes if intake.used)
    return max(lengths, key=lambda length: (lengths[length], length), default=0)


def _assigned(pools: Sequence[WeighedPool]) -> list[WeighedPool]:
    """Each row in the pool that explains it best; a pool that keeps no row explains nothing that can be shown."""
    best: dict[int, WeighedPool] = {}
    for pool in sorted(pools, key=lambda pool: (-pool.surplus, pool.payload)):
        for row, bits in pool.explains.items():
            if row not in best or bits > best[row].explains[row]:
                best[row] = pool
    kept = []
    for pool in pools:
        rows = {row: bits for row, bits in pool.explains.items() if best[row] is pool}
        if rows:
            kept.append(replace(pool, explains=rows))
    return sorted(kept, key=lambda pool: (-len(pool.rows), -pool.surplus, pool.payload))


def _pool(pool: WeighedPool, judge: Judge, among: int) -> Pool:
    registry = judge.prices.registry
    holder = None if registry is None else registry.holder(pool.payload)
    return Pool(
        payload=pool.payload,
        payload_len=pool.payload_len,
        identity=None if holder is None else holder.name,
        revoked_at=None if holder is None else holder.revoked_at,
        evidence_bits=pool.evidence_bits,
        bits_paid=pool.bits_paid,
        rows=pool.rows,
        among=among,
    )


def _shared_contexts(intakes: Sequence[Intake]) -> list[int]:
    """For each log, how many of its contexts stand in another as well."""
    contexts = [{step.record.context for step in intake.steps} for intake in intakes]
    seen = Counter(context for mine in contexts for context in mine)
    return [sum([seen[context] > 1 for context in mine]) for mine in contexts]
