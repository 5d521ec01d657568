"""The demonstration as one self-contained HTML page."""

from collections.abc import Sequence
from html import escape
from math import floor, log2, log10

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.demo.next_steps import NextStep
from agentmark.demo.recovery import LOSS_RATE, Recovery
from agentmark.demo.run import TENANT, DemoResult, PolicyOutcome
from agentmark.demo.third_party import REMEDY, ThirdParty
from agentmark.record import StepRecord
from agentmark.report.charts import CHART_STYLE, Bar, Series, bar_chart, line_chart
from agentmark.report.html import isolated, opening
from agentmark.verify.intake import Outcome
from agentmark.version import __version__

NAME_LEN = 48
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

STYLE = (
    CHART_STYLE
    + """
* { box-sizing:border-box; }
body { font:16px/1.55 system-ui, sans-serif; color:var(--ink); background:var(--paper); max-width:780px;
       margin:2.2rem auto 4rem; padding:0 1.2rem; overflow-wrap:anywhere; }
h1 { font-size:1.7rem; line-height:1.25; margin:0 0 .6rem; } h2 { font-size:1.15rem; margin:2.2rem 0 .6rem; }
p.note { color:var(--soft); font-size:.9rem; }
.panel { background:var(--panel); border:1px solid var(--rule); border-radius:8px; padding:1rem; margin:.8rem 0; }
.facts { display:grid; grid-template-columns:repeat(3, 1fr); gap:.8rem; margin:1.2rem 0; }
.facts .panel { margin:0; border-top:4px solid; } .facts span { color:var(--ink); }
.facts strong { display:block; color:var(--ink); font-size:1.2rem; line-height:1.3; margin-bottom:.3rem; }
.whisker { stroke:var(--ink); stroke-width:1.6; } .line.dash { stroke-dasharray:3 3; }
.bar { fill:currentColor; } .base { color:var(--base); } .bar + .whisker { opacity:.9; }
table { border-collapse:collapse; width:100%; font-size:.9rem; } td, th { text-align:left;
        padding:.35rem .8rem .35rem 0; border-bottom:1px solid var(--rule); vertical-align:top; }
th { white-space:nowrap; color:var(--soft); font-weight:600; }
td:first-child { white-space:nowrap; } .decisions td:last-child { overflow-wrap:break-word; }
.said td { white-space:normal; width:50%; }
.weights span { display:inline-block; margin-right:.9em; color:var(--soft); }
.weights b { color:var(--ink); } .weights i { display:inline-block; height:.6em; background:var(--f); opacity:.55;
        margin-right:.35em; border-radius:2px; } .ok { color:var(--r); } .no { color:var(--bad); }
.verdict { margin:.6rem 0; } .verdict strong { display:block; }
pre { font:.85rem/1.5 ui-monospace, monospace; white-space:pre-wrap; background:var(--panel); padding:.5rem .7rem;
      border:1px solid var(--rule); border-radius:6px; margin:.2rem 0 .8rem; } p.ask { margin:.2rem 0; }
@media (max-width: 620px) { body { margin-top:1.2rem; padding:0 .9rem; } h1 { font-size:1.4rem; }
  .facts { grid-template-columns:1fr; } .decisions tr:first-child { display:none; }
  .decisions tr { display:block; border-bottom:1px solid var(--rule); padding:.5rem 0; }
  .decisions td { display:block; border:0; padding:.05rem 0; } }
@media print { body { margin:0; max-width:none; } .panel { break-inside:avoid; } }
"""
)


def render_page(result: DemoResult, program: str) -> str:
    """`program` is what the user types to start us."""
    parts = [
        opening("AgentMark demo", STYLE),
        "<h1>Whose robot was this? What is left of its log still tells</h1>",
        f"<p>A courier robot worked for the tenant <b>{escape(TENANT)}</b>. At each step it listed what it could do, "
        "and how likely each would be. AgentMark drew from that list with a secret key: every option kept its "
        "probability, and <em>which</em> one came up spells out the tenant. "
        f"{damage_sentence(result.recoveries)}</p>",
        f"<div class=facts>{recovery_facts(result.recoveries)}{_utility_fact(result.policies)}</div>",
        "<h2>Who was it? The verdicts in full</h2>",
        "<p class=note>AgentMark has two schemes: F is the paper's, R is a race that makes more of each decision. Each "
        "marked a log of its own.</p>",
        *[verdict_panel(recovery) for recovery in result.recoveries],
        "<h2>How the evidence grows</h2>",
        f"<div class=panel>{growth_chart(result.recoveries)}</div>",
        "<p class=note>Evidence for the tenant's identity after each record that is left. Records of the other agent "
        "set it back, and a stranger's key never gets anywhere. The dashed line is what it takes to name one of the "
        "tenants with a false-positive bound of one in a million.</p>",
        "<h2>Did it change the robot?</h2>",
        f"<div class=panel>{_utility(result)}</div>",
        f"<p class=note>Parcels delivered in time: {result.policies[0].episodes} deliveries for each row, in the same "
        f"towns, with 95 % intervals. AgentMark samples from exactly the probabilities that the robot gave, so that "
        "only luck separates its rows from the first. Red-green watermarking bends them, and pays for it.</p>",
        "<h2>Some of the decisions that are left</h2>",
        decision_table(result.sample),
        *_third_party(result.third_party),
        *closing(result.next_steps, program),
    ]
    return "\n".join(parts)


