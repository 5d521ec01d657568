"""The demonstration as text for a terminal."""

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.demo.next_steps import step_lines
from agentmark.demo.recovery import recovery_lines
from agentmark.demo.run import PAYLOAD_LEN, TENANT, DemoResult
from agentmark.demo.third_party import third_party_lines
from agentmark.record import StepRecord


def render_text(result: DemoResult, program: str) -> list[str]:
    """Line by line: text of others in one may hold the end of a line. `program` is what the user types to start us."""
    return [
        *_decision(result.sample[0]),
        "",
        *_utility(result),
        "",
        *[line for recovery in result.recoveries for line in (*recovery_lines(recovery), "")],
        *third_party_lines(result.third_party, TENANT),
        "",
        *_next_steps(result, program),
    ]


def _decision(record: StepRecord) -> list[str]:
    assert record.distribution is not None
    lines = [
        f"A courier robot works for tenant {TENANT!r}. At each step it lists what it could do and how likely;",
        "AgentMark picks from that list with keyed randomness. One of its decisions:",
        "",
    ]
    for behavior, weight in record.distribution.as_weights().items():
        share = weight / TOTAL_WEIGHT
        mark = "  <- chosen" if behavior == record.behavior else ""
        lines.append(f"    {behavior:<12} {share:6.1%}  {'#' * round(40 * share)}{mark}")
    return lines


def _utility(result: DemoResult) -> list[str]:
    deliveries = result.policies[0].episodes
    lines = [f"Does it still deliver? {deliveries} deliveries in the same towns, decided in four ways:", ""]
    lines.append(f"    {'policy':<18} {'delivered':>9}   {'95 % interval':<16} {'decisions per task':>18}")
    for policy in result.policies:
        interval = f"{policy.interval.low:.1%} - {policy.interval.high:.1%}"
        lines.append(f"    {policy.label:<18} {policy.rate:>9.1%}   {interval:<16} {policy.mean_steps:>18.1f}")
    lines += [
        "",
        "AgentMark keeps every probability: only luck separates its rows from the first. A biased mark costs success.",
    ]
    return lines


def _next_steps(result: DemoResult, program: str) -> list[str]:
    return [
        f"The identity is {PAYLOAD_LEN} bits, {result.payload:#010x}, issued to {TENANT!r} in "
        f"{result.folder / 'registry.jsonl'}.",
        f"The pictures are in {result.page}: open it in a browser. Then try it yourself:",
        "",
        *step_lines(result.next_steps, program),
    ]
