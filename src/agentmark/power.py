"""How many steps it takes: the evidence of real steps, simulated before anything is deployed (docs/power.md)."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, lgamma, log, log2
from random import Random
from statistics import fmean

from agentmark.core.costs import longest_open_payload
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.payload import check_payload_len
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.schemes import SCHEMES
from agentmark.core.statistics import dirichlet, named
from agentmark.core.symbols import Reading
from agentmark.core.theory import entropy
from agentmark.embed.embedder import Embedder
from agentmark.errors import SettingError
from agentmark.keys.secret import KEY_SIZE
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.intake import read_step
from agentmark.verify.search.reach import OpenSearch
from agentmark.verify.search.walsh import transform_limit

# What is left of P_t in the log: all of it, the weight of the chosen behavior, or the behavior alone.
FULL, CHOSEN, ACTION = "full", "chosen", "action"
VIEWS = (FULL, CHOSEN, ACTION)

# A step's evidence for the true payload does not depend on the payload's length, so that one simulation serves all.
SIMULATED_PAYLOAD_LEN = 8

DEFAULT_PAYLOAD_LENS = (0, 8, 16, 32)
DEFAULT_TRIALS = 200
DEFAULT_MAX_STEPS = 1000
CONFIDENCE = 0.95
FEWEST_PROPOSALS = 2
# The most that can be meant: beyond, a simulation ends nowhere, or fills the memory first.
MAX_TRIALS, MAX_STEPS, MAX_PROPOSALS, MAX_LIST = 1_000_000, 1_000_000, 10_000, 10_000
# Beyond these, draws from a Dirichlet distribution are all equal, or all on one behavior, for a double.
MIN_ALPHA, MAX_ALPHA = 1e-6, 1e6

# Named sources: symmetric Dirichlet lists of the size and peakedness of the paper's environments.
LIKE = {"toolbench": (10, 0.055), "alfworld": (20, 0.10)}

Source = Callable[[Random], BehaviorDistribution]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is simulated. `noise` is the share of foreign steps; `assumed_noise` what the verifier is told of it. With
    `proposals`, each list is the counts of so many replies, drawn from the source's list."""

    scheme: str
    view: str = FULL
    proposals: int | None = None
    payload_lens: Sequence[int] = DEFAULT_PAYLOAD_LENS
    registry_size: int | None = None
    noise: float = 0.0
    assumed_noise: float | None = None
    threshold: float = DEFAULT_THRESHOLD
    power: float = 0.95
    trials: int = DEFAULT_TRIALS
    max_steps: int = DEFAULT_MAX_STEPS
    seed: int = 1

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise SettingError("scheme", f"{self.scheme!r} is none of {', '.join(SCHEMES)}")
        if self.view not in VIEWS:
            raise SettingError("view", f"{self.view!r} is none of {', '.join(VIEWS)}")
        if self.view != FULL and not SCHEMES[self.scheme].reads_partial_lists:
            able = ", ".join([scheme.name for scheme in SCHEMES.values() if scheme.reads_partial_lists])
            raise SettingError("view", f"scheme {self.scheme} needs the whole list; only {able} reads a part of it")
        _check_shares(self)
        if self.proposals is not None and self.proposals < FEWEST_PROPOSALS:
            raise SettingError("proposals", f"{self.proposals} replies are no list; {FEWEST_PROPOSALS} at least")
        for name, count, most in (
            ("trials", self.trials, MAX_TRIALS),
            ("max_steps", self.max_steps, MAX_STEPS),
            ("proposals", self.proposals or FEWEST_PROPOSALS, MAX_PROPOSALS),
        ):
            if not 1 <= count <= most:
                raise SettingError(name, f"{count} is not in 1..{most:,}")
        for payload_len in self.payload_lens:
            check_payload_len(payload_len)
            if self.registry_size is not None and self.registry_size > 1 << payload_len:
                raise SettingError("registry_size", f"{self.registry_size} names do not fit {payload_len} bits")


@dataclass(frozen=True, slots=True)
class StepsNeeded:
    """For one payload length: by how many steps the asked share of runs was identified, with its interval.

    None stands for "not within max_steps". `needs_naming`: the evidence would be there, but the payload could not be
    found in it without a registry or a claim, within the verifier's default work limit; no number of steps is promised.
    """

    payload_len: int
    level_bits: float
    steps: int | None
    low: int | None
    high: int | None
    needs_naming: bool
    crossings: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PowerResult:
    """One scheme's answer. Steps of one trial are those of one run of an agent, or of several pooled.

    `entropy` is the mean of H(P_t), and `agent_entropy` that of the source's lists: with proposals, counts of a few
    replies show only a part of it. `bits_per_step` is the evidence per simulated step as the verifier counts it.
    """

    setup: Setup
    entropy: float
    agent_entropy: float
    bits_per_step: float
    simulated_steps: int
    trials: int
    needed: tuple[StepsNeeded, ...]


