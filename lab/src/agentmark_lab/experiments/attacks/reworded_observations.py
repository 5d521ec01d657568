"""Observations that a real model has put in other words, and the lists it then states (Table 2).

As in the paper's appendix: at steps of a game the observation is rewritten, all that came before stays as it was
(teacher forcing, here an expert's steps), and the model is asked for its list with the one and with the other. The mark
is put in with the first list and read with the second. Words that lose what the observation names, or are almost the
same as before, are no rewriting, and are not used. Two more lists say what the rest means: the same words with the
options in another order, and the observation of another game.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from random import Random
from re import findall, sub
from statistics import fmean, stdev

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.theory import entropy
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.local import LocalModel
from agentmark.embed.embedder import Embedder
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Task, of_each_group, open_environment
from agentmark_lab.experiments.attacks.mismatch import TOLD_NOISE, Match, Pair, Tally, identify, match_of
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.model_agent import Effort, InFixedOrder, kept_reply
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import share_text, student_interval
from agentmark_lab.kit.wordings import ByElicitor, ByLabels, Moment, Wordings

NAME = "rewording"
TITLE = "Observations reworded by a small model, and what can still be read (Table 2)"
ASKS_MODELS = True
# All games take a small model many hours; with --tasks, the first so many of each kind.
ASKS_TASKS = True

ENVIRONMENT = "alfworld-ood"
PAYLOAD_LEN = 8
# Which steps are reworded was settled before the run: in each game the first so many at which the expert arrives
# somewhere and is told what it sees, with one to six things named. A small model loses things out of longer lists; and
# of a few steps of a pilot with another seed, those at which something was picked up were never reworded without a
# loss. In all 134 games there are 661 such steps: nearly a quarter may be refused.
STEPS_A_GAME, QUICK_GAMES, QUICK_STEPS = 10, 2, 1
SIGHT, FEWEST_THINGS, MOST_THINGS = "you see", 1, 6
PLANNED_STEPS = 500
# At so many steps of a game the two other lists are asked for as well.
CONTROLS_A_GAME = 1
HISTORY, REPLY_LEN = 2, 400
# The likeliest reply first, then so many drawn at the paper's temperature: the first that can be used is.
DRAWN, DRAWN_AT = 8, 1.0
# A reply of so many tokens was cut off.
MAX_TOKENS = 100
# Of the words beside the things named, so many must be others.
LEAST_CHANGED = 0.25
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
# Why words are not used.
LOSES, ADDS, ALIKE, CUT_OFF = "a thing is lost", "a thing is added", "almost the same words", "cut off or nothing said"
FAULTS = (LOSES, ADDS, ALIKE, CUT_OFF)

_THING = r"[A-Za-z]+ \d+"


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


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The words for one observation, None if no try was of use; and what was wrong with each try before."""

    words: str | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    task: Task
    steps: list[Step]
    rewritings: list[Rewriting]
    # Steps at which a list could not be used.
    lost: int
    effort: Effort

    def pairs(self, condition: str) -> list[Pair]:
        return [(step.before, step.after[condition]) for step in self.steps if condition in step.after]


def run(options: Options, progress: Progress) -> Findings:
    # Of several models the last: the small one does not write what means the same.
    model = models_here(options, ENVIRONMENT)[-1]
    count = 1 if options.quick else options.tasks
    tasks = games(open_environment(ENVIRONMENT, options.work).tasks(), count)[: QUICK_GAMES if options.quick else None]
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
        if pairs[condition]
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
    done = sum([len(outcome.steps) for outcome in outcomes])
    claims.append(
        Claim(
            f"{model.label}: {done} steps of {len(outcomes)} games were reworded (aim: {PLANNED_STEPS}).",
            done >= PLANNED_STEPS,
            aim=True,
        )
    )
    return Findings(claims, tables, {"model": model.label, "effort": asdict(_effort(outcomes))})


def games(tasks: Sequence[Task], count: int | None) -> list[Task]:
    """The first of each kind, then the second of each, and so on, so that a part of them is of all kinds; of each kind
    so many, or all."""
    kinds = [[task for task in tasks if task.group == group] for group in dict.fromkeys([task.group for task in tasks])]
    in_turn = [task for round_ in zip_longest(*kinds) for task in round_ if task is not None]
    chosen = set(of_each_group(tasks, count)) if count else set(tasks)
    return [task for task in in_turn if task in chosen]


# A game --------------------------------------------------------------------------------------------------------------


