"""Observations that a real model has put in other words, and the lists it then states (Table 2).

As in the paper's appendix: at each step of a game the observation is rewritten, all that came before stays as it was
(teacher forcing, here an expert's steps), and the model is asked for its list with the one and with the other. The mark
is put in with the first list and read with the second.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from re import findall
from statistics import fmean, stdev
from time import perf_counter

from agentmark.core.distribution import BehaviorDistribution
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.situation import Candidate, Elicitation, Situation
from agentmark.embed import Embedder
from agentmark.lab.data import work_folder
from agentmark.lab.envs.base import Task, open_environment
from agentmark.lab.experiment import Cell, Claim, Findings, Progress, Table
from agentmark.lab.models import ModelSpec, models_here
from agentmark.lab.parallel import map_chunks
from agentmark.lab.rewriting import PAPER_BEHAVIOR_MATCH, PAPER_BIT_MATCH, TOLD_NOISE, Pair, Tally, identify, match_of
from agentmark.lab.samples import generator, random_key
from agentmark.lab.sources import ElicitedLists, candidates_of, told
from agentmark.lab.stats import share_text, student_interval
from agentmark.record import StepRecord
from agentmark.verify import Verifier

NAME = "rewording"
TITLE = "Observations reworded by a real model, and what can still be read (Table 2)"
ASKS_MODELS = True

ENVIRONMENT = "alfworld-ood"
PAYLOAD_LEN = 8
GAMES_A_GROUP, STEPS_A_GAME = 2, 10
QUICK_GAMES, QUICK_STEPS = 2, 1
HISTORY, REPLY_LEN = 2, 400
# The paper's temperature. What is written is kept, and read again.
MAX_REWORDED_TOKENS, TEMPERATURE = 200, 1.0
# How many keys each pair of lists is marked with, to see what is the same.
KEYS_A_PAIR = 50
GRIDS = {"R": (20, 40, 80, 160), "F": (160, 640, 2560)}
LOGS = {"R": 100, "F": 20}
QUICK_LOGS = {"R": 4, "F": 0}
# The paper's prompt and figures (mean and deviation over tasks).
PROMPT = (
    "You are a helpful assistant. Rewrite the following text to convey exactly the same information but using different"
    " words and sentence structures. Do not add or remove any facts. Keep it concise."
)
PAPER_KL = "3.227 ± 1.802"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One game with one model."""

    model: ModelSpec
    task: Task
    seed: int
    steps: int

    @property
    def folder(self) -> Path:
        return work_folder() / NAME / f"{self.model.label.replace('/', '-')}-seed{self.seed}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that could be read: both lists, and what became of the observation. Names are those of things in it."""

    pair: Pair
    said: str
    reworded: str

    @property
    def names_kept(self) -> float | None:
        names = _things(self.said)
        return len(names & _things(self.reworded)) / len(names) if names else None


@dataclass(frozen=True, slots=True)
class Outcome:
    task: Task
    steps: list[Step]
    # One of the lists could not be used, or the model wrote nothing.
    lost: int
    tokens: int
    seconds: float


def run(*, quick: bool, seed: int, workers: int, progress: Progress) -> Findings:
    models = models_here(ENVIRONMENT)[: 1 if quick else None]
    tasks = _games(1 if quick else GAMES_A_GROUP)[: QUICK_GAMES if quick else None]
    same: list[list[Cell]] = [
        [
            "DeepSeek-Chat (the paper)",
            2326,
            f"{PAPER_BEHAVIOR_MATCH}",
            "",
            f"{PAPER_BIT_MATCH}",
            "",
            PAPER_KL,
            "",
            "",
            "",
        ]
    ]
    read: list[list[Cell]] = []
    claims: list[Claim] = []
    data: dict[str, object] = {}
    for model in models:
        chunks = [Chunk(model, task, seed, QUICK_STEPS if quick else STEPS_A_GAME) for task in tasks]
        outcomes = map_chunks(run_chunk, chunks, workers=workers, progress=progress, label=model.label)
        pairs = [step.pair for outcome in outcomes for step in outcome.steps]
        if not pairs:
            claims.append(Claim(f"{model.label}: said nothing that could be used.", False, aim=True))
            continue
        same.append(_same_row(model.label, outcomes, seed))
        progress(f"{model.label}: reading logs of {len(pairs)} pairs of lists")
        tallies = {
            scheme: _read_logs(pairs, scheme, logs, seed)
            for scheme, logs in (QUICK_LOGS if quick else LOGS).items()
            if logs
        }
        read += [
            [model.label, scheme, steps, tally.trials, *[share_text(count, tally.trials) for count in _counts(tally)]]
            for scheme, grown in tallies.items()
            for steps, tally in grown.items()
        ]
        claims += [_claim(model.label, scheme, grown) for scheme, grown in tallies.items()]
        data[model.label] = [
            {"task": outcome.task.id, "said": [[step.said, step.reworded] for step in outcome.steps[:1]]}
            for outcome in outcomes
        ]
    return Findings(claims, [_same_table(same), _read_table(read)], data)


