"""`agentmark lab`: list the experiments, run them, and write their results up.

Here, and nowhere else in the lab, the environment is read for what a run is to do: keys, which have no place among
arguments, where a user's model files are, and who judges. Experiments and their workers are told by `Options`.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentmark.errors import SettingError
from agentmark_lab.catalogue import EXPERIMENTS, GROUPS, load
from agentmark_lab.envs.base import ENVIRONMENTS, OwnTasksError
from agentmark_lab.kit.data import DATA_VARIABLE, MissingError
from agentmark_lab.kit.experiment import (
    ResultError,
    asks_environment,
    asks_tasks,
    own_tasks_option,
    perform,
    why_no_own_tasks,
)
from agentmark_lab.kit.model_judge import KEY_VARIABLE, MODEL_VARIABLE, URL_VARIABLE
from agentmark_lab.kit.options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_SEED,
    DEFAULT_WORK,
    JudgeChoice,
    ModelChoice,
    Options,
)
from agentmark_lab.kit.presets import API_KEY_VARIABLE, GGUF_VARIABLE, PRESETS, USUAL_API_KEY_VARIABLE
from agentmark_lab.report import load_results, write_pages

ALL = "all"
RESULTS, QUICK_RESULTS = Path("results"), Path("results-quick")
FROM_THE_ENVIRONMENT = (
    f"From the environment: {API_KEY_VARIABLE} (else {USUAL_API_KEY_VARIABLE}), the key for --model; {GGUF_VARIABLE}, "
    f"local model files, separated as in PATH; {URL_VARIABLE}, {MODEL_VARIABLE} and {KEY_VARIABLE}, who judges; "
    f"{DATA_VARIABLE}, the folder of the benchmarks' data."
)


def add_parser(subparsers: Any) -> None:
    """Add `lab` to a command line."""
    summary = "Experiments: what is claimed, measured on this machine."
    add_commands(subparsers.add_parser("lab", help=summary, description=summary))


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    commands = parser.add_subparsers(dest="lab_command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="the experiments and what they show")

    runner = commands.add_parser("run", help="run one experiment, or all", epilog=FROM_THE_ENVIRONMENT)
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
        "--tasks",
        type=_positive,
        metavar="N",
        help="how many tasks of each kind it is given there (default: 2); rewording: how many games (default: all)",
    )
    brought = runner.add_mutually_exclusive_group()
    brought.add_argument(
        "--games",
        type=Path,
        metavar="FOLDER",
        help="alfworld: games of your own, each a game.tw-pddl with its traj_data.json, at any depth in this folder",
    )
    brought.add_argument(
        "--queries",
        type=Path,
        metavar="PATH",
        help="toolbench: queries of your own, a JSON file in ToolBench's form or a folder of them",
    )
    brought.add_argument(
        "--conversations",
        type=Path,
        metavar="FOLDER",
        help="bfcl: conversations of your own, over the benchmark's functions, in files laid out as in its package",
    )
    runner.add_argument("--quick", action="store_true", help="few trials: seconds instead of minutes")
    runner.add_argument("--seed", type=int, default=DEFAULT_SEED, help="fixes keys, payloads and contexts (default: 1)")
    runner.add_argument("--workers", type=_positive, default=os.cpu_count() or 1, help="processes (default: all cores)")
    runner.add_argument(
        "--work",
        type=Path,
        default=DEFAULT_WORK,
        help="folder for what an interrupted run has done, models' answers and unpacked data "
        f"(default: {DEFAULT_WORK})",
    )
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
    names = list(EXPERIMENTS) if args.name == ALL else [args.name]
    # A quick run does not take the place of a full one.
    out = args.out or (QUICK_RESULTS if args.quick else RESULTS)
    return _run(names, options_of(args, os.environ), out=out)


def options_of(args: argparse.Namespace, environment: Mapping[str, str]) -> Options:
    """What was asked for. Whatever is wrong with it is said before anything runs."""
    return Options(
        quick=args.quick,
        seed=args.seed,
        workers=args.workers,
        work=args.work,
        model=_model(args.model, environment) if args.model else None,
        model_files=tuple([Path(path) for path in environment.get(GGUF_VARIABLE, "").split(os.pathsep) if path]),
        environment=args.environment,
        tasks=args.tasks,
        judge=_judge(environment),
        own=_brought(args)[1],
    )


# The options by which somebody brings tasks.
_BRINGING = ("--games", "--queries", "--conversations")


def _brought(args: argparse.Namespace) -> tuple[str, Path | None]:
    """The option by which tasks were brought, and where they are; nothing if none were."""
    for option in _BRINGING:
        place: Path | None = getattr(args, option.removeprefix("--"))
        if place is not None:
            return option, place
    return "", None


def _model(stated: Sequence[str], environment: Mapping[str, str]) -> ModelChoice:
    api_key = environment.get(API_KEY_VARIABLE) or environment.get(USUAL_API_KEY_VARIABLE)
    said = " ".join(stated)
    if said in PRESETS:
        return ModelChoice(said, api_key=api_key)
    base_url, _, name = said.partition(" ")
    if not name:
        raise SettingError("--model", f"{said!r} is no preset ({', '.join(PRESETS)}); give a URL and a name")
    return ModelChoice(name, base_url, api_key)


def _judge(environment: Mapping[str, str]) -> JudgeChoice | None:
    base_url, name = environment.get(URL_VARIABLE), environment.get(MODEL_VARIABLE)
    if not base_url:
        return None
    if not name:
        raise SettingError(MODEL_VARIABLE, f"is not set, and {URL_VARIABLE} is")
    return JudgeChoice(base_url, name, environment.get(KEY_VARIABLE))


def _misplaced(args: argparse.Namespace) -> str:
    """What is wrong with the options, if anything."""
    for option, stated, taken in (
        ("--environment", args.environment, asks_environment),
        ("--tasks", args.tasks, asks_tasks),
    ):
        takers = [name for name in EXPERIMENTS if taken(load(name))] if stated else []
        if stated and args.name not in takers:
            return f"{option} is for {' and '.join(takers)}, not for {args.name}"
    option, place = _brought(args)
    if place is not None:
        fault = _no_place_for(option, args.name)
        if fault:
            return fault
        if not place.exists():
            return f"{option} {place}: there is no such file or folder"
    return "--tasks does nothing with --quick" if args.tasks and args.quick else ""


def _no_place_for(option: str, name: str) -> str:
    """Why tasks that are brought by this option cannot be given to an experiment."""
    if name != ALL and option == own_tasks_option(load(name)):
        return ""
    takers = {taken: other for other in EXPERIMENTS if (taken := own_tasks_option(load(other)))}
    why = "" if name == ALL else why_no_own_tasks(load(name))
    return f"{option} is for {takers[option]}, not for {name}" + (f": {why}" if why else "")


def _list() -> int:
    for number, group in enumerate(GROUPS):
        print(f"{'' if number == 0 else chr(10)}{group.package}: {group.question}")
        for name in group.modules:
            print(f"  {name:16} {load(name).TITLE}")
    return 0


def _run(names: Sequence[str], options: Options, *, out: Path) -> int:
    failed = 0
    for name in names:
        progress = partial(_report_progress, name)
        try:
            result = perform(load(name), options, progress)
        except MissingError as error:
            # Asked for by name, it is an error; among all, the others still run.
            if len(names) == 1:
                raise
            print(f"{name}: skipped: {error}")
            continue
        except OwnTasksError as error:
            print(error, file=sys.stderr)
            return 2
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
    from agentmark_lab.kit.plotting import draw, draw_beside
    from agentmark_lab.kit.table_figures import figures_of, glance, overviews

    try:
        results = load_results(folder)
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2
    figures = [*overviews(results), *[figure for result in results for figure in figures_of(result)]]
    drawn = [path for figure in figures for path in draw(figure, to)]
    if panels := glance(results):
        drawn += draw_beside("glance", panels, to)
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
