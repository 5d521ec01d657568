"""Columns into logs that are ready to be judged: steps 2 to 4 of the checklist (spec, section 9), all groups at once.

What stands alone in its group is settled by arrays. Contexts that stand several times, and groups whose records state
several payload lengths, are rare, and are settled record by record by the functions of the plain path.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, TypeAlias

from agentmark.batch.arrays import Bools, Int64s, NDArray, np
from agentmark.batch.columns import SCHEME_NAMES, StepColumns
from agentmark.batch.joined import JoinedColumns
from agentmark.batch.reading import ReadingColumns
from agentmark.core.prf import DIGEST_SIZE
from agentmark.verify import intake
from agentmark.verify.intake import READ_OUTCOMES, Intake, OtherKeys, Outcome, Step, Tally, reading_cost
from agentmark.verify.packed import PackedReadings
from agentmark.verify.readings import ReadingList, Readings
from agentmark.verify.roll import By
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.tamper import erasure_findings

_Rows: TypeAlias = StepColumns | JoinedColumns
_OUTCOMES = tuple(Outcome)
_CODES = {outcome: code for code, outcome in enumerate(_OUTCOMES)}
_OF_READING = np.array([_CODES[outcome] for outcome in READ_OUTCOMES], dtype=np.int64)


def sort_out(
    columns: StepColumns | JoinedColumns, readings: ReadingColumns, by: By, payload_len: int | None = None
) -> Iterator[SortedLog]:
    """A sorted log for each session, file or key id, or one for all: what `verify.state.accumulate` and
    `verify.intake.sort_out` come to for its records. `payload_len`: by default each group's own."""
    if len(columns):
        yield from _Sorting(columns, readings, by, payload_len).logs()


class _Sorting:
    def __init__(self, columns: _Rows, readings: ReadingColumns, by: By, payload_len: int | None) -> None:
        self._columns = columns
        self._readings = readings
        self._names, self._group = _grouped(columns, by)
        self._outcome: Int64s = _OF_READING[readings.outcome]
        # Of each group: whether a record of ours says what its length is; and the length.
        self._known = np.zeros(len(self._names), dtype=np.bool_)
        self._lengths = np.zeros(len(self._names), dtype=np.int64)
        self._fix_lengths(payload_len)
        ours = self._outcome != _CODES[Outcome.OTHER_KEY]
        # (2) Records of another length are out.
        other = ours & (columns.payload_len != self._lengths[self._group])
        self._outcome[other] = _CODES[Outcome.OTHER_LENGTH]
        self._to_tell: dict[int, list[int]] = {}
        _append(self._to_tell, self._group[other], np.flatnonzero(other))
        self._settle(np.flatnonzero(ours & ~other))

    def _fix_lengths(self, given: int | None) -> None:
        if given is not None:
            self._known[:] = True
            self._lengths[:] = given
            return
        columns = self._columns
        ours = self._outcome != _CODES[Outcome.OTHER_KEY]
        if len(columns) and bool(ours.all()) and columns.payload_len.min() == columns.payload_len.max():
            self._known[:] = True
            self._lengths[:] = columns.payload_len[0]
            return
        rows = np.flatnonzero(ours)
        self._known[self._group[rows]] = True
        lengths = columns.payload_len[rows].astype(np.int64)
        group = self._group[rows]
        # Whichever was written last: where all are the same, it is that.
        self._lengths[group] = lengths
        voting = np.unique(group[lengths != self._lengths[group]])
        if len(voting):
            chosen = rows[np.isin(group, voting)]
            for number, mine in _by_group(self._group, chosen):
                steps = [Step(columns.record(row), Outcome.USED) for row in mine.tolist()]
                self._lengths[number] = intake.sort_out(steps).payload_len

    def _settle(self, rows: Int64s) -> None:
        """(3) and (4): erasures and copies."""
        columns = self._columns
        rows, alone = _in_order_of_contexts(columns, self._group, rows)
        self._in_order = rows
        lonely = rows if alone is None else rows[alone]
        self._outcome[lonely[columns.enforced[lonely] == 0]] = _CODES[Outcome.NOT_ENFORCED]
        self._outcome[lonely[~columns.marked[lonely]]] = _CODES[Outcome.UNMARKED]
        if alone is None:
            return
        # The rest in the order of the log: the first of several copies is the one that counts.
        several = np.sort(rows[~alone])
        for number, mine in _by_group(self._group, several):
            steps = [self._step(row) for row in mine.tolist()]
            settled = intake.sort_out(steps, int(self._lengths[number]))
            for row, step in zip(mine.tolist(), settled.steps, strict=True):
                self._outcome[row] = _CODES[step.outcome]
        _append(self._to_tell, self._group[several], several)

    def _step(self, row: int) -> Step:
        """A record with what reading it came to; what it says makes no difference to what counts."""
        return Step(self._columns.record(row), READ_OUTCOMES[self._readings.outcome[row]])

    def logs(self) -> Iterator[SortedLog]:
        used = self._in_order[self._outcome[self._in_order] == _CODES[Outcome.USED]]
        about = _About(self._columns, self._group, self._outcome, used, len(self._names))
        said = _Said(self._readings, used, self._lengths[self._group[used]])
        starts = np.searchsorted(self._group[used], np.arange(len(self._names) + 1)).tolist()
        odds = self._readings.odds[used]
        digests = np.ascontiguousarray(self._columns.context).view(np.dtype((np.void, DIGEST_SIZE))).ravel()
        contexts = digests[used].tobytes()
        for number, name in enumerate(self._names):
            begin, end = starts[number : number + 2]
            tally = about.tally(number, begin, end)
            key_of, session_of = about.parts(tally, begin, end)
            length = int(self._lengths[number])
            yield SortedLog(
                name=name,
                files=about.files(number),
                payload_len=length,
                length_is_known=bool(self._known[number]),
                readings=said.readings(begin, end, length),
                contexts=contexts[DIGEST_SIZE * begin : DIGEST_SIZE * end],
                odds=array("d", odds[begin:end].tobytes()),
                impossible_lists=about.impossible_lists(number),
                key_of=key_of,
                session_of=session_of,
                tally=tally,
                tampering=self._erasures(number, length),
            )

    def _erasures(self, number: int, length: int) -> tuple[str, ...]:
        """Sentences on steps that other records have taken out of the count."""
        rows = self._to_tell.get(number)
        if not rows:
            return ()
        steps = [Step(self._columns.record(row), _OUTCOMES[self._outcome[row]]) for row in sorted(rows)]
        return tuple(erasure_findings(Intake(length, tuple(steps))))


