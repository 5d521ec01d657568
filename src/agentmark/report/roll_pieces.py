"""What the pages of a report on many sessions have in common."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypedDict

from agentmark.report.first_page import GLOSSARY
from agentmark.report.html import opening
from agentmark.report.numbers import count_text, rate_in_words
from agentmark.report.page_data import SignedFile
from agentmark.report.pieces import NAME_LEN, SENTENCE_LEN, bullets, facts, table, text
from agentmark.report.provenance import InputFile
from agentmark.report.roll_charts import ROLL_CHART_STYLE
from agentmark.report.roll_content import FAMILYWISE, LEFT_OUT, CorrectionPart, IdentityReport, RollReport
from agentmark.report.style import STYLE, on_every_sheet
from agentmark.text import JOINERS, shell_path, spelled_out

DATA = "roll.json"
# Beyond these, a page says how many there are and where: a browser has to show it, and somebody has to print it.
MOST_ROWS, MOST_FILES, MOST_FINDINGS = 500, 500, 100
FILES_IN_ROW = 2
# The longest command that a page shows whole.
COMMAND_LEN = 20_000
TITLE_LEN = 72

ROLL_STYLE = (
    STYLE
    + ROLL_CHART_STYLE
    + """
a { color:var(--f); } main > h2 { scroll-margin-top:1rem; } .rate, td code.rate { white-space:nowrap; }
.roll { font-size:.84rem; } .roll td a, .roll td a bdi { overflow-wrap:break-word; }
.roll td b { font-weight:600; }
@media screen and (max-width: 620px) {
  .roll td { display:inline; margin-right:.7em; } .roll td:nth-child(2) { font-weight:600; }
  .roll td:nth-child(-n+2)::before { content:none !important; } .roll td.n { white-space:normal; }
  .roll td[data-label]::after { content:" "; }
}
@media print { a { color:inherit; text-decoration:none; } thead { display:table-header-group; } }
"""
)

FORGERY = (
    "Whoever holds the key can write records that carry any identity. The report shows that the records were chosen "
    "with the key; that nobody misused the key has to be shown by other means."
)


def page(title: str, digest: str, parts: Iterable[str]) -> str:
    """A whole page; `digest` names its data on every sheet of paper."""
    # A browser shows the title in its frame: no more of it than fits, and nothing that steers.
    shown = spelled_out(title[:TITLE_LEN], keep=JOINERS)
    body = "\n".join(part for part in [*parts, _glossary()] if part)
    return f"{opening(shown, ROLL_STYLE + on_every_sheet(digest))}\n<main>\n{body}\n</main></html>\n"


def _glossary() -> str:
    return f"<h2>Words used here</h2>{facts(GLOSSARY, css='glossary')}"


def promise(correction: CorrectionPart, word: str, judged: int) -> str:
    """What is promised of all names together, as one would say it."""
    chance = escape(rate_in_words(float(correction["level"])))
    level = f"<span class=rate>{escape(correction['level'])}</span>"
    if correction["kind"] == FAMILYWISE:
        what = f"the {word} is" if judged == 1 else f"any of the {judged:,} {word}s is"
        return f"The chance that {what} given a wrong name is at most {chance} ({level})."
    return f"Of the names in this report, at most {chance} ({level}) is expected to be wrong, on average."


def checking(report: RollReport | IdentityReport, command: str, digest: str, signed: SignedFile | None) -> str:
    """How to repeat it (`command` is a block), and how to check its files and its signature."""
    digest = f"<code>{digest}</code>"
    parts = [
        f"<h3>That this is what the files say</h3>{command}",
        "<p class=soft>This takes the secret key, so that only its holder, and whom he trusts with it, can do it.</p>",
    ]
    files = [file for file in report["inputs"] if file["sha256"] is not None and LEFT_OUT not in file["path"]]
    first = files[0] if files else None
    if first is not None:
        block = command_block(f"sha256sum {shell_path(first['path'])}")
        parts.append(
            f"<h3>That the files are those that were read</h3>{block}<p class=soft>It must print "
            f"<code>{escape(first['sha256'] or '')}</code>; for each of the others, what is listed below. On a Mac: "
            "<code>shasum -a 256</code>; on Windows, in PowerShell: <code>Get-FileHash</code>.</p>"
        )
    parts.append("<h3>That its author stands by it</h3>")
    if signed is None:
        parts.append(
            "<p>This page came without a signature: anybody may have written it. The SHA-256 of its data is "
            f"{digest}.</p>"
        )
    else:
        block = command_block(f"agentmark check-report {shell_path(signed.name)} --public-key {signed.public_key}")
        parts.append(
            f"{block}<p class=soft>It must print <b>Signed by</b> with this key, and <b>Report</b> {digest}, "
            "the SHA-256 of this page's data. Get the public key from the author, by another way than this page. The "
            "signature says who made the report, not that it is right.</p>"
        )
    return f"<h2>How to repeat and check it</h2>{''.join(parts)}"


def command_block(command: str) -> str:
    return f"<pre class=panel>{text(command, COMMAND_LEN)}</pre>"


class Stated(TypedDict):
    """What every report states of itself."""

    made_at: str
    case_number: str | None
    author: str | None
    versions: dict[str, str]
    keys: list[str]


def heading(kind: str, report: Stated) -> str:
    """What it is, when it was made, for which case and by whom."""
    named = [("Made", escape(report["made_at"].replace("T", ", ").replace("Z", " UTC")))]
    if report["case_number"] is not None:
        named.insert(0, ("Case", text(report["case_number"], 2 * NAME_LEN)))
    if report["author"] is not None:
        named.append(("Author", text(report["author"], 2 * NAME_LEN)))
    return f"<h1>{kind}</h1>{facts(named, css='case')}"


def files_table(inputs: Sequence[InputFile], *, where: str = DATA) -> str:
    if not inputs:
        return ""
    rows = [
        (
            f"{number:,}",
            f"{escape(file['kind'])}: {text(file['path'], SENTENCE_LEN)}",
            "-" if file["size"] is None else f"{file['size']:,}",
            f"<code>{escape(file['sha256'] or 'not a regular file')}</code>",
        )
        for number, file in enumerate(inputs[:MOST_FILES], start=1)
    ]
    return (
        f"<h2 id=files>The files</h2>{table(('#', 'file', 'bytes', 'SHA-256'), rows, numbers=(0, 2), css='roll')}"
        f"{more(len(inputs) - len(rows), 'file', where=where)}"
    )


def file_list(files: Sequence[str]) -> str:
    shown = [text(path, 2 * NAME_LEN) for path in files[:FILES_IN_ROW]]
    left = len(files) - len(shown)
    return "<br>".join([*shown, *([f"and {left:,} more"] if left else [])]) or "-"


def revoked(revoked_at: str | None) -> str:
    return "" if revoked_at is None else f"<br><span class=soft>revoked {text(revoked_at)}</span>"


def long_list(items: Sequence[str], word: str, *, where: str = DATA) -> str:
    return f"{bullets(items[:MOST_FINDINGS])}{more(len(items) - MOST_FINDINGS, word, where=where)}"


def findings_table(found: Sequence[tuple[int, str, str]], word: str, *, where: str = DATA) -> str:
    """What was found in which row: its number, its name, a sentence."""
    if not found:
        return ""
    rows = [
        (f"{number:,}", text(name), text(sentence, SENTENCE_LEN)) for number, name, sentence in found[:MOST_FINDINGS]
    ]
    left = more(len(found) - len(rows), "finding", where=where)
    return f"{table(('#', word, 'what was found'), rows, numbers=(0,), css='roll')}{left}"


def more(left: int, word: str, several: str | None = None, *, where: str = DATA) -> str:
    """What is not listed, and where it is."""
    if left <= 0:
        return ""
    further = count_text(left, f"further {word}", f"further {several or word + 's'}")
    return f"<p class=soft>{further} not listed here: all figures count them, and <code>{where}</code> has them.</p>"


def made_with(report: Stated, noise_rates: Sequence[str]) -> list[tuple[str, str]]:
    """The ids of the keys, and with what the report was made."""
    keys = ", ".join(f"<code>{text(key)}</code>" for key in report["keys"]) or "-"
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in report["versions"].items())
    return [("Key ids", keys), ("Noise rates allowed for", ", ".join(map(escape, noise_rates))), ("Versions", versions)]
