"""The demonstration with a model, as text for a terminal."""

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.demo.assistant import Ending
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.next_steps import step_lines
from agentmark.demo.recovery import recovery_lines
from agentmark.demo.run import TENANT
from agentmark.record import StepRecord

NEAR_CHANCE = (
    "This model is so small that its choice of tools is near chance: it shows that the plumbing holds, and nothing",
    "about how well an agent works. Give it a better one with --gguf FILE, or --base-url URL --model NAME.",
)


def render_model_text(result: ModelDemoResult, program: str) -> list[str]:
    """Line by line: what a model said may hold the end of a line. `program` is what the user types to start us."""
    parts = (_decision(result), _episodes(result), recovery_lines(result.recovery))
    return [*[line for part in parts for line in (*part, "")], *_next_steps(result, program)]


def _decision(result: ModelDemoResult) -> list[str]:
    record = next((record for record in result.records if record.distribution is not None), None)
    lines = [f"{result.model} works in an office for tenant {TENANT!r}. It is asked how likely each tool is next;"]
    lines += ["AgentMark picks from that list with keyed randomness, and the model fills in the arguments.", ""]
    return lines if record is None else [*lines, *_bars(record)]


def _bars(record: StepRecord) -> list[str]:
    assert record.distribution is not None
    lines = []
    for behavior, weight in record.distribution.as_weights().items():
        share = weight / TOTAL_WEIGHT
        mark = "  <- chosen" if behavior == record.behavior else ""
        lines.append(f"    {behavior:<18} {share:6.1%}  {'#' * round(40 * share)}{mark}")
    return lines


def _episodes(result: ModelDemoResult) -> list[str]:
    first = result.episodes[0]
    lines = [f"Its first task: {first.request}"]
    lines += [f"    {did[:70]} -> {said[:60]}".replace("\n", " ") for did, said in first.steps]
    lines += [f"    ({first.ending})", "", *task_lines(result)]
    tokens = sum(episode.input_tokens for episode in result.episodes)
    written = sum(episode.output_tokens for episode in result.episodes)
    missing = "" if result.missing_share is None else f", {result.missing_share:.0%} of its probability on no option"
    return [
        *lines,
        f"{len(result.records)} decisions, lists from {', '.join(result.elicitors)}:",
        f"    {tokens:,} tokens read, {written:,} written, in {result.seconds:.0f} s ({result.cpu_s:.0f} s of CPU)",
        f"    {result.mean_entropy:.2f} bits of entropy a decision{missing}; {result.unmarked} decisions unmarked",
    ]


def task_lines(result: ModelDemoResult) -> list[str]:
    """What the model did and did not do, in numbers that add up."""
    endings, begun = result.endings, len(result.episodes)
    counts = ", ".join([f"{endings[ending]} {ending}" for ending in Ending if endings[ending]])
    lines = [f"{begun} of {result.task_count} tasks begun: {counts}."]
    if result.done_interval is not None:
        low, high = result.done_interval.low, result.done_interval.high
        lines.append(f"The share done of those that came to an end: 95 % interval {low:.0%} - {high:.0%}.")
    if result.never_done:
        lines += ["What this model never did here:", *[f"    {request}" for request in result.never_done]]
    if result.out_of_time:
        lines.append(f"The time was up after {result.minutes:g} minutes: --minutes gives it more.")
    return [*lines, *NEAR_CHANCE] if result.near_chance else lines


def _next_steps(result: ModelDemoResult, program: str) -> list[str]:
    lines = []
    if not result.recovery.verdict.accepted:
        lines.append("Too few decisions are left to name a tenant: more --tasks, and --minutes for them, would do.")
    return [
        *lines,
        f"The pictures are in {result.page}: open it in a browser. Then try it yourself:",
        "",
        *step_lines(result.next_steps, program),
    ]
