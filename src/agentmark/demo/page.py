"""The demonstration as one self-contained HTML page."""

from collections.abc import Sequence
from html import escape
from math import log2

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.demo.recovery import LOSS_RATE, Recovery
from agentmark.demo.run import TENANT, DemoResult
from agentmark.record import StepRecord
from agentmark.report.charts import Bar, Series, bar_chart, line_chart
from agentmark.report.html import isolated, opening
from agentmark.version import __version__

NAME_LEN = 48

STYLE = """
:root { --ink:#1c2430; --soft:#5c6675; --paper:#fff; --panel:#f5f7fa; --rule:#dde3ea;
        --f:#2563a8; --r:#1f8a5b; --base:#7a8594; --bad:#b3413a; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6eaf0; --soft:#9aa5b4; --paper:#12161c; --panel:#1b2129;
        --rule:#303844; --f:#6aa9ee; --r:#58c795; --base:#98a2b0; --bad:#ea8078; } }
body { font:16px/1.55 system-ui, sans-serif; color:var(--ink); background:var(--paper); max-width:780px;
       margin:2.5rem auto; padding:0 1.2rem; }
h1 { font-size:1.7rem; margin-bottom:.2rem; } h2 { font-size:1.15rem; margin:2.2rem 0 .6rem; }
p.lead, p.note { color:var(--soft); } p.note { font-size:.88rem; }
svg { width:100%; height:auto; display:block; }
.panel { background:var(--panel); border:1px solid var(--rule); border-radius:8px; padding:1rem; margin:.8rem 0; }
.grid { stroke:var(--rule); } .tick { fill:var(--soft); font-size:12px; } .axis { fill:var(--soft); font-size:13px; }
.label { fill:var(--ink); font-size:14px; } .note { fill:var(--soft); font-size:12px; }
.threshold { stroke:var(--soft); stroke-dasharray:6 5; } .line { fill:none; stroke-width:2.4; }
.whisker { stroke:var(--ink); stroke-width:1.6; }
.line.f { stroke:var(--f); } .line.r { stroke:var(--r); } .line.bad { stroke:var(--bad); }
.line.bad2 { stroke:var(--bad); stroke-dasharray:3 3; }
.cross { font-size:18px; text-anchor:middle; } .cross.bad, .cross.bad2 { fill:var(--bad); }
.bar.f { fill:var(--f); } .bar.r { fill:var(--r); } .bar.base { fill:var(--base); } .bar.bad { fill:var(--bad); }
.legend { display:flex; gap:1.2rem; flex-wrap:wrap; font-size:.88rem; color:var(--soft); margin:.5rem 0 0; }
.key::before { content:""; display:inline-block; width:1.4em; height:0; border-top:3px solid; margin-right:.5em;
               vertical-align:middle; }
.key.f::before { border-color:var(--f); } .key.r::before { border-color:var(--r); }
.key.bad::before { border-color:var(--bad); } .key.bad2::before { border-color:var(--bad); border-top-style:dotted; }
table { border-collapse:collapse; width:100%; font-size:.9rem; } td, th { text-align:left; padding:.3rem .6rem .3rem 0;
        border-bottom:1px solid var(--rule); vertical-align:top; } th { color:var(--soft); font-weight:600; }
.weights span { display:inline-block; white-space:nowrap; margin-right:.9em; color:var(--soft); }
.weights b { color:var(--ink); } .weights i { display:inline-block; height:.6em; background:var(--f); opacity:.55;
        margin-right:.35em; border-radius:2px; } .ok { color:var(--r); } .no { color:var(--bad); }
.verdict { margin:.5rem 0; } .verdict strong { display:inline-block; min-width:6.5em; }
@media print { body { margin:0; max-width:none; } .panel { break-inside:avoid; } }
"""


