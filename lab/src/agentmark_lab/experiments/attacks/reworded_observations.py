"""Observations that a real model has put in other words, and the lists it then states (Table 2).

As in the paper's appendix: at each step of a game the observation is rewritten, all that came before stays as it was
(teacher forcing, here an expert's steps), and the model is asked for its list with the one and with the other. The mark
is put in with the first list and read with the second. Two more lists say what that means: the same words with the
options in another order, and the observation of another game.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from re import findall
from statistics import fmean, stdev

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.theory import entropy
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.situation import Elicitation, Situation
from agentmark.embed.embedder import Embedder
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Episode, Task, of_each_group, open_environment
from agentmark_lab.experiments.attacks.mismatch import TOLD_NOISE, Match, Pair, Tally, identify, match_of
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, InFixedOrder, candidates_of, kept_reply, told
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import share_text, student_interval

NAME = "rewording"
TITLE = "Observations reworded by a small model, and what can still be read (Table 2)"
ASKS_MODELS = True

ENVIRONMENT = "alfworld-ood"
PAYLOAD_LEN = 8
STEPS_A_GAME, QUICK_GAMES, QUICK_STEPS = 4, 2, 1
HISTORY, REPLY_LEN = 2, 400
# Greedy, so that a run repeats; the paper's temperature was 1. A reply of so many tokens was cut off, and is not used.
MAX_TOKENS, TEMPERATURE = 200, 0.0
REWORDED, REORDERED, ELSEWHERE = "reworded", "options in another order", "another game's observation"
CONDITIONS = (REWORDED, REORDERED, ELSEWHERE)
# How many keys each pair of lists is marked with, to see what is the same.
KEYS_A_PAIR = 50
GRIDS = {"R": (20, 40, 80, 160), "F": (160, 640, 2560)}
LOGS, QUICK_LOGS, PARTS = {"R": 40, "F": 8}, {"R": 4, "F": 0}, 4
# The paper's prompt and figures (mean and deviation).
PROMPT = (
    "You are a helpful assistant. Rewrite the following text to convey exactly the same information but using different"
    " words and sentence structures. Do not add or remove any facts. Keep it concise."
)
PAPER_STEPS, PAPER_BEHAVIOR, PAPER_BITS, PAPER_KL = 2326, "0.495 ± 0.169", "0.168 ± 0.196", "3.227 ± 1.802"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One game with one model; `other` is the game whose observations have nothing to do with it."""

    model: ModelSpec
    task: Task
    other: Task
    seed: int
    steps: int
    work: Path

    @property
    def folder(self) -> Path:
        return self.work / NAME / f"{self.model.label.replace('/', '-')}-seed{self.seed}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step at which every list could be used: the one it is marked with, those it is read with, and the words."""

    before: BehaviorDistribution
    after: dict[str, BehaviorDistribution]
    said: str
    reworded: str

    @property
    def names_kept(self) -> float | None:
        """Of the things that the observation names, those that are still named."""
        names = _things(self.said)
        return len(names & _things(self.reworded)) / len(names) if names else None


@dataclass(frozen=True, slots=True)
class Outcome:
    task: Task
    steps: list[Step]
    # A list could not be used, or the model's words: none, or cut off.
    lost: int
    effort: Effort

    def pairs(self, condition: str) -> list[Pair]:
        return [(step.before, step.after[condition]) for step in self.steps]