class _About:
    """What became of the records of each group, in numbers, counted for all groups at once."""

    def __init__(self, columns: _Rows, group: Int64s, outcome: Int64s, used: Int64s, groups: int) -> None:
        self._columns = columns
        self._used = used
        counts = np.bincount(group * len(_OUTCOMES) + outcome, minlength=groups * len(_OUTCOMES))
        self._counts = counts.reshape(groups, len(_OUTCOMES)).tolist()
        self._mismatches = np.bincount(group[columns.mismatch], minlength=groups).tolist()
        impossible = (outcome == _CODES[Outcome.IMPOSSIBLE]) & columns.listed & ~columns.partial
        self._impossible = np.bincount(group[impossible], minlength=groups).tolist()
        self._schemes = (
            np.bincount(group[used] * len(SCHEME_NAMES) + columns.scheme[used], minlength=groups * len(SCHEME_NAMES))
            .reshape(groups, len(SCHEME_NAMES))
            .tolist()
        )
        self._files = _codes_of(group, columns.file, groups)
        self._keys = _codes_of(group[used], columns.key_id[used], groups)
        self._other_keys: dict[int, Counter[str]] = {}
        other = np.flatnonzero(outcome == _CODES[Outcome.OTHER_KEY])
        pairs, met = np.unique(np.stack([group[other], columns.key_id[other]]), axis=1, return_counts=True)
        for number, code, count in zip(*pairs.tolist(), met.tolist(), strict=True):
            self._other_keys.setdefault(number, Counter())[columns.key_ids[code]] = count
        # Where some records were not read, what reading all of the group costs.
        self._costs: dict[int, list[float]] = {}
        cut_short = np.unique(group[outcome == _CODES[Outcome.NOT_READ]])
        for row in np.flatnonzero(np.isin(group, cut_short)).tolist() if len(cut_short) else ():
            self._costs.setdefault(int(group[row]), []).append(reading_cost(columns.record(row)))

    def tally(self, number: int, begin: int, end: int) -> Tally:
        schemes = zip(SCHEME_NAMES, self._schemes[number], strict=True)
        return Tally(
            counts={_OUTCOMES[code]: count for code, count in enumerate(self._counts[number]) if count},
            schemes=tuple(sorted([name for name, count in schemes if count])),
            key_ids=tuple(sorted([self._columns.key_ids[code] for code in self._keys[number]])),
            mismatches=self._mismatches[number],
            other_keys=OtherKeys.of(self._other_keys.get(number, {})),
            full_cost=fsum(self._costs.get(number, ())),
        )

    def files(self, number: int) -> tuple[str, ...]:
        return tuple(sorted([self._columns.files[code] for code in self._files[number]]))

    def impossible_lists(self, number: int) -> int:
        count: int = self._impossible[number]
        return count

    def parts(self, tally: Tally, begin: int, end: int) -> tuple["array[int]", "array[int]"]:
        """Of each used step its key and its session, where there are several."""
        columns, rows = self._columns, self._used[begin:end]
        key_of, session_of = array("i"), array("i")
        keys = columns.key_id[rows]
        if len(tally.key_ids) > 1:
            _number(key_of, keys, lambda code: columns.key_ids[code])
        pairs = keys.astype(np.int64) * len(columns.sessions) + columns.session[rows]
        if len(pairs) and bool(np.any(pairs != pairs[0])):
            _number(session_of, pairs, lambda pair: _of_pair(columns, pair))
        return key_of, session_of


