"""Counts of a few replies: how much of an agent's entropy they keep, and whether `agentmark power` foresees what that
means in steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from agentmark.core.statistics import Interval, wilson_interval
from agentmark.core.theory import capacity, entropy
from agentmark.embed.embedder import Embedder
from agentmark.identity.registry import Identity, Registry
from agentmark.power import LIKE, Setup, Source, counts_of, dirichlet_source, steps_needed
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.races import race_bits
from agentmark_lab.kit.stats import mean_interval

NAME = "counts"
TITLE = "Counts of a few replies: what proposals can carry"

COUNTS = (2, 3, 4, 8)
SIX = "six options, Dirichlet 0.3"
AGENTS = {
    SIX: (6, 0.3),
    "three options, Dirichlet 1": (3, 1.0),
    "ToolBench-like": LIKE["toolbench"],
    "ALFWorld-like": LIKE["alfworld"],
}
LISTS, QUICK_LISTS = 20_000, 500
# Worked out beforehand, for six options: what the counts of 2, 3, 4 and 8 replies keep of 1.46 bits.
EXPECTED, EXPECTED_WHOLE = {2: 0.54, 3: 0.77, 4: 0.91, 8: 1.15}, 1.46
# They were given to two decimals.
ROUNDING = 0.005

TENANTS, PAYLOAD_LEN, SHARE = 100, 32, 0.95
TRIALS, QUICK_TRIALS = 200, 72
POWER_COUNTS, QUICK_POWER_COUNTS = (2, 4, 8), (4,)


@dataclass(frozen=True, slots=True)
class Kept:
    """What lists of one kind carry, in bits: means over lists, the entropy with an interval of 95 %. No count of
    replies stands for the agent's own lists."""

    agent: str
    count: int | None
    entropy: float
    interval: Interval
    race: float
    bins: float


@dataclass(frozen=True, slots=True)
class Chunk:
    scheme: str
    count: int
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class Foreseen:
    """How many steps were foreseen, between which limits, and how many runs were named by each of the limits."""

    scheme: str
    count: int
    trials: int
    steps: int
    low: int
    high: int
    named_by_low: int
    named_by_high: int

    @property
    def holds(self) -> bool:
        """Not surely more than the share by the lower limit, nor surely less by the upper one."""
        by_low = wilson_interval(self.named_by_low, self.trials)
        by_high = wilson_interval(self.named_by_high, self.trials)
        return by_low.low <= SHARE <= by_high.high


def run(options: Options, progress: Progress) -> Findings:
    lists = QUICK_LISTS if options.quick else LISTS
    kept = [one for agent in AGENTS for one in kept_bits(agent, lists, options.seed)]
    chunks = [
        Chunk(scheme, count, QUICK_TRIALS if options.quick else TRIALS, options.seed)
        for scheme in ("F", "R")
        for count in (QUICK_POWER_COUNTS if options.quick else POWER_COUNTS)
    ]
    foreseen = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="steps foreseen")
    return Findings([*_claims(kept), *map(_foreseen_claim, foreseen)], [_kept_table(kept, lists), _table(foreseen)])


def kept_bits(agent: str, lists: int, seed: int) -> list[Kept]:
    source = dirichlet_source(*AGENTS[agent])
    found = []
    for count in (None, *COUNTS):
        rng = generator(seed, NAME, agent, count)
        drawn = [source(rng) for _ in range(lists)]
        if count is not None:
            drawn = [counts_of(one, count, rng) for one in drawn]
        entropies = [entropy(one) for one in drawn]
        race, bins = fmean([race_bits(one, rng) for one in drawn]), fmean(map(capacity, drawn))
        found.append(Kept(agent, count, fmean(entropies), mean_interval(entropies), race, bins))
    return found


def run_chunk(chunk: Chunk) -> Foreseen:
    """Foresee, then mark fresh runs with real sessions and have the verifier name them."""
    source = dirichlet_source(*AGENTS[SIX])
    setup = Setup(
        scheme=chunk.scheme,
        proposals=chunk.count,
        payload_lens=(PAYLOAD_LEN,),
        registry_size=TENANTS,
        power=SHARE,
        trials=chunk.trials,
        seed=chunk.seed,
    )
    needed = steps_needed(source, setup).needed[0]
    if needed.steps is None or needed.low is None or needed.high is None:
        raise RuntimeError(f"{chunk}: not within {setup.max_steps} steps")
    rng = generator(chunk.seed, NAME, "runs", chunk.scheme, chunk.count)
    named = [_named(source, chunk, (needed.low, needed.high), rng) for _ in range(chunk.trials)]
    by_low, by_high = (sum([one[i] for one in named]) for i in range(2))
    return Foreseen(chunk.scheme, chunk.count, chunk.trials, needed.steps, needed.low, needed.high, by_low, by_high)


