"""`agentmark lab`: list the experiments, run them, and write their results up."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentmark_lab.catalogue import EXPERIMENTS, load
from agentmark_lab.data import MissingError
from agentmark_lab.envs.base import ENVIRONMENTS
from agentmark_lab.experiment import DEFAULT_SEED, ResultError, perform
from agentmark_lab.presets import (
    API_KEY_VARIABLE,
    DEFAULT_ENVIRONMENT,
    ENVIRONMENT_VARIABLE,
    MODEL_VARIABLE,
    PRESETS,
    TASKS_VARIABLE,
)
from agentmark_lab.report import load_results, write_pages

ALL = "all"
RESULTS, QUICK_RESULTS = Path("results"), Path("results-quick")


def add_parser(subparsers: Any) -> None:
    """Add `lab` to a command line."""
    summary = "Experiments: what is claimed, measured on this machine."
    add_commands(subparsers.add_parser("lab", help=summary, description=summary))


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    commands = parser.add_subparsers(dest="lab_command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="the experiments and what they show")

    runner = commands.add_parser("run", help="run one experiment, or all")
    runner.add_argument("name", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}, or {ALL}")
    runner.add_argument(
        "--model",
        nargs="+",
        metavar=("URL", "NAME"),
        help="the language model of the experiments that ask one: an OpenAI-compatible URL and a name, or a preset of "
        f"the paper ({', '.join(PRESETS)}); its key in {API_KEY_VARIABLE} (default: the local models that are here)",
    )
    runner.add_argument(
        "--environment",
        metavar="NAME",
        choices=list(ENVIRONMENTS),
        help=f"where the model of language_model plays: {', '.join(ENVIRONMENTS)} (default: {DEFAULT_ENVIRONMENT})",
    )
    runner.add_argument(
        "--tasks", type=_positive, metavar="N", help="how many tasks of each kind it is given there (default: 2)"
    )
    runner.add_argument("--quick", action="store_true", help="few trials: seconds instead of minutes")
    runner.add_argument("--seed", type=int, default=DEFAULT_SEED, help="fixes keys, payloads and contexts (default: 1)")
    runner.add_argument("--workers", type=_positive, default=os.cpu_count() or 1, help="processes (default: all cores)")
    runner.add_argument(
        "--out", type=Path, help=f"folder for NAME.json (default: {RESULTS}; of a quick run: {QUICK_RESULTS})"
    )

    table = commands.add_parser("table", help="write the results up as Markdown")
    table.add_argument("--out", type=Path, default=RESULTS, help=f"folder of the results (default: {RESULTS})")
    table.add_argument(
        "--docs",
        type=Path,
        default=Path("docs/results.md"),
        help="the front page; a page for each experiment goes into a folder of its name (default: docs/results.md)",
    )

    figures = commands.add_parser("figures", help="draw the results: PNG and SVG (needs matplotlib)")
    figures.add_argument("--out", type=Path, default=RESULTS, help=f"folder of the results (default: {RESULTS})")
    figures.add_argument("--to", type=Path, default=Path("docs/figures"), help="folder (default: docs/figures)")


def run(args: argparse.Namespace) -> int:
    """0: done. 1: an experiment did not pass. 2: no such experiment, or nothing to read."""
    if args.lab_command == "list":
        return _list()
    if args.lab_command == "table":
        return _table(args.out, args.docs)
    if args.lab_command == "figures":
        return _figures(args.out, args.to)
    if args.name != ALL and args.name not in EXPERIMENTS:
        print(f"no experiment {args.name!r}; there are {', '.join(EXPERIMENTS)}, or {ALL}", file=sys.stderr)
        return 2
    fault = _misplaced(args)
    if fault:
        print(fault, file=sys.stderr)
        return 2
    # Worker processes are told through the environment.
    stated = {
        MODEL_VARIABLE: " ".join(args.model or []),
        ENVIRONMENT_VARIABLE: args.environment,
        TASKS_VARIABLE: args.tasks,
    }
    os.environ.update({variable: str(value) for variable, value in stated.items() if value})
    names = list(EXPERIMENTS) if args.name == ALL else [args.name]
    # A quick run does not take the place of a full one.
    out = args.out or (QUICK_RESULTS if args.quick else RESULTS)
    return _run(names, quick=args.quick, seed=args.seed, workers=args.workers, out=out)


def _misplaced(args: argparse.Namespace) -> str:
    """What is wrong with the options, if anything."""
    if (args.environment or args.tasks) and (
        args.name == ALL or not getattr(load(args.name), "ASKS_ENVIRONMENT", False)
    ):
        return f"--environment and --tasks are for language_model, not for {args.name}"
    return "--tasks does nothing with --quick" if args.tasks and args.quick else ""


def _list() -> int:
    for name in EXPERIMENTS:
        print(f"{name:16} {load(name).TITLE}")
    return 0


def _run(names: Sequence[str], *, quick: bool, seed: int, workers: int, out: Path) -> int:
    failed = 0
    for name in names:
        progress = partial(_report_progress, name)
        try:
            result = perform(load(name), quick=quick, seed=seed, workers=workers, progress=progress)
        except MissingError as error:
            # Asked for by name, it is an error; among all, the others still run.
            if len(names) == 1:
                raise
            print(f"{name}: skipped: {error}")
            continue
        except KeyboardInterrupt:
            print(f"{name}: the same command takes it up where it was", file=sys.stderr)
            raise
        path = result.save(out)
        print(f"{name}: {'passed' if result.passed else 'FAILED'} in {result.seconds:.0f} s, saved to {path}")
        for claim in result.claims:
            print(f"  {claim}")
        failed += not result.passed
    return 1 if failed else 0


def _report_progress(name: str, message: str) -> None:
    print(f"{name}: {message}", file=sys.stderr, flush=True)


def _table(folder: Path, docs: Path) -> int:
    if docs.suffix != ".md":
        print(f"--docs {docs}: the front page is a file NAME.md; NAME is the folder beside it", file=sys.stderr)
        return 2
    try:
        results = load_results(folder)
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2
    if not results:
        print(f"no results in {folder}; run `agentmark lab run all` first", file=sys.stderr)
        return 2
    write_pages(results, docs)
    print(f"{len(results)} results written to {docs} and {docs.with_suffix('')}")
    return 0


def _figures(folder: Path, to: Path) -> int:
    from agentmark_lab.figures import draw
    from agentmark_lab.pictures import figures_of, overviews

    try:
        results = load_results(folder)
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2
    figures = [*overviews(results), *[figure for result in results for figure in figures_of(result)]]
    drawn = [path for figure in figures for path in draw(figure, to)]
    if not drawn:
        print(f"no figures in the results of {folder}", file=sys.stderr)
        return 2
    print(f"{len(drawn)} files written to {to}")
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
