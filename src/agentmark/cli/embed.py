"""`agentmark embed`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from agentmark.chain.writer import ChainWriter
from agentmark.cli.common import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    add_key_option,
    load_one_key,
    new_command,
    print_json,
    text,
)
from agentmark.cli.weight_lines import input_lines, parse_payload, parse_weight_lines
from agentmark.core.errors import AgentMarkError
from agentmark.core.schemes import DEFAULT_SCHEME, SCHEMES
from agentmark.embed.embedder import Embedder
from agentmark.errors import SettingError
from agentmark.files import FileError
from agentmark.identity.registry import Registry
from agentmark.keys.signing import SigningKey
from agentmark.log.jsonl import LogWriter
from agentmark.record import StepRecord


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
    parser.add_argument(
        "--payload", type=text, required=True, help="a number, 0x..., text that fits, or a name in the registry"
    )
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="needed for a number")
    parser.add_argument("--registry", type=Path, metavar="FILE", help="where the payload's name is looked up")
    described = ", ".join([f"{scheme.name} ({scheme.summary})" for scheme in SCHEMES.values()])
    parser.add_argument(
        "--scheme", choices=list(SCHEMES), default=DEFAULT_SCHEME, help=f"{described}; default {DEFAULT_SCHEME}"
    )
    parser.add_argument("--session", type=text, metavar="ID", help="go on with this session (with --first-step)")
    parser.add_argument("--first-step", type=int, metavar="N", help="with --session: index of its next decision")
    parser.add_argument(
        "--keep-going", action="store_true", help='answer an unusable list with {"choice": null, "error": ...}'
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append the records to this file")
    parser.add_argument("--chain", action="store_true", help="with --log: link each record to the one before it")
    parser.add_argument(
        "--signing-key", type=Path, metavar="FILE", help="with --chain: also sign checkpoints (agentmark signing-key)"
    )
    parser.add_argument(
        "--former-key",
        action="append",
        default=[],
        metavar="HEX",
        help="with --signing-key: a public key that signed this log before; its sessions are gone on with",
    )
    parser.add_argument(
        "--signer-file",
        type=Path,
        metavar="FILE",
        help="with --signing-key: where to keep what was written with it (default: beside the log, as LOG.KEY.signer)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    registry = Registry.load(arguments.registry) if arguments.registry else None
    embedder = Embedder(
        load_one_key(arguments),
        arguments.payload if registry else parse_payload(arguments.payload),
        payload_len=arguments.payload_len,
        scheme=arguments.scheme,
        registry=registry,
    )
    if (arguments.session is None) != (arguments.first_step is None):
        # From step 0 again, a session that goes on would mark contexts that it has used.
        raise SettingError("--session", "goes together with --first-step")
    session = embedder.session(arguments.session, first_step=arguments.first_step or 0)
    log = _open_log(arguments)
    unusable = 0
    try:
        for line in parse_weight_lines(input_lines(sys.stdin)):
            try:
                choice = session.choose(line.weights, context=line.context, meta=line.meta)
            except AgentMarkError as error:
                fault = SettingError(f"line {line.number}", str(error))
                if not arguments.keep_going:
                    raise fault from None
                print_json({"choice": None, "error": str(fault)})
                unusable += 1
                continue
            output: dict[str, Any] = {"choice": choice.behavior}
            if log is None:
                output["record"] = choice.record.as_dict()
            else:
                _write(log, choice.record)
            print_json(output)
    finally:
        if log is not None:
            log.close()
    return EXIT_BAD_INPUT if unusable else EXIT_DONE


def _write(log: LogWriter, record: StepRecord) -> None:
    try:
        log.write(record)
    except OSError as error:
        raise FileError(log.path, f"cannot be written: {error.strerror}") from None


def _open_log(arguments: argparse.Namespace) -> LogWriter | None:
    if arguments.signing_key and not arguments.chain:
        raise SettingError("--signing-key", "signs the checkpoints of a chain; give --chain as well")
    for option, given in (("--former-key", arguments.former_key), ("--signer-file", arguments.signer_file)):
        if given and not arguments.signing_key:
            raise SettingError(option, "is for a log that is signed; give --signing-key as well")
    if not arguments.log:
        if arguments.chain:
            raise SettingError("--chain", "links the records of a log; give --log as well")
        return None
    if not arguments.chain:
        return LogWriter(arguments.log)
    key = SigningKey.load(arguments.signing_key) if arguments.signing_key else None
    chain = ChainWriter(key, predecessors=arguments.former_key)
    return LogWriter(arguments.log, chain=chain, signer_file=arguments.signer_file)