def render_page(result: DemoResult) -> str:
    parts = [
        opening("AgentMark demo", STYLE),
        "<h1>An agent's decisions, marked, and each as likely as before</h1>",
        f"<p class=lead>A courier robot decided for tenant <b>{escape(TENANT)}</b>. AgentMark chose from the robot's "
        f"own probability lists with keyed randomness. {LOSS_RATE:.0%} of its log is gone, records of another agent "
        "are mixed in, and the rest is shuffled.</p>",
        "<h2>Who was it?</h2>",
        *[verdict_panel(recovery) for recovery in result.recoveries],
        "<h2>How the evidence grows</h2>",
        f"<div class=panel>{growth_chart(result.recoveries)}</div>",
        "<p class=note>Evidence for the tenant's identity after each record that is left. Records of the other agent "
        "set it back, and a stranger's key never gets anywhere. The dashed line is what it takes to name one of the "
        "tenants with a false-positive bound of one in a million.</p>",
        "<h2>Did it change the robot?</h2>",
        f"<div class=panel>{_utility(result)}</div>",
        f"<p class=note>Parcels delivered in time, {result.policies[0].episodes} tasks each, with 95 % intervals. "
        "AgentMark samples from exactly the probabilities that the robot gave. Red-green watermarking bends them, and "
        "pays for it.</p>",
        "<h2>Some of the decisions that are left</h2>",
        decision_table(result.sample),
        f"<p class=note>AgentMark {escape(__version__)}. The numbers are from this run; key and logs lie beside this "
        "page.</p></html>",
    ]
    return "\n".join(parts)


def verdict_panel(recovery: Recovery) -> str:
    rows = [
        ("right key", recovery.verdict),
        ("wrong key", recovery.wrong_key),
        ("12 records", recovery.short),
    ]
    kept = len(recovery.damaged) - recovery.foreign
    lines = [
        f"<b>AgentMark-{recovery.scheme}</b>: {kept} of {recovery.logged} records are left, and {recovery.foreign} are "
        "another agent's."
    ]
    for label, verdict in rows:
        css = "ok" if verdict.accepted else "no"
        lines.append(f"<div class=verdict><strong class={css}>{label}</strong> {isolated(verdict.sentence)}</div>")
    return f"<div class=panel>{''.join(lines)}</div>"


def growth_chart(recoveries: Sequence[Recovery]) -> str:
    """Evidence after each record that is left, for each log, with the right key and a wrong one."""
    series = []
    for recovery, good, bad in zip(recoveries, ("f", "r"), ("bad", "bad2"), strict=False):
        series.append(Series(f"AgentMark-{recovery.scheme}", _steps(recovery.growth), good))
        series.append(Series(f"{recovery.scheme}, wrong key", _steps(recovery.wrong_key_growth), bad))
    verdict = recoveries[0].verdict
    needed = verdict.bits_paid - log2(verdict.threshold)
    label = f"{needed:.0f} bits: a tenant is named, bound {verdict.threshold:.0e}"
    return line_chart(series, x_label="records read", y_label="evidence (bits)", threshold=(needed, label))


def _steps(growth: tuple[float, ...]) -> list[tuple[float, float]]:
    return [(0.0, 0.0), *[(float(i), max(bits, 0.0)) for i, bits in enumerate(growth, start=1)]]


def _utility(result: DemoResult) -> str:
    classes = ("base", "f", "r", "bad")
    bars = [
        Bar(p.label, p.rate, p.interval.low, p.interval.high, css)
        for p, css in zip(result.policies, classes, strict=True)
    ]
    return bar_chart(bars)


def decision_table(records: Sequence[StepRecord]) -> str:
    rows = "".join(_decision(record) for record in records)
    return f"<table><tr><th>session, step<th>what it could do<th>chosen</tr>{rows}</table>"


def _decision(record: StepRecord) -> str:
    weights = record.distribution.as_weights() if record.distribution else {}
    shown = "".join(
        _share(name, weight / TOTAL_WEIGHT, chosen=name == record.behavior) for name, weight in weights.items()
    )
    return (
        f"<tr><td>{isolated(record.session[:6])}, {record.step_index}<td class=weights>{shown}"
        f"<td><b>{isolated(record.behavior, NAME_LEN)}</b></tr>"
    )


def _share(name: str, share: float, *, chosen: bool) -> str:
    shown = f"<b>{isolated(name, NAME_LEN)}</b>" if chosen else isolated(name, NAME_LEN)
    return f"<span><i style=width:{60 * share:.0f}px></i>{shown} {_percent(share)}</span>"


def _percent(share: float) -> str:
    return "&lt;1%" if 0 < share < 0.005 else f"{share:.0%}"
