"""What a report on many sessions says of one identity, and of nobody else: it may be handed to them.

A page of an identity is made from this extract alone, so that what is not in here cannot be on it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from unicodedata import normalize

from agentmark.report.provenance import InputFile
from agentmark.report.roll_content import (
    IDENTITY_VERSION,
    LEFT_OUT,
    CorrectionPart,
    IdentityPart,
    IdentityPoolPart,
    IdentityReport,
    IdentityRowPart,
    NamedPart,
    PoolPart,
    RollReport,
    RowPart,
    WhoPart,
)
from agentmark.report.signature import report_digest
from agentmark.text import shell_path, shell_word

# A command with more files than these names a folder for them.
FILES_IN_COMMAND, FOLDER = 20, "FOLDER"
SESSION_OPTION = "--session"
# Shorter names stand for another party only where they are a word of their own; every text has an "a" in it.
SHORT_NAME = 4


def identity_reports(report: RollReport) -> list[IdentityReport]:
    """The extract for each identity, in the order of `identities`."""
    source = _Source(report)
    return [_Extract(source, part).report() for part in report["identities"]]


class _Source:
    """A whole report, with what every extract looks up in it."""

    def __init__(self, report: RollReport) -> None:
        self.report = report
        self.digest = report_digest(report)
        self.parties = Parties(report["identities"])
        self.rows = {row["number"]: row for row in report["rows"]}
        self.file_numbers = {file["path"]: i for i, file in enumerate(report["inputs"], start=1)}


class _Extract:
    """One identity's part of a report, and the texts that are left out of it because they name somebody else."""

    def __init__(self, source: _Source, who: IdentityPart) -> None:
        self._source = source
        self._report = source.report
        self._who = who
        self._left_out: set[str] = set()

    def report(self) -> IdentityReport:
        report, who = self._report, self._who
        named = [self._source.rows[number] for number in who["rows"]]
        pooled = [self._source.rows[number] for number in who["pooled_rows"]]
        rows = [*named, *pooled]
        files = self._files(rows)
        paths = {path for row in rows for path in row["files"]}
        return IdentityReport(
            agentmark_roll_identity=IDENTITY_VERSION,
            whole=self._source.digest,
            made_at=report["made_at"],
            case_number=self._or_none(report["case_number"]),
            author=self._or_none(report["author"]),
            versions=dict(report["versions"]),
            command=self._command(files, rows),
            folder=files == [FOLDER],
            # Whatever text the records state, if they are read with any key.
            keys=sorted({self._shown(key, "a key") for row in rows for key in row["key_ids"]}),
            inputs=self._inputs(paths),
            noise_rates=list(report["question"]["noise_rates"]),
            by=report["by"],
            sentence=_sentence(report, who),
            # The number of questions and the promise are about all sessions, and name nobody.
            correction=CorrectionPart(**report["correction"]),
            judged=report["summary"]["rows"],
            who=WhoPart(
                name=who["name"],
                identity=who["identity"],
                revoked_at=who["revoked_at"],
                payload=who["payload"],
                payload_len=who["payload_len"],
                text=who["text"],
                steps=who["steps"],
                bound=who["bound"],
                bound_in_words=who["bound_in_words"],
            ),
            rows=[self._row(row, self._own(row)) for row in named],
            pooled=[self._row(row, None) for row in pooled],
            pools=[_pool(pool) for pool in report["pools"] if pool["identity"] == who["number"]],
            passed_over=[self._shown(line, "a line") for line in report["passed_over"] if _is_in(line, paths)],
            left_out=len(self._left_out),
        )

    def _own(self, row: RowPart) -> NamedPart:
        return next(part for part in row["named"] if part["identity"] == self._who["number"])

    def _row(self, row: RowPart, own: NamedPart | None) -> IdentityRowPart:
        return IdentityRowPart(
            number=row["number"],
            name=self._shown(row["name"], f"{self._report['by']} {row['number']}"),
            files=[self._file(path) for path in row["files"]],
            evidence_bits=None if own is None else own["evidence_bits"],
            level_bits=None if own is None else own["level_bits"],
            bound=None if own is None else own["bound"],
            at_least_steps=None if own is None else own["at_least_steps"],
            mixed=len(row["named"]) > 1,
            records=row["records"],
            used=row["used"],
            set_aside=row["set_aside"],
            outcomes=dict(row["outcomes"]),
            tampering=[self._shown(finding, "a finding") for finding in row["tampering"]],
        )

    def _inputs(self, paths: Collection[str]) -> list[InputFile]:
        """The files of these rows, in the order of the report. No registry: it is the list of the others."""
        return [
            InputFile(kind=file["kind"], path=self._file(file["path"]), size=file["size"], sha256=file["sha256"])
            for file in self._report["inputs"]
            if file["path"] in paths
        ]

    def _file(self, path: str) -> str:
        number = self._source.file_numbers.get(path)
        return self._shown(path, "a file" if number is None else f"file {number}")

    def _files(self, rows: Iterable[RowPart]) -> list[str]:
        """The files of these rows for a command, or a folder in their place: many, or one that names another party."""
        files = list(dict.fromkeys(path for row in rows for path in row["files"]))
        return [FOLDER] if len(files) > FILES_IN_COMMAND or any(map(self._names_other, files)) else files

    def _command(self, files: Sequence[str], rows: Sequence[RowPart]) -> str:
        """What gives these sessions again: no option that names another party, or a session that is not here."""
        # Judged by file, nobody has looked which sessions a file holds.
        by_session = self._report["by"] == "session"
        sessions = [row["name"] for row in rows]
        options = [
            option
            for option in self._report["options"]
            if not any(self._names_other(word) or (by_session and _is_elsewhere(word, sessions)) for word in option)
        ]
        words = [shell_word(word) for option in options for word in option]
        return " ".join(["agentmark verify", *map(shell_path, files), *words])

    def _names_other(self, text: str) -> bool:
        named = self._source.parties.another_is_named(text, self._who["number"])
        if named:
            self._left_out.add(text)
        return named

    def _shown(self, text: str, instead: str) -> str:
        return f"{instead} ({LEFT_OUT})" if self._names_other(text) else text

    def _or_none(self, text: str | None) -> str | None:
        return None if text is None or self._names_other(text) else text


