"""JSON lines into columns: many at once, and as strict as the plain reader.

A line is taken the fast way only where it is certain that the plain reader reads the same record. Every other line goes
to the plain reader itself, which says what it is: a record, a torn line, a checkpoint or an error, in its own words.

Where the two parsers differ, and what makes a line certain:

- msgspec keeps the last of two equal names. Each name and each text stands in two quotes, so a line that has dropped a
  name has more quotes than what is left of it accounts for.
- It knows other escapes of one letter: a line with a \\u in it is not taken.
- It reads lines as one text. A line that begins with { and ends with } holds whole values, and as many values as lines
  are one on each.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import eq
from sys import getsizeof
from typing import Annotated, Any, Literal

from agentmark.batch.arrays import Bools, Bytes, Int32s, Int64s, np, sizes_of, starts_of
from agentmark.batch.columns import ENFORCED_CODES, SCHEME_NAMES, UNCHECKED, ColumnBuilder, StepColumns
from agentmark.batch.laws import Arrays, check_lists, in_order, joined, only, sums_of_lists
from agentmark.batch.library import built_library
from agentmark.batch.scanning import Scanned, scan
from agentmark.chain.checkpoint import Checkpoint
from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes
from agentmark.core.context import context_digest
from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.core.errors import ContextError
from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.prf import DIGEST_SIZE
from agentmark.errors import MissingExtraError
from agentmark.log.read.events import BadEntry, Entry, Event, FormatKnown, TornLine
from agentmark.log.read.json_lines import JsonLines, read_record_line
from agentmark.log.read.meter import EVENT_VALUES, RECORD_UNIT, ROW_VALUES, Meter, memory_of, memory_of_value, values_in
from agentmark.log.read.open import count_event
from agentmark.log.read.packing import DamagedError, Stream, blocks_of, lines_in
from agentmark.log.read.summary import Tally
from agentmark.record import RECORD_VERSION

try:
    import msgspec
except ImportError:
    raise MissingExtraError("msgspec", "fast") from None

_NEWLINE, _RETURN, _QUOTE, _COMMA, _BACKSLASH, _U = b'\n\r",\\u'
_OBJECT, _OBJECT_END, _LIST = b"{}["

# One line in so many may be left to the plain reader; where there are more, msgspec is faster for all.
MOST_LEFT = 32

_UNSET = msgspec.UNSET
_HEX_DIGITS = 2 * DIGEST_SIZE


def _whole(least: int, most: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


_WEIGHT: Any = _whole(0, TOTAL_WEIGHT)
_OPTIONAL_TEXT = str | None | msgspec.UnsetType
_OPTIONAL_TRUTH = bool | None | msgspec.UnsetType
_OPTIONAL_OBJECT = dict[str, Any] | None | msgspec.UnsetType
# A record as it stands in a line. What msgspec refuses here is for the plain reader; what it does not look at is
# looked at below. The garbage collector has nothing to find in these, and they are made by the million.
_Line: Any = msgspec.defstruct(
    "_Line",
    [
        ("agentmark", _whole(RECORD_VERSION, RECORD_VERSION)),
        ("scheme", Literal[SCHEME_NAMES]),
        ("key_id", str),
        ("payload_len", _whole(0, MAX_PAYLOAD_LEN)),
        ("session", str),
        ("step", _whole(0, MAX_SAFE_INTEGER)),
        ("context", Annotated[str, msgspec.Meta(min_length=_HEX_DIGITS, max_length=_HEX_DIGITS)]),
        ("weights", dict[str, _WEIGHT] | None),
        ("choice", str),
        ("marked", bool),
        ("partial", _OPTIONAL_TRUTH, _UNSET),
        ("reason", _OPTIONAL_TEXT, _UNSET),
        ("enforced", _OPTIONAL_TRUTH, _UNSET),
        ("raw_context", _OPTIONAL_OBJECT, _UNSET),
        ("meta", _OPTIONAL_OBJECT, _UNSET),
        ("prev", _OPTIONAL_TEXT, _UNSET),
    ],
    forbid_unknown_fields=True,
    gc=False,
)
_REQUIRED_MEMBERS, _REQUIRED_TEXTS = 10, 5
_DECODER = msgspec.json.Decoder(_Line)
_REFUSALS = (msgspec.MsgspecError, ValueError, RecursionError)

_SCHEME_CODES = {name: code for code, name in enumerate(SCHEME_NAMES)}
_ENFORCED: dict[Any, int] = {**ENFORCED_CODES, _UNSET: UNCHECKED}
_SCALARS = frozenset({str, int, bool, type(None)})


def read_line_chunks(
    stream: Stream, name: str, meter: Meter, tally: Tally, *, skip_bad: bool, rows: int
) -> Iterator[StepColumns]:
    """The records of a log of JSON lines, so many rows at a time or a few more; the tally takes note of the rest.

    What stops the reading is raised behind the rows that came before it.
    """
    reader = _LineReader(name, meter, tally, skip_bad=skip_bad)
    try:
        reader.take_event(FormatKnown(JsonLines.name))
        try:
            for number, block in blocks_of(stream, name, meter):
                reader.take_block(block, number)
                if len(reader) >= rows:
                    yield reader.columns()
        except DamagedError as damage:
            reader.take_event(TornLine(damage.line))
        if len(reader):
            yield reader.columns()
    except Exception:
        if len(reader):
            yield reader.columns()
        raise


class _LineReader:
    """Reads block after block into the columns of one chunk after the other."""

    def __init__(self, name: str, meter: Meter, tally: Tally, *, skip_bad: bool) -> None:
        self._name = name
        self._meter = meter
        self._tally = tally
        self._skip_bad = skip_bad
        self._begin()

    def _begin(self) -> None:
        self._builder = ColumnBuilder(self._name)
        # What each name of the table takes in memory; it grows along.
        self._name_sizes = np.zeros(0, np.int64)
        # Whether texts of lines that were not taken may stand in the tables.
        self._has_leftovers = False

    def __len__(self) -> int:
        return len(self._builder)

    def columns(self) -> StepColumns:
        columns = self._builder.columns()
        if self._has_leftovers:
            columns = columns.take(np.arange(len(columns), dtype=np.int64))
        self._begin()
        return columns

    def take_event(self, event: Event) -> None:
        """Count what was found as the plain path does, and keep what is a record."""
        count_event(event, self._meter, self._tally, skip_bad=self._skip_bad)
        if isinstance(event, Entry):
            self._builder.add(event.record, event.line)

    def take_block(self, block: bytes, number: int) -> None:
        """Take in whole lines, the first of which has this number."""
        lines = _Lines.of(block, number, self._meter.longest_free_line)
        if lines is None or not self._take_lines(lines):
            # One by one: too much of it is not ours, or a limit is near, and where it is met is for the plain path.
            for line_number, line in lines_in(block, number):
                where = f"{self._name}:{line_number}"
                self._meter.parse(line, where, "line")
                self.take_event(read_record_line(line, where, line_number))

    def _take_lines(self, lines: "_Lines") -> bool:
        """False if the meter would not take all of it: then nothing was counted or kept."""
        picked, found, good = self._found(lines)
        self._has_leftovers |= not good.all()
        memory = found.memory(self._known_name_sizes())[good]
        picked = picked[good]
        records = len(picked) + int((memory // RECORD_UNIT).sum())

        others = lines.others(picked)
        values = (len(picked) + len(others)) * EVENT_VALUES
        if self._meter.counts_text:
            values += (len(picked) + len(others)) * ROW_VALUES + lines.values_in(picked, others)
            values += sum(values_in(line) for _, line in others)
        events: list[Event] = []
        for number, line in others:
            event = read_record_line(line, f"{self._name}:{number}", number)
            events.append(event)
            if isinstance(event, Entry):
                records += 1 + memory_of(event.record) // RECORD_UNIT
            elif isinstance(event, Checkpoint):
                records += 1 + memory_of(event) // RECORD_UNIT
            elif isinstance(event, BadEntry) and not self._skip_bad:
                break
        if not self._meter.take(values, records):
            self._has_leftovers = True
            return False
        arrays = found.arrays(good, lines.numbers[picked])
        last = events.pop() if events and isinstance(events[-1], BadEntry) and not self._skip_bad else None
        self._keep(arrays, events, before=None if last is None else others[len(events)][0])
        if isinstance(last, BadEntry):
            raise last.error
        return True

    def _found(self, lines: "_Lines") -> "tuple[Int64s, _Found, Bools]":
        """Which lines were read the fast way, what was found there, and which of it is certain."""
        scanned = lines.scanned()
        if scanned is not None:
            native = _Scanned(scanned, self._builder)
            # Its tables hold what it found in a line before it passed that over.
            self._has_leftovers |= not scanned.taken.all()
            return np.flatnonzero(scanned.taken), native, native.good
        picked, rows = lines.decoded()
        found = _Found(rows, self._builder)
        return picked, found, found.good & lines.accounted_for(picked, rows, found.quotes)

    def _keep(self, arrays: Arrays, events: Sequence[Event], *, before: int | None) -> None:
        """Keep the rows of both ways, in the order of their lines; those before a line, if one is given."""
        if before is not None:
            self._has_leftovers = True
            arrays = only(arrays, arrays["line"] < before)
        self._tally.record_count += len(arrays["step"])
        for event in events:
            self._tally.count(event)
            if isinstance(event, Entry):
                self._builder.add(event.record, event.line)
        if any(isinstance(event, Entry) for event in events):
            both = joined(arrays, self._builder.take_rows())
            arrays = in_order(both, np.argsort(both["line"], kind="stable"))
        self._builder.add_arrays(arrays)

    def _known_name_sizes(self) -> Int64s:
        known, table = len(self._name_sizes), self._builder.names
        if known < len(table):
            new = list(islice(table, known, None))
            self._name_sizes = np.concatenate([self._name_sizes, sizes_of(getsizeof, new)])
        return self._name_sizes


class _Lines:
    """The lines of a block that are not empty, by arrays: where they are, and which may be records of ours."""

    def __init__(self, block: bytes, bytes_of: Bytes, number: int) -> None:
        ends = np.flatnonzero(bytes_of == _NEWLINE)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
        filled = np.flatnonzero(ends > starts)
        self._block = block
        self._bytes = bytes_of
        # How often a byte stands in the block, once it was counted.
        self._counts: dict[int, int] = {}
        self.numbers = filled + number
        self._starts, self._ends = starts[filled], ends[filled]
        last = bytes_of[self._ends - 1]
        # A line that ends in a carriage return as well is a line.
        last = np.where(last == _RETURN, bytes_of[np.maximum(self._ends - 2, 0)], last)
        self._eligible = (bytes_of[self._starts] == _OBJECT) & (last == _OBJECT_END)
        self._escaped = np.zeros(len(filled), bool)
        if b"\\" in block:
            self._note_escapes()

    def _note_escapes(self) -> None:
        backslashes = np.flatnonzero(self._bytes == _BACKSLASH)
        line = np.searchsorted(self._ends, backslashes)
        self._escaped[line] = True
        # Behind every byte of a line there is another: its line feed, if nothing else.
        self._eligible[line[self._bytes[backslashes + 1] == _U]] = False

    @classmethod
    def of(cls, block: bytes, number: int, longest: int) -> "_Lines | None":
        """None where the plain way is as good: for a last line that was not ended, a very long line, or a block of
        which not even half the lines can be ours."""
        if not block.endswith(b"\n"):
            return None
        lines = cls(block, np.frombuffer(block, np.uint8), number)
        if 2 * np.count_nonzero(lines._eligible) <= len(lines.numbers):
            return None
        return None if (lines._ends - lines._starts).max() >= longest else lines

    def _line(self, index: int) -> bytes:
        return self._block[self._starts[index] : self._ends[index] + 1]

    def scanned(self) -> Scanned | None:
        """What the native library takes of these lines, if there is one and it takes nearly all of them: the others are
        left to the plain reader."""
        library = built_library()
        found = None if library is None else scan(library, self._block, self._starts, self._ends)
        if found is None or MOST_LEFT * np.count_nonzero(~found.taken) > len(found.taken):
            return None
        return found

    def decoded(self) -> tuple[Int64s, list[Any]]:
        """Which lines msgspec can read as records, and what it reads."""
        picked = np.flatnonzero(self._eligible)
        text = self._text(picked)
        try:
            rows = _DECODER.decode_lines(text)
        except _REFUSALS:
            rows = []
        if len(rows) == len(picked):
            return picked, rows
        rows, taken = [], []
        for index in picked.tolist():
            try:
                rows.append(_DECODER.decode(self._line(index)))
            except _REFUSALS:
                continue
            taken.append(index)
        return np.array(taken, np.int64), rows

    def _text(self, picked: Int64s) -> bytes:
        if len(picked) == len(self.numbers):
            return self._block
        return b"".join(map(self._line, picked.tolist()))

    def accounted_for(self, picked: Int64s, rows: Sequence[Any], quotes: int) -> Bools:
        """For each line that was read, whether its quotes are all those of the names and texts that were read.

        `quotes` is how many the names and texts of all of them stand in. No line has fewer than what was read of it
        accounts for, so that if the sums are equal, each line is accounted for.
        """
        escaped = np.flatnonzero(self._escaped[picked])
        inside = sum(_quotes_inside(rows[i]) for i in escaped.tolist())
        if self._count(_QUOTE, picked) == quotes + inside:
            return np.ones(len(picked), bool)
        starts, ends = self._starts[picked].tolist(), self._ends[picked].tolist()
        counted = [self._block.count(b'"', start, end) for start, end in zip(starts, ends, strict=True)]
        accounted = [_quotes_around(row) + _quotes_inside(row) for row in rows]
        return np.fromiter(map(eq, counted, accounted), bool, len(rows))

    def _count(self, byte: int, picked: Int64s) -> int:
        if len(picked) != len(self.numbers):
            return int(np.count_nonzero(np.frombuffer(self._text(picked), np.uint8) == byte))
        return self._count_all(byte)

    def _count_all(self, byte: int) -> int:
        if byte not in self._counts:
            self._counts[byte] = int(np.count_nonzero(self._bytes == byte)) if byte in self._block else 0
        return self._counts[byte]

    def others(self, picked: Int64s) -> list[tuple[int, bytes]]:
        """All lines but these that are not blank, with their numbers, as the plain reader gets them."""
        others = np.ones(len(self.numbers), bool)
        others[picked] = False
        lines = [(int(self.numbers[index]), self._line(index).lstrip()) for index in np.flatnonzero(others).tolist()]
        return [(number, line) for number, line in lines if line]

    def values_in(self, picked: Int64s, others: Sequence[tuple[int, bytes]]) -> int:
        """What `values_in` says of each of these lines, in all; `others` are the lines that are not picked.

        It halves the quotes of each line. Those of a record are even in number, unless there is a backslash about.
        """
        escaped = [self._line(index) for index in picked[self._escaped[picked]].tolist()]
        apart = b"".join([*escaped, *(line for _, line in others)])
        objects, lists, commas, quotes = (
            int(np.count_nonzero(self._bytes == byte)) - apart.count(byte) for byte in (_OBJECT, _LIST, _COMMA, _QUOTE)
        )
        return 4 * objects + 2 * lists + commas + quotes // 2 + sum(map(values_in, escaped))


def _texts_in(value: object) -> Iterator[str]:
    """All names and texts of what was parsed."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)