def dirichlet_source(size: int, alpha: float) -> Source:
    """Random lists of `size` behaviors, peaked for small alpha."""
    if not 1 <= size <= MAX_LIST:
        raise SettingError("n", f"a list of {size} behaviors cannot be drawn; 1 to {MAX_LIST:,} can")
    if not MIN_ALPHA <= alpha <= MAX_ALPHA:
        raise SettingError("alpha", f"{alpha:g} is not in {MIN_ALPHA:g}..{MAX_ALPHA:g}")

    def draw(rng: Random) -> BehaviorDistribution:
        return BehaviorDistribution.quantise(named(dirichlet(rng, alpha, size)))

    return draw


def sample_source(distributions: Sequence[BehaviorDistribution]) -> Source:
    """Lists drawn with replacement from those given, as an agent's log has them."""
    if not distributions:
        raise SettingError("distributions", "there are none to draw from")
    return lambda rng: rng.choice(distributions)


def counts_of(distribution: BehaviorDistribution, replies: int, rng: Random) -> BehaviorDistribution:
    """The list that proposals make: how often each behavior is among so many independent replies."""
    drawn = Counter([distribution.at(rng.getrandbits(WEIGHT_BITS)) for _ in range(replies)])
    return BehaviorDistribution.quantise(drawn)


def open_payload_len(scheme: str) -> int:
    """The longest payload of this scheme that a verifier finds in a clean log when nobody says what to look for,
    within its default work limit. For R it is typical: it depends on how much the log's best steps say."""
    return max(longest_open_payload(is_linear=SCHEMES[scheme].is_linear), transform_limit())


def level_bits(payload_len: int, *, threshold: float, registry_size: int | None = None) -> float:
    """Evidence at which a verifier accepts: the identities tried, as `Verifier` counts them, and the bound."""
    paid = float(payload_len)
    if registry_size:
        paid = -log2(2.0 ** -(payload_len + 1) + 1 / (2 * registry_size))
    return paid - log2(threshold)


# Told how many runs of how many are done, and of what.
Progress = Callable[[int, int, str], None]


def steps_needed(source: Source, setup: Setup, *, progress: Progress = lambda *_: None) -> PowerResult:
    """Run the trials, and read off by how many steps the share `setup.power` of them had crossed each level."""
    levels = [
        level_bits(payload_len, threshold=setup.threshold, registry_size=setup.registry_size)
        for payload_len in setup.payload_lens
    ]
    tally = _Tally(setup, levels)
    for number in range(setup.trials):
        tally.add(_trial(source, setup, tally, Random(f"{setup.seed} {setup.scheme} {number}")))
        progress(number + 1, setup.trials, f"runs of scheme {setup.scheme}")
        if tally.settled:
            break
    needed = [
        _read_off(setup, payload_len, level, crossings, unfound)
        for payload_len, level, crossings, unfound in zip(
            setup.payload_lens, levels, tally.crossings, tally.unfound, strict=True
        )
    ]
    return PowerResult(
        setup=setup,
        entropy=fmean(tally.entropies),
        agent_entropy=fmean(tally.agent_entropies),
        bits_per_step=tally.evidence_bits / len(tally.entropies),
        simulated_steps=len(tally.entropies),
        trials=tally.trials,
        needed=tuple(needed),
    )


