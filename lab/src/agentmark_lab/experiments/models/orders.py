"""What averaging over several orders of the options brings to lists in words: do they depend less on the order, and do
they come closer to what the model does?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from agentmark.elicit.situation import ANSWER
from agentmark_lab.experiments.models.stated_lists import Asking, lists_of, mean_list, words_asker
from agentmark_lab.experiments.models.tool_agent import replies_of, tool_situations
from agentmark_lab.experiments.models.ways_of_asking import Outcome, is_small, model_files
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.stats import student_interval, total_variation

NAME = "orders"
TITLE = "Orders of the options: what averaging brings to lists in words"
# Its result depends on which models there are: the command that repeats it names them.
ASKS_MODELS = True

# A model that takes long for a list is asked less often: with four orders, lists of four cannot be held side by side.
SITUATIONS_OF_SMALL, SITUATIONS_OF_LARGE, QUICK_SITUATIONS = 6, 3, 2
ORDERS_OF_SMALL, ORDERS_OF_LARGE, QUICK_ORDERS = 8, 4, 4
# Replies of the unmarked agent: those that the experiment on proposals keeps, of the model that keeps the fewest.
REPLIES, QUICK_REPLIES = 32, 8
AVERAGED = (1, 2, 4)
SPLITS = 50


@dataclass(frozen=True, slots=True)
class Spread:
    """Lists that are means over k orders, by situation: how far two of them lie apart that share no order, and how far
    one of them lies from the agent's own frequencies."""

    model: str
    k: int
    apart: list[float]
    off: list[float]


def run(options: Options, progress: Progress) -> Findings:
    """One model at a time, on one thread: workers are of no use here."""
    spreads = [one for file in model_files(options) for one in spreads_of(file, options, progress)]
    return Findings(spread_claims(spreads), [_table(spreads)])


def spreads_of(file: Path, options: Options, progress: Progress) -> list[Spread]:
    small = is_small(file)
    usual, orders = (SITUATIONS_OF_SMALL, ORDERS_OF_SMALL) if small else (SITUATIONS_OF_LARGE, ORDERS_OF_LARGE)
    situations = tool_situations()[: QUICK_SITUATIONS if options.quick else usual]
    count, replies = (QUICK_ORDERS, QUICK_REPLIES) if options.quick else (orders, REPLIES)
    asking = Asking("words, in several orders", words_asker, tuple(range(count)))
    lists = lists_of(file, situations, asking, options, progress)
    own = {
        name: _shares([reply.tool or ANSWER for reply in some])
        for name, some in replies_of(file, situations, replies, options, progress).items()
    }
    rng = generator(options.seed, NAME, file.stem)
    found = []
    for k in AVERAGED:
        apart, off = [], []
        for name, said in lists.items():
            usable = [one.probabilities for one in said if one.weights is not None]
            if len(usable) >= k:
                means = [mean_list(rng.sample(usable, k)) for _ in range(SPLITS)]
                off.append(fmean([total_variation(one, own[name]) for one in means]))
            if len(usable) >= 2 * k:
                halves = [rng.sample(usable, 2 * k) for _ in range(SPLITS)]
                apart.append(fmean([total_variation(mean_list(some[:k]), mean_list(some[k:])) for some in halves]))
        found.append(Spread(_model(lists), k, apart, off))
    return found


def _model(lists: Mapping[str, Sequence[Outcome]]) -> str:
    return next(iter(lists.values()))[0].model


def _shares(names: Sequence[str]) -> dict[str, float]:
    return {name: count / len(names) for name, count in Counter(names).items()}


def spread_claims(spreads: Sequence[Spread]) -> list[Claim]:
    claims = []
    for model in dict.fromkeys(one.model for one in spreads):
        compared = [one for one in spreads if one.model == model and len(one.apart) > 1]
        of_model = [one for one in spreads if one.model == model and len(one.off) > 1]
        if len(compared) < 2:
            continue
        first, last = compared[0], compared[-1]
        text = ", ".join([f"{fmean(one.apart):.2f} for k = {one.k}" for one in compared])
        claims.append(
            Claim(
                f"{model}: two lists of k orders lie less far apart the more orders there are: {text}.",
                fmean(last.apart) < fmean(first.apart),
                aim=True,
            )
        )
        first, last = of_model[0], of_model[-1]
        text = ", ".join([f"{fmean(one.off):.2f} for k = {one.k}" for one in of_model])
        claims.append(
            Claim(
                f"{model}: they come closer to what the agent does as well: total variation distance {text}.",
                fmean(last.off) < fmean(first.off),
                aim=True,
            )
        )
    return claims or [Claim("Too few usable lists to compare orders.", False, aim=True)]


def _table(spreads: Sequence[Spread]) -> Table:
    rows: list[list[Cell]] = [[one.model, one.k, len(one.off), _mean(one.apart), _mean(one.off)] for one in spreads]
    note = (
        "Lists in words under a schema, asked anew in each of several random orders of the options. Apart: total "
        "variation distance between two lists, each the mean over k orders, that share no order (none: there are not "
        "twice as many orders); at k = 1 it is what one order and one reply instead of another make. From the agent: "
        "between such a list and the frequencies of the agent's own kept replies, whose sampling noise stays in it "
        "whatever k is. Means over situations with intervals of 95 % (Student): few situations, small models. k orders "
        "cost k side calls."
    )
    columns = ["model", "k", "situations", "apart", "from the agent"]
    return Table("Averaging over orders", columns, rows, note)


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return "none"
    interval = student_interval(values)
    return f"{fmean(values):.3f} ({interval.low:.3f} to {interval.high:.3f})"