def run_chunk(chunk: Chunk) -> Outcome:
    """The expert's steps, and the lists at those that are reworded."""
    # One game at a time: the other is over before this one begins.
    elsewhere = [said for _, said in moments(chunk, chunk.other)]
    effort = Effort()
    wordings = _wordings(chunk, effort)
    steps: list[Step] = []
    rewritings: list[Rewriting] = []
    lost = 0
    # The options are needed as they were at the step, and the game has gone on by then: so it is played to its end.
    for number, (moment, said) in enumerate(list(moments(chunk, chunk.task))):
        rewriting = reworded(chunk, said, number, effort)
        rewritings.append(rewriting)
        if rewriting.words is None:
            continue
        control = len(steps) < CONTROLS_A_GAME and number < len(elsewhere)
        words = {"": said, REWORDED: rewriting.words, **({ELSEWHERE: elsewhere[number]} if control else {})}
        found = dict(zip(words, wordings.lists(moment, list(words.values())), strict=True))
        if control:
            [found[REORDERED]] = wordings.lists(replace(moment, order=f"{moment.order} once more"), [said])
        usable = {condition: one for condition, one in found.items() if one is not None}
        if len(usable) == len(found):
            steps.append(Step(usable.pop(""), usable, said, rewriting.words))
        else:
            lost += 1
    return Outcome(chunk.task, steps, rewritings, lost, effort)


def moments(chunk: Chunk, task: Task) -> Iterator[tuple[Moment, str]]:
    """The first steps of the expert's way that are reworded, each with what is seen there."""
    episode = open_environment(ENVIRONMENT, chunk.work).start(task, seed=chunk.seed)
    done: list[tuple[str, str]] = []
    found = 0
    while found < chunk.steps:
        advised = None if episode.done else episode.expert()
        if advised is None:
            return
        seen = episode.observation
        if done and SIGHT in seen and FEWEST_THINGS <= len(_things(seen)) <= MOST_THINGS:
            yield (
                Moment(
                    goal=episode.goal,
                    steps=tuple([(act, what[:REPLY_LEN]) for act, what in done[-HISTORY - 1 : -1]]),
                    last=done[-1][0],
                    options=tuple(episode.behaviors),
                    # The options stand in the same order whatever the words are.
                    order=f"{chunk.seed} {NAME} {task.id} {found}",
                ),
                seen,
            )
            found += 1
        episode.step(advised)
        done.append((advised, episode.observation))


def _wordings(chunk: Chunk, effort: Effort) -> Wordings:
    if chunk.model.base_url:
        elicitor = InFixedOrder(chunk.model.open_elicitor, f"{chunk.seed} {NAME}")
        return ByElicitor(elicitor, chunk.folder / "lists", effort, reply_len=REPLY_LEN)
    return ByLabels(_opened(chunk.model.name), chunk.folder / "lists", effort)


@cache
def _opened(gguf: str) -> LocalModel:
    """Once for each process. What it says is kept, so that it may say it in the fastest way."""
    return LocalModel(gguf, reuse=True)


def reworded(chunk: Chunk, text: str, number: int, effort: Effort) -> Rewriting:
    """The model's own words for an observation: the first try that keeps what is named, and no more, and is not almost
    the same."""
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"Input Text: {text}"}]
    chat = chunk.model.chat() if chunk.model.base_url else _opened(chunk.model.name)
    faults: list[str] = []
    for attempt in range(1 + DRAWN):
        # A seed of its own for each try of each step: what is drawn does not depend on what was drawn before.
        drawn = generator(chunk.seed, NAME, chunk.task.id, number, attempt).getrandbits(31) if attempt else None
        request = ChatRequest(
            messages=messages, max_tokens=MAX_TOKENS, temperature=DRAWN_AT if attempt else 0.0, seed=drawn
        )
        asked = json.dumps([messages, MAX_TOKENS, request.temperature, drawn], sort_keys=True)
        place = chunk.folder / "reworded" / f"{sha256(asked.encode()).hexdigest()[:32]}.json"
        before = effort.output_tokens
        words = kept_reply(chat, request, place, effort)
        whole = words is not None and effort.output_tokens - before < MAX_TOKENS
        fault = fault_of(text, words.strip()) if words is not None and whole else CUT_OFF
        if fault is None and words is not None:
            return Rewriting(words.strip(), tuple(faults))
        faults.append(str(fault))
    return Rewriting(None, tuple(faults))


def fault_of(said: str, words: str) -> str | None:
    """Why these words are not used in the place of what was said; None if they are."""
    if not words:
        return CUT_OFF
    named, names = _things(said), _things(_named_alike(said, words))
    if named - names:
        return LOSES
    if names - named:
        return ADDS
    return ALIKE if changed(said, words) < LEAST_CHANGED else None


def changed(said: str, words: str) -> float:
    """The share of words that are others, beside the things that are named and wherever they stand."""
    one, other = _words(said), _words(_named_alike(said, words))
    return 1 - (one & other).total() / max(one.total(), other.total(), 1)


def _things(text: str) -> set[str]:
    """ALFWorld's things have numbers: cabinet 4."""
    return {thing.lower() for thing in findall(_THING, text)}


def _named_alike(said: str, words: str) -> str:
    """ALFWorld writes desklamp 1, where others write desk lamp 1: both name it."""
    for thing in _things(said):
        name, _, number = thing.partition(" ")
        words = sub(rf"(?i)\b{' ?'.join(name)} {number}\b", thing, words)
    return words


