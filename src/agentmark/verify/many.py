"""Many logs, each judged alone, with every question paid for (spec, section 9.6).

Logs come in parts: all in memory, or a file each. What a phase does, it does to one part, with a few numbers of the
others, so that any `map` can spread the parts over processes or machines. Verdicts stay with their part.

(1) Read each log by itself, and sort it out: its own payload length, its own copies.    `SortedLog`
(2) Count the questions, before any answer is looked at.                                 `survey`, `Questions`
(3) Judge each: a glance at all, then longer looks at those that stay open.              `glance`, `look`
(4) Look for identities that explain short logs together.                                `gather`, `pooling`
(5) Settle the threshold, and state every verdict under it.                              `correction`, `settle`

Nothing here depends on the order of the logs, nor on how they are divided into parts. How an identity came to be looked
for makes no difference to its price, so one that is named in one log is looked for in all others.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from math import log2
from typing import Any, Protocol

from agentmark.core.payload import PayloadLike
from agentmark.core.prf import DIGEST_SIZE
from agentmark.verify.correction import Correction
from agentmark.verify.judge import Judge
from agentmark.verify.pooling import MOST_POOLED_STEPS, ShortLog, WeighedPool, pool_short_logs
from agentmark.verify.roll import By, Pool, Roll, RollRow
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.state import LogState
from agentmark.verify.tamper import erasure_findings, tamper_findings
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier

# What all searches together may cost, in work limits: a first look at every log, and longer ones where that was cut
# short. Each log may have this much in any case, which is enough for one that is clean.
LOOKS_PART = 2
LEAST_LOOK = 10_000
# So many of the identities that were found are looked for in the other logs, those of the most logs first.
MOST_OFFERED = 256
# Steps that stand in several logs are counted as long as there are no more than this many in all.
MOST_COMPARED_STEPS = 2_000_000
# A context is told from others by so many bytes of its digest.
COMPARED_BYTES = 8

# How many logs are judged, of how many.
Watch = Callable[[int, int], None]
# An identity: its payload, and the length of it.
Who = tuple[int, int]


def unwatched(_done: int, _total: int) -> None:
    """Nobody watches."""


# What one part is asked -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the logs of a part before any answer is looked at: a few numbers of each, in their order."""

    # Usable steps, the payload length, and the most that any payload can have.
    steps: "array[int]"
    lengths: "array[int]"
    potential: "array[float]"

    def __len__(self) -> int:
        return len(self.steps)


