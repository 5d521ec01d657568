"""What one reading of a log has asked for so far. Every reader counts here, and here alone it is stopped."""

from collections.abc import Mapping
from sys import getsizeof

from agentmark.chain.checkpoint import Checkpoint
from agentmark.log.lines import parsed_size
from agentmark.log.read.limits import DEFAULT_LIMITS, MIB, LimitError, Limits
from agentmark.record import StepRecord

# What any file may ask for, so that small ones need not be counted to the byte.
FREE_UNPACKED = 16 * MIB
FREE_VALUES = 1_000_000
FREE_RECORDS = 1000

# A step of an agent that has few lists takes some 35 bytes of a table of ours, and 300 and more of a log of lines. So
# what such a table may ask for is so many times what other files of its size may.
TABLE_FOLD = 8

# What a record of a handful of behaviors takes in memory, with room. A larger one counts as several.
RECORD_UNIT = 2048

# What text of no letters takes in memory.
_EMPTY = getsizeof("")

# What reading a row costs beside parsing it, and what handing on what was found costs, in values.
ROW_VALUES = 24
EVENT_VALUES = 4


class Meter:
    """Counts for one file, and stops at the limits."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.limits = limits
        self._name = name
        self._file_bytes = 0
        self._unpacked = 0
        self._values = 0
        self._records = 0
        self._fold = 1
        # Whether the values of a text that is parsed are counted.
        self.counts_text = True

    def nothing_is_packed(self) -> None:
        """The file is text as it stands. No text makes as many values as the usual limit has for its bytes."""
        self.counts_text = self.limits.values_per_byte < DEFAULT_LIMITS.values_per_byte

    def lists_are_shared(self) -> None:
        """The file is a table of steps, in which a list that many of them share stands once."""
        self._fold = TABLE_FOLD

    def read(self, count: int) -> None:
        """So many bytes were taken from the file itself."""
        self._file_bytes += count

    def unpack(self, count: int) -> None:
        """So many bytes came out of it."""
        self._unpacked += count
        if self._unpacked > self.limits.unpacked_bytes:
            raise LimitError(self._name, f"unpacks to more than {_size(self.limits.unpacked_bytes)}", "unpacked_bytes")
        if self._unpacked > FREE_UNPACKED + self.limits.unpacked_ratio * self._file_bytes:
            fault = (
                f"{_size(self._file_bytes)} of it unpack to {_size(self._unpacked)} or more, "
                f"beyond {self.limits.unpacked_ratio} times as much"
            )
            raise LimitError(self._name, fault, "unpacked_ratio")

    def hold(self, size: int, where: str, what: str) -> None:
        """A piece of the file of this size has to be held at once."""
        if size > self.limits.held_bytes:
            raise LimitError(where, f"{what} is larger than {_size(self.limits.held_bytes)}, unpacked", "held_bytes")

    def check(self, text: bytes | str, where: str, what: str) -> None:
        """A piece of JSON is about to be parsed: whether it can be held, as text and as objects."""
        self.hold(len(text), where, what)
        # No text makes more of itself than this; most are done here.
        if len(text) * 200 > self.limits.parsed_bytes:
            self.hold_parsed(parsed_size(text), where, what)

    def hold_parsed(self, size: int, where: str, what: str) -> None:
        """A piece of the file is about to be made into objects of so many bytes."""
        if size > self.limits.parsed_bytes:
            fault = f"{what} would take some {_size(size)} as objects, more than {_size(self.limits.parsed_bytes)}"
            raise LimitError(where, fault, "parsed_bytes")

    def parse(self, text: bytes, where: str, what: str) -> None:
        """A row, or a document, is about to be parsed."""
        # No text makes more of itself than this; nearly all are done here.
        if len(text) > self.limits.held_bytes or len(text) * 200 > self.limits.parsed_bytes:
            self.check(text, where, what)
        if self.counts_text:
            self.count_values(ROW_VALUES + values_in(text))

    def count_row(self) -> None:
        """A row whose text was counted by itself."""
        self.count_values(ROW_VALUES)

    def count_text(self, text: bytes) -> None:
        """Text whose rows are counted by themselves."""
        self.count_values(values_in(text))

    def count_values(self, count: int) -> None:
        self._values += count
        if self._values > self._most_values:
            fault = (
                f"{_size(self._file_bytes)} of it make {self._values:,} values or more, "
                f"beyond {self.limits.values_per_byte * self._fold} for each byte"
            )
            raise LimitError(self._name, fault, "values_per_byte")

    def keep(self, found: StepRecord | Checkpoint) -> None:
        """A record, or a checkpoint, is handed over; whoever reads the log may keep it."""
        self._records += 1 + memory_of(found) // RECORD_UNIT
        if self._records > self._most_records:
            fault = (
                f"{_size(self._file_bytes)} of it hold {self._records:,} records (of {RECORD_UNIT // 1024} KiB in "
                f"memory) or more, beyond {self.limits.records_per_kib * self._fold} for each KiB"
            )
            raise LimitError(self._name, fault, "records_per_kib")

    @property
    def longest_free_line(self) -> int:
        """A line of so many bytes passes `check`, whatever is in it."""
        return min(self.limits.held_bytes, self.limits.parsed_bytes // 200)

    def take(self, values: int, records: int) -> bool:
        """Count many lines and records at once, all read from the bytes counted so far. If they are too many, count
        none: whoever then takes them one by one is told at which of them it was too much."""
        if self._values + values > self._most_values or self._records + records > self._most_records:
            return False
        self._values += values
        self._records += records
        return True

    @property
    def _most_values(self) -> int:
        return FREE_VALUES + self.limits.values_per_byte * self._fold * self._file_bytes

    @property
    def _most_records(self) -> int:
        return FREE_RECORDS + self.limits.records_per_kib * self._fold * self._file_bytes // 1024


def values_in(text: bytes) -> int:
    """How many values a text makes, objects and lists for several. What stands in a string is text, and escaped there:
    brackets and quotes behind or before a backslash are no values.
    """
    objects = text.count(b"{") - text.count(b"{\\")
    lists = text.count(b"[") - text.count(b"[\\")
    quotes = text.count(b'"') - text.count(b'\\"')
    return 4 * objects + 2 * lists + text.count(b",") + quotes // 2


def memory_of(found: StepRecord | Checkpoint) -> int:
    """What a record takes in memory beyond its fixed fields, roughly."""
    if isinstance(found, Checkpoint):
        return 300 * len(found.sessions) + sum(map(getsizeof, found.sessions))
    size = len(found.session) + len(found.key_id) + len(found.reason or "")
    if found.distribution is not None:
        names = found.distribution.behaviors
        joined = "".join(names)
        # Text of ASCII letters takes a byte for each, and for an object.
        of_names = _EMPTY * len(names) + len(joined) if joined.isascii() else sum(map(getsizeof, names))
        size += 100 * len(names) + of_names
    for members in (found.partial_weights, found.meta, found.raw_context):
        if members:
            size += memory_of_value(members)
    return size


def memory_of_value(value: object) -> int:
    size, waiting = 0, [value]
    while waiting:
        inner = waiting.pop()
        size += getsizeof(inner)
        if isinstance(inner, Mapping):
            waiting += inner.keys()
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return size


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"
