"""Where the figures in the texts come from: `lab/claims.toml`, read, looked up in the results and compared.

    [[claim]]                      a figure of measurement
    page = "README.md"
    text = "names {98} % of them"  as it stands there, each figure in braces
    from = ["..."]                 for each figure, where it is now

    [[other]]                      numbers that are no measurements, with `text` as it stands there, or with a
    page = "docs/chain.md"         `pattern`: a regular expression for many of the page, in which ^ and $ are those of
    pattern = 'at most [0-9]+'     a line
    why = "limits"

    [[everywhere]]                 the same on every page

A place is one of these. Names of tables may be cut short, cells and columns are chosen with * and |, and `#2` is the
second number of what is found there; before it may stand `min of`, `max of`, `count of`, behind it `times 100`.
`A over B` is the ratio of two places, and `A over B minus from 1` how much less A is.

    RESULT / TABLE / COLUMN=CELL; COLUMN=CELL / COLUMN
    RESULT / claims / a part of a claim            (met in place of claims: those that hold)
    RESULT / figure / CURVE / X
    docs/PAGE.md / a part of a line
    docs/PAGE.md / HEADING / COLUMN=CELL; COLUMN=CELL / COLUMN        (the table under it)
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from agentmark_lab.kit.experiment import Result
from agentmark_lab.kit.experiment import Table as ResultTable

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "lab" / "claims.toml"

# Figures that are written as words. Those below ten count only before a unit: else they count what the text itself
# lists.
WORDS = {
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "twice as": 2, "half": 1 / 2, "third": 1 / 3, "two thirds": 2 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "sixth": 1 / 6,
    "tenth": 1 / 10, "six tenths": 6 / 10, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "dozen": 12, "tenfold": 10, "hundredfold": 100, "thousandfold": 1000,
}  # fmt: skip
_WORD = (
    r"ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|"
    r"dozens?|thousands|(?:ten|hundred|thousand)fold|"
    r"(?:two )?thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|(?:six )?tenths?"
)
_UNIT = r"points|steps|nats|bits|bytes|times|tenths|microseconds|milliseconds|seconds|minutes|hours"
_SMALL = rf"(?:two|three|four|five|six|seven|eight|nine)(?= (?:{_UNIT})\b)"
_DIGITS = r"(?<![\w.])(?:\d(?:[\d,]*\d)?(?:\.\d+)?|\.\d+)"
_SAID = re.compile(rf"{_DIGITS}|\b(?:{_WORD}|{_SMALL})\b|\btwice as\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?")
_PLACE = re.compile(
    r"(?:(?P<take>min|max|count) of )?(?P<path>.+?)(?: #(?P<number>\d+))?"
    r"(?: times (?P<times>[\d.e-]+))?"
)


@dataclass(frozen=True, slots=True)
class Said:
    """A figure as a text has it: its span in the page, what it says, and how far it may be off by its last digit."""

    start: int
    end: int
    text: str
    value: float
    off: float


@dataclass(frozen=True, slots=True)
class Traced:
    """A text with its figures, and where each of them is."""

    page: str
    text: str
    places: list[str]
    off: float | None

    def figures(self) -> list[Said]:
        """At the first place where the text stands; ValueError if it does not stand there."""
        start = next(self.starts())
        return [
            _said(text, start + offset, self.off)
            for text, offset in zip(re.findall(r"\{(.*?)\}", self.text), self._offsets(), strict=True)
        ]

    def stale(self) -> list[str]:
        """What it says and where it was measured, of each figure of which these are not the same."""
        figures = self.figures()
        if len(figures) != len(self.places):
            return [f"{len(figures)} figures, and {len(self.places)} places"]
        found = [(said, place, found_at(place)) for said, place in zip(figures, self.places, strict=True)]
        return [
            f"it says {said.text}, and {place!r} is now {now:.4g}"
            for said, place, now in found
            if abs(now - said.value) > said.off + 1e-9
        ]

    def spans(self) -> list[tuple[int, int]]:
        """What it answers for, wherever it stands on its page."""
        lengths = [len(text) for text in re.findall(r"\{(.*?)\}", self.text)]
        return [
            (start + offset, start + offset + length)
            for start in self.starts()
            for offset, length in zip(self._offsets(), lengths, strict=True)
        ]

    def starts(self) -> Iterator[int]:
        plain = self.text.replace("{", "").replace("}", "")
        found = [match.start() for match in re.finditer(re.escape(plain), page_text(self.page))]
        if not found:
            raise ValueError(f"{self.page} does not say {plain!r} any more: change lab/claims.toml with it")
        yield from found

    def _offsets(self) -> list[int]:
        """Of each figure from the beginning of the text, in which there are no braces."""
        return [match.start() - 2 * number for number, match in enumerate(re.finditer(r"\{.*?\}", self.text))]


@dataclass(frozen=True, slots=True)
class Other:
    """Numbers that are no measurements, and why. `pattern` is a regular expression."""

    page: str
    pattern: str
    why: str

    @classmethod
    def of(cls, entry: dict[str, str]) -> "Other":
        pattern = re.escape(entry["text"]) if "text" in entry else entry["pattern"]
        return cls(entry["page"], pattern, entry["why"])

    def spans(self) -> list[tuple[int, int]]:
        found = [match.span() for match in re.finditer(self.pattern, page_text(self.page), flags=re.MULTILINE)]
        if not found:
            raise ValueError(f"{self.page} does not say {self.pattern!r} any more: change lab/claims.toml with it")
        return found


@dataclass(slots=True)
class Table:
    """The whole table."""

    pages: list[str]
    left_out: dict[str, str]
    claims: list[Traced] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    everywhere: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path = TABLE) -> "Table":
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        table = cls(content["pages"], content["left_out"])
        table.claims = [Traced(c["page"], c["text"], c["from"], c.get("off")) for c in content["claim"]]
        table.others = [Other.of(entry) for entry in content["other"]]
        table.everywhere = [pattern["pattern"] for pattern in content["everywhere"]]
        return table

    def untraced(self, page: str) -> list[str]:
        """Figures of a page that nothing answers for, each with its line and its surroundings."""
        text = page_text(page)
        entries = (*self.claims, *self.others)
        spans = [span for entry in entries if entry.page == page for span in entry.spans()]
        for pattern in self.everywhere:
            spans += [match.span() for match in re.finditer(pattern, text, flags=re.MULTILINE)]
        return [
            f"{page}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r} in "
            f"{text[max(0, match.start() - 40) : match.end() + 25]!r}"
            for match in _SAID.finditer(prose(text))
            if not any(start <= match.start() and match.end() <= end for start, end in spans)
        ]


@cache
def page_text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text with blanks in place of code, of where links lead, and of what `agentmark lab table` writes into a page:
    they are others' business."""
    written = r"<!-- (\w+): written by .*?<!-- end of \1 -->"
    for pattern in (written, r"^ *```.*?^ *```", r"`[^`\n]*`", r"\]\([^)\s]*\)", r"<[^>\n]*>"):
        text = re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.MULTILINE | re.DOTALL)
    return text


