"""The demonstration with a model, as one self-contained HTML page."""

from html import escape

from agentmark.demo.assistant import Ending, Episode
from agentmark.demo.model_run import ModelDemoResult
from agentmark.demo.model_text import task_lines
from agentmark.demo.page import (
    NAME_LEN,
    STYLE,
    closing,
    damage_sentence,
    decision_table,
    fact,
    growth_chart,
    recovery_facts,
    verdict_panel,
)
from agentmark.demo.run import TENANT
from agentmark.report.html import isolated, opening

SHOWN_EPISODES, SHOWN_DECISIONS = 6, 6
SAID_LEN = 600


def render_model_page(result: ModelDemoResult, program: str) -> str:
    """`program` is what the user types to start us."""
    tokens = sum(episode.input_tokens + episode.output_tokens for episode in result.episodes)
    parts = [
        opening("AgentMark demo: a language model", STYLE),
        "<h1>Which agent was this? What is left of its log still tells</h1>",
        f"<p>{isolated(result.model, NAME_LEN)} worked in an office for the tenant <b>{escape(TENANT)}</b>, with real "
        "tools. At each step it was asked how likely each tool would be next. AgentMark drew from that list with a "
        "secret key: every tool kept its probability, and <em>which</em> one came up spells out the tenant. "
        f"{damage_sentence([result.recovery])}</p>",
        f"<div class=facts>{recovery_facts([result.recovery])}{_task_fact(result)}</div>",
        "<h2>Who was it? The verdicts in full</h2>",
        verdict_panel(result.recovery),
        "<h2>How the evidence grows</h2>",
        f"<div class=panel>{growth_chart([result.recovery])}</div>",
        "<h2>What it cost</h2>",
        f"<p>{tokens:,} tokens and {result.seconds:.0f} seconds ({result.cpu_s:.0f} of CPU in this process); "
        f"{result.mean_entropy:.2f} bits of entropy a decision; {result.unmarked} decisions unmarked. Lists came from "
        f"{isolated(', '.join(result.elicitors))}{_missing(result)}.</p>",
        "<h2>What it did</h2>",
        *[f"<p class=ask>{isolated(line)}</p>" for line in task_lines(result)],
        *[_episode(episode) for episode in result.episodes[:SHOWN_EPISODES]],
        "<h2>Some of the decisions that are left</h2>",
        decision_table(result.recovery.damaged[:SHOWN_DECISIONS]),
        *closing(result.next_steps, program),
    ]
    return "\n".join(parts)


def _task_fact(result: ModelDemoResult) -> str:
    done, begun = result.endings[Ending.DONE], len(result.episodes)
    chance = (
        " Its choices are near chance: so small a model shows the plumbing, not the work." if result.near_chance else ""
    )
    return fact("ok" if done else "no", f"{done} of {begun} tasks done", f"{len(result.records)} decisions.{chance}")


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
    return f"{heading}<table class=said>{rows}</table>"