def order_statistic_ranks(trials: int, quantile: float, *, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Ranks of the ordered values (from 1) between which the quantile lies, whatever their distribution.

    The number of values up to the quantile is binomial. Rank 0 means "no lower end", trials + 1 "no upper end".
    """
    tail = (1 - confidence) / 2
    chances = [_binomial(trials, k, quantile) for k in range(trials + 1)]
    low, below = 0, 0.0
    while low < trials and below + chances[low] <= tail:
        below += chances[low]
        low += 1
    high, above = trials + 1, 0.0
    while high > 0 and above + chances[high - 1] <= tail:
        above += chances[high - 1]
        high -= 1
    return low, high


def _binomial(trials: int, successes: int, share: float) -> float:
    ways = lgamma(trials + 1) - lgamma(successes + 1) - lgamma(trials - successes + 1)
    return exp(ways + successes * log(share) + (trials - successes) * log(1 - share))


class _Tally:
    """What the trials have shown so far."""

    def __init__(self, setup: Setup, levels: Sequence[float]) -> None:
        self.levels = levels
        self.crossings: list[list[int]] = [[] for _ in levels]
        # Runs whose evidence was enough, and whose payload no search would have found.
        self.unfound = [0] * len(levels)
        self.entropies: list[float] = []
        self.agent_entropies: list[float] = []
        self.evidence_bits = 0.0
        self.trials = 0
        low, _ = order_statistic_ranks(setup.trials, setup.power)
        # With more failures than this, not even the lower end of the interval is within max_steps.
        self._failures_allowed = setup.trials - max(low, 1)

    def add(self, crossed: Sequence[int | None]) -> None:
        self.trials += 1
        for times, step in zip(self.crossings, crossed, strict=True):
            if step is not None:
                times.append(step)

    @property
    def open_levels(self) -> list[int]:
        """Levels whose answer further trials could still change."""
        return [i for i, times in enumerate(self.crossings) if self.trials - len(times) <= self._failures_allowed]

    @property
    def settled(self) -> bool:
        return not self.open_levels


def _trial(source: Source, setup: Setup, tally: _Tally, rng: Random) -> list[int | None]:
    """One run of an agent: the step at which its evidence first reached each level, or None."""
    rates = NOISE_RATES if setup.assumed_noise is None else (setup.assumed_noise,)
    evidence = Evidence(rates)
    crossed: list[int | None] = [None] * len(tally.levels)
    waiting = set(tally.open_levels)
    searches = [OpenSearch(payload_len, setup.noise) for payload_len in setup.payload_lens]
    for number, (reading, e_value) in enumerate(_readings(source, setup, tally, rng), start=1):
        if reading is not None:
            evidence.update(e_value)
            for i in waiting:
                searches[i].add(reading)
        bits = evidence.bits
        for i in [i for i in waiting if bits >= tally.levels[i] and (setup.registry_size or searches[i].succeeds)]:
            crossed[i] = number
            waiting.remove(i)
        if not waiting:
            break
    for i in waiting:
        tally.unfound[i] += evidence.bits >= tally.levels[i]
    # Evidence below zero is none: how far below says nothing.
    tally.evidence_bits += max(evidence.bits, 0.0)
    return crossed


def _readings(source: Source, setup: Setup, tally: _Tally, rng: Random) -> Iterator[tuple[Reading | None, float]]:
    """Each step as read, with the true payload's e-value; None for a step that the key cannot have made, which is set
    aside."""
    key = SharedKey(rng.randbytes(KEY_SIZE))
    payload = rng.getrandbits(SIMULATED_PAYLOAD_LEN)
    embedder = Embedder(key, payload, payload_len=SIMULATED_PAYLOAD_LEN, scheme=setup.scheme)
    for step_index in range(setup.max_steps):
        distribution = source(rng)
        tally.agent_entropies.append(entropy(distribution))
        if setup.proposals is not None:
            distribution = counts_of(distribution, setup.proposals, rng)
        tally.entropies.append(entropy(distribution))
        context = rng.randbytes(DIGEST_SIZE)
        foreign = rng.random() < setup.noise
        behavior = None if foreign else embedder.choose_in_context(distribution, context)
        if behavior is None:
            behavior = distribution.at(rng.getrandbits(WEIGHT_BITS))
        record = StepRecord(
            scheme=setup.scheme,
            key_id=key.id,
            payload_len=SIMULATED_PAYLOAD_LEN,
            session="simulated",
            step_index=step_index,
            context=context,
            distribution=distribution,
            behavior=behavior,
            marked=True,
        )
        reading = read_step(_as_seen(record, setup.view), key, SIMULATED_PAYLOAD_LEN).reading
        yield reading, 0.0 if reading is None else reading.e_value(payload)


def _as_seen(record: StepRecord, view: str) -> StepRecord:
    """The record with what the log keeps of its list."""
    if view == FULL or record.distribution is None:
        return record
    kept = {record.behavior: record.distribution.weight(record.behavior)} if view == CHOSEN else {}
    return record.with_partial_weights(kept)


def _read_off(setup: Setup, payload_len: int, level: float, crossings: Sequence[int], unfound: int) -> StepsNeeded:
    ordered = sorted(crossings)

    def at(rank: int) -> int | None:
        return ordered[rank - 1] if 0 < rank <= len(ordered) else None

    low, high = order_statistic_ranks(setup.trials, setup.power)
    # A product such as 0.07 * 100 lies a hair above the whole number that is meant.
    steps = at(ceil(setup.power * setup.trials - 1e-9))
    return StepsNeeded(
        payload_len=payload_len,
        level_bits=level,
        steps=steps,
        # Below the first value nothing was seen; one step is the least that anything takes.
        low=at(low) if low else 1,
        high=at(high),
        needs_naming=steps is None and unfound > 0,
        crossings=tuple(ordered),
    )


def _check_shares(setup: Setup) -> None:
    if not 0 < setup.threshold < 1:
        raise SettingError("threshold", f"{setup.threshold} is not between 0 and 1")
    if not 0 < setup.power < 1:
        raise SettingError("power", f"{setup.power} is not between 0 and 1")
    for name, rate in (("noise", setup.noise), ("assumed_noise", setup.assumed_noise)):
        if rate is not None and not 0 <= rate < 1:
            raise SettingError(name, f"{rate} is not in [0, 1)")
    if setup.registry_size is not None and setup.registry_size < 1:
        raise SettingError("registry_size", f"{setup.registry_size} is not a number of identities")
