"""`agentmark inspect`."""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, LOG_HELP, add_limit_option, limits_of, new_command, printable
from agentmark.core.schemes import SCHEMES
from agentmark.core.theory import entropy
from agentmark.errors import SettingError
from agentmark.log.read.open import read_log
from agentmark.log.read.summary import LogSummary
from agentmark.record import StepRecord
from agentmark.verify.intake import outcomes_without_key


def add_parser(commands: Any) -> None:
    parser = new_command(commands, "inspect", "Say what a log holds. Needs no key.")
    parser.add_argument("log", type=Path, help=LOG_HELP)
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="also show the first N decisions")
    parser.add_argument("--skip-bad", action="store_true", help="pass over broken records")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.steps < 0:
        raise SettingError("--steps", f"{arguments.steps} is not a number of decisions")
    log = read_log(arguments.log, skip_bad=arguments.skip_bad, limits=limits_of(arguments))
    for line in [*_lines(log.records, log.summary), *map(_step_line, log.records[: arguments.steps])]:
        print(printable(line))
    return EXIT_DONE


def _lines(records: list[StepRecord], summary: LogSummary) -> Iterator[str]:
    outcomes = outcomes_without_key(records)
    # What a verifier would count: a step once, and none that the agent did not obey.
    marked = [record for record, outcome in zip(records, outcomes, strict=True) if outcome is None]
    sessions = {record.session for record in records}
    yield f"{summary.path}: {len(records)} records, {len(marked)} marked, {len(sessions)} sessions"
    without = f", {summary.skipped} entries without a record" if summary.skipped else ""
    yield f"  format: {summary.format}{without}"
    for outcome, count in sorted(Counter(filter(None, outcomes)).items()):
        yield f"  not counted: {count} {outcome}"
    for key_id, scheme, payload_len in sorted({(r.key_id, r.scheme, r.payload_len) for r in records}):
        mine = [r for r in marked if (r.key_id, r.scheme, r.payload_len) == (key_id, scheme, payload_len)]
        yield f"  key {key_id}, scheme {scheme}, payload of {payload_len} bits: {len(mine)} marked steps"
        if mine:
            distributions = [r.distribution for r in mine if r.distribution is not None]
            evidence = sum([SCHEMES[scheme].capacity(distribution) for distribution in distributions])
            yield (
                f"    mean candidates {sum(map(len, distributions)) / len(mine):.1f}, "
                f"mean entropy {sum(map(entropy, distributions)) / len(mine):.2f} bits, "
                f"expected evidence {evidence:.0f} bits in all"
            )
    for reason, count in sorted(Counter(r.reason for r in records if r.reason is not None).items()):
        yield f"  unmarked: {count} because of: {reason}"
    for number in summary.torn_lines:
        yield f"  line {number} was cut short by a crash and passed over"
    for note in [*summary.damage, *summary.bad_lines]:
        yield f"  passed over: {note}"
    for more in summary.further:
        yield f"  passed over: {more}"


def _step_line(record: StepRecord) -> str:
    shares = []
    if record.distribution is not None:
        for name in record.distribution.behaviors:
            shown = f"[{name}]" if name == record.behavior else name
            shares.append(f"{shown} {record.distribution.probability(name):.0%}")
    return f"  {record.where}: {', '.join(shares) or record.behavior}"
