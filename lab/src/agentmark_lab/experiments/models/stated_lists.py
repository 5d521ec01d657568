"""The lists that a local model states where the agent of `tool_agent` acts, and what a plain reply of that agent costs.
Whatever the model says is kept, for good."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from agentmark.elicit.http_chat import HttpChat
from agentmark.elicit.local import LocalModel
from agentmark.elicit.orders import mean_list as exact_mean
from agentmark.elicit.situation import Elicitor, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark_lab.experiments.models.tool_agent import PATIENCE_S, Reply, ToolSituation, draw
from agentmark_lab.experiments.models.ways_of_asking import WAYS, Outcome, opened, timed, token_limit
from agentmark_lab.kit.authors_runs import RealSituation
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.files import made_once
from agentmark_lab.kit.options import Options, Progress

# A way of asking, made for one situation: the model, what shuffles the options, and the situation.
Asker = Callable[[LocalModel, Random, Situation], Elicitor]


def usual_asker(way: str) -> Asker:
    """One of the ways of `ways_of_asking`. Nothing is cached, so that its cost can be compared."""
    return lambda model, rng, situation: WAYS[way](model, rng, token_limit(situation))


def words_asker(model: LocalModel, rng: Random, situation: Situation) -> Elicitor:
    """Words under a schema, with what is the same in every question read once."""
    endpoint = replace(model.endpoint, extra={"cache_prompt": True}, timeout_s=PATIENCE_S)
    return Verbalised(HttpChat(endpoint), max_tokens=token_limit(situation), rng=rng)


@dataclass(frozen=True, slots=True)
class Asking:
    """How lists are asked for, under which name they are kept, and in which orders of the options. Ways that share an
    order's number are shown the options in the same order."""

    way: str
    asker: Asker
    orders: tuple[int, ...] = (0,)


def lists_of(
    file: Path, situations: Sequence[ToolSituation], asking: Asking, options: Options, progress: Progress
) -> dict[str, list[Outcome]]:
    """The list of each situation in each order, by the situation's name."""
    folder = options.work / "lists" / f"{file.stem}-seed{options.seed}"
    places = {one.name: [_place(folder, asking.way, one, order) for order in asking.orders] for one in situations}
    if not all(place.exists() for some in places.values() for place in some):
        with opened(file) as model:
            for done, one in enumerate(situations, start=1):
                for order, place in zip(asking.orders, places[one.name], strict=True):
                    rng = generator(options.seed, "order", one.name, order)
                    made_once(place, partial(_asked, model, asking, one, rng))
                progress(f"{model.model}: {asking.way} in situation {done} of {len(situations)}")
    return {name: [Outcome(**_read(place)) for place in some] for name, some in places.items()}


def mean_list(lists: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over several orders, as an elicitor that asks in several makes it."""
    return {name: float(share) for name, share in exact_mean(lists).items()}


def plain_replies(
    file: Path, situations: Sequence[ToolSituation], options: Options, progress: Progress
) -> dict[str, Reply]:
    """One reply of the unmarked agent in each situation, its prompt read anew: what a step costs without a mark."""
    folder = options.work / "lists" / f"{file.stem}-seed{options.seed}"
    places = {one.name: _place(folder, "plain", one, 0) for one in situations}
    if not all(place.exists() for place in places.values()):
        with opened(file) as model:
            for one in situations:
                seed = generator(options.seed, "plain", one.name).getrandbits(31)
                made_once(places[one.name], partial(_drawn, model, one, seed))
            progress(f"{model.model}: a plain reply in {len(situations)} situations")
    return {name: Reply(**_read(place)) for name, place in places.items()}


def _asked(model: LocalModel, asking: Asking, one: ToolSituation, rng: Random) -> dict[str, Any]:
    elicitor = asking.asker(model, rng, one.situation)
    real = RealSituation(one.name, "ToolBench queries", one.situation)
    return asdict(timed(elicitor, asking.way, model.model, real))


def _drawn(model: LocalModel, one: ToolSituation, seed: int) -> dict[str, Any]:
    return asdict(draw(model, one, seed, cached=False))


def _place(folder: Path, way: str, one: ToolSituation, order: int) -> Path:
    asked = json.dumps([way, one.name, one.messages, order])
    return folder / f"{sha256(asked.encode()).hexdigest()[:32]}.json"


def _read(place: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return content
