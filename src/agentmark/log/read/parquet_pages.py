"""What the pages of a Parquet file say of themselves, before one of them is unpacked.

The table of contents at a file's end gives sizes too, but nothing is unpacked by them: pages are by their own headers.
Those are in the compact protocol of Thrift (parquet.thrift, PageHeader).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)

# Fields of a page's header: sizes, and within the headers of data, dictionary and newer data pages how many values.
_UNPACKED_SIZE, _PACKED_SIZE = 2, 3
_HEADERS_OF_VALUES = (5, 7, 8)
_VALUE_COUNT = 1
_DICTIONARY = 7
_DEEPEST = 8


class BadPageError(ValueError):
    """A header that cannot be one."""


@dataclass(frozen=True, slots=True)
class Page:
    unpacked_size: int
    value_count: int
    is_dictionary: bool


def pages_of(file: mmap, start: int, length: int) -> Iterator[Page]:
    """The pages of one column, which stand one behind the other."""
    at, end = start, min(start + length, len(file))
    if not 0 <= start <= end:
        raise BadPageError
    while at < end:
        reader = _Reader(file, at)
        fields = reader.struct()
        packed_size, unpacked_size = fields.get(_PACKED_SIZE), fields.get(_UNPACKED_SIZE)
        if (
            not isinstance(packed_size, int)
            or not isinstance(unpacked_size, int)
            or min(packed_size, unpacked_size) < 0
        ):
            raise BadPageError
        counts = [fields[field] for field in _HEADERS_OF_VALUES if isinstance(fields.get(field), dict)]
        values = [count for header in counts if isinstance(count := header.get(_VALUE_COUNT), int)]  # type: ignore[union-attr]
        yield Page(unpacked_size, max([0, *values]), _DICTIONARY in fields)
        at = reader.at + packed_size


Fields = dict[int, "int | Fields | None"]


class _Reader:
    """Reads one struct: its numbers and structs. Whatever else it holds is passed over."""

    def __init__(self, data: mmap, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int = 0) -> Fields:
        if depth > _DEEPEST:
            raise BadPageError
        fields: Fields = {}
        field = 0
        while (head := self._byte()) & 15 != _STOP:
            field = field + (head >> 4) if head >> 4 else self._number()
            fields[field] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int, *, in_list: bool = False) -> "int | Fields | None":
        if kind in (_TRUE, _FALSE):
            self.at += in_list
        elif kind == _BYTE:
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            return self._number()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self._plain_number()
            self.at += length
        elif kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._plain_number()
            for _ in range(count):
                self._value(head & 15, depth + 1, in_list=True)
        elif kind == _STRUCT:
            return self.struct(depth + 1)
        else:
            # A map stands in no header of a page.
            raise BadPageError
        return None

    def _byte(self) -> int:
        if not 0 <= self.at < len(self._data):
            raise BadPageError
        self.at += 1
        return self._data[self.at - 1]

    def _plain_number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise BadPageError
        return number | byte << shift

    def _number(self) -> int:
        number = self._plain_number()
        return number >> 1 ^ -(number & 1)
