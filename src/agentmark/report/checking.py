"""How to check a report: the commands that its reader can run, as they have to be typed."""

from collections.abc import Sequence

from agentmark.keys.public import fingerprint_of
from agentmark.report.numbers import count_text
from agentmark.report.page_data import SignedFile, data_link
from agentmark.report.parts import Report, StrangerReport
from agentmark.report.pieces import text
from agentmark.report.provenance import InputFile
from agentmark.report.signature import report_digest
from agentmark.text import shell_path

# Of more files than these the digests are listed, and the command is the same.
COMMANDS_SHOWN = 20
# The longest command that a page shows whole: some hundred files.
COMMAND_LEN = 20_000


def checking_section(report: Report | StrangerReport, signed: SignedFile | None, *, on_paper: bool = False) -> str:
    """`on_paper`: without what only a screen can hold."""
    parts = [
        _by_itself(report, signed, on_paper=on_paper),
        _files(report["inputs"]),
        _signature(report, signed),
        _passed_over(report),
        _again(report),
    ]
    return "<h2 class=check>How to check it</h2>\n" + "\n".join(part for part in parts if part)


def _by_itself(report: Report | StrangerReport, signed: SignedFile | None, *, on_paper: bool) -> str:
    """In public mode: the verdict once more, from this file alone."""
    if "view" in report or report["disclosed"] is None:
        return ""
    held = report["disclosed"]
    points = dict.fromkeys([bytes.fromhex(each["public_key"]["public_key"]) for each in held["disclosures"]])
    keys = "<br>".join(f"<code>{fingerprint_of(point)}</code>" for point in points)
    kept = "The page as a file holds" if on_paper else "This page holds"
    saved = (
        "" if on_paper else f" {data_link(report, signed, 'Save the data of this report')}: it can be checked alike."
    )
    return (
        "<h3>That the verdict follows from the records, without any secret</h3>"
        f"{_block(['agentmark check-report report.html'])}"
        f"<p>With the name under which you saved this page. {kept} the {count_text(len(held['records']), 'record')}, "
        "the proofs of the key's holder and the public key. The command judges them again, on your machine and with no "
        f"other file, and compares every figure and the page itself.{saved}</p>"
        "<p class=soft>Whose the public key is, the page cannot prove. Get it from its holder by another way and add "
        f"<code>--public-key FILE</code>, or compare its fingerprint:<br>{keys}</p>"
    )


def _files(files: Sequence[InputFile]) -> str:
    digests = [(file["path"], file["sha256"]) for file in files if file["sha256"] is not None]
    if not digests:
        return ""
    # A line that begins with # is a comment to a shell: the block can be pasted whole.
    lines = [f"sha256sum {shell_path(path)}\n# must print {digest}" for path, digest in digests[:COMMANDS_SHOWN]]
    more = len(digests) - COMMANDS_SHOWN
    rest = f" {count_text(more, 'further file')}: the same command, and the digests at the end." if more > 0 else ""
    return (
        f"<h3>That the files are those that were read</h3>{_block(lines)}<p class=soft>In the folder where they lie. "
        "On a Mac: <code>shasum -a 256</code>; on Windows, in PowerShell: <code>Get-FileHash</code>. If a digest "
        f"differs, the file is not the one that this report is about.{rest}</p>"
    )


def _signature(report: Report | StrangerReport, signed: SignedFile | None) -> str:
    digest = f"<code>{report_digest(report)}</code>"
    if signed is None:
        return (
            f"<h3>That its author stands by it</h3><p>This page came without a signature: anybody may have written it."
            f"{_all_the_same(report)} Its author can make it again with <code>--signed</code>. The SHA-256 of this "
            f"report's data is {digest}.</p>"
        )
    command = f"agentmark check-report {shell_path(signed.name)} --public-key {signed.public_key}"
    return (
        f"<h3>That its author stands by it</h3>{_block([command])}"
        f"<p class=soft>It must print <b>Signed by</b> with this key, and <b>Report</b> {digest}, the SHA-256 of this "
        "report's data. Get the public key from the author, by another way than this page: whoever forges the page "
        "can put another key on it. What is signed is the data. With <code>--page new.html</code> the command also "
        "writes the page anew from what is signed, so that nothing on it has to be believed.</p>"
    )


def _all_the_same(report: Report | StrangerReport) -> str:
    if "view" in report or report["disclosed"] is None:
        return ""
    return " The verdict does not rest on who wrote it: see above."


def _passed_over(report: Report | StrangerReport) -> str:
    logs = [file["path"] for file in report["inputs"] if file["kind"] == "log"]
    # Each place that was passed over begins with the file it is in, which may be one that the report does not rest on.
    concerned = [path for path in logs if any(path in place for place in report["passed_over"])]
    if not concerned:
        return ""
    lines = [f"agentmark inspect {shell_path(path)} --skip-bad" for path in concerned[:COMMANDS_SHOWN]]
    return f"<h3>What was passed over</h3>{_block(lines)}<p class=soft>It needs no key.</p>"


def _again(report: Report | StrangerReport) -> str:
    takes = "This takes the secret key: only its holder can do it, or somebody who was given it for this."
    if "view" not in report and report["rests_on"] is not None:
        takes = "This takes the disclosure and the public key, and no secret: anyone can do it."
    return f"<h3>That the verdict is what the files say</h3>{_block([report['command']])}<p class=soft>{takes}</p>"


def _block(lines: Sequence[str]) -> str:
    shown = "\n".join(text(line, COMMAND_LEN) for command in lines for line in command.split("\n"))
    return f"<pre class=panel>{shown}</pre>"
