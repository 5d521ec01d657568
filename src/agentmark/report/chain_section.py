"""What the chain of each log shows, on a page."""

from collections.abc import Sequence
from html import escape

from agentmark.report.chain_part import ChainFindingPart, ChainPart
from agentmark.report.numbers import count_text
from agentmark.report.parts import Report
from agentmark.report.pieces import SENTENCE_LEN, facts, table, text


def chain_section(report: Report) -> str:
    if not report["chains"]:
        return ""
    return (
        "<h2>The chain of the log</h2>"
        f"{''.join(map(_chain, report['chains']))}"
        "<p class=soft>A layer beside the mark: it shows whether records are missing, or are not as they were "
        "written. It is no part of the verdict, and a broken chain never stops the mark from being read.</p>"
    )


def _chain(chain: ChainPart) -> str:
    css = "yes" if chain["intact"] else "no"
    refused = chain["checkpoints_refused"]
    checkpoints = count_text(chain["checkpoints"], "checkpoint") + (f" good, {refused:,} refused" if refused else "")
    pairs = [
        ("Log", text(chain["log"], SENTENCE_LEN)),
        ("Finding", f"<b class={css}>{text(chain['sentence'], SENTENCE_LEN)}</b>"),
        ("Vouched for", f"{chain['checked']:,} of {count_text(chain['records'], 'record')}; {checkpoints}"),
        ("Signed by", _signers(chain)),
    ]
    if chain["last_checkpoint"] is not None:
        pairs.append(("Last checkpoint", f"<code>{escape(chain['last_checkpoint'])}</code>"))
    heads = ("kind", "session", "line", "what was found")
    listed = table(heads, map(_chain_row, chain["findings"]), numbers=(2,), css="chain")
    left_out = chain["findings_left_out"]
    more = f"<p class=soft>{count_text(left_out, 'further finding')} not listed.</p>" if left_out else ""
    return f"<div class=panel>{facts(pairs)}{listed if chain['findings'] else ''}{more}</div>"


def _signers(chain: ChainPart) -> str:
    if not chain["signers"]:
        return "nobody"
    signers = ", ".join(f"<code>{escape(signer)}</code>" for signer in chain["signers"])
    doubt = "" if chain["trusted_keys"] else "<br>Nobody vouches for this key: none was given to compare it with."
    return f"{signers}{doubt}"


def _chain_row(finding: ChainFindingPart) -> Sequence[str]:
    return (
        escape(finding["kind"]),
        "" if finding["session"] is None else text(finding["session"][:8]),
        "" if finding["line"] is None else f"{finding['line']:,}",
        text(finding["sentence"], SENTENCE_LEN),
    )
