"""`agentmark embed`."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_ATTRIBUTED, add_key_option, load_one_key, new_command
from agentmark.core.errors import AgentMarkError, SettingError
from agentmark.embed import Embedder
from agentmark.log import LogWriter
from agentmark.record import SCHEMES
from agentmark.registry import Registry


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "embed",
        "Choose behaviors: weights on standard input, one JSON object a line; choices and records on standard output.",
        "input lines:\n"
        '  {"Search": 0.6, "Book": 0.4}\n'
        '  {"weights": {"Search": 0.6, "Book": 0.4}, "context": {"observation": "..."}}\n'
        "output lines:\n"
        '  {"choice": "Book", "record": {...}}   (with --log the record goes to the file instead)\n'
        "example:\n"
        '  echo \'{"Search": 0.6, "Book": 0.4}\' | agentmark embed --key key.json --payload 42 --payload-len 32',
    )
    add_key_option(parser)
    parser.add_argument("--payload", required=True, help="a number, 0x..., text that fits, or a name in the registry")
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="needed for a number")
    parser.add_argument("--registry", type=Path, metavar="FILE", help="where the payload's name is looked up")
    parser.add_argument("--scheme", choices=SCHEMES, default="F", help="the paper's F (default) or the race R")
    parser.add_argument("--session", metavar="ID", help="go on with this session (with --first-step)")
    parser.add_argument(
        "--first-step", type=int, default=0, metavar="N", help="index of the first decision (default 0)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append the records to this file")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    registry = Registry.load(arguments.registry) if arguments.registry else None
    embedder = Embedder(
        load_one_key(arguments),
        arguments.payload if registry else _payload(arguments.payload),
        payload_len=arguments.payload_len,
        scheme=arguments.scheme,
        registry=registry,
    )
    session = embedder.session(arguments.session, first_step=arguments.first_step)
    log = LogWriter(arguments.log) if arguments.log else None
    try:
        for number, weights, context in _weight_lines():
            try:
                choice = session.choose(weights, context=context)
            except AgentMarkError as error:
                raise SettingError(f"line {number}", str(error)) from None
            output: dict[str, Any] = {"choice": choice.behavior}
            if log is None:
                output["record"] = choice.record.as_dict()
            else:
                log.write(choice.record)
            print(json.dumps(output, ensure_ascii=False), flush=True)
    finally:
        if log is not None:
            log.close()
    return EXIT_ATTRIBUTED


def _payload(text: str) -> int | str:
    try:
        return int(text, 0)
    except ValueError:
        return text


def _weight_lines() -> Iterator[tuple[int, list[tuple[str, Any]], dict[str, object] | None]]:
    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            # Pairs, not objects: a name that appears twice must reach the check for it.
            members = json.loads(line, object_pairs_hook=_Pairs)
        except ValueError as error:
            raise SettingError(f"line {number}", f"is not valid JSON: {error}") from None
        if not isinstance(members, _Pairs):
            raise SettingError(f"line {number}", "is not a JSON object of weights")
        named = dict(members)
        if isinstance(named.get("weights"), _Pairs):
            context = named.get("context")
            yield number, named["weights"], _plain(context) if isinstance(context, _Pairs) else None
        else:
            yield number, members, None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs."""


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(item) for name, item in value}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
