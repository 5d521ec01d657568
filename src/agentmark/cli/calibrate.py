"""`agentmark calibrate`."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, new_command, print_json, printable, show_progress, text
from agentmark.cli.model_options import LOCAL_ELICITORS, add_model_options, open_model
from agentmark.core.strict_json import parse_json
from agentmark.errors import SettingError
from agentmark.files import read_small_file

if TYPE_CHECKING:
    from agentmark.elicit.calibration import Calibration, Estimate
    from agentmark.elicit.situation import Situation

MAX_SAMPLES = 100_000
MAX_SITUATIONS_SIZE = 1 << 26
EPILOG = """\
A situation is one line of JSON: {"candidates": ["search", "book"], "messages": "Find me a table."}. Candidates may be
an object of names and descriptions; messages may be a list of chat messages. Each is asked for its list once for every
elicitor, and --samples times for what the model would do.
"""


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands, "calibrate", "Is the list that a model states the one it acts by? Lists against free choices.", EPILOG
    )
    add_model_options(parser)
    parser.add_argument(
        "--elicitor",
        type=text,
        action="append",
        metavar="NAME",
        help=f"{', '.join(LOCAL_ELICITORS)}; give it again for each (default: all that the model has)",
    )
    parser.add_argument("--situations", type=Path, metavar="FILE", help="JSON lines (default: ten short ones)")
    parser.add_argument("--samples", type=int, default=20, metavar="K", help="free choices a situation (default: 20)")
    parser.add_argument(
        "--constrained", action="store_true", help="a schema makes every choice name an option: for small models"
    )
    parser.add_argument("--seed", type=int, default=0, help="of orders and resampling")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.elicit.calibration import BUILT_IN, calibrate

    if not 2 <= arguments.samples <= MAX_SAMPLES:
        raise SettingError("--samples", f"2 to {MAX_SAMPLES:,}")
    situations = BUILT_IN if arguments.situations is None else read_situations(arguments.situations)
    with open_model(arguments) as model:
        names = arguments.elicitor or (LOCAL_ELICITORS if model.local else ["labels", "verbalised"])
        elicitors = [model.elicitor(name) for name in names]
        results = calibrate(
            elicitors,
            model.chat,
            situations,
            samples=arguments.samples,
            constrained=arguments.constrained,
            seed=arguments.seed,
            progress=show_progress,
        )
    if arguments.json:
        print_json([_plain(asdict(result)) for result in results], indent=1)
    else:
        print("\n".join(map(printable, render(results))))
    return EXIT_DONE


def read_situations(path: Path) -> "list[Situation]":
    from agentmark.elicit.situation import Candidate, Situation

    situations = []
    try:
        lines = read_small_file(path, MAX_SITUATIONS_SIZE).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise SettingError(str(path), "is not UTF-8 text") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = parse_json(line)
            listed = content["candidates"]
            if isinstance(listed, list):
                listed = [
                    one if isinstance(one, str) else Candidate(one["name"], one.get("description", ""))
                    for one in listed
                ]
            situations.append(Situation.of(listed, content["messages"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingError(f"{path}, line {number}", f"not a situation: {error!r}") from None
    if not situations:
        raise SettingError(str(path), "holds no situation")
    return situations


def render(results: "Sequence[Calibration]") -> list[str]:
    first = results[0]
    heads = ["elicitor", "lists", "unusable", "TV", "floor", "above the floor", "ECE", "floor"]
    rows = [
        [
            one.elicitor,
            str(one.situations),
            str(one.unusable),
            _estimate(one.tv),
            f"{one.tv_floor:.2f}",
            _estimate(one.excess),
            _estimate(one.ece),
            f"{one.ece_floor:.2f}",
        ]
        for one in results
    ]
    widths = [max([len(row[i]) for row in [heads, *rows]]) for i in range(len(heads))]
    table = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]) for row in [heads, *rows]]
    few = (
        "Most of them name none, so that these figures rest on few: try --constrained."
        if first.other_share > 0.5
        else ""
    )
    return [
        f"{first.model}: {first.samples} free choices a situation; {first.other_share:.0%} of them name no option.",
        *([few] if few else []),
        "TV: how far the stated list is from the frequencies of free choice, 0 to 1. ECE: the same, pooled by",
        "stated probability. Floor: what sampling alone would show. 95 % intervals from resampling the situations.",
        "",
        *[line.rstrip() for line in table],
    ]


def _estimate(one: "Estimate") -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _plain(content: Any) -> Any:
    """Without NaN, which is no JSON."""
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    return None if isinstance(content, float) and content != content else content  # noqa: PLR0124
