"""A real language model chooses among real tools (Tables 1, 4, 5 and 6): with the mark and without it.

A local model is small: its success says little, but the same tasks, prompts and checks serve every policy, so that what
the mark changes would show. (Tasks that a local model can do, and thousands of episodes of them, are in
`model_utility`.) Which models run is up to the machine: SmolLM2 where its package is installed, every GGUF file that
AGENTMARK_GGUF names (separated as in PATH), or instead the one that --model names. They play ToolBench, or the
environment that --environment names.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from statistics import fmean

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.statistics import wilson_interval
from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.prompts import transcript
from agentmark.elicit.situation import Message, Situation
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Episode, Task, of_each_group, open_environment
from agentmark_lab.kit.agent_loop import BASELINE, F, Played, R, chooser_for, entropy_of, play
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.equivalence import task_interval
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.files import write_whole
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, ModelAgent, candidates_of, kept_reply, told
from agentmark_lab.kit.model_judge import URL_VARIABLE, open_judge
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT, JudgeChoice, Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import divergence

NAME = "language_model"
TITLE = "A real language model among real tools (Tables 1, 4, 5, 6)"
# Its result depends on which models there are: the command that repeats it names them.
ASKS_MODELS = True
ASKS_JUDGE = True

# It plays in any environment.
ASKS_ENVIRONMENT = True
ASKS_TASKS = True
PAYLOAD_LEN = 8
NO_INDUCTION = "no induction"
POLICIES = (BASELINE, F, R, NO_INDUCTION)
TASKS_A_GROUP, QUICK_TASKS = 2, 1
STABILITY_RUNS = 2
# What a model is shown of its latest steps: a small one on two cores reads some twenty tokens a second. What an API of
# ToolBench replies decides nothing; elsewhere the agent has to read what it is told.
HISTORY, REPLY_LEN, SHORT_REPLY_LEN = 4, 400, 80
# The paper's, for the eye: DeepSeek-Chat and Gemini 2.0 Flash on ToolBench, judged by a language model.
PAPER = (
    "The paper on ToolBench (its own judge, not this check): DeepSeek-Chat 59.9 / 59.7 / 59.6 %, Gemini 2.0 Flash "
    "75.6 / 75.8 %"
)
PAPER_JSD = {"first step": 0.0701, "all steps": 0.1764}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One task with one model: every policy, and the baseline in so many runs."""

    model: ModelSpec
    environment: str
    task: Task
    seed: int
    runs: int
    work: Path
    judge: JudgeChoice | None

    @property
    def reply_len(self) -> int:
        return SHORT_REPLY_LEN if self.environment == DEFAULT_ENVIRONMENT else REPLY_LEN

    @property
    def folder(self) -> Path:
        """Where lists, replies and logs are kept."""
        return self.work / NAME / self.environment / self.model.label.replace("/", "-")


@dataclass(frozen=True, slots=True)
class Row:
    """One episode."""

    policy: str
    success: bool
    steps: int
    lost: int
    bits: float
    entropy: float
    unique: bool
    # By the judge model, where one is given and said something that can be used.
    solved: bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    rows: list[Row]
    # By policy: evidence is pooled over the episodes of one identity, and all are archived.
    records: dict[str, list[StepRecord]]
    efforts: dict[str, Effort]
    # The baseline's lists, run by run.
    lists: list[list[dict[str, float] | None]]


def run(options: Options, progress: Progress) -> Findings:
    environment = options.environment or DEFAULT_ENVIRONMENT
    models = models_here(options, environment)[: 1 if options.quick else None]
    count = QUICK_TASKS if options.quick else options.tasks or TASKS_A_GROUP
    tasks = of_each_group(open_environment(environment, options.work).tasks(), count)[: 2 if options.quick else None]
    tables: list[Table] = []
    claims: list[Claim] = []
    data: dict[str, object] = {}
    stability: list[list[Cell]] = []
    utility: list[list[Cell]] = []
    for model in models:
        name = model.label
        runs = 1 if options.quick else STABILITY_RUNS
        chunks = [Chunk(model, environment, task, options.seed, runs, options.work, options.judge) for task in tasks]
        outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=name)
        _archive(chunks[0].folder, outcomes)
        utility += _utility_rows(name, outcomes)
        claims += _claims(name, outcomes, options.seed)
        if not options.quick:
            stability.append(_stability_row(name, outcomes))
        data[name] = [[asdict(row) for row in outcome.rows] for outcome in outcomes]
    tables.append(_utility_table(utility, environment, len(tasks)))
    if stability:
        tables.append(_stability_table(stability, environment))
    return Findings(claims, tables, data)


