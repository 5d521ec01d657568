"""What is left of a step's evidence when its list was rounded, cut short, lost or elicited again."""

from dataclasses import dataclass
from math import inf, log2
from random import Random

from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.statistics import Interval
from agentmark.verify.intake import read_step
from agentmark_lab.experiments.verification.views import PARTIAL, VIEWS
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import quantile, quantile_interval
from agentmark_lab.kit.worlds import ALFWORLD, TOOLBENCH, Agent

NAME = "weaker_views"
TITLE = "Rounded, truncated, lost and re-elicited lists"

PAYLOAD_LEN = 8
NEEDED_BITS = PAYLOAD_LEN + log2(1e6)
POWER = 0.95
# Agreement is counted on the first steps of every log, so that where a log stops has no say in it.
COUNTED_STEPS = 25

WORLDS = {world.name: world for world in (TOOLBENCH, ALFWORLD)}
LIMITS = {TOOLBENCH.name: 900, ALFWORLD.name: 400}
LOGS = {"F": 200, "R": 100}
QUICK_LOGS = {"F": 4, "R": 1}


def run(options: Options, progress: Progress) -> Findings:
    chunks = []
    for world in WORLDS:
        for view in VIEWS:
            for scheme in ("F", "R"):
                logs = (QUICK_LOGS if options.quick else LOGS)[scheme]
                size = max(1, logs // 4)
                chunks += [
                    Chunk(world, scheme, view, min(size, logs - i), options.seed, i) for i in range(0, logs, size)
                ]
    parts = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="views")
    cells: dict[tuple[str, str, str], ViewCell] = {}
    for chunk, part in zip(chunks, parts, strict=True):
        cell = cells.setdefault((chunk.world, chunk.scheme, chunk.view), ViewCell([], []))
        cell.steps.extend(part.steps)
        cell.e_values.extend(part.e_values)
    return _findings(cells)


@dataclass(frozen=True, slots=True)
class Chunk:
    world: str
    scheme: str
    view: str
    logs: int
    seed: int
    number: int


@dataclass(frozen=True, slots=True)
class ViewCell:
    """Steps until accepted, for each log; and e-values of the right payload at the counted steps (None: unreadable)."""

    steps: list[float]
    e_values: list[float | None]

    @property
    def agreeing(self) -> float:
        """Steps that are read and do not rule the payload out."""
        return sum([value is not None and value > 0 for value in self.e_values]) / len(self.e_values)

    @property
    def bits_per_step(self) -> float:
        """How fast evidence grows, at the rate of the mixture that suits best."""
        return max([self._growth(rate) for rate in NOISE_RATES])

    def _growth(self, rate: float) -> float:
        mixed = [(1 - rate) * value + rate for value in self.e_values if value is not None]
        return sum([log2(value) if value > 0 else -inf for value in mixed]) / len(self.e_values)


def run_chunk(chunk: Chunk) -> ViewCell:
    cell = ViewCell([], [])
    for i in range(chunk.logs):
        # The same logs under every view; what a view draws comes from a generator of its own.
        rng = generator(chunk.seed, NAME, chunk.world, chunk.scheme, chunk.number + i)
        noise = generator(chunk.seed, NAME, "noise", chunk.world, chunk.scheme, chunk.number + i)
        _follow(chunk, rng, noise, cell)
    return cell


def _follow(chunk: Chunk, rng: Random, noise: Random, cell: ViewCell) -> None:
    """One log, until its identity is accepted or the limit is reached."""
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    agent = Agent(WORLDS[chunk.world], key, payload, PAYLOAD_LEN, chunk.scheme)
    evidence = Evidence()
    accepted = inf
    unreadable = chunk.scheme == "F" and chunk.view in PARTIAL
    for step in range(1, LIMITS[chunk.world] + 1):
        [record] = agent.log(rng, 1)
        reading = read_step(VIEWS[chunk.view](record, noise), key, PAYLOAD_LEN).reading
        e_value = None if reading is None else reading.e_value(payload)
        if e_value is not None:
            evidence.update(e_value)
            if accepted == inf and evidence.bits >= NEEDED_BITS:
                accepted = step
        if step <= COUNTED_STEPS:
            cell.e_values.append(e_value)
        elif accepted < inf or unreadable:
            break
    cell.steps.append(accepted)


# The report ----------------------------------------------------------------------------------------------------------


def _findings(cells: dict[tuple[str, str, str], ViewCell]) -> Findings:
    rows: list[list[Cell]] = []
    data = []
    for (world, scheme, view), cell in cells.items():
        steps, interval = quantile(cell.steps, POWER), quantile_interval(cell.steps, POWER)
        growth = cell.bits_per_step
        rows.append([world, scheme, view, f"{cell.agreeing:.3f}", f"{growth:.3f}", _steps(steps, interval, world)])
        data.append(
            {
                "world": world,
                "scheme": scheme,
                "view": view,
                "logs": len(cell.steps),
                "agreeing": cell.agreeing,
                "bits_per_step": growth,
                "steps": None if steps == inf else steps,
                "low": None if interval.low == inf else interval.low,
                "high": None if interval.high == inf else interval.high,
            }
        )
    claims = []
    for world in WORLDS:
        f, r = cells[world, "F", "rounded to 2 decimals"], cells[world, "R", "rounded to 2 decimals"]
        claims.append(
            Claim(
                f"{world}, weights at two decimals: R's steps still agree with the identity in {r.agreeing:.3f} of "
                f"{len(r.e_values):,}, F's in {f.agreeing:.3f} of {len(f.e_values):,}.",
                r.agreeing >= f.agreeing,
            )
        )
        readable = min([cells[world, "R", view].bits_per_step for view in PARTIAL])
        lost = max([cells[world, "F", view].agreeing for view in PARTIAL])
        claims.append(
            Claim(
                f"{world}, partial lists: R gains at least {readable:.3f} bits a step from every view down to the "
                f"action alone; F reads nothing from any ({lost:.0f} steps).",
                readable > 0 and lost == 0,
            )
        )
        exact = cells[world, "R", "exact"].agreeing
        claims.append(Claim(f"{world}: with exact lists every step of R agrees ({exact:.3f}).", exact == 1))
    columns = [
        "world",
        "scheme",
        "what the verifier has",
        "steps that agree",
        "bits a step",
        "steps for 95 % power, L = 8",
    ]
    note = (
        f"{len(cells[ALFWORLD.name, 'F', 'exact'].steps)} logs (F) and "
        f"{len(cells[ALFWORLD.name, 'R', 'exact'].steps)} (R); agreement and bits on their first {COUNTED_STEPS} "
        "steps. Agrees: readable, and the identity is not ruled out. Bits a step: at the noise rate of the default "
        "mixture that suits best. Steps: until accepted at 1e-6 under the mixture, order-statistic 95 % interval; at "
        f"most {LIMITS[TOOLBENCH.name]} and {LIMITS[ALFWORLD.name]} were tried. Rounded lists are quantised again. "
        "Top weights: the choice is logged also when it is not among them."
    )
    return Findings(claims, [Table("Views of a step", columns, rows, note)], {"cells": data})


def _steps(steps: float, interval: Interval, world: str) -> str:
    if steps == inf:
        return f"over {LIMITS[world]}"
    # Few logs have no order statistic that bounds so high a quantile from above.
    upper = "no upper limit" if interval.high == inf else f"{interval.high:.0f}"
    return f"{steps:.0f} ({interval.low:.0f} to {upper})"
