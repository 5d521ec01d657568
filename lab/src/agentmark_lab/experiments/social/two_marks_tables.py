"""Both marks in tables, beside the paper's Table 3."""

from collections.abc import Sequence
from statistics import fmean

from agentmark_lab.experiments.social.answer_writer import MODEL
from agentmark_lab.experiments.social.text_utility import JudgedTexts
from agentmark_lab.experiments.social.two_marks import LAYERS, NEITHER, PAYLOAD_LEN
from agentmark_lab.experiments.social.two_marks_plan import Setting
from agentmark_lab.experiments.social.two_marks_read import ReadConfiguration
from agentmark_lab.kit.agent_loop import F
from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.equivalence import Comparison, clustered, length
from agentmark_lab.kit.experiment import Cell, Table
from agentmark_lab.kit.stats import share_text
from agentmark_lab.kit.utility_tests import Judged
from agentmark_lab.peers.synthid_text import NGRAM_LEN, TOP_K

# The detector of the toolkit that the paper used, as its configuration stands: the mean g-value, above this.
TOOLKIT_THRESHOLD = 0.52
PAPER_DETECTION = "96.64 ± 0.06 %"
PROXY = (
    "Success is an offline proxy, not a pass rate: every gold API was called, and then Finish, within ten decisions. "
    "It does not read the answer, so a mark in the answers can move it by chance only; what such a mark can spoil is "
    "tested on the texts."
)
SOURCE = "P_t is a softened expert, not a language model: 1 - epsilon on what it would do, the rest evenly on all else."


def detection_table(what: Setting, read: Sequence[ReadConfiguration]) -> Table:
    level = what.texts.level
    rows: list[list[Cell]] = []
    for one in read:
        count = len(one.readings)
        found, toolkit = one.detected(level), sum([mean > TOOLKIT_THRESHOLD for mean in one.means])
        rows.append(
            [
                one.name,
                "yes" if one.carries_text_mark else "no",
                count,
                f"{fmean([reading.tokens for reading in one.readings]):.0f}",
                _mean(one.means),
                f"{min(one.means):.3f} to {max(one.means):.3f}",
                f"{found} of {count}: {share_text(found, count, digits=3)}",
                f"{max([reading.p_value for reading in one.readings]):.3f}",
                f"{toolkit} of {count}: {share_text(toolkit, count, digits=3)}",
                f"{fmean(one.wrong):.4f}",
                f"{100 * fmean([mean > TOOLKIT_THRESHOLD for mean in one.wrong]):.2f} %",
            ]
        )
    columns = [
        "configuration",
        "carries SynthID-Text",
        "texts",
        "tokens/text",
        "mean g-value",
        "range over texts",
        f"detected at {level:g}",
        "largest p",
        f"mean above {TOOLKIT_THRESHOLD}",
        "wrong keys: mean",
        f"wrong keys above {TOOLKIT_THRESHOLD}",
    ]
    note = (
        f"Texts: {MODEL}, through transformers, temperature 1, the {TOP_K} likeliest tokens, {what.texts.tokens} "
        f"tokens without an end. SynthID-Text: n-grams of {NGRAM_LEN}, {LAYERS} keys, 2 leaves (the tournament that "
        "preserves the distribution, as transformers has it) and 4 (the paper's appendix); repeated contexts and the "
        f"first {NGRAM_LEN - 1} tokens are not marked. The detector is not trained: the mean of the g-values of the "
        f"text, tokenised anew, each context once. Detected: at most {level:g} of the right key and "
        f"{what.texts.wrong_keys} wrong ones, all drawn alike, do as well as the right one, which is a level whatever "
        f"the text is. Beside it the threshold of the paper's toolkit, {TOOLKIT_THRESHOLD}, whose level is not stated: "
        "how often wrong keys exceed it stands in the last column. Intervals: 95 %."
    )
    return Table("SynthID-Text in the answers", columns, rows, note)


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3f}"
    interval = Comparison("", len(values), len(values), tuple(values), is_share=False).interval
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f})"