def run(options: Options, progress: Progress) -> Findings:
    # Of several models the last: the small one does not write what means the same.
    model = models_here(options, ENVIRONMENT)[-1]
    tasks = of_each_group(open_environment(ENVIRONMENT, options.work).tasks(), 1)[
        : QUICK_GAMES if options.quick else None
    ]
    chunks = [
        Chunk(model, task, other, options.seed, QUICK_STEPS if options.quick else STEPS_A_GAME, options.work)
        for task, other in zip(tasks, [*tasks[1:], tasks[0]], strict=True)
    ]
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=model.label)
    if not any(outcome.steps for outcome in outcomes):
        return Findings([Claim(f"{model.label}: said nothing that could be used.", False, aim=True)], [])
    logs = QUICK_LOGS if options.quick else LOGS
    pairs = {condition: [pair for outcome in outcomes for pair in outcome.pairs(condition)] for condition in CONDITIONS}
    read = [
        LogChunk(condition, scheme, pairs[condition], count // PARTS, options.seed, part)
        for condition in CONDITIONS
        for scheme, count in logs.items()
        for part in range(PARTS if count else 0)
    ]
    tallies: dict[tuple[str, str], dict[int, Tally]] = {}
    parts = map_chunks(read_logs, read, workers=options.workers, progress=progress, label="logs")
    for chunk, part in zip(read, parts, strict=True):
        for steps, tally in part.items():
            tallies.setdefault((chunk.condition, chunk.scheme), {}).setdefault(steps, Tally()).add(tally)
    tables = [
        _same_table(model.label, outcomes, options.seed),
        _read_table(model.label, tallies),
        _words_table(outcomes),
    ]
    claims = [_claim(model.label, tallies[REWORDED, scheme], scheme) for scheme in logs if logs[scheme]]
    longest = [grown[max(grown)] for grown in tallies.values()]
    wrong, judged = sum([tally.wrong for tally in longest]), sum([tally.trials for tally in longest])
    claims.append(Claim(f"{wrong} of {judged} logs, whatever was done to them, name another identity.", wrong == 0))
    return Findings(claims, tables, {"model": model.label, "effort": asdict(_effort(outcomes))})


# A game --------------------------------------------------------------------------------------------------------------


def run_chunk(chunk: Chunk) -> Outcome:
    """The expert's steps, and at each of them four lists."""
    # One game at a time: the other is over before this one begins.
    elsewhere = _observations(chunk)
    episode = open_environment(ENVIRONMENT, chunk.work).start(chunk.task, seed=chunk.seed)
    elicitor = InFixedOrder(chunk.model.open_elicitor, f"{chunk.seed} {NAME}")
    effort = Effort()
    lists = [ElicitedLists(elicitor, chunk.folder, number, effort) for number in (0, 1)]
    done: list[tuple[str, str]] = []
    steps: list[Step] = []
    lost = 0
    for number in range(chunk.steps):
        advised = episode.expert()
        if episode.done or advised is None:
            break
        said = episode.observation
        reworded = _reworded(chunk, said, number, effort)
        if reworded is None:
            lost += 1
        else:
            # The options stand in the same order whatever the words are.
            elicitor.order = f"{chunk.task.id} {number}"
            found = {
                condition: _list(lists[0].elicit(_situation(episode, words, done)))
                for condition, words in (("", said), (REWORDED, reworded), (ELSEWHERE, elsewhere[number]))
            }
            elicitor.order += " once more"
            found[REORDERED] = _list(lists[1].elicit(_situation(episode, said, done)))
            usable = {condition: one for condition, one in found.items() if one is not None}
            if len(usable) == len(found):
                steps.append(Step(usable.pop(""), usable, said, reworded))
            else:
                lost += 1
        episode.step(advised)
        done.append((advised, episode.observation))
    return Outcome(chunk.task, steps, lost, effort)


def _observations(chunk: Chunk) -> list[str]:
    """What the expert sees in the other game; its last words again, should it be over before."""
    episode = open_environment(ENVIRONMENT, chunk.work).start(chunk.other, seed=chunk.seed)
    seen = []
    for _ in range(chunk.steps):
        seen.append(episode.observation)
        advised = None if episode.done else episode.expert()
        if advised is not None:
            episode.step(advised)
    return seen


def _situation(episode: Episode, words: str, done: Sequence[tuple[str, str]]) -> Situation:
    """The latest observation in these words, and all before it as it was."""
    latest = [*done[-HISTORY:-1], (done[-1][0], words)] if done else []
    return Situation.of(candidates_of(episode), told(episode.goal, words, latest, reply_len=REPLY_LEN))


def _list(said: Elicitation) -> BehaviorDistribution | None:
    return None if said.weights is None else BehaviorDistribution.quantise(said.weights)


def _reworded(chunk: Chunk, text: str, number: int, effort: Effort) -> str | None:
    """The model's own words for an observation; None if there are none, or no end to them."""
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"Input Text: {text}"}]
    request = ChatRequest(messages=messages, max_tokens=MAX_TOKENS, temperature=TEMPERATURE)
    asked = json.dumps([messages, MAX_TOKENS, TEMPERATURE, chunk.task.id, number], sort_keys=True)
    place = chunk.folder / "reworded" / f"{sha256(asked.encode()).hexdigest()[:32]}.json"
    before = effort.output_tokens
    words = kept_reply(chunk.model.chat(), request, place, effort)
    whole = effort.output_tokens - before < MAX_TOKENS
    return words.strip() or None if words is not None and whole else None