def _fields_of(row: Any) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in _Line.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not _UNSET}


def _quotes_around(row: Any) -> int:
    """How many quotes the names and texts of a line stand in."""
    return 2 * sum(1 for _ in _texts_in(_fields_of(row)))


def _quotes_inside(row: Any) -> int:
    """How many quotes stand in the names and texts of a line, as signs of the text."""
    return sum(text.count('"') for text in _texts_in(_fields_of(row)))


class _Found:
    """What msgspec has read from lines, as columns; and which of it keeps to the laws of a record."""

    def __init__(self, rows: Sequence[Any], builder: ColumnBuilder) -> None:
        count = len(rows)
        self._names = builder.names
        weights = [row.weights for row in rows]
        listed = np.array([members is not None for members in weights], bool)
        lists = weights if listed.all() else [members or {} for members in weights]
        sessions, key_ids = [row.session for row in rows], [row.key_id for row in rows]
        partial = [row.partial for row in rows]
        enforced = [row.enforced for row in rows]
        reasons, links = _Texts([row.reason for row in rows]), _Texts([row.prev for row in rows])
        metas, raw_contexts = _Objects([row.meta for row in rows]), _Objects([row.raw_context for row in rows])
        contexts, context_good = _digests([row.context for row in rows])

        length = sizes_of(len, lists)
        self._start = starts_of(length)
        total = int(self._start[-1])
        self._arrays: Arrays = {
            "session": _codes(builder.sessions, sessions),
            "key_id": _codes(builder.key_ids, key_ids),
            "scheme": _codes(_SCHEME_CODES, [row.scheme for row in rows]).astype(np.uint8),
            "payload_len": np.fromiter([row.payload_len for row in rows], np.int32, count),
            "step": np.fromiter([row.step for row in rows], np.int64, count),
            "context": contexts,
            "marked": np.fromiter([row.marked for row in rows], bool, count),
            "enforced": np.fromiter(map(_ENFORCED.__getitem__, enforced), np.int8, count),
            "partial": np.array([truth is True for truth in partial], bool),
            "listed": listed,
            "length": length,
            "name": np.fromiter(map(self._names.__getitem__, chain.from_iterable(lists)), np.int32, total),
            "weight": np.fromiter(chain.from_iterable(map(dict.values, lists)), np.int64, total),
            "choice": _codes(self._names, [row.choice for row in rows]),
            "mismatch": raw_contexts.mismatches(contexts),
        }
        self.good = (
            check_lists(self._arrays, self._names) & context_good & reasons.filled_or_absent & links.digests_or_absent
        )
        self.good &= self._arrays["marked"] | reasons.present
        self.good &= metas.good & raw_contexts.good
        for table, column in ((builder.sessions, "session"), (builder.key_ids, "key_id"), (self._names, "choice")):
            if "" in table:
                self.good &= self._arrays[column] != table[""]
        members = _REQUIRED_MEMBERS * count + total + 2 * count - partial.count(_UNSET) - enforced.count(_UNSET)
        optional = reasons.texts + links.texts + metas.texts + raw_contexts.texts
        # All names and texts of these lines, each in two quotes.
        self.quotes = 2 * (members + _REQUIRED_TEXTS * count + optional)
        # What they take in memory, without their lists.
        self._memory = np.fromiter(map(len, sessions), np.int64, count) + np.fromiter(
            map(len, key_ids), np.int64, count
        )
        self._memory += reasons.lengths + metas.memory + raw_contexts.memory
        for row in np.flatnonzero(self._arrays["partial"] & listed).tolist():
            self._memory[row] += memory_of_value(lists[row]) if lists[row] else 0

    def memory(self, name_sizes: Int64s) -> Int64s:
        """What `memory_of` says of each record; `name_sizes` is what each name of the table takes."""
        whole = sums_of_lists(self._start, name_sizes[self._arrays["name"]] + 100)
        return self._memory + np.where(self._arrays["partial"], 0, whole)

    def arrays(self, good: Bools, numbers: Int64s) -> Arrays:
        """The rows that are good; their lines have these numbers."""
        return {**only(self._arrays, good), "line": numbers}


