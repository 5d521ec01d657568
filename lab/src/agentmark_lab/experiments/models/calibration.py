"""Is the list that a model states the one that it acts by? Stated lists against its own free choices."""

from dataclasses import asdict, dataclass
from pathlib import Path

from agentmark.elicit.calibration import BUILT_IN, Calibration, Estimate, calibrate
from agentmark.elicit.local import LocalModel
from agentmark_lab.experiments.models.ways_of_asking import MAX_TOKENS, WAYS, model_files
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks

NAME = "calibration"
TITLE = "Calibration: the list a model states, and what it then does"
# Its result depends on which models there are: the command that repeats it names them.
ASKS_MODELS = True

ASKED = ("logits-names", "logits-labels", "verbalised+schema")
SAMPLES, QUICK_SAMPLES = 12, 3
QUICK_ASKED, QUICK_SITUATIONS = 2, 2


@dataclass(frozen=True, slots=True)
class Chunk:
    file: Path
    ways: tuple[str, ...]
    situations: int
    samples: int
    seed: int


def run(options: Options, progress: Progress) -> Findings:
    situations, samples = (QUICK_SITUATIONS, QUICK_SAMPLES) if options.quick else (len(BUILT_IN), SAMPLES)
    files = model_files(options)[: 1 if options.quick else None]
    chunks = [
        Chunk(file, ASKED[: QUICK_ASKED if options.quick else None], situations, samples, options.seed)
        for file in files
    ]
    results = map_chunks(
        run_chunk, chunks, workers=min(options.workers, len(chunks)), progress=progress, label="models"
    )
    found = [one for result in results for one in result]
    claims = [
        Claim(
            f"{one.model}, {one.elicitor}: no difference between stated and sampled shows: {one.excess.value:.2f} "
            f"({one.excess.low:.2f} to {one.excess.high:.2f}) above the floor, {one.situations} situations.",
            one.excess.low <= 0,
            aim=True,
        )
        for one in found
    ]
    return Findings(claims, [_table(found, situations)], {"calibrations": [asdict(one) for one in found]})


def run_chunk(chunk: Chunk) -> list[Calibration]:
    """One model, on one thread."""
    with LocalModel(chunk.file) as model:
        elicitors = [WAYS[way](model, generator(chunk.seed, NAME, way), MAX_TOKENS) for way in chunk.ways]
        return calibrate(
            elicitors,
            model,
            BUILT_IN[: chunk.situations],
            samples=chunk.samples,
            constrained=True,
            seed=chunk.seed,
        )


def _table(found: list[Calibration], situations: int) -> Table:
    rows: list[list[Cell]] = [
        [
            one.model,
            one.elicitor,
            one.situations,
            _estimate(one.tv),
            f"{one.tv_floor:.2f}",
            _estimate(one.excess),
            _estimate(one.ece),
            f"{one.ece_floor:.2f}",
        ]
        for one in found
    ]
    columns = ["model", "elicitor", "lists", "TV", "its floor", "above the floor", "ECE", "its floor"]
    note = (
        f"{situations} everyday situations of an assistant; {found[0].samples} free choices in each at temperature 1, "
        "options in an order of their own, held to the names by a schema. TV: total variation distance between the "
        "stated list and the frequencies; its floor is what so few samples show when they come from the stated list "
        "itself. A list is stated in one order of the options and choices are made in many, so that a liking for "
        "places counts as a difference. ECE: over ten bins of stated probability. 95 % intervals from resampling the "
        "situations. The mark "
        "preserves the list; this is how good the list is. `agentmark calibrate` does the same for your model."
    )
    return Table("Stated against sampled", columns, rows, note)


def _estimate(one: Estimate) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
