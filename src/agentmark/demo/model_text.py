"""The demonstration with a model, as text for a terminal."""

from shlex import quote

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.recovery import recovery_lines
from agentmark.demo.run import TENANT
from agentmark.record import StepRecord

NEAR_CHANCE = (
    "This model is so small that its choice of tools is near chance: it shows that the plumbing holds, and nothing",
    "about how well an agent works. Give it a better one with --gguf FILE, or --base-url URL --model NAME.",
)


def render_model_text(result: ModelDemoResult) -> list[str]:
    """Line by line: what a model said may hold the end of a line."""
    parts = (_decision(result), _episodes(result), recovery_lines(result.recovery))
    return [*[line for part in parts for line in (*part, "")], *_next_steps(result)]


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
    done = sum(episode.success for episode in result.episodes)
    tokens = sum(episode.input_tokens for episode in result.episodes)
    written = sum(episode.output_tokens for episode in result.episodes)
    missing = "" if result.missing_share is None else f", {result.missing_share:.0%} of its probability on no option"
    lines += [
        "",
        f"{len(result.records)} decisions in {len(result.episodes)} tasks ({done} done), asked by "
        f"{', '.join(result.elicitors)}:",
        f"    {tokens:,} tokens read, {written:,} written, in {result.seconds:.0f} s ({result.cpu_s:.0f} s of CPU)",
        f"    {result.mean_entropy:.2f} bits of entropy a decision{missing}; {result.unmarked} decisions unmarked",
    ]
    return [*lines, *NEAR_CHANCE] if result.near_chance else lines


def _next_steps(result: ModelDemoResult) -> list[str]:
    folder = result.folder
    key, registry = quote(str(folder / "key.json")), quote(str(folder / "registry.jsonl"))
    return [
        "Look at the picture, then try it yourself:",
        f"    {folder / 'model.html'}",
        f"    agentmark verify {quote(str(result.recovery.path))} --key {key} --registry {registry}",
        f"    agentmark inspect {quote(str(folder / 'log-model.jsonl'))}",
    ]