class _Scanned(_Found):
    """The same of lines that the native library has taken: it has looked at all but the lists and the memory."""

    def __init__(self, scanned: Scanned, builder: ColumnBuilder) -> None:
        self._names = builder.names
        arrays = dict(scanned.arrays)
        reasons = arrays.pop("reason_length")
        # What texts take in memory is counted by their letters.
        self._memory = reasons + sizes_of(len, scanned.sessions)[arrays["session"]]
        self._memory += sizes_of(len, scanned.key_ids)[arrays["key_id"]]
        for table, texts, columns in (
            (builder.sessions, scanned.sessions, ("session",)),
            (builder.key_ids, scanned.key_ids, ("key_id",)),
            (builder.names, scanned.names, ("name", "choice")),
        ):
            codes = _codes(table, texts)
            arrays |= {column: codes[arrays[column]] for column in columns}
        nothing = np.zeros(len(reasons), bool)
        self._arrays = {**arrays, "partial": nothing, "mismatch": nothing}
        self._start = starts_of(arrays["length"])
        self.good = check_lists(self._arrays, self._names)


class _Texts:
    """An optional member that is text: of each line, what it says, or that it says nothing."""

    def __init__(self, values: list[Any]) -> None:
        count = len(values)
        self._values = values
        absent = values.count(_UNSET)
        if absent == count:
            self.texts = 0
            self.present = np.zeros(count, bool)
            self.lengths = np.zeros(count, np.int64)
        else:
            self.present = np.array([isinstance(value, str) for value in values], bool)
            # Its name, where it stands, and the text itself, unless that is null.
            self.texts = count - absent + int(np.count_nonzero(self.present))
            self.lengths = np.array([len(value) if isinstance(value, str) else 0 for value in values], np.int64)

    @property
    def filled_or_absent(self) -> Bools:
        return ~self.present | (self.lengths > 0)

    @property
    def digests_or_absent(self) -> Bools:
        good = ~self.present
        there = np.flatnonzero(self.present)
        good[there] = _digests([self._values[i] for i in there.tolist()])[1]
        return good