def behavior_table(what: Setting, read: Sequence[ReadConfiguration]) -> Table:
    rows: list[list[Cell]] = []
    for one in read:
        logs, marked = one.logs, one.configuration.policy == F
        rows.append(
            [
                one.name,
                logs.episodes,
                logs.steps,
                "read" if logs.named else ("somebody is named" if logs.accepted else "nobody is named"),
                f"{logs.evidence_bits:.0f}",
                f"{logs.bits / logs.steps:.2f}" if marked else "",
                f"{logs.named_after:g}" if marked else "",
                f"{logs.agreeing:,} of {logs.steps:,}",
                f"{logs.groups_named} of {logs.groups}",
                f"{logs.strangers_naming} of {logs.strangers}",
            ]
        )
    columns = [
        "configuration",
        "episodes",
        "steps",
        f"{PAYLOAD_LEN}-bit identity, 1e-6",
        "evidence bits",
        "bits/step",
        "named after steps",
        "steps that agree",
        "subsets that name it alone",
        "strangers' keys that name anybody",
    ]
    note = (
        f"{SOURCE} Epsilon {what.level.epsilon}. One operator, one key and one identity; each episode is a session. "
        "The logs are those of the episodes whose answers were written, and hold nothing of the answers. Behaviors "
        "without AgentMark are passed off as marked; as many of their steps agree with the identity as chance has it. "
        "A single episode is too short to name anybody at 1e-6; whether the episodes of one of the six subsets are "
        "enough is told as well."
    )
    return Table("AgentMark-F in the behaviors", columns, rows, note)


def success_table(what: Setting, outcomes: Sequence[Outcome], note: str) -> Table:
    rows: list[list[Cell]] = []
    for one in what.configurations:
        mine = [outcome for outcome in outcomes if outcome.policy == one.label]
        steps = fmean([length(outcome) for outcome in mine])
        rows.append([one.name, len(mine), clustered(mine, lambda outcome: outcome.success, scale=100), f"{steps:.2f}"])
    return Table("Success by configuration", ["configuration", "episodes", "success %", "steps"], rows, note)


def utility_note(what: Setting) -> str:
    return f"{PROXY} {SOURCE} {what.plan.sentence}"


def text_note(what: Setting) -> str:
    return (
        "Above expectation: the mean log-probability of the tokens in the model's own distribution (nats a token), "
        "less what it expects there (minus its entropy). Without a mark, and with one that preserves the distribution, "
        "this is zero on average, whatever the text is about. Log-probability, and the share of neighbours that are a "
        "new pair: against the answers of neither in the same tasks. Same: both one-sided tests at 5 % within the "
        "margin (TOST), a task once; p: the smallest of three tests that the mean is zero, times three. A green list "
        "(half of all tokens, likelier by 2 nats) and a tournament of 4 leaves are under the same tests. "
        f"{what.plan.sentence}"
    )


def comparison(
    what: Setting, read: Sequence[ReadConfiguration], judged: Sequence[Judged], texts: Sequence[JudgedTexts]
) -> Table:
    """The paper's table, with what it leaves open: whether utility is preserved."""
    rows: list[list[Cell]] = []
    for one, text in zip(read, texts, strict=True):
        mine = [j for j in judged if j.policy == one.configuration.label]
        found, count = one.detected(what.texts.level), len(one.readings)
        rows.append(
            [
                one.name,
                "yes" if one.configuration.policy == F else "no",
                "-" if one.configuration.policy != F else ("yes" if one.logs.named else "no"),
                f"{100 * found / count:.1f} %" if one.carries_text_mark else "-",
                "" if not mine else ("passes" if all(j.passes for j in mine) else _worst(mine)),
                "" if one.configuration == NEITHER else text.verdict,
            ]
        )
    rows.append(["both, the paper's figures (not ours)", "yes", "100 %", PAPER_DETECTION, "preserved", "not told"])
    note = (
        "The paper: ToolBench, 149 trajectories, Llama-3.2-3B-Instruct, MarkLLM's detector. Its figures stand here for "
        "orientation; the model is another one. Its section 5 calls SynthID-Text distribution-preserving, its appendix "
        "the mode distortionary, with 4 leaves: the row of 4 leaves says what that costs."
    )
    columns = [
        "configuration",
        "multi-bit",
        "behaviors decoded",
        "content detected",
        "tests of success and length",
        "tests of texts",
    ]
    return Table("Beside the paper's Table 3", columns, rows, note)


def _worst(judged: Sequence[Judged]) -> str:
    return "**fails**" if any(one.is_seen for one in judged) else "not shown"