def _lists(chunk: Chunk, run: int) -> ElicitedLists:
    elicitor = chunk.model.open_elicitor(generator(run, NAME, "order"))
    return ElicitedLists(elicitor, chunk.folder, run)


def _archive(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """The logs, as an agent would leave them: POLICY.jsonl beside the lists."""
    for policy in (BASELINE, F, R):
        lines = [record.to_json() for outcome in outcomes for record in outcome.records[policy]]
        write_whole(folder / f"{policy}.jsonl", "".join([f"{line}\n" for line in lines]).encode())


def run_chunk(chunk: Chunk) -> Outcome:
    """Keys and payloads are those of the model's one identity, so that its episodes can be pooled."""
    environment = open_environment(chunk.environment, chunk.work)
    identity = generator(chunk.seed, NAME, "identity", chunk.model.label)
    key, payload = random_key(identity), identity.getrandbits(PAYLOAD_LEN)
    rows, records, efforts, runs = [], {}, {}, []
    for policy in POLICIES:
        rng = generator(chunk.seed, NAME, chunk.model.label, chunk.task.id, policy)
        episode = environment.start(chunk.task, seed=chunk.seed)
        lists = _lists(chunk, 0)
        if policy == NO_INDUCTION:
            rows.append(_without_induction(chunk, episode, environment.max_steps, lists.effort))
            efforts[policy] = lists.effort
            continue
        chooser = chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng)
        agent = _agent(chunk, lists)
        played = play(episode, agent, chooser, max_steps=environment.max_steps)
        if policy == BASELINE:
            runs.append(_lists_of(played))
        bits, unique = 0.0, False
        if policy in (F, R):
            clean = Verifier(key, payload_len=PAYLOAD_LEN, noise=0.0)
            bits = sum([reading.evidence_bits for reading in clean.take_in(played.records).readings])
            unique = clean.verify(played.records).candidate == payload
        records[policy] = list(played.records)
        bits_of_lists = sum([entropy_of(record) for record in played.records])
        solved = _judged(chunk, episode.goal, agent.steps)
        rows.append(Row(policy, played.success, played.steps, played.lost, bits, bits_of_lists, unique, solved))
        efforts[policy] = lists.effort
    runs += [_repeated_lists(chunk, number) for number in range(1, chunk.runs)]
    return Outcome(rows, records, efforts, runs)


def _agent(chunk: Chunk, lists: ElicitedLists) -> ModelAgent:
    return ModelAgent(lists, label=chunk.model.label, history=HISTORY, reply_len=chunk.reply_len)


def _repeated_lists(chunk: Chunk, run: int) -> list[dict[str, float] | None]:
    """Run after run, a sampled episode of its own: situations branch apart, as in the paper's Table 5."""
    environment = open_environment(chunk.environment, chunk.work)
    rng = generator(chunk.seed, NAME, chunk.task.id, "stability", run)
    chooser = chooser_for(BASELINE, key=random_key(rng), payload=0, payload_len=PAYLOAD_LEN, rng=rng)
    episode = environment.start(chunk.task, seed=chunk.seed)
    agent = _agent(chunk, _lists(chunk, run))
    return _lists_of(play(episode, agent, chooser, max_steps=environment.max_steps))


def _lists_of(played: Played) -> list[dict[str, float] | None]:
    return [_shares(record.distribution) for record in played.records]


def _shares(distribution: BehaviorDistribution | None) -> dict[str, float] | None:
    if distribution is None:
        return None
    return {name: weight / TOTAL_WEIGHT for name, weight in distribution.as_weights().items()}


