"""What a Parquet file says of its columns and of their pages, before one of them is unpacked.

The table of contents at a file's end says where columns are. It gives sizes too, but nothing is unpacked by them: pages
are by their own headers. Both are in the compact protocol of Thrift (parquet.thrift, FileMetaData and PageHeader).
pyarrow has the table of contents as well, and ends the whole process over some that are damaged.
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
_NUMBERS = (_I16, _I32, _I64)

# The way from the table of contents to a column's own entry, and what is needed of that.
_ROW_GROUPS, _COLUMNS, _ENTRY = 4, 1, 3
_TYPE, _PATH, _COMPRESSED_SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 1, 3, 7, 9, 11
_BYTE_ARRAY = 6
# How a file ends: the length of its table of contents, and the magic of one whose contents are not encrypted.
_MAGIC = b"PAR1"
_TAIL = 8


class BadPageError(ValueError):
    """A header, or a table of contents, that cannot be one."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one row group: the place of its leaf in the schema, and where its pages are."""

    group: int
    number: int
    path: str
    is_text: bool
    start: int
    length: int


def columns_of(file: mmap) -> Iterator[Column]:
    """All columns of all row groups, in the order of the table of contents."""
    if len(file) < _TAIL or file[-4:] != _MAGIC:
        raise BadPageError
    start = len(file) - _TAIL - int.from_bytes(file[-_TAIL:-4], "little")
    if start < 0:
        raise BadPageError
    reader = _Reader(file, start)
    for group in reader.structs_in(_ROW_GROUPS):
        for number in reader.structs_in(_COLUMNS):
            yield _column(reader, group, number)


def _column(reader: "_Reader", group: int, number: int) -> Column:
    entry: dict[int, int] = {}
    path = ""
    for field, kind in reader.fields():
        if (field, kind) != (_ENTRY, _STRUCT):
            reader.skip(kind)
            continue
        for inner, inner_kind in reader.fields():
            if inner_kind in (_I32, _I64):
                entry[inner] = reader.number()
            elif (inner, inner_kind) == (_PATH, _LIST):
                path = ".".join(reader.texts())
            else:
                reader.skip(inner_kind)
    if _DATA_OFFSET not in entry or _COMPRESSED_SIZE not in entry:
        raise BadPageError
    begin = entry[_DATA_OFFSET]
    if entry.get(_DICTIONARY_OFFSET, 0) > 0:
        begin = min(begin, entry[_DICTIONARY_OFFSET])
    return Column(group, number, path, entry.get(_TYPE) == _BYTE_ARRAY, begin, entry[_COMPRESSED_SIZE])


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


Fields = dict[int, "int | Fields"]


class _Reader:
    """Reads structs, field by field. Whoever takes a field in reads its value or skips it."""

    def __init__(self, data: mmap, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int = 0) -> Fields:
        """The numbers and structs of one struct. Whatever else it holds is passed over."""
        _check_depth(depth)
        found: Fields = {}
        for field, kind in self.fields():
            if kind in _NUMBERS:
                found[field] = self.number()
            elif kind == _STRUCT:
                found[field] = self.struct(depth + 1)
            else:
                self.skip(kind, depth)
        return found

    def fields(self) -> Iterator[tuple[int, int]]:
        """The fields of one struct, each with the kind of its value, which stands where the reader is."""
        field = 0
        while (head := self._byte()) & 15 != _STOP:
            field = field + (head >> 4) if head >> 4 else self.number()
            yield field, head & 15

    def structs_in(self, wanted: int) -> Iterator[int]:
        """The fields of one struct, of which only the structs that one field lists are wanted: the number of each,
        with the reader at its beginning."""
        for field, kind in self.fields():
            if (field, kind) != (wanted, _LIST):
                self.skip(kind)
                continue
            count, inner = self._list_head()
            for number in range(count):
                if inner != _STRUCT:
                    raise BadPageError
                yield number

    def texts(self) -> list[str]:
        """A list of texts."""
        count, kind = self._list_head()
        if kind != _BINARY:
            raise BadPageError
        return [self._text() for _ in range(count)]

    def number(self) -> int:
        number = self._plain_number()
        return number >> 1 ^ -(number & 1)

    def skip(self, kind: int, depth: int = 0, *, in_list: bool = False) -> None:
        _check_depth(depth)
        if kind in (_TRUE, _FALSE):
            self.at += in_list
        elif kind == _BYTE:
            self.at += 1
        elif kind in _NUMBERS:
            self.number()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self._plain_number()
            self.at += length
        elif kind in (_LIST, _SET):
            count, inner = self._list_head()
            for _ in range(count):
                self._byte_ahead()
                self.skip(inner, depth + 1, in_list=True)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            # A map stands nowhere in what is read here.
            raise BadPageError

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        return (head >> 4 if head >> 4 < 15 else self._plain_number()), head & 15

    def _text(self) -> str:
        length = self._plain_number()
        self.at += length
        if self.at > len(self._data):
            raise BadPageError
        return self._data[self.at - length : self.at].decode("utf-8", "replace")

    def _byte(self) -> int:
        self._byte_ahead()
        self.at += 1
        return self._data[self.at - 1]

    def _byte_ahead(self) -> None:
        """However many things a list claims to hold, each takes a byte."""
        if not 0 <= self.at < len(self._data):
            raise BadPageError

    def _plain_number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise BadPageError
        return number | byte << shift


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise BadPageError
