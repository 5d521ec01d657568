"""The steps of a report, one row each: what was possible, what was chosen, what it says."""

from collections.abc import Sequence
from html import escape

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.report.numbers import count_text
from agentmark.report.parts import (
    CONSISTENT,
    CONTRADICTING,
    ERASED,
    IMPOSSIBLE_STEP,
    UNSETTLED,
    Report,
    StepPart,
)
from agentmark.report.pieces import evidence, table, text

ROWS_OPEN = 200
CANDIDATES_SHOWN = 6
BAR_WIDTH_PX = 46

_FINDING_CSS = {
    CONSISTENT: "yes",
    CONTRADICTING: "no",
    IMPOSSIBLE_STEP: "no",
    ERASED: "none",
    UNSETTLED: "maybe",
}


def step_section(report: Report, *, unfolded: bool = False) -> str:
    """The first rows, and the others folded away, unless the page goes to paper."""
    steps = report["steps"]
    if not steps:
        return ""
    parts = ["<h2>Step by step</h2>", _of_whom(report), _step_table(steps if unfolded else steps[:ROWS_OPEN])]
    folded = [] if unfolded else steps[ROWS_OPEN:]
    if folded:
        first, last = folded[0]["record"], folded[-1]["record"]
        parts.append(f"<details><summary>Records {first:,} to {last:,}</summary>{_step_table(folded)}</details>")
    if report["steps_left_out"]:
        parts.append(
            f"<p class=soft>{count_text(report['steps_left_out'], 'further record')} not listed here (the list ends at "
            f"{len(steps):,}). They count in everything above.</p>"
        )
    return "\n".join(parts)


def _of_whom(report: Report) -> str:
    """With several identities, a step that contradicts the first may well be another's."""
    if len(report["verdict"]["found"]) < 2:
        return ""
    payload = escape(report["verdict"]["found"][0]["payload"])
    return (
        f"<p class=soft>Bits and findings are those of the first identity, payload 0x{payload}. A step that "
        "contradicts it may be another's.</p>"
    )


def _step_table(steps: Sequence[StepPart]) -> str:
    heads = ("#", "session, step", "candidates", "choice", "bits", "finding")
    return table(heads, map(_step_row, steps), numbers=(0, 4), css="steps")


def _step_row(step: StepPart) -> Sequence[str]:
    finding = escape(step["finding"])
    if step["finding"] == ERASED:
        finding += f": {text(step['outcome'])}"
    if step["reason"] is not None:
        finding += f" ({text(step['reason'])})"
    return (
        f"{step['record']:,}",
        f"{text(step['session'][:8])}, {step['step']:,}",
        _odds(step),
        f"<b>{text(step['choice'])}</b>",
        "" if step["finding"] in (ERASED, IMPOSSIBLE_STEP) else evidence(step["evidence_bits"], sign="+"),
        f'<span class="finding {_FINDING_CSS[step["finding"]]}">{finding}</span>',
    )


def _odds(step: StepPart) -> str:
    """P_t as bars: the likeliest candidates, and the one that was chosen wherever it stands."""
    listed = [item for item in step["candidates"] if item[0] == step["choice"]]
    others = [item for item in step["candidates"] if item[0] != step["choice"] and item[1] > 0]
    shown = sorted([*listed, *others[: CANDIDATES_SHOWN - 1]], key=lambda item: -item[1])
    left_out = len(step["candidates"]) - len(shown) + step["candidates_left_out"]
    spans = [_share(name, weight / TOTAL_WEIGHT, chosen=name == step["choice"]) for name, weight in shown]
    if left_out:
        spans.append(f"<span>and {left_out:,} more</span>")
    return f"<div class=odds>{''.join(spans)}</div>" if spans else "<span class=soft>not logged</span>"


def _share(name: str, share: float, *, chosen: bool) -> str:
    css = " class=chosen" if chosen else ""
    percent = "&lt;1%" if 0 < share < 0.005 else f"{share:.0%}"
    return f"<span{css}><i style=width:{BAR_WIDTH_PX * share:.0f}px></i>{text(name)} <em>{percent}</em></span>"