def _games(a_group: int) -> list[Task]:
    groups: dict[str, list[Task]] = {}
    for task in open_environment(ENVIRONMENT).tasks():
        groups.setdefault(task.group, []).append(task)
    return [task for members in groups.values() for task in members[:a_group]]


# A game --------------------------------------------------------------------------------------------------------------


def run_chunk(chunk: Chunk) -> Outcome:
    """The expert's steps. Where it is at a loss, the game is left."""
    episode = open_environment(ENVIRONMENT).start(chunk.task, seed=chunk.seed)
    done: list[tuple[str, str]] = []
    steps: list[Step] = []
    lost, tokens, seconds = 0, 0, 0.0
    for number in range(chunk.steps):
        advised = episode.expert()
        if episode.done or advised is None:
            break
        said = episode.observation
        reworded, written, spent = _reworded(chunk, said)
        tokens, seconds = tokens + written, seconds + spent
        lists = []
        for text in (said, reworded):
            # The options stand in the same order both times: what differs is the observation.
            elicitor = chunk.model.open_elicitor(generator(chunk.seed, NAME, chunk.task.id, number))
            asked = ElicitedLists(elicitor, chunk.folder)
            lists.append(asked.elicit(_situation(episode.goal, text, done, candidates_of(episode))))
            tokens += asked.effort.input_tokens + asked.effort.output_tokens
            seconds += asked.effort.seconds
        before, after = [_list(one) for one in lists]
        if before is None or after is None or not reworded:
            lost += 1
        else:
            steps.append(Step((before, after), said, reworded))
        episode.step(advised)
        done.append((advised, episode.observation))
    return Outcome(chunk.task, steps, lost, tokens, seconds)


def _situation(goal: str, seen: str, done: Sequence[tuple[str, str]], candidates: Sequence[Candidate]) -> Situation:
    """The latest observation as `seen` has it, and all before it as it was."""
    latest = [*done[-HISTORY:-1], (done[-1][0], seen)] if done else []
    return Situation.of(candidates, told(goal, seen, latest, reply_len=REPLY_LEN))


def _list(said: Elicitation) -> BehaviorDistribution | None:
    return None if said.weights is None else BehaviorDistribution.quantise(said.weights)


def _reworded(chunk: Chunk, text: str) -> tuple[str, int, float]:
    """The model's own words, what they took in tokens and seconds; kept by what was asked."""
    digest = sha256(text.encode()).hexdigest()[:32]
    place = chunk.folder / "reworded" / f"{digest}.json"
    if not place.exists():
        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": f"Input Text: {text}"}]
        request = ChatRequest(messages=messages, max_tokens=MAX_REWORDED_TOKENS, temperature=TEMPERATURE)
        start = perf_counter()
        reply = chunk.model.chat().complete(request)
        tokens = (reply.input_tokens or 0) + (reply.output_tokens or 0)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps([reply.text.strip(), tokens, perf_counter() - start]), encoding="utf-8")
    written, tokens, seconds = json.loads(place.read_text(encoding="utf-8"))
    return written, tokens, seconds


def _things(text: str) -> set[str]:
    """ALFWorld's things have numbers: cabinet 4."""
    return {thing.lower() for thing in findall(r"[A-Za-z]+ \d+", text)}


# What is left of the mark --------------------------------------------------------------------------------------------


