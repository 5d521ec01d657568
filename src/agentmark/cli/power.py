"""`agentmark power`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentmark.cli.common import (
    EXIT_DONE,
    add_limit_option,
    file_path,
    limits_of,
    new_command,
    print_json,
    printable,
)
from agentmark.cli.progress import ProgressLine
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.errors import DistributionError
from agentmark.core.schemes import SCHEMES
from agentmark.core.strict_json import Pairs, StrictJsonError, parse_json_pairs
from agentmark.errors import SettingError
from agentmark.files import read_small_file, write_text_file
from agentmark.power import (
    DEFAULT_MAX_STEPS,
    DEFAULT_PAYLOAD_LENS,
    DEFAULT_TRIALS,
    FULL,
    LIKE,
    VIEWS,
    PowerResult,
    Setup,
    Source,
    StepsNeeded,
    dirichlet_source,
    open_payload_len,
    order_statistic_ranks,
    sample_source,
    steps_needed,
)
from agentmark.text import counted
from agentmark.verify.defaults import DEFAULT_THRESHOLD

COLOURS = 6
MAX_WEIGHTS_SIZE = 1 << 28
# What a record says of its list, where that is the counts of an agent's own replies.
PROPOSED = "proposals"

NOTE = (
    "Assumed: the verifier finds the payload (a claim, a registry, or a decoding that succeeds), decisions are",
    "independent draws from these lists, and none is lost. The interval is that of the simulation.",
)


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "power",
        "Say how many steps an identification takes, before deploying. Needs no key.",
        "examples:\n"
        "  agentmark power --like alfworld\n"
        "  agentmark power --log unmarked.jsonl --registry-size 1000 --payload-len 32\n"
        "  agentmark power --like toolbench --proposals 4\n"
        "  agentmark power --n 5 --alpha 0.3 --noise 0.1 --plot power.svg",
    )
    lists = parser.add_argument_group("what the agent's lists are like (default: --like toolbench)")
    lists.add_argument("--like", choices=sorted(LIKE), help="lists of the size and peakedness of this benchmark's")
    lists.add_argument("--n", type=int, metavar="N", help="random lists of N behaviors ...")
    lists.add_argument("--alpha", type=float, metavar="A", help="... from a symmetric Dirichlet distribution")
    lists.add_argument(
        "--log",
        type=file_path,
        nargs="+",
        metavar="LOG",
        help="lists drawn from the records of logs, as for `verify`; - is standard input",
    )
    lists.add_argument("--weights", type=Path, metavar="FILE", help="lists drawn from JSON lines of weights")
    parser.add_argument(
        "--proposals",
        type=int,
        metavar="N",
        help="the agent is marked by proposals: each list becomes the counts of N replies drawn from it",
    )
    parser.add_argument("--scheme", choices=(*SCHEMES, "both"), default="both", help="(default both)")
    parser.add_argument(
        "--payload-len",
        type=int,
        nargs="+",
        action="extend",
        metavar="BITS",
        help=f"identity lengths (default {' '.join(map(str, DEFAULT_PAYLOAD_LENS))})",
    )
    parser.add_argument("--registry-size", type=int, metavar="N", help="the identity is one of N registered ones")
    parser.add_argument("--noise", type=float, default=0.0, metavar="SHARE", help="of foreign steps (default 0)")
    parser.add_argument(
        "--assumed-noise",
        type=float,
        metavar="RATE",
        help="what `verify --noise` will be given (default: its mixture of rates)",
    )
    parser.add_argument(
        "--view",
        choices=VIEWS,
        default=FULL,
        help="what the log keeps of a list: all, the chosen one's weight, nothing (the last two: scheme R only)",
    )
    parser.add_argument(
        "--threshold", type=float, default=DEFAULT_THRESHOLD, help="false-positive bound (default %(default)g)"
    )
    parser.add_argument(
        "--power", type=float, default=0.95, metavar="SHARE", help="of runs to be identified (default 0.95)"
    )
    parser.add_argument("--trials", type=int, default=DEFAULT_TRIALS, help="runs to simulate (default %(default)s)")
    parser.add_argument(
        "--max-steps", type=int, default=DEFAULT_MAX_STEPS, metavar="N", help="longest run (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same numbers (default 1)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the share of runs identified: .svg or .html")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None and arguments.plot.suffix not in (".svg", ".html"):
        raise SettingError("--plot", f"{arguments.plot} ends neither in .svg nor in .html")
    source, origin = _source(arguments)
    setups = [_setup(arguments, scheme) for scheme in _schemes(arguments)]
    with ProgressLine() as progress:
        results = [steps_needed(source, setup, progress=progress.count) for setup in setups]
    if arguments.plot is not None:
        write_text_file(arguments.plot, _plot(results, origin, page=arguments.plot.suffix == ".html"))
    if arguments.json:
        print_json({"lists": origin, "results": [_as_dict(result) for result in results]}, indent=2)
    else:
        print("\n".join(map(printable, _lines(results, origin))))
    return EXIT_DONE


def _source(arguments: argparse.Namespace) -> tuple[Source, str]:
    """Where the lists come from, and how to say so."""
    random_lists = arguments.n is not None or arguments.alpha is not None
    given = [arguments.like is not None, random_lists, arguments.log is not None, arguments.weights is not None]
    if sum(given) > 1:
        raise SettingError("--like", "goes without --n, --log and --weights: give one of them")
    if arguments.log is not None:
        distributions = _logged_lists(arguments)
        names = ", ".join(map(str, arguments.log))
        return _sample(distributions, names), f"{counted(len(distributions), 'list')} of {names}"
    if arguments.weights is not None:
        distributions = _weight_lists(arguments.weights)
        lists = counted(len(distributions), "list")
        return _sample(distributions, str(arguments.weights)), f"{lists} of {arguments.weights}"
    if random_lists:
        if arguments.n is None or arguments.alpha is None:
            raise SettingError("--n", "goes together with --alpha")
        size, alpha, like = arguments.n, arguments.alpha, ""
    else:
        name = arguments.like or "toolbench"
        (size, alpha), like = LIKE[name], f", like {name}"
    return dirichlet_source(size, alpha), f"random lists of {size} behaviors, Dirichlet {alpha:g}{like}"


def _logged_lists(arguments: argparse.Namespace) -> list[BehaviorDistribution]:
    from agentmark.cli.input import given_logs
    from agentmark.log.read.open import open_log

    lists: list[BehaviorDistribution] = []
    proposed = 0
    with given_logs(arguments.log) as found, ProgressLine() as progress:
        for path in found.files:
            for record in open_log(path, limits=limits_of(arguments)):
                if record.distribution is None:
                    continue
                lists.append(record.distribution)
                proposed += (record.meta or {}).get("elicitor") == PROPOSED
                progress.count(len(lists), None, "lists read")
    if arguments.proposals is not None and proposed:
        fault = (
            f"{proposed} of the {counted(len(lists), 'list')} in the log are counts of proposals already, and would be "
            "drawn from a second time: leave the option out"
        )
        raise SettingError("--proposals", fault)
    return lists


def _sample(distributions: Sequence[BehaviorDistribution], name: str) -> Source:
    if not distributions:
        raise SettingError(
            name, "holds no list of weights to draw from: it is empty, or its records were kept without lists"
        )
    return sample_source(distributions)


def _weight_lists(path: Path) -> list[BehaviorDistribution]:
    """One object of weights a line, as `embed` takes them."""
    lists = []
    for number, line in enumerate(read_small_file(path, MAX_WEIGHTS_SIZE).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            # A name that appears twice is a fault of the list, and told as one.
            members = parse_json_pairs(line)
        except StrictJsonError:
            raise SettingError(where, "is not valid JSON") from None
        if not isinstance(members, Pairs):
            raise SettingError(where, "is not a JSON object of weights")
        nested = dict(members).get("weights")
        try:
            lists.append(BehaviorDistribution.quantise(nested if isinstance(nested, Pairs) else members))
        except DistributionError as error:
            raise SettingError(where, str(error)) from None
    return lists


def _schemes(arguments: argparse.Namespace) -> list[str]:
    if arguments.scheme != "both":
        return [arguments.scheme]
    return [scheme.name for scheme in SCHEMES.values() if arguments.view == FULL or scheme.reads_partial_lists]


def _setup(arguments: argparse.Namespace, scheme: str) -> Setup:
    lengths = arguments.payload_len
    if lengths is None:
        names = arguments.registry_size or 1
        lengths = [length for length in DEFAULT_PAYLOAD_LENS if names <= 1 << length]
    return Setup(
        scheme=scheme,
        view=arguments.view,
        proposals=arguments.proposals,
        payload_lens=tuple(dict.fromkeys(lengths)),
        registry_size=arguments.registry_size,
        noise=arguments.noise,
        assumed_noise=arguments.assumed_noise,
        threshold=arguments.threshold,
        power=arguments.power,
        trials=arguments.trials,
        max_steps=arguments.max_steps,
        seed=arguments.seed,
    )


def _lines(results: Sequence[PowerResult], origin: str) -> list[str]:
    setup = results[0].setup
    foreign = f"{setup.noise:.0%} of the steps are foreign" if setup.noise else "no foreign steps"
    identity = f"one of {setup.registry_size:,} identities" if setup.registry_size else "any identity of so many bits"
    lines = [
        f"Lists: {origin}; {_entropy_words(results[0])}.",
        f"Steps by which {setup.power:.4g} of the runs are identified at a bound of {setup.threshold:g} ({identity};",
        f"{foreign}; the log keeps {_VIEW_WORDS[setup.view]}):",
        "",
        "  scheme  payload bits  evidence needed  bits a step    steps  95 % interval",
    ]
    rows = [_row(result, needed) for result in results for needed in result.needed]
    return [*lines, *rows, "", *_open_lengths(results), *NOTE]


def _open_lengths(results: Sequence[PowerResult]) -> list[str]:
    """Which lengths can be read when nobody says what to look for."""
    if results[0].setup.registry_size:
        return []
    lengths = [f"{result.setup.scheme} up to {open_payload_len(result.setup.scheme)} bits" for result in results]
    return [f"Without a registry or a claim, clean logs are read for {', '.join(lengths)} (docs/power.md)."]


def _entropy_words(result: PowerResult) -> str:
    count = result.setup.proposals
    if count is None:
        return f"{result.entropy:.2f} bits of entropy a step"
    return (
        f"the counts of {count} replies keep {result.entropy:.2f} of {result.agent_entropy:.2f} bits of entropy a step"
    )


def _row(result: PowerResult, needed: StepsNeeded) -> str:
    setup = result.setup
    return (
        f"  {setup.scheme:<6}  {needed.payload_len:>12}  {needed.level_bits:>15.1f}  {result.bits_per_step:>11.2f}  "
        + ("      -  with a registry or a claim only" if needed.needs_naming else _interval(needed, setup))
    )


def _interval(needed: StepsNeeded, setup: Setup) -> str:
    return f"{_steps(needed.steps, setup):>7}  {_steps(needed.low, setup)} to {_high(needed, setup)}"


def _high(needed: StepsNeeded, setup: Setup) -> str:
    _, rank = order_statistic_ranks(setup.trials, setup.power)
    return "? (too few runs)" if rank > setup.trials else _steps(needed.high, setup)


_VIEW_WORDS = {"full": "whole lists", "chosen": "the weight of the choice only", "action": "the choice only"}


def _steps(steps: int | None, setup: Setup) -> str:
    return f"> {setup.max_steps}" if steps is None else str(steps)


def _as_dict(result: PowerResult) -> dict[str, Any]:
    setup = result.setup
    return {
        "scheme": setup.scheme,
        "view": setup.view,
        "proposals": setup.proposals,
        "noise": setup.noise,
        "assumed_noise": setup.assumed_noise,
        "threshold": setup.threshold,
        "registry_size": setup.registry_size,
        "power": setup.power,
        "trials": result.trials,
        "max_steps": setup.max_steps,
        "seed": setup.seed,
        "simulated_steps": result.simulated_steps,
        "entropy": round(result.entropy, 4),
        "agent_entropy": round(result.agent_entropy, 4),
        "bits_per_step": round(result.bits_per_step, 4),
        "needed": [
            {
                "payload_len": needed.payload_len,
                "level_bits": round(needed.level_bits, 3),
                "steps": needed.steps,
                "low": needed.low,
                "high": needed.high,
                "needs_naming": needed.needs_naming,
            }
            for needed in result.needed
        ],
    }


def _plot(results: Sequence[PowerResult], origin: str, *, page: bool) -> str:
    from agentmark.report.charts import CHART_STYLE, Series, line_chart, line_chart_file
    from agentmark.report.html import isolated, opening

    setup = results[0].setup
    series = [
        Series(f"{result.setup.scheme}, {needed.payload_len} bits", _curve(needed, setup.trials), _css(result, i))
        for result in results
        for i, needed in enumerate(result.needed)
        if needed.steps is not None
    ]
    if not series:
        raise SettingError("--plot", f"nothing to plot: no level is reached within {setup.max_steps} steps")
    draw = line_chart if page else line_chart_file
    level = (setup.power, f"{setup.power:.4g} of the runs")
    chart = draw(series, x_label="steps", y_label="share of runs identified", threshold=level)
    if not page:
        return chart
    table = "\n".join(map(isolated, _lines(results, origin)))
    style = "body { font:16px/1.5 system-ui, sans-serif; color:var(--ink); background:var(--paper); max-width:780px;"
    style = f"{CHART_STYLE}{style} margin:2rem auto; padding:0 1rem; }} pre {{ overflow-x:auto; font-size:.8rem; }}"
    title = "How many steps it takes"
    return f"{opening(title, style)}<h1>{title}</h1>{chart}<pre>{table}</pre></html>\n"


def _css(result: PowerResult, i: int) -> str:
    """A colour for each length, a dash for every scheme but the first."""
    return f"c{i % COLOURS}" + (" dash" if result.setup.scheme != next(iter(SCHEMES)) else "")


def _curve(needed: StepsNeeded, trials: int) -> list[tuple[float, float]]:
    """The share of runs that were identified by each step: a staircase."""
    points = [(0.0, 0.0)]
    for count, step in enumerate(needed.crossings, start=1):
        points += [(float(step), (count - 1) / trials), (float(step), count / trials)]
    return points
