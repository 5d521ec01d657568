"""ToolBench episodes of one operator's agent, with a mark in its behaviors, in its answers, in both or in neither."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark_lab.envs.base import Episode, Task, open_environment
from agentmark_lab.envs.toolbench import FINISH
from agentmark_lab.experiments.social.answer_writer import Brief
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN, F, chooser_for, entropy_of, play
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.expert_agent import SoftenedExpert
from agentmark_lab.peers.synthid_text import GreenList, SynthId, TextMark

ENVIRONMENT = "toolbench"
PAYLOAD_LEN = 16
LAYERS = 30
# As the paper's red-green watermark of behaviors has it, and the first paper on green lists of tokens.
GREEN_BIAS = 2.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """`policy` chooses the behaviors. `leaves` of SynthID's tournament, if it is on; or a green list in its place."""

    name: str
    policy: str
    leaves: int | None = None
    is_green: bool = False

    @property
    def label(self) -> str:
        """As outcomes name it: all are compared with the one that carries no mark at all."""
        return BASELINE if self == NEITHER else self.name

    @property
    def is_mark(self) -> bool:
        """Whether it is AgentMark or SynthID or both, which are to preserve utility."""
        return self not in (NEITHER, BIASED)


NEITHER = Configuration("neither", BASELINE)
BEHAVIORS = Configuration("AgentMark-F only", F)
TEXTS = Configuration("SynthID-Text only", BASELINE, leaves=2)
BOTH = Configuration("both", F, leaves=2)
# As the paper's appendix has it, in the mode that SynthID's authors call distortionary.
FOUR_LEAVES = Configuration("both, 4 leaves", F, leaves=4)
BIASED = Configuration("red-green and green list", RED_GREEN, is_green=True)
CONFIGURATIONS = (NEITHER, BEHAVIORS, TEXTS, BOTH, FOUR_LEAVES, BIASED)


@dataclass(frozen=True, slots=True)
class Operator:
    """Who runs the agent: the keys of both marks and the identity; and the keys of strangers."""

    key: SharedKey
    payload: int
    text_keys: tuple[int, ...]
    # Of the green list, which is to have nothing in common with SynthID's.
    green_key: int
    strangers: tuple[SharedKey, ...]
    wrong_text_keys: tuple[tuple[int, ...], ...]

    def text_mark(self, configuration: Configuration) -> TextMark | None:
        if configuration.is_green:
            return GreenList(self.green_key, GREEN_BIAS)
        return None if configuration.leaves is None else SynthId(self.text_keys, configuration.leaves)


def operator(seed: int, *, strangers: int, wrong_text_keys: int) -> Operator:
    """All text keys are drawn alike, the right one first."""
    rng = generator(seed, "synthid", "operator")
    key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
    right, *wrong = [tuple([rng.getrandbits(31) for _ in range(LAYERS)]) for _ in range(1 + wrong_text_keys)]
    green_key = generator(seed, "synthid", "green list").getrandbits(31)
    return Operator(key, payload, right, green_key, tuple([random_key(rng) for _ in range(strangers)]), tuple(wrong))


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of some tasks in one configuration. `seed` is the trial's, `run_seed` that of the whole experiment."""

    configuration: Configuration
    tasks: tuple[Task, ...]
    epsilon: float
    seed: int
    run_seed: int
    work: Path
    # Whether logs are kept, and what answers are to be written from.
    is_read: bool


@dataclass(frozen=True, slots=True)
class Log:
    """What is left of an episode: its records, and what its answer is to be written from; none if it never ended."""

    task: str
    group: str
    records: tuple[StepRecord, ...]
    brief: Brief | None


@dataclass(frozen=True, slots=True)
class PlayedTrial:
    outcomes: list[Outcome]
    logs: list[Log]


@dataclass(frozen=True, slots=True)
class _Attentive(SoftenedExpert):
    """Remembers what the tools returned."""

    replies: list[tuple[str, str]] = field(default_factory=list)

    def acted(self, behavior: str, episode: Episode) -> None:
        if behavior != FINISH:
            self.replies.append((behavior, episode.observation))


def play_trial(trial: Trial) -> PlayedTrial:
    """Every configuration has draws of its own, in the same tasks and trials."""
    environment = open_environment(ENVIRONMENT, trial.work)
    who = operator(trial.run_seed, strangers=0, wrong_text_keys=0)
    outcomes, logs = [], []
    for task in trial.tasks:
        episode = environment.start(task, seed=trial.seed)
        rng = generator(trial.seed, ENVIRONMENT, task.id, trial.epsilon, trial.configuration.name)
        policy = trial.configuration.policy
        chooser = chooser_for(policy, key=who.key, payload=who.payload, payload_len=PAYLOAD_LEN, rng=rng)
        agent = _Attentive(trial.epsilon)
        played = play(episode, agent, chooser, max_steps=environment.max_steps)
        outcomes.append(_outcome(trial, task, success=played.success, records=played.records))
        if trial.is_read:
            brief = Brief(episode.goal, tuple(agent.replies)) if episode.done else None
            logs.append(Log(task.id, task.group, played.records, brief))
    return PlayedTrial(outcomes, logs)


def _outcome(trial: Trial, task: Task, *, success: bool, records: Sequence[StepRecord]) -> Outcome:
    """Only of how the agent fared: marks are read from the logs of all episodes together."""
    return Outcome(
        task=task.id,
        group=task.group,
        seed=trial.seed,
        epsilon=trial.epsilon,
        policy=trial.configuration.label,
        success=success,
        steps=len(records),
        lost=0,
        entropy=sum([entropy_of(record) for record in records]),
        candidates=0,
        bits=0.0,
        active_steps=0,
        unique=False,
        accepted=False,
        wrong=False,
        green_hits=0,
        green_expected=0.0,
        choose_us=0.0,
        read=False,
    )