def _of_pair(columns: _Rows, pair: int) -> tuple[str, str]:
    key, session = divmod(pair, len(columns.sessions))
    return columns.key_ids[key], columns.sessions[session]


def _number(numbers: "array[int]", codes: NDArray[Any], text: Callable[[int], Any]) -> None:
    """Codes as places in the order of what they stand for."""
    present, places = np.unique(codes, return_inverse=True)
    listed = [text(code) for code in present.tolist()]
    rank = np.empty(len(listed), np.int32)
    rank[sorted(range(len(listed)), key=listed.__getitem__)] = np.arange(len(listed), dtype=np.int32)
    numbers.frombytes(rank[places].tobytes())


class _Said:
    """What the used steps say, in their order, ready to be cut into stretches: arrays for each payload length."""

    def __init__(self, readings: ReadingColumns, used: Int64s, lengths: Int64s) -> None:
        # Where in the arrays of its length each step stands.
        self._place = np.zeros(len(used), dtype=np.int64)
        self._packed: dict[int, PackedReadings] = {}
        for length in np.unique(lengths).tolist():
            mine = np.flatnonzero(lengths == length)
            self._place[mine] = np.arange(len(mine))
            self._packed[length] = readings.packed(used[mine], length)

    def readings(self, begin: int, end: int, length: int) -> Readings:
        """Of a stretch of steps of one payload length."""
        if begin == end:
            return ReadingList()
        first = int(self._place[begin])
        return self._packed[length].stretch(first, first + end - begin)


def _grouped(columns: _Rows, by: By) -> tuple[tuple[str, ...], Int64s]:
    """The names of the groups, and which one each row is of."""
    tables: Mapping[By, tuple[tuple[str, ...], NDArray[Any]]] = {
        By.SESSION: (columns.sessions, columns.session),
        By.FILE: (columns.files, columns.file),
        By.TENANT: (columns.key_ids, columns.key_id),
        By.ALL: (("all",), np.zeros(len(columns), np.int64)),
    }
    names, codes = tables[by]
    present = np.unique(codes)
    return tuple([names[code] for code in present.tolist()]), np.searchsorted(present, codes).astype(np.int64)


def _in_order_of_contexts(columns: _Rows, group: Int64s, rows: Int64s) -> tuple[Int64s, Bools | None]:
    """These rows by group, in it by context, in that by place; and which of them have a context of their own, None if
    all do."""
    # Eight bytes tell contexts apart, but for copies of a step, and for what was made to look alike.
    begins = np.ascontiguousarray(columns.context[:, :8]).view(">u8").ravel().astype(np.uint64)[rows]
    own = group[rows]
    order = np.argsort(begins)
    if len(rows) and own.min() != own.max():
        order = order[np.argsort(own[order], kind="stable")]
    begins = begins[order]
    alike = begins[1:] == begins[:-1]
    if not np.any(alike) or not np.any(alike & (own[order[1:]] == own[order[:-1]])):
        return rows[order], None
    words = np.ascontiguousarray(columns.context[rows]).view(">u8")
    order = np.lexsort((words[:, 3], words[:, 2], words[:, 1], words[:, 0], own))
    words, own = words[order], own[order]
    differs = np.ones(len(rows) + 1, dtype=np.bool_)
    differs[1:-1] = (own[1:] != own[:-1]) | np.any(words[1:] != words[:-1], axis=1)
    return rows[order], differs[1:] & differs[:-1]


def _by_group(group: Int64s, rows: Int64s) -> Iterator[tuple[int, Int64s]]:
    """The rows of each group, in their order."""
    order = np.argsort(group[rows], kind="stable")
    rows = rows[order]
    numbers, starts = np.unique(group[rows], return_index=True)
    yield from zip(numbers.tolist(), np.split(rows, starts[1:]), strict=False)


def _append(told: dict[int, list[int]], groups: Int64s, rows: Int64s) -> None:
    for number, row in zip(groups.tolist(), rows.tolist(), strict=True):
        told.setdefault(number, []).append(row)


def _codes_of(group: Int64s, codes: NDArray[Any], groups: int) -> Sequence[list[int]]:
    """For each group the different codes that its rows have."""
    found: list[list[int]] = [[] for _ in range(groups)]
    if len(group):
        most = int(codes.max()) + 1
        for pair in np.unique(group * most + codes).tolist():
            found[pair // most].append(pair % most)
    return found