def _things(text: str) -> set[str]:
    """ALFWorld's things have numbers: cabinet 4."""
    return {thing.lower() for thing in findall(r"[A-Za-z]+ \d+", text)}


# What is left of the mark --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogChunk:
    """So many logs whose steps are drawn from these pairs."""

    condition: str
    scheme: str
    pairs: list[Pair]
    logs: int
    seed: int
    part: int


def read_logs(chunk: LogChunk) -> dict[int, Tally]:
    """By length of the log. Whether another is named is asked of the longest."""
    rng = generator(chunk.seed, NAME, chunk.condition, chunk.scheme, "logs", chunk.part)
    tallies = {steps: Tally() for steps in GRIDS[chunk.scheme]}
    longest = max(tallies)
    for _ in range(chunk.logs):
        key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
        embedder = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme=chunk.scheme)
        records = reworded_log(chunk.pairs, embedder, rng, steps=longest)
        verifier = Verifier(key, payload_len=PAYLOAD_LEN)
        identify(records, payload, verifier, TOLD_NOISE[chunk.scheme], tallies)
        verdict = verifier.verify(records)
        tallies[longest].wrong += verdict.accepted and verdict.payload != payload
    return tallies


def reworded_log(pairs: Sequence[Pair], embedder: Embedder, rng: Random, *, steps: int) -> list[StepRecord]:
    """Marked with the first list of pairs that are drawn, and logged with the second."""
    session = embedder.session(rng.randbytes(16).hex())
    log = []
    for before, after in [rng.choice(pairs) for _ in range(steps)]:
        record = session.choose(before.as_weights()).record
        log.append(replace(record, distribution=after))
    return log


def _claim(model: str, grown: dict[int, Tally], scheme: str) -> Claim:
    steps = max(grown)
    named = grown[steps].accepted
    return Claim(
        f"{model}, {scheme}: {named} of {grown[steps].trials} reworded logs of {steps:,} steps name their identity at "
        f"{DEFAULT_THRESHOLD:g} (aim: all).",
        named == grown[steps].trials,
        aim=True,
    )


# The report ----------------------------------------------------------------------------------------------------------


def _same_table(model: str, outcomes: Sequence[Outcome], seed: int) -> Table:
    """Means over games, each one cluster."""
    rows: list[list[Cell]] = [
        ["DeepSeek-Chat (the paper)", REWORDED, PAPER_STEPS, PAPER_BEHAVIOR, "", PAPER_BITS, "", PAPER_KL, "", ""]
    ]
    steps = sum([len(outcome.steps) for outcome in outcomes])
    lists = [step.before for outcome in outcomes for step in outcome.steps]
    spread = fmean([entropy(one) for one in lists])
    for condition in CONDITIONS:
        games = [_match(outcome, condition, seed) for outcome in outcomes if outcome.steps]
        rows.append(
            [
                model,
                condition,
                steps,
                _mean([match.behavior_f for match in games]),
                _mean([match.behavior_r for match in games]),
                _mean([match.bits_f for match in games if match.marked]),
                f"{fmean([match.agree_f for match in games]):.3f} ({fmean([match.chance_f for match in games]):.3f})",
                _mean([match.divergence for match in games], most=None),
                f"{spread:.2f}",
                sum([outcome.lost for outcome in outcomes]),
            ]
        )
    columns = [
        "model", "what was changed", "steps", "behavior match, F", "behavior match, R", "bit strings match, F",
        "payload agrees, F (by chance)", "KL (ours in bits)", "entropy/step", "lost steps",
    ]  # fmt: skip
    note = (
        f"ALFWorld OOD, the expert's first {STEPS_A_GAME} steps of a game of each kind; the model rewrites the latest "
        "observation with the paper's prompt, and is asked for its list (local models: logits of option labels) with "
        "both. Beside that, what the order of the options does by itself, and what an observation does that has "
        "nothing to do with the game: a list that hardly depends on what is seen would pass for a robust one. Means "
        f"over games, 95 % intervals, ± deviation; each pair is marked with {KEYS_A_PAIR} keys. Bit strings: of the "
        "steps in which F places any. Payload agrees: of the steps from which F reads equations, those that the "
        "identity satisfies, and how often any other would. KL: a weight that is gone counts as 2^-32; the paper "
        "states neither base nor smoothing, and its lists are another model's."
    )
    return Table("What is the same after rewording", columns, rows, note)