def _third_party(act: ThirdParty | None) -> list[str]:
    title = "<h2>The last act: read without the secret, and forge with what was disclosed</h2>"
    if act is None:
        return [
            title,
            "<p class=note>Left out: it takes keys with a public half, and the package for them is not installed. "
            f"<code>{escape(REMEDY)}</code>, and run the demonstration again.</p>",
        ]
    altered = act.by_disclosure.counts[Outcome.ALTERED]
    rows = [
        ("ok" if act.verdict.accepted else "no", "it reads", act.verdict.sentence),
        (
            "no",
            "it forges",
            f"{act.changed} choices are rewritten to what this key would have chosen for {act.framed}. Whoever holds "
            f"the secret would {'believe it' if act.by_secret.accepted else 'name nobody'}.",
        ),
        (
            "no" if act.by_disclosure.accepted else "ok",
            "it is caught",
            f"{altered} records are not those that were disclosed. {act.by_disclosure.sentence}",
        ),
    ]
    shown = "".join(
        f"<div class=verdict><strong class={css}>{label}</strong> {isolated(sentence)}</div>"
        for css, label, sentence in rows
    )
    return [
        title,
        f"<p>Now {escape(TENANT)} marks with a key pair of its own, and hands a third party the public key, "
        f"{act.disclosed} records and their disclosure: proofs of what the key said at each step. The third party can "
        "check everything and has no secret. It learns the step keys of these records. Can it make the log name "
        f"{escape(act.framed)}?</p>",
        f"<div class=panel>{shown}</div>",
        "<p class=note>With a shared key whoever can check can also forge. Here the disclosure binds the records "
        "themselves, and the public key makes no others.</p>",
    ]


def damage_sentence(recoveries: Sequence[Recovery]) -> str:
    """What happened to the logs, in words."""
    logged, foreign = sum(r.logged for r in recoveries), sum(r.foreign for r in recoveries)
    mixed = f", mixed in {foreign} of another agent," if foreign else ""
    return (
        f"{logged} of its decisions were logged. Then we threw away {LOSS_RATE:.0%} of the records{mixed} and shuffled "
        "the rest."
    )


def recovery_facts(recoveries: Sequence[Recovery]) -> str:
    """The two answers that matter, large: the right key's and the wrong key's."""
    right = [recovery.verdict for recovery in recoveries]
    if all(verdict.accepted for verdict in right):
        weakest = max(right, key=lambda verdict: verdict.false_positive_rate)
        named = fact(
            "ok",
            f"The right key names {TENANT}",
            f"The chance that a log of somebody else's is named so is at most {one_in(weakest.false_positive_rate)}.",
        )
    else:
        named = fact("no", "Too little is left to name anybody", "The verdicts below say how much is missing.")
    wrong = [recovery.wrong_key for recovery in recoveries]
    if not any(verdict.accepted for verdict in wrong):
        return named + fact("ok", "A wrong key names nobody", "The same records, read with somebody else's key.")
    return named + fact("no", "A wrong key named somebody", "That is a false positive: run it again.")


def one_in(rate: float) -> str:
    """A bound in words, rounded to the safe side: 1 in 10²⁰ for 6.7e-21."""
    power = floor(-log10(max(rate, 1e-300)))
    return f"1 in 10{str(power).translate(SUPERSCRIPTS)}"


def _utility_fact(policies: Sequence[PolicyOutcome]) -> str:
    unmarked, *marked, biased = policies
    ours = " and ".join([f"{policy.rate:.0%}" for policy in marked])
    return fact(
        "ok",
        "The robot works as before",
        f"It delivered {ours} in time with the mark, {unmarked.rate:.0%} without, and {biased.rate:.0%} with a mark "
        f"that biases it ({unmarked.episodes} deliveries each).",
    )


def fact(css: str, large: str, small: str) -> str:
    return f'<div class="panel {css}"><strong>{escape(large)}</strong><span>{escape(small)}</span></div>'


def closing(steps: Sequence[NextStep], program: str) -> list[str]:
    """The end of a page: what to try next."""
    return [
        "<h2>Try it yourself</h2>",
        *[f"<p class=ask>{isolated(step.question)}</p><pre>{isolated(step.line(program))}</pre>" for step in steps],
        f"<p class=note>From the folder where the demonstration was started. AgentMark {escape(__version__)}; the "
        "numbers are from this run, and the keys and logs lie beside this page.</p></html>",
    ]


def verdict_panel(recovery: Recovery) -> str:
    rows = [
        ("right key", recovery.verdict),
        ("wrong key", recovery.wrong_key),
        (f"only {recovery.short.record_count} records", recovery.short),
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
    for recovery, good, bad in zip(recoveries, ("f", "r"), ("bad", "bad dash"), strict=False):
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
    return f"<table class=decisions><tr><th>step<th>what it could do<th>chosen</tr>{rows}</table>"


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
