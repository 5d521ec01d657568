"""The demonstration with a model, as one self-contained HTML page."""

from html import escape

from agentmark.demo.assistant import Ending, Episode
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.model_text import task_lines
from agentmark.demo.page import NAME_LEN, STYLE, decision_table, growth_chart, verdict_panel
from agentmark.demo.recovery import LOSS_RATE
from agentmark.demo.run import TENANT
from agentmark.report.html import isolated, opening
from agentmark.version import __version__

SHOWN_EPISODES, SHOWN_DECISIONS = 6, 6
SAID_LEN = 600


def render_model_page(result: ModelDemoResult, program: str) -> str:
    tokens = sum(episode.input_tokens + episode.output_tokens for episode in result.episodes)
    parts = [
        opening("AgentMark demo: a language model", STYLE),
        "<h1>A language model's choices of tools, marked</h1>",
        f"<p class=lead>{isolated(result.model, NAME_LEN)} worked in an office for tenant <b>{escape(TENANT)}</b>: "
        f"{len(result.records)} decisions in {len(result.episodes)} tasks. {LOSS_RATE:.0%} of its log is gone, records "
        "of another agent are mixed in, and the rest is shuffled.</p>",
        "<h2>Who was it?</h2>",
        verdict_panel(result.recovery),
        "<h2>How the evidence grows</h2>",
        f"<div class=panel>{growth_chart([result.recovery])}</div>",
        "<h2>What it cost</h2>",
        f"<p>{tokens:,} tokens and {result.seconds:.0f} seconds ({result.cpu_s:.0f} of CPU in this process); "
        f"{result.mean_entropy:.2f} bits of entropy a decision; {result.unmarked} decisions unmarked. Lists came from "
        f"{isolated(', '.join(result.elicitors))}{_missing(result)}.</p>",
        "<h2>What it did</h2>",
        f"<p>{isolated(' '.join(task_lines(result)))}</p>",
        *[_episode(episode) for episode in result.episodes[:SHOWN_EPISODES]],
        "<h2>Some of the decisions that are left</h2>",
        decision_table(result.recovery.damaged[:SHOWN_DECISIONS]),
        f"<p class=note>AgentMark {escape(__version__)}. The numbers are from this run; key and logs lie beside this "
        "page.</p></html>",
    ]
    return "\n".join(parts)


def _missing(result: ModelDemoResult) -> str:
    if result.missing_share is None:
        return ""
    return f", and {result.missing_share:.0%} of the model's probability went to none of the options"


def _episode(episode: Episode) -> str:
    rows = "".join(
        f"<tr><td>{isolated(did, SAID_LEN)}<td>{isolated(said, SAID_LEN)}</tr>" for did, said in episode.steps
    )
    css = "ok" if episode.ending is Ending.DONE else "no"
    heading = f"<p><b>{isolated(episode.request)}</b> <span class={css}>{episode.ending}</span></p>"
    return f"{heading}<table>{rows}</table>"
