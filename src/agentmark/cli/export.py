"""`agentmark export`."""

import argparse
from typing import Any

from agentmark.cli.common import EXIT_DONE, file_path, new_command, printable, text
from agentmark.cli.store_options import add_store_argument, moment
from agentmark.text import counted


def add_parser(commands: Any) -> None:
    from agentmark.log.record_file import LINES, PACKED_LINES, TABLE

    parser = new_command(
        commands,
        "export",
        "Write the records of a gateway's store to one file: JSON lines, or a Parquet table.",
        "examples:\n"
        "  agentmark export store.db -o log.jsonl\n"
        "  agentmark export postgresql://reader@db.internal/agents --tenant acme --since 2026-11-01 -o acme.parquet",
    )
    add_store_argument(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=file_path,
        required=True,
        metavar="FILE",
        help=f"a new file, whose ending says what it is: {LINES}, {PACKED_LINES} or {TABLE} (docs/convert.md)",
    )
    parser.add_argument("--session", type=text, metavar="ID", help="only the records of this session")
    parser.add_argument("--tenant", type=text, metavar="NAME", help="only the records of this tenant")
    parser.add_argument(
        "--since", type=moment, metavar="TIME", help="only what was written since then: 2026-11-18, or with a time"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.progress import ProgressLine
    from agentmark.log.record_file import check_record_file
    from agentmark.store.open import open_store

    check_record_file(arguments.out)
    store = open_store(arguments.store)
    with ProgressLine() as progress:
        count = store.export(
            arguments.out,
            session=arguments.session,
            tenant=arguments.tenant,
            since=arguments.since,
            progress=lambda done: progress.count(done, None, "records"),
        )
    print(printable(f"{arguments.out}: {counted(count, 'record')} from {store.name}"))
    return EXIT_DONE