def _is_in(line: str, paths: Collection[str]) -> bool:
    """Whether a line that was passed over is of one of these files, with which it begins."""
    return any(line[: colon.start()] in paths for colon in re.finditer(":", line))


def _is_elsewhere(word: str, sessions: Iterable[str]) -> bool:
    """Whether an option chooses a session, by the beginning of its id perhaps, and none of these."""
    option, _, chosen = word.partition("=")
    return option == SESSION_OPTION and not any(name.startswith(chosen) for name in sessions)


def _sentence(report: RollReport, who: IdentityPart) -> str:
    word = report["by"]
    named, pooled = len(who["rows"]), len(who["pooled_rows"])
    alone = f"{named:,} {_plural(word, named)} {_plural('is', named)} attributed to {who['name']}"
    if not pooled:
        return f"{alone}."
    short = f"{pooled:,} {_plural(word, pooled)} too short to be judged alone {_plural('speaks', pooled)} for"
    return f"{alone}; {short} it in a group." if named else f"{short} {who['name']} in a group."


_PLURALS = {"is": "are", "speaks": "speak"}


def _plural(word: str, count: int) -> str:
    return word if count == 1 else _PLURALS.get(word, f"{word}s")


def _pool(pool: PoolPart) -> IdentityPoolPart:
    return IdentityPoolPart(
        rows=list(pool["rows"]),
        among=pool["among"],
        evidence_bits=pool["evidence_bits"],
        level_bits=pool["level_bits"],
        bound=pool["bound"],
        bound_in_words=pool["bound_in_words"],
    )


class Parties:
    """Who must not be named to whom, in texts that others wrote: file names, sessions, findings, options.

    "acme" in "acme-eu.jsonl" is no other party on the page of acme-eu; on the page of acme, acme-eu is one. Case and
    what stands between words make no difference, unless two names differ in nothing else.
    """

    def __init__(self, identities: Sequence[IdentityPart]) -> None:
        self._own: dict[int, list[re.Pattern[str]]] = {}
        # A needle is quickly looked for, and only where it is there the pattern says where.
        self._all: list[tuple[str, re.Pattern[str]]] = []
        folded = Counter(name.casefold() for part in identities for name in _names(part))
        for part in identities:
            patterns = [(_squeezed(name), _pattern(name)) for name in _names(part)]
            patterns.append((part["payload"].lstrip("0"), _digits_pattern(part["payload"])))
            self._all += patterns
            self._own[part["number"]] = [
                *[_pattern(name, exact=folded[name.casefold()] > 1) for name in _names(part)],
                patterns[-1][1],
            ]

    def another_is_named(self, text: str, own: int) -> bool:
        """Whether the text names anybody but identity number `own`."""
        # File names of some systems are decomposed, names in a registry are not.
        text = normalize("NFC", text)
        squeezed = _squeezed(text)
        found = [
            match.span() for needle, pattern in self._all if needle in squeezed for match in pattern.finditer(text)
        ]
        if not found:
            return False
        mine = [match.span() for pattern in self._own[own] for match in pattern.finditer(text)]
        return any(not any(first <= start and end <= last for first, last in mine) for start, end in found)


def _names(part: IdentityPart) -> list[str]:
    return list(dict.fromkeys(normalize("NFC", name) for name in (part["identity"], part["text"]) if name))


def _squeezed(text: str) -> str:
    """Letters and digits alone. Nothing is left of a name of signs, and nothing is in every text."""
    return re.sub(r"[\W_]+", "", text).lower()


def _pattern(name: str, *, exact: bool = False) -> re.Pattern[str]:
    """The name with anything, or nothing, where it has what is neither letter nor digit."""
    words = [word for word in re.split(r"[\W_]+", name) if word]
    if exact or not (words or name.isascii()):
        return re.compile(re.escape(name))
    if not words:
        # Somebody called "-" is in every path.
        return re.compile(rf"(?<!\S){re.escape(name)}(?!\S)")
    pattern = r"[\W_]*".join(map(re.escape, words))
    if sum(map(len, words)) < SHORT_NAME:
        pattern = rf"(?<![^\W_]){pattern}(?![^\W_])"
    return re.compile(pattern, re.IGNORECASE)


def _digits_pattern(digits: str) -> re.Pattern[str]:
    """A payload in hexadecimal: after 0x, with or without leading zeros; if it is of some length, without 0x too."""
    bare = f"|{digits}" if len(digits) >= SHORT_NAME else ""
    return re.compile(rf"(?<![0-9a-z])(?:0x0*{digits.lstrip('0') or '0'}{bare})(?![0-9a-z])", re.IGNORECASE)