class _Objects:
    """An optional member that is an object of free data: meta, or a raw context."""

    def __init__(self, values: list[Any]) -> None:
        count = len(values)
        self._values = values
        self.good = np.ones(count, bool)
        self.memory = np.zeros(count, np.int64)
        self.texts = count - values.count(_UNSET)
        if self.texts:
            filled = [i for i, value in enumerate(values) if value]
            nested = self._weigh(filled)
            if nested:
                self._weigh([i for i in filled if i not in nested])
                self._look_into(nested)

    def _weigh(self, rows: list[int]) -> set[int]:
        """Take in objects without others in them, all at once; if some are not, only say which."""
        objects = [self._values[i] for i in rows]
        inner = list(chain.from_iterable(map(dict.values, objects)))
        kinds = list(map(type, inner))
        if not _SCALARS.issuperset(kinds):
            return {i for i in rows if not _SCALARS.issuperset(map(type, self._values[i].values()))}
        self.texts += len(inner) + kinds.count(str)
        start = starts_of(sizes_of(len, objects))
        sizes = sizes_of(getsizeof, objects)
        for values in (inner, list(chain.from_iterable(objects))):
            sizes += sums_of_lists(start, sizes_of(getsizeof, values))
        self.memory[rows] = sizes
        numbers = [value for value in inner if type(value) is int]
        if numbers and (max(numbers) > MAX_SAFE_INTEGER or min(numbers) < -MAX_SAFE_INTEGER):
            self._check(rows)
        return set()

    def _look_into(self, rows: Iterable[int]) -> None:
        for i in rows:
            self.memory[i] = memory_of_value(self._values[i])
            self.texts += sum(1 for _ in _texts_in(self._values[i]))
        self._check(rows)

    def _check(self, rows: Iterable[int]) -> None:
        for i in rows:
            try:
                canonical_bytes(self._values[i])
            except (ContextError, RecursionError):
                self.good[i] = False

    def mismatches(self, contexts: Bytes) -> Bools:
        """For each line, whether this is a raw context, and not that of the digest."""
        found = np.zeros(len(self._values), bool)
        for i, value in enumerate(self._values) if self.texts else ():
            if isinstance(value, dict) and self.good[i]:
                found[i] = context_digest(value) != contexts[i].tobytes()
        return found


def _codes(table: dict[str, int], texts: Sequence[str]) -> Int32s:
    return np.fromiter(map(table.__getitem__, texts), np.int32, len(texts))


def _digests(texts: list[str]) -> tuple[Bytes, Bools]:
    """Digests as bytes, and which of the texts are digests: 64 lower-case hexadecimal digits, as `record.py` has it."""
    joined = "".join(texts)
    try:
        digests = bytes.fromhex(joined)
    except ValueError:
        digests = b""
    # There and back again: this refuses capitals and spaces, which the way there alone takes.
    if digests.hex() == joined and set(map(len, texts)) <= {_HEX_DIGITS}:
        return np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_SIZE), np.ones(len(texts), bool)
    good = [len(text) == _HEX_DIGITS and set(text) <= set("0123456789abcdef") for text in texts]
    mended = [text if is_good else "0" * _HEX_DIGITS for text, is_good in zip(texts, good, strict=True)]
    return _digests(mended)[0], np.array(good, bool)