def _same_row(model: str, outcomes: Sequence[Outcome], seed: int) -> list[Cell]:
    """Means over games, each one cluster."""
    by_game = []
    for outcome in outcomes:
        rng = generator(seed, NAME, model, outcome.task.id, "match")
        pairs = [step.pair for step in outcome.steps for _ in range(KEYS_A_PAIR)]
        if pairs:
            by_game.append(match_of(pairs, random_key(rng), rng))
    kept = [step.names_kept for outcome in outcomes for step in outcome.steps]
    known = [share for share in kept if share is not None]
    return [
        model,
        sum([len(outcome.steps) for outcome in outcomes]),
        _mean([match.behavior_f for match in by_game]),
        _mean([match.behavior_r for match in by_game]),
        _mean([match.bits_f for match in by_game]),
        f"{fmean([match.agree_f for match in by_game]):.3f} ({fmean([match.chance_f for match in by_game]):.3f})",
        _mean([match.divergence for match in by_game]),
        f"{fmean(known):.2f}" if known else "",
        sum([outcome.lost for outcome in outcomes]),
        f"{sum([outcome.seconds for outcome in outcomes]) / 60:.0f}",
    ]


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3f}"
    interval = student_interval(values)
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f}) ± {stdev(values):.3f}"


def _read_logs(pairs: Sequence[Pair], scheme: str, logs: int, seed: int) -> dict[int, Tally]:
    rng = generator(seed, NAME, scheme, "logs")
    tallies = {steps: Tally() for steps in GRIDS[scheme]}
    for _ in range(logs):
        key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
        embedder = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme=scheme)
        records = reworded_log(pairs, embedder, rng, steps=GRIDS[scheme][-1])
        verifier = Verifier(key, payload_len=PAYLOAD_LEN)
        identify(records, payload, verifier, TOLD_NOISE[scheme], tallies)
        verdict = verifier.verify(records)
        tallies[GRIDS[scheme][-1]].wrong += verdict.accepted and verdict.payload != payload
    return tallies


def reworded_log(pairs: Sequence[Pair], embedder: Embedder, rng: Random, *, steps: int) -> list[StepRecord]:
    """Marked with the first list of pairs that are drawn, and logged with the second."""
    session = embedder.session(rng.randbytes(16).hex())
    log = []
    for before, after in [rng.choice(pairs) for _ in range(steps)]:
        record = session.choose(before.as_weights()).record
        log.append(replace(record, distribution=after))
    return log


def _counts(tally: Tally) -> tuple[int, int, int]:
    return tally.identified, tally.accepted, tally.told


def _claim(model: str, scheme: str, grown: dict[int, Tally]) -> Claim:
    wrong = sum([tally.wrong for tally in grown.values()])
    logs = max([tally.trials for tally in grown.values()])
    return Claim(f"{model}, {scheme}: {wrong} of {logs} reworded logs are accepted as another identity.", wrong == 0)


def _same_table(rows: list[list[Cell]]) -> Table:
    columns = [
        "model", "steps", "behavior match, F", "behavior match, R", "bit strings match, F",
        "payload agrees, F (by chance)", "KL, bits", "names kept", "lost steps", "minutes",
    ]  # fmt: skip
    note = (
        f"ALFWorld OOD, the expert's first {STEPS_A_GAME} steps of {GAMES_A_GROUP} games of each kind; the model "
        "rewrites the latest observation with the paper's prompt, and is asked for its list (local models: logits of "
        "option labels) with both. Means over games, 95 % intervals and deviations; each pair is marked with "
        f"{KEYS_A_PAIR} keys. Bit strings: of the steps in which F places any. Payload agrees: of the steps from which "
        "F reads equations, those that the identity satisfies, and how often any other would. Names kept: of the "
        "numbered things in the observation, those that are still named; what a small model writes was not checked for "
        "meaning."
    )
    return Table("What is the same after rewording", columns, rows, note)


def _read_table(rows: list[list[Cell]]) -> Table:
    columns = ["model", "scheme", "steps", "logs", "most likely is right", "accepted at 1e-6", "accepted, noise told"]
    note = (
        f"An identity of {PAYLOAD_LEN} bits from logs whose lists are those after rewording, steps drawn from the "
        f"pairs above with new keys. Noise told: {TOLD_NOISE['R']} for R, {TOLD_NOISE['F']} for F. Wilson 95 % "
        "intervals."
    )
    return Table("Identities from reworded logs", columns, rows, note)