def _words(text: str) -> Counter[str]:
    return Counter(findall(r"[a-z0-9']+", sub(_THING, " ", text).lower()))


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
        ["DeepSeek-Chat (the paper)", REWORDED, PAPER_STEPS, PAPER_BEHAVIOR, "", PAPER_BITS, "", PAPER_KL, ""]
    ]
    for condition in CONDITIONS:
        asked = [outcome for outcome in outcomes if outcome.pairs(condition)]
        matched = [_match(outcome, condition, seed) for outcome in asked]
        if not matched:
            continue
        lists = [before for outcome in asked for before, _ in outcome.pairs(condition)]
        rows.append(
            [
                model,
                condition,
                len(lists),
                _mean([match.behavior_f for match in matched]),
                _mean([match.behavior_r for match in matched]),
                _mean([match.bits_f for match in matched if match.marked]),
                f"{fmean([one.agree_f for one in matched]):.3f} ({fmean([one.chance_f for one in matched]):.3f})",
                _mean([match.divergence for match in matched], most=None),
                f"{fmean([entropy(one) for one in lists]):.2f}",
            ]
        )
    columns = [
        "model", "what was changed", "steps", "behavior match, F", "behavior match, R", "bit strings match, F",
        "payload agrees, F (by chance)", "KL (ours in bits)", "entropy/step",
    ]  # fmt: skip
    lost = sum([outcome.lost for outcome in outcomes])
    note = (
        f"ALFWorld OOD: of {len(outcomes)} games, each kind in turn, the first {STEPS_A_GAME} steps of the expert's "
        f"way at which it arrives and sees {FEWEST_THINGS} to {MOST_THINGS} things (settled beforehand). The model "
        "rewrites the latest observation with the paper's prompt, and is asked for its list with both; a local one by "
        "logits of option labels, with what it sees now at the end of the prompt. Beside that, at "
        f"{CONTROLS_A_GAME} step of each game, what the order of the options does by itself, and what an observation "
        "does that has nothing to do with the game: a list that hardly depends on what is seen would pass for a robust "
        f"one. Means over games, 95 % intervals, ± deviation; each pair is marked with {KEYS_A_PAIR} keys. Bit "
        "strings: of the steps in which F places any. Payload agrees: of the steps from which F reads equations, those "
        "that the identity satisfies, and how often any other would. KL: a weight that is gone counts as 2^-32; the "
        f"paper states neither base nor smoothing, and its lists are another model's. At {lost} steps a list could not "
        "be used."
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
    """How many tries it took, what was wrong with the others, and two examples."""
    rewritings = [one for outcome in outcomes for one in outcome.rewritings]
    used = [one for one in rewritings if one.words is not None]
    faults = Counter([fault for one in rewritings for fault in one.faults])
    steps = [step for outcome in outcomes for step in outcome.steps]
    shares = sorted([changed(step.said, step.reworded) for step in steps])
    effort = _effort(outcomes)
    row: list[Cell] = [
        len(rewritings),
        sum([not one.faults for one in used]),
        sum([bool(one.faults) for one in used]),
        len(rewritings) - len(used),
        len(used) + faults.total(),
        *[faults[fault] for fault in FAULTS],
        f"{fmean(shares):.2f} ({shares[0]:.2f} to {shares[-1]:.2f})",
        effort.input_tokens + effort.output_tokens,
        f"{effort.seconds / 60:.0f}",
    ]
    columns = [
        "observations",
        "greedy words used",
        "drawn words used",
        "none of use",
        "tries",
        *[f"refused: {fault}" for fault in FAULTS],
        "share of other words, mean (range)",
        "tokens",
        "minutes",
    ]
    # The middle one in length, and the one that changed most.
    examples = [
        sorted(steps, key=lambda step: len(step.said))[len(steps) // 2],
        max(steps, key=lambda step: changed(step.said, step.reworded)),
    ]
    shown = "; ".join([f"{_quoted(step.said)} became {_quoted(step.reworded)}" for step in examples])
    note = (
        "Words are used if they name the same numbered things as the observation, no more and no fewer (desk lamp 1 is "
        "desklamp 1), and if of the "
        f"other words at least {100 * LEAST_CHANGED:.0f} % are others: the likeliest reply, else the first of {DRAWN} "
        f"drawn at temperature {DRAWN_AT:g}. What the words mean was not checked otherwise. In the middle by length, "
        f"and most changed: {shown}. Tokens and minutes are those of the first asking, lists included."
    )
    return Table("How the words were made", columns, [row], note)


def _quoted(text: str) -> str:
    return f'"{" ".join(text.split())}"'


def _effort(outcomes: Sequence[Outcome]) -> Effort:
    total = Effort()
    for outcome in outcomes:
        for name, value in asdict(outcome.effort).items():
            setattr(total, name, getattr(total, name) + value)
    return total