def survey(logs: Sequence[SortedLog]) -> Survey:
    """(2) Which logs can speak, and how loud. That depends on the key's draws and not on its pads: it says nothing of
    whose they are."""
    return Survey(
        array("q", [len(log) for log in logs]),
        array("i", [log.payload_len for log in logs]),
        array("d", [log.readings.most_bits for log in logs]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of every log, fixed before any of them is judged."""

    judge: Judge
    claim: PayloadLike = None
    keys_given: tuple[str, ...] = ()
    # Identities that other logs name.
    offered: tuple[Who, ...] = ()
    # Whether those that still name nobody are searched, or only asked about `offered`.
    search: bool = True
    # Whether of those only such are looked at whose search was cut short.
    cut_short_only: bool = False

    def for_length(self, payload_len: int) -> tuple[int, ...]:
        """The payloads that are offered to a log of this length, but for those that a registry has brought already."""
        registry = self.judge.prices.registry
        of_length = [payload for payload, length in self.offered if length == payload_len]
        return tuple([payload for payload in of_length if registry is None or registry.holder(payload) is None])


def glance(logs: Sequence[SortedLog], question: Question) -> list[Verdict]:
    """(3) A verdict on each log, without a search among payloads that explain a part of it: those that are clean, or of
    a registry, need none."""
    judge = question.judge
    return [replace(judge.judged(log, question.claim, glance=True), keys_given=question.keys_given) for log in logs]


def look(logs: Sequence[SortedLog], verdicts: Sequence[Verdict], question: Question) -> list[Verdict]:
    """(3) The verdicts, with a longer look at logs that could name somebody and do not: first for what others name,
    which costs little; then a search, as far as the question's work goes."""
    offered: dict[int, tuple[int, ...]] = {}
    looked = []
    for log, verdict in zip(logs, verdicts, strict=True):
        if not is_open(verdict) or (question.cut_short_only and not verdict.work_spent):
            looked.append(verdict)
            continue
        if log.payload_len not in offered:
            offered[log.payload_len] = question.for_length(log.payload_len)
        known = question.judge.recognised(log, offered[log.payload_len])
        if known or question.search:
            again = question.judge.judged(log, offered=known)
            looked.append(replace(again, keys_given=question.keys_given))
        else:
            looked.append(verdict)
    return looked


def is_open(verdict: Verdict) -> bool:
    """Whether a log could name somebody and does not."""
    return not verdict.accepted and verdict.potential_bits >= verdict.bits_paid - log2(verdict.threshold)


@dataclass(frozen=True, slots=True)
class Looked:
    """What looking at a part has shown, in a few numbers."""

    surpluses: "array[float]"
    # Logs that could name somebody and do not, and those of them whose search was cut short.
    open: int
    cut_short: int
    # In how many logs each identity is named.
    named: Counter[Who]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> "Looked":
        still_open = [verdict for verdict in verdicts if is_open(verdict)]
        return cls(
            array("d", [verdict.surplus for verdict in verdicts]),
            len(still_open),
            sum([verdict.work_spent for verdict in still_open]),
            Counter([(found.payload, found.payload_len) for verdict in verdicts for found in verdict.found]),
        )


def gather(logs: Sequence[SortedLog], first_row: int, places: Iterable[int]) -> list[ShortLog]:
    """(4) What pools need of the logs at these places; the first log of the part is this row of all."""
    return [ShortLog.of(first_row + place, logs[place]) for place in places]


def context_digests(logs: Sequence[SortedLog]) -> list[bytes]:
    """For each log the beginnings of its contexts, one behind the other."""
    return [
        b"".join([log.contexts[at : at + COMPARED_BYTES] for at in range(0, len(log.contexts), DIGEST_SIZE)])
        for log in logs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What is settled for all logs, and what is said of those of one part."""

    judge: Judge
    claim: PayloadLike = None
    # Of the logs of the part, by place: which pool explains them, and how many of their steps stand elsewhere as well.
    pool_of: Mapping[int, int] = field(default_factory=dict)
    shared: Sequence[int] | None = None


def settle(logs: Sequence[SortedLog], verdicts: Sequence[Verdict], settled: Settled) -> list[RollRow]:
    """(5) The rows of a part, every verdict under the threshold of the whole."""
    return [
        RollRow(
            name=log.name,
            files=log.files,
            verdict=_settled(settled, log, verdict),
            pool=settled.pool_of.get(place),
            shared_contexts=None if settled.shared is None else settled.shared[place],
            contexts=log.contexts,
        )
        for place, (log, verdict) in enumerate(zip(logs, verdicts, strict=True))
    ]


def _settled(settled: Settled, log: SortedLog, verdict: Verdict) -> Verdict:
    """The verdict under the threshold of the whole. Who is named at a stricter one already is named at this."""
    if verdict.threshold == settled.judge.threshold:
        return verdict
    restated = replace(verdict, threshold=settled.judge.threshold)
    if not restated.accepted or verdict.candidate is None:
        return restated
    named = [found.payload for found in verdict.found]
    judge = replace(settled.judge, work_limit=verdict.work_limit)
    again = judge.judged(log, settled.claim, offered=named or [verdict.candidate])
    again = replace(again, keys_given=verdict.keys_given)
    # It is offered what it found itself: the route is still the one by which that was found.
    return replace(again, route=verdict.route) if again.candidate == verdict.candidate else again


# All parts ------------------------------------------------------------------------------------------------------------


class Part(Protocol):
    """Some of the logs, wherever they are kept, and what was said of them so far."""

    def logs(self) -> Sequence[SortedLog]: ...

    def verdicts(self) -> Sequence[Verdict]:
        """Those that were kept last, in the order of the logs."""
        ...

    def keep(self, verdicts: Sequence[Verdict], /) -> None: ...


class Mapper(Protocol):
    """Applies a function to every item, and yields what it returns in the order of the items: `map`, or the same over
    processes, if the parts can be sent to them."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]: ...


class HeldPart:
    """A part in memory."""

    def __init__(self, logs: Iterable[SortedLog]) -> None:
        self._logs = list(logs)
        self._verdicts: list[Verdict] = []

    def logs(self) -> Sequence[SortedLog]:
        return self._logs

    def verdicts(self) -> Sequence[Verdict]:
        return self._verdicts

    def keep(self, verdicts: Sequence[Verdict], /) -> None:
        self._verdicts = list(verdicts)


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked: a question for each log that has a usable step, and one for the short ones together."""

    # Logs with a usable step.
    usable: int
    # For each part the places of logs that are too short whatever the others show, and of the payload length that most
    # of them have. Empty if nothing is asked about them together.
    short: tuple["array[int]", ...]
    pool_len: int
    # Usable steps in short logs that are not asked about together, because they are too many.
    not_pooled: int = 0

    @property
    def short_count(self) -> int:
        return sum([len(places) for places in self.short])

    @property
    def count(self) -> int:
        return self.usable + bool(self.short_count)

    @classmethod
    def of(
        cls, surveys: Sequence[Survey], judge: Judge, correction: Correction, *, claimed: bool, pools: bool
    ) -> "Questions":
        usable = sum([bool(steps) for part in surveys for steps in part.steps])
        nobody = tuple([array("q") for _ in surveys])
        if not pools or not usable:
            return cls(usable, nobody, 0)
        short = _too_short(surveys, judge, correction, usable, claimed=claimed)
        if sum(map(len, short)) > 1:
            # The question about them is a question more.
            short = _too_short(surveys, judge, correction, usable + 1, claimed=claimed)
        lengths = Counter([part.lengths[i] for part, places in zip(surveys, short, strict=True) for i in places])
        pool_len = _commonest(lengths)
        together = tuple(
            [
                array("q", [i for i in places if part.lengths[i] == pool_len])
                for part, places in zip(surveys, short, strict=True)
            ]
        )
        steps = sum([part.steps[i] for part, places in zip(surveys, together, strict=True) for i in places])
        if sum(map(len, together)) < 2:
            return cls(usable, nobody, pool_len)
        if steps > MOST_POOLED_STEPS:
            return cls(usable, nobody, pool_len, not_pooled=steps)
        return cls(usable, together, pool_len)


def _too_short(
    surveys: Sequence[Survey], judge: Judge, correction: Correction, questions: int, *, claimed: bool
) -> list["array[int]"]:
    """For each part the places of usable logs that would name nobody even if every step agreed."""
    prices = judge.prices.for_tries(correction.tries_paid(questions))
    lengths = {length for part in surveys for length in part.lengths}
    bars = {
        length: -log2(correction.mildest(questions)) + (prices.of_claim(length) if claimed else prices.of(None, length))
        for length in lengths
    }
    return [
        array(
            "q",
            [
                i
                for i, (steps, length, potential) in enumerate(
                    zip(part.steps, part.lengths, part.potential, strict=True)
                )
                if steps and potential < bars[length]
            ],
        )
        for part in surveys
    ]


def commonest_length(surveys: Iterable[Survey]) -> int:
    """The payload length of most logs that have a usable step; of equals, the longer. A claim is an identity of one
    length, whatever a single log states: with a claim all logs are sorted out under this one."""
    return _commonest(
        Counter([length for part in surveys for steps, length in zip(part.steps, part.lengths, strict=True) if steps])
    )


def _commonest(lengths: Counter[int]) -> int:
    return max(lengths, key=lambda length: (lengths[length], length), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedParts:
    """Everything that is settled for all logs. `rows` gives those of the parts, one part after the other."""

    parts: Sequence[Part]
    mapper: Mapper = field(repr=False)
    settled: tuple[Settled, ...] = field(repr=False)
    pools: tuple[Pool, ...]
    questions: int
    correction: Correction
    # Usable steps in logs that are too short alone, and too many to be asked about together.
    not_pooled: int = 0

    def rows(self) -> Iterator[list[RollRow]]:
        """The rows of each part, in the order of its logs."""
        yield from self.mapper(_settle_part, zip(self.parts, self.settled, strict=True))


def judge_parts(
    verifier: Verifier,
    parts: Sequence[Part],
    *,
    correction: Correction,
    claim: PayloadLike = None,
    pools: bool = True,
    mapper: Mapper = map,
    watch: Watch = unwatched,
) -> JudgedParts:
    """What identity does each of these logs carry, or (with a claim) which of them carry this one?

    The correction takes the place of the verifier's own threshold. Without `pools`, logs that are too short alone are
    left at that. In memory are a few numbers of each log, the short logs of the pools, and whatever part is looked at.
    """
    surveys: list[Survey] = list(mapper(_survey_part, parts))
    asked = Questions.of(surveys, verifier.judge, correction, claimed=claim is not None, pools=pools)
    judge = replace(
        verifier.judge.for_tries(correction.tries_paid(asked.count)), threshold=correction.strictest(asked.count)
    )
    looks = _Looks(Question(judge=judge, claim=claim, keys_given=verifier.keys.ids), parts, surveys, mapper, watch)
    looks.all()
    first_rows = [0]
    for part in surveys:
        first_rows.append(first_rows[-1] + len(part))
    pooled: list[WeighedPool] = []
    if asked.short_count:
        jobs = [
            (part, row, places) for part, row, places in zip(parts, first_rows, asked.short, strict=False) if places
        ]
        short = [log for logs in mapper(_gather_part, jobs) for log in logs]
        weighed = pool_short_logs(
            judge,
            short,
            asked.pool_len,
            claim=claim,
            offered=looks.found_so_far(),
            disclosed=bool(verifier.keys.disclosed),
        )
        # One that no log speaks for is not shown, so it must not count among the names either.
        pooled = [pool for pool in weighed if pool.explains]
    surpluses = looks.surpluses() + [max([pool.surplus for pool in pooled], default=0.0)] * bool(asked.short_count)
    final = replace(judge, threshold=correction.settled(surpluses, asked.count))
    accepted = _assigned([pool for pool in pooled if pool.passes(final.threshold)])
    pool_of = {row: i for i, pool in enumerate(accepted) for row in pool.rows}
    shared = _shared_contexts(parts, surveys, mapper)
    settled = [
        Settled(
            judge=final,
            claim=claim,
            pool_of={row - first: pool for row, pool in pool_of.items() if first <= row < first + len(part)},
            shared=None if shared is None else shared[first : first + len(part)],
        )
        for part, first in zip(surveys, first_rows, strict=False)
    ]
    return JudgedParts(
        parts=parts,
        mapper=mapper,
        settled=tuple(settled),
        pools=tuple([_pool(pool, judge, asked.short_count) for pool in accepted]),
        questions=asked.count,
        correction=correction,
        not_pooled=asked.not_pooled,
    )


class _Looks:
    """Looks for identities in every log, within bounds that hold for all of them together.

    All first looks cost LOOKS_PART work limits, or LEAST_LOOK for each log if that is more. Then what was found is
    looked for in the rest, which costs little; and LOOKS_PART work limits are shared among those that were cut short.
    """

    def __init__(
        self, question: Question, parts: Sequence[Part], surveys: Sequence[Survey], mapper: Mapper, watch: Watch
    ) -> None:
        self._question = question
        self._parts = parts
        self._surveys = surveys
        self._mapper = mapper
        self._watch = watch
        self._total = sum(map(len, surveys))
        self._looked: list[Looked] = []

    def all(self) -> None:
        judge = self._question.judge
        usable = sum([bool(steps) for part in self._surveys for steps in part.steps])
        first = self._limited(max(LOOKS_PART * judge.work_limit // max(usable, 1), LEAST_LOOK))
        done = 0
        self._watch(0, self._total)
        for part, looked in zip(self._surveys, self._mapper(partial(_glance_part, first), self._parts), strict=True):
            self._looked.append(looked)
            done += len(part)
            self._watch(done, self._total)
        if self._question.claim is not None:
            return
        self._look(first)
        self._recognise(first)
        unsettled = sum([looked.cut_short for looked in self._looked])
        longer = self._limited(LOOKS_PART * judge.work_limit // max(unsettled, 1))
        if longer.judge.work_limit > first.judge.work_limit:
            self._look(replace(longer, cut_short_only=True))
            self._recognise(first)

    def found_so_far(self) -> tuple[Who, ...]:
        """The identities that are named, those of the most logs first."""
        named: Counter[Who] = Counter()
        for looked in self._looked:
            named.update(looked.named)
        return tuple(sorted(named, key=lambda who: (-named[who], who))[:MOST_OFFERED])

    def surpluses(self) -> list[float]:
        """Of the logs that have a usable step."""
        return [
            surplus
            for part, looked in zip(self._surveys, self._looked, strict=True)
            for steps, surplus in zip(part.steps, looked.surpluses, strict=True)
            if steps
        ]

    def _recognise(self, first: Question) -> None:
        """Look for what was found in one log in those where nobody was; again, if that finds somebody new."""
        self._look(replace(first, search=False))

    def _look(self, question: Question) -> None:
        """At the parts that have a log for it."""
        question = replace(question, offered=self.found_so_far())
        if not question.search and not question.offered:
            return
        places = [
            i for i, looked in enumerate(self._looked) if (looked.cut_short if question.cut_short_only else looked.open)
        ]
        looked_again = self._mapper(partial(_look_at_part, question), [self._parts[i] for i in places])
        for i, looked in zip(places, looked_again, strict=True):
            self._looked[i] = looked
            self._watch(self._total, self._total)

    def _limited(self, work_limit: int) -> Question:
        judge = self._question.judge
        return replace(self._question, judge=replace(judge, work_limit=max(1, min(work_limit, judge.work_limit))))


def _survey_part(part: Part) -> Survey:
    return survey(part.logs())


def _glance_part(question: Question, part: Part) -> Looked:
    verdicts = glance(part.logs(), question)
    part.keep(verdicts)
    return Looked.of(verdicts)


def _look_at_part(question: Question, part: Part) -> Looked:
    verdicts = look(part.logs(), part.verdicts(), question)
    part.keep(verdicts)
    return Looked.of(verdicts)


def _gather_part(job: tuple[Part, int, Sequence[int]]) -> list[ShortLog]:
    part, first_row, places = job
    return gather(part.logs(), first_row, places)


def _digests_of_part(part: Part) -> list[bytes]:
    return context_digests(part.logs())


def _settle_part(job: tuple[Part, Settled]) -> list[RollRow]:
    part, settled = job
    return settle(part.logs(), part.verdicts(), settled)


def _shared_contexts(parts: Sequence[Part], surveys: Sequence[Survey], mapper: Mapper) -> "array[int] | None":
    """For each log, how many of its steps stand in another as well; None if there are too many steps to compare."""
    if sum([steps for part in surveys for steps in part.steps]) > MOST_COMPARED_STEPS:
        return None
    if sum(map(len, surveys)) == 1:
        # There is no other.
        return array("q", [0])
    seen: Counter[int] = Counter()
    digests = [_words(own) for of_part in mapper(_digests_of_part, parts) for own in of_part]
    for own in digests:
        seen.update(own)
    repeated = {digest for digest, count in seen.items() if count > 1}
    return array("q", [sum(map(repeated.__contains__, own)) if repeated else 0 for own in digests])


def _words(digests: bytes) -> "array[int]":
    words = array("Q")
    words.frombytes(digests)
    return words


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


# Logs whose records are here ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One of many logs: a session, or a file. Names are told apart; no two groups have the same."""

    name: str
    files: tuple[str, ...]
    # What its records say, read under the verifier's keys (`state.accumulate`).
    state: LogState
    # Of these keys, those that were read by what their holders disclosed.
    disclosed: frozenset[str] = frozenset()

    def sorted_out(
        self, payload_len: int | None, *, places: bool = False, divided: Set[bytes] = frozenset()
    ) -> SortedLog:
        """What judging it takes, under this payload length or its own. With `places`, what its records show of
        tampering is said as well: that needs their sessions and step numbers, beside what counts."""
        intake = self.state.intake(payload_len, disclosed=self.disclosed, divided=divided)
        moved = tamper_findings([step.record for step in intake.steps]) if places else []
        return SortedLog.of(intake, name=self.name, files=self.files, tampering=(*moved, *erasure_findings(intake)))


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
    """`judge_parts` over logs whose records are in memory, with all rows at once, in the order of their names."""
    ordered = sorted(groups, key=lambda group: group.name)
    payload_len = verifier.payload_len
    if payload_len is None and (claim is not None or verifier.keys.disclosed):
        # With disclosures too: lines of another length that somebody adds would choose which sessions are pooled.
        payload_len = commonest_length([survey([group.sorted_out(None) for group in ordered])])
    divided = frozenset() if payload_len is None else _divided(ordered, payload_len)
    part = HeldPart([group.sorted_out(payload_len, places=True, divided=divided) for group in ordered])
    judged = judge_parts(verifier, [part], correction=correction, claim=claim, pools=pools, watch=watch)
    return Roll(
        by=by,
        rows=tuple([row for rows in judged.rows() for row in rows]),
        pools=judged.pools,
        questions=judged.questions,
        correction=correction,
        not_pooled=judged.not_pooled,
    )


def _divided(groups: Sequence[Group], payload_len: int) -> frozenset[bytes]:
    """Contexts that several logs prove which do not prove the same ones. Whoever knows a disclosure puts records of his
    choice into a file of its own: it would name whom they fit, and nothing would be missing from all files together.
    A log that stands there twice, as a whole, is no choice."""
    proved = [group.state.proved(payload_len, group.disclosed) if group.disclosed else frozenset() for group in groups]
    places: dict[bytes, list[int]] = defaultdict(list)
    for i, contexts in enumerate(proved):
        for context in contexts:
            places[context].append(i)
    return frozenset(
        [context for context, users in places.items() if any(proved[i] != proved[users[0]] for i in users[1:])]
    )
