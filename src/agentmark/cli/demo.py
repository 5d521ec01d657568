"""`agentmark demo`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_ATTRIBUTED, EXIT_NOT_ATTRIBUTED, new_command, show_progress


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "demo",
        "A courier robot decides, its log is damaged, its identity is read back. Offline, about ten seconds.",
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for logs, key and page")
    parser.add_argument("--seed", type=int, default=7, help="of the towns and the damage (keys are always random)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.demo.page import render_page
    from agentmark.demo.run import run_demo
    from agentmark.demo.text import render_text

    result = run_demo(arguments.out, seed=arguments.seed, progress=show_progress)
    (arguments.out / "demo.html").write_text(render_page(result), encoding="utf-8")
    print(render_text(result))
    return EXIT_ATTRIBUTED if all(recovery.verdict.accepted for recovery in result.recoveries) else EXIT_NOT_ATTRIBUTED
