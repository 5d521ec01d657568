"""The demonstration with a model, as one self-contained HTML page."""

from html import escape

from agentmark.demo.assistant import Episode
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.model_text import NEAR_CHANCE
from agentmark.demo.page import STYLE, decision_table, growth_chart, verdict_panel
from agentmark.demo.recovery import LOSS_RATE
from agentmark.demo.run import TENANT
from agentmark.version import __version__

SHOWN_EPISODES, SHOWN_DECISIONS = 6, 6


def render_model_page(result: ModelDemoResult) -> str:
    tokens = sum(episode.input_tokens + episode.output_tokens for episode in result.episodes)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>AgentMark demo: a language model</title><style>{STYLE}</style>",
        "<h1>A language model's choices of tools, marked</h1>",
        f"<p class=lead>{escape(result.model)} worked in an office for tenant <b>{escape(TENANT)}</b>: "
        f"{len(result.records)} decisions in {len(result.episodes)} tasks. {LOSS_RATE:.0%} of its log is gone, records "
        "of another agent are mixed in, and the rest is shuffled.</p>",
        f"<p class=note>{escape(' '.join(NEAR_CHANCE))}</p>" if result.near_chance else "",
        "<h2>Who was it?</h2>",
        verdict_panel(result.recovery),
        "<h2>How the evidence grows</h2>",
        f"<div class=panel>{growth_chart([result.recovery])}</div>",
        "<h2>What it cost</h2>",
        f"<p>{tokens:,} tokens and {result.seconds:.0f} seconds ({result.cpu_s:.0f} of CPU in this process); "
        f"{result.mean_entropy:.2f} bits of entropy a decision; {result.unmarked} decisions unmarked. Lists came from "
        f"{escape(', '.join(result.elicitors))}{_missing(result)}.</p>",
        "<h2>What it did</h2>",
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
    rows = "".join(f"<tr><td>{escape(did)}<td>{escape(said)}</tr>" for did, said in episode.steps)
    css, word = ("ok", "done") if episode.success else ("no", "not done")
    return f"<p><b>{escape(episode.request)}</b> <span class={css}>{word}</span></p><table>{rows}</table>"