def _without_induction(chunk: Chunk, episode: Episode, max_steps: int, effort: Effort) -> Row:
    """A plain ReAct loop: the model writes the name of what it does next. It is greedy, so that a reply that names
    nothing would be given again and again: the steps that are left are lost."""
    steps: list[tuple[str, str]] = []
    while not episode.done and len(steps) < max_steps:
        named = _named(chunk, episode, steps[-HISTORY:], effort)
        if named is None:
            effort.unusable += 1
            break
        episode.step(named)
        steps.append((named, episode.observation))
    lost = 0 if episode.done else max_steps - len(steps)
    solved = _judged(chunk, episode.goal, steps)
    return Row(NO_INDUCTION, episode.success, len(steps) + lost, lost, 0.0, 0.0, False, solved)


def _judged(chunk: Chunk, goal: str, steps: Sequence[tuple[str, str]]) -> bool | None:
    """What the judge model says of an episode, if there is one. It sees neither policy nor model."""
    judge = open_judge(chunk.judge)
    if judge is None:
        return None
    return judge.solved(goal, "\n".join([f"{behavior}: {seen}" for behavior, seen in steps]))


def _named(chunk: Chunk, episode: Episode, steps: Sequence[tuple[str, str]], effort: Effort) -> str | None:
    """The one behavior that the reply names."""
    messages = told(episode.goal, episode.observation, steps, reply_len=chunk.reply_len)
    situation = Situation.of(candidates_of(episode), messages)
    options = "\n".join([f"{one.name}: {one.description}" for one in situation.candidates])
    question = f"Conversation:\n{transcript(situation.messages)}\n\nOptions:\n{options}"
    system = "You are an agent. Reply with the name of the one option that you take next, and nothing else."
    asked: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    said = _reply(chunk, ChatRequest(messages=asked, max_tokens=48, temperature=0.0), effort)
    if said is None:
        return None
    words = said.strip().strip("`\"'.")
    named = [name for name in situation.names if name == words] or [name for name in situation.names if name in words]
    return named[0] if len(named) == 1 else None


def _reply(chunk: Chunk, request: ChatRequest, effort: Effort) -> str | None:
    """What the model writes, kept by what was asked, like the lists."""
    digest = sha256(json.dumps(list(request.messages), sort_keys=True).encode()).hexdigest()[:32]
    return kept_reply(chunk.model.chat(), request, chunk.folder / "replies" / f"{digest}.json", effort)


# The report ----------------------------------------------------------------------------------------------------------


def _of(outcomes: Sequence[Outcome], policy: str) -> list[Row]:
    return [row for outcome in outcomes for row in outcome.rows if row.policy == policy]