def _said(text: str, start: int, off: float | None) -> Said:
    word = WORDS.get(text.lower())
    value = float(text.replace(",", "")) if word is None else word
    # Rounded to the digits that are shown, wherever the exact value lay.
    last_digit = 10.0 ** -len(text.partition(".")[2]) if word is None else 0.0
    return Said(start, start + len(text), text, value, last_digit / 2 if off is None else off)


def found_at(place: str) -> float:
    """The number that stands there now; `A over B` is a ratio."""
    whole, _, part = place.removesuffix(" minus from 1").partition(" over ")
    if part:
        ratio = found_at(whole) / found_at(part)
        return 1 - ratio if place.endswith(" minus from 1") else ratio
    match = _PLACE.fullmatch(place)
    assert match is not None, place
    texts = _texts(match["path"])
    if match["take"] == "count":
        return float(len(texts))
    if not texts:
        raise LookupError(f"nothing is at {place!r}")
    if match["take"] is None and len(set(texts)) > 1:
        raise LookupError(f"{place!r} is {len(texts)} places: say which, or min of, or max of")
    values = [_number(text, int(match["number"] or 1), place) for text in texts]
    return (max if match["take"] == "max" else min)(values) * float(match["times"] or 1)


def _number(text: str, number: int, place: str) -> float:
    numbers = _NUMBER.findall(text)
    if len(numbers) < number:
        raise LookupError(f"{place!r} is {text!r} and has no number {number}")
    return float(numbers[number - 1].replace(",", ""))


def _texts(path: str) -> list[str]:
    """Everything that is at a place, as text."""
    name, *rest = path.split(" / ")
    is_page = name.endswith(".md")
    if is_page and len(rest) == 1:
        return _beginning_at(rest[0], page_text(name).splitlines())
    if is_page:
        return _cells(_page_tables(name), *rest)
    results = [_result(one) for one in name.split()]
    if rest[0] in ("claims", "met"):
        claims = [claim for result in results for claim in result.claims]
        good = ("Holds", "Aim met") if rest[0] == "met" else ("",)
        return _beginning_at(rest[1], [claim for claim in claims if claim.startswith(good)])
    (result,) = results
    if rest[0] == "figure":
        return [_on_curve(result, rest[1], float(rest[2]))]
    return _cells(result.tables, *rest)


def _cells(tables: list[ResultTable], title: str, chosen: str, column: str) -> list[str]:
    exactly = [table for table in tables if table.title == title]
    (table,) = exactly or [table for table in tables if table.title.startswith(title)]
    cells = dict(part.split("=", 1) for part in chosen.split("; ")) if chosen != "*" else {}
    rows = [dict(zip(table.columns, [str(cell) for cell in row], strict=True)) for row in table.rows]
    columns = [column] if column in table.columns else [name for name in table.columns if _is(name, column)]
    found = [row for row in rows if all(_is(row[key], wanted) for key, wanted in cells.items())]
    return [row[name] for row in found for name in columns]


def _beginning_at(part: str, texts: Iterable[str]) -> list[str]:
    """Of the texts that have this part, what begins with it."""
    return [text[text.index(part) :] for text in texts if part in text]


def _is(cell: str, wanted: str) -> bool:
    return any(fnmatchcase(cell, one) for one in wanted.split("|"))


def _on_curve(result: Result, label: str, x: float) -> str:
    (curve,) = [curve for figure in result.figures for curve in figure.curves if curve.label == label]
    return str(curve.y[curve.x.index(x)])


@cache
def _page_tables(page: str) -> list[ResultTable]:
    """The tables of a page, each by the heading that it stands under."""
    tables, title, before = [], "", ""
    for line in page_text(page).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip()
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
            if not before.startswith("|"):
                tables.append(ResultTable(title, cells, []))
            elif not line.startswith("|--"):
                tables[-1].rows.append([*cells])
        before = line
    return tables


@cache
def _result(name: str) -> Result:
    return Result.load(ROOT / "results" / f"{name}.json")