def _match(outcome: Outcome, condition: str, seed: int) -> Match:
    rng = generator(seed, NAME, outcome.task.id, condition, "match")
    pairs = [pair for pair in outcome.pairs(condition) for _ in range(KEYS_A_PAIR)]
    return match_of(pairs, random_key(rng), rng)


def _mean(values: Sequence[float], *, most: float | None = 1.0) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3f}" if values else ""
    interval = student_interval(values)
    high = interval.high if most is None else min(most, interval.high)
    return f"{fmean(values):.3f} ({max(0.0, interval.low):.3f} to {high:.3f}) ± {stdev(values):.3f}"


def _read_table(model: str, tallies: dict[tuple[str, str], dict[int, Tally]]) -> Table:
    rows: list[list[Cell]] = []
    for (condition, scheme), grown in tallies.items():
        for steps, tally in grown.items():
            counts = (tally.identified, tally.accepted, tally.told)
            rows.append([model, condition, scheme, steps, tally.trials, *[share_text(n, tally.trials) for n in counts]])
    columns = ["model", "what was changed", "scheme", "steps", "logs", "most likely is right", "accepted at 1e-6"]
    note = (
        f"An identity of {PAYLOAD_LEN} bits from logs whose lists are the second ones, steps drawn from the pairs "
        "above with new keys: given these pairs. Accepted: the evidence for the identity pays for every payload. Noise "
        f"told: {TOLD_NOISE['R']} for R, {TOLD_NOISE['F']} for F. Wilson 95 % intervals."
    )
    return Table("Identities from reworded logs", [*columns, "accepted, noise told"], rows, note)


def _words_table(outcomes: Sequence[Outcome]) -> Table:
    """How faithful the words are, and one example."""
    steps = [step for outcome in outcomes for step in outcome.steps]
    kept = [step.names_kept for step in steps if step.names_kept is not None]
    verbatim = sum([step.said.split() == step.reworded.split() for step in steps])
    effort = _effort(outcomes)
    row: list[Cell] = [
        len(steps),
        verbatim,
        f"{fmean(kept):.2f}" if kept else "",
        sum([share == 1 for share in kept]),
        effort.input_tokens + effort.output_tokens,
        f"{effort.seconds / 60:.0f}",
    ]
    columns = ["observations", "verbatim", "names kept", "observations with all names kept", "tokens", "minutes"]
    shown = min(steps, key=lambda step: abs(len(step.said) - 200))
    note = (
        "Names: of the numbered things in an observation. What the words mean was not checked otherwise. An example: "
        f"{_quoted(shown.said)} became {_quoted(shown.reworded)}. Tokens and minutes are those of the first asking, "
        "lists included."
    )
    return Table("How faithful the words are", columns, [row], note)


def _quoted(text: str) -> str:
    return f'"{" ".join(text.split())}"'


def _effort(outcomes: Sequence[Outcome]) -> Effort:
    total = Effort()
    for outcome in outcomes:
        for name, value in asdict(outcome.effort).items():
            setattr(total, name, getattr(total, name) + value)
    return total