def _utility_rows(model: str, outcomes: Sequence[Outcome]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for policy in POLICIES:
        mine = _of(outcomes, policy)
        won = sum([row.success for row in mine])
        steps = sum([row.steps for row in mine]) or 1
        effort = [outcome.efforts[policy] for outcome in outcomes]
        interval = wilson_interval(won, len(mine))
        seconds = sum([one.seconds for one in effort])
        rows.append(
            [
                model,
                policy,
                len(mine),
                f"{100 * won / len(mine):.1f} ({100 * interval.low:.1f} to {100 * interval.high:.1f})",
                _difference(outcomes, policy) if policy != BASELINE else "",
                _judged_share(mine),
                f"{steps / len(mine):.1f}",
                sum([row.lost for row in mine]),
                f"{sum([row.entropy for row in mine]) / steps:.2f}" if policy != NO_INDUCTION else "",
                f"{sum([row.bits for row in mine]) / steps:.2f}" if policy in (F, R) else "",
                f"{sum([row.unique for row in mine])} of {len(mine)}" if policy in (F, R) else "",
                f"{sum([one.input_tokens + one.output_tokens for one in effort]) / steps:.0f}",
                f"{seconds / steps:.1f}",
                f"{seconds / 60:.0f}",
            ]
        )
    return rows


def _judged_share(rows: Sequence[Row]) -> str:
    judged = [row.solved for row in rows if row.solved is not None]
    return f"{100 * fmean(judged):.1f} of {len(judged)}" if judged else ""


def _difference(outcomes: Sequence[Outcome], policy: str) -> str:
    paired = [
        float(mine.success) - float(base.success)
        for mine, base in zip(_of(outcomes, policy), _of(outcomes, BASELINE), strict=True)
    ]
    interval = task_interval(paired)
    return f"{100 * fmean(paired):+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})"


def _claims(model: str, outcomes: Sequence[Outcome], seed: int) -> list[Claim]:
    """The identity is read from the steps of all episodes; and what the model said was usable, or counted."""
    identity = generator(seed, NAME, "identity", model)
    key, payload = random_key(identity), identity.getrandbits(PAYLOAD_LEN)
    claims = []
    for policy in (F, R):
        pooled = [record for outcome in outcomes for record in outcome.records.get(policy, [])]
        verdict = Verifier(key, payload_len=PAYLOAD_LEN).verify(pooled)
        claims.append(
            Claim(
                f"{model}, {policy}: the identity is read from {len(pooled)} decisions of a real model: "
                f"{verdict.evidence_bits:.1f} bits of evidence, bound {verdict.bound_text}.",
                verdict.accepted and verdict.payload == payload,
                aim=True,
            )
        )
        wrong = verdict.accepted and verdict.payload != payload
        claims.append(Claim(f"{model}, {policy}: nobody else is named.", not wrong))
    return claims


def _utility_table(rows: list[list[Cell]], environment: str, tasks: int) -> Table:
    columns = [
        "model", "policy", "episodes", "success, %", "against the baseline, points",
        "solved by the judge, %", "steps", "lost steps",
        "entropy/step", "bits/step", "identity from one episode", "tokens/step", "seconds/step", "minutes in all",
    ]  # fmt: skip
    played = f"{environment}, {tasks} tasks; success is the environment's own."
    if environment == DEFAULT_ENVIRONMENT:
        played = (
            f"ToolBench, {tasks} real queries with their real candidate tools, recorded or simulated replies; success "
            "is the offline proxy (every gold API called, then Finish, within ten decisions), not a pass rate. "
            f"{PAPER} (baseline / AgentMark-F / no induction)."
        )
    note = (
        f"{played} Lists of local models are read off their logits for option labels in shuffled order. Lost steps: "
        "the model said nothing that could be used; never replaced. Lists and replies are kept, and count with the "
        "time of their first asking. No induction: the model writes the name itself, greedily, as the paper's does; "
        "sampled, and beside proposals, in `agentmark lab run model_utility` (Table 4). Wilson and "
        f"paired 95 % intervals. The judge is a model at {URL_VARIABLE}, asked where one is given."
    )
    return Table("With the mark and without it", columns, rows, note)


def _stability_row(model: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    first, later = [], []
    for outcome in outcomes:
        for one, two in combinations(outcome.lists, 2):
            pairs = [(a, b) for a, b in zip(one, two, strict=False) if a is not None and b is not None]
            values = [divergence(a, b) for a, b in pairs]
            first += values[:1]
            later += values
    return [model, *[f"{fmean(values):.4f} ({len(values)} pairs)" if values else "" for values in (first, later)]]


def _stability_table(rows: list[list[Cell]], environment: str) -> Table:
    paper: list[Cell] = ["DeepSeek-Chat (the paper)", *[f"{value}" for value in PAPER_JSD.values()]]
    if environment == DEFAULT_ENVIRONMENT:
        rows = [*rows, paper]
    note = (
        f"Jensen-Shannon divergence in bits between the lists of {STABILITY_RUNS} runs of the same tasks, step by "
        "step. At the first step the situation is the same and only the order of the options differs; later the runs "
        "have branched apart. Lists by names, of many pairs of episodes: `agentmark lab run model_utility`."
    )
    return Table("Stability of the lists across runs (Table 5)", ["model", "first step", "all steps"], rows, note)