def _named(source: Source, chunk: Chunk, steps: Sequence[int], rng: Random) -> list[bool]:
    """Whether a run had been named by each of these steps."""
    key, payloads = random_key(rng), rng.sample(range(1 << PAYLOAD_LEN), TENANTS)
    registry = Registry(PAYLOAD_LEN, [Identity(f"tenant-{i}", payload) for i, payload in enumerate(payloads)])
    session = Embedder(key, "tenant-7", registry=registry, scheme=chunk.scheme).session(f"{rng.getrandbits(64):x}")
    lists = [counts_of(source(rng), chunk.count, rng) for _ in range(max(steps))]
    records = [session.choose(one.as_weights()).record for one in lists]
    verifier = Verifier(key, registry=registry)
    verdicts = [verifier.verify(records[:count]) for count in steps]
    return [verdict.accepted and verdict.identity == "tenant-7" for verdict in verdicts]


def _claims(kept: Sequence[Kept]) -> list[Claim]:
    of_six = {one.count: one for one in kept if one.agent == SIX}
    worked_out: dict[int | None, float] = {None: EXPECTED_WHOLE}
    worked_out.update(EXPECTED.items())
    # As wide as the mean's own interval, and as the rounding of what was worked out.
    fits = [
        one.interval.low - ROUNDING <= worked_out[count] <= one.interval.high + ROUNDING
        for count, one in of_six.items()
    ]
    shares = ", ".join([f"{of_six[count].entropy:.2f} of n = {count}" for count in COUNTS])
    rising = [[one.entropy for one in kept if one.agent == agent and one.count is not None] for agent in AGENTS]
    return [
        Claim(
            f"Six options, Dirichlet 0.3: the counts of n replies keep {shares}, of {of_six[None].entropy:.2f} bits "
            f"(worked out beforehand: {', '.join([f'{bits:.2f}' for bits in EXPECTED.values()])} of "
            f"{EXPECTED_WHOLE:.2f}).",
            all(fits),
        ),
        Claim(
            "More replies keep more, for every kind of agent.",
            all(some == sorted(some) for some in rising),
        ),
    ]


def _foreseen_claim(one: Foreseen) -> Claim:
    return Claim(
        f"{one.scheme}, n = {one.count}: `agentmark power` foresees {one.steps} steps ({one.low} to {one.high}) until "
        f"{SHARE:.0%} of the runs are named among {TENANTS}; of {one.trials} runs {one.named_by_low} are by step "
        f"{one.low} and {one.named_by_high} by step {one.high}.",
        one.holds,
    )


def _kept_table(kept: Sequence[Kept], lists: int) -> Table:
    whole = {one.agent: one.entropy for one in kept if one.count is None}
    rows: list[list[Cell]] = [
        [
            one.agent,
            "the agent's own" if one.count is None else f"counts of {one.count}",
            f"{one.entropy:.2f} ({one.interval.low:.2f} to {one.interval.high:.2f})",
            f"{one.entropy / whole[one.agent]:.2f}",
            f"{one.race:.2f}",
            f"{one.bins:.2f}",
        ]
        for one in kept
    ]
    note = (
        f"{lists:,} lists of each kind; for counts, so many replies are drawn from each. Entropy: mean with an "
        "interval of 95 %, in bits. R and F: the evidence and the bits that a marked step carries on average: F in "
        "closed form, R measured with a race for each list. The rest of the entropy is not lost: the agent still does "
        "what its model says. It carries no mark."
    )
    return Table("What counts keep", ["agent", "lists", "entropy", "share", "R", "F"], rows, note)


def _table(foreseen: Sequence[Foreseen]) -> Table:
    rows: list[list[Cell]] = []
    for one in foreseen:
        shares = []
        for named in (one.named_by_low, one.named_by_high):
            interval = wilson_interval(named, one.trials)
            shares.append(f"{named / one.trials:.2f} ({interval.low:.2f} to {interval.high:.2f})")
        rows.append([one.scheme, one.count, one.steps, one.low, shares[0], one.high, shares[1]])
    note = (
        f"Six options, Dirichlet 0.3, {TENANTS} tenants, bound 1e-6. Foreseen: by how many steps {SHARE:.0%} of the "
        f"runs are named, with the interval of that forecast. Then {foreseen[0].trials} fresh runs of real sessions "
        "under keys of their own, whose lists are counts, were judged by the verifier after as many steps as either "
        "limit says; shares with Wilson intervals of 95 %."
    )
    columns = ["scheme", "n", "foreseen", "lower limit", "named by it", "upper limit", "named by it"]
    return Table("Steps foreseen, and taken", columns, rows, note)
