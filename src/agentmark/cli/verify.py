"""`agentmark verify`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_ATTRIBUTED, EXIT_NOT_ATTRIBUTED, add_key_option, load_keys, new_command
from agentmark.intake import USED
from agentmark.log import LogReader
from agentmark.registry import Registry
from agentmark.verdict import DEFAULT_THRESHOLD, Verdict
from agentmark.verify import Verifier


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "verify",
        "Read the identity from whatever is left of a log.",
        "exit status: 0 attributed, 1 not attributed, 2 bad input\n"
        "example:\n  agentmark verify log.jsonl --key key.json --registry registry.jsonl",
    )
    parser.add_argument("log", type=Path, nargs="+", help="JSON lines, plain or gzip; several are pooled")
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="names of the identities")
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="default: what most records state")
    parser.add_argument(
        "--threshold",
        type=float,
        default=DEFAULT_THRESHOLD,
        help="accept only below this false-positive bound (default %(default)g)",
    )
    parser.add_argument(
        "--any-key-id", action="store_true", help="read all records with this key, whatever id they state"
    )
    parser.add_argument("--skip-bad", action="store_true", help="judge the rest of a log that holds broken records")
    parser.add_argument("--control", action="store_true", help="also read the log with a random key, for comparison")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    readers = [LogReader(path, skip_bad=arguments.skip_bad) for path in arguments.log]
    records = [record for reader in readers for record in reader]
    verifier = Verifier(
        load_keys(arguments),
        payload_len=arguments.payload_len,
        threshold=arguments.threshold,
        registry=Registry.load(arguments.registry) if arguments.registry else None,
        any_key_id=arguments.any_key_id,
    )
    verdict = verifier.verify(records)
    control = verifier.control(records) if arguments.control else None
    passed_over = [f"{reader.path}:{line}: cut short by a crash" for reader in readers for line in reader.torn_lines]
    passed_over += [str(error) for reader in readers for error in reader.bad_lines]
    if arguments.json:
        content = verdict.as_dict() | {
            "passed_over": passed_over,
            "control": None if control is None else control.as_dict(),
        }
        print(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_verdict_lines(verdict, control)))
        for line in passed_over:
            print(f"passed over: {line}", file=sys.stderr)
    return EXIT_ATTRIBUTED if verdict.accepted else EXIT_NOT_ATTRIBUTED


def _verdict_lines(verdict: Verdict, control: Verdict | None) -> list[str]:
    outcomes = [f"{verdict.counts[USED]} used"]
    outcomes += [f"{count} {outcome}" for outcome, count in sorted(verdict.counts.items()) if outcome != USED]
    lines = [
        verdict.sentence,
        "",
        f"  records       {verdict.record_count}: {', '.join(outcomes)}",
        f"  scheme        {' and '.join(verdict.schemes) or '-'}, payload of {verdict.payload_len} bits",
        f"  evidence      {_evidence(verdict)}",
        f"  consistent    {_CONSISTENT[verdict.consistent]}",
        f"  bound         {verdict.false_positive_rate:.2g} (accepted at {verdict.threshold:g} or below)",
    ]
    if verdict.context_mismatches:
        lines.append(
            f"  tampering     {verdict.context_mismatches} records whose raw context is not that of their digest"
        )
    if control is not None:
        lines.append(f"  control       with a random key: {control.sentence}")
    return lines


def _evidence(verdict: Verdict) -> str:
    said = f"{verdict.potential_bits:.1f} bits if every step agrees, rank {verdict.rank} of {verdict.payload_len}"
    if verdict.candidate is None:
        return said
    return (
        f"{verdict.evidence_bits:.1f} bits for the best payload less {verdict.bits_paid:.1f} for naming it "
        f"({verdict.route}; {said})"
    )


_CONSISTENT = {True: "yes: one payload explains every used step", False: "no", None: "not settled by this log"}
