"""`agentmark inspect`."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import EXIT_DONE, LOG_HELP, new_command
from agentmark.core.theory import capacity, entropy, race_capacity
from agentmark.readers import open_log
from agentmark.record import StepRecord


def add_parser(commands: Any) -> None:
    parser = new_command(commands, "inspect", "Say what a log holds. Needs no key.")
    parser.add_argument("log", type=Path, help=LOG_HELP)
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="also show the first N decisions")
    parser.add_argument("--skip-bad", action="store_true", help="pass over broken records")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    reader = open_log(arguments.log, skip_bad=arguments.skip_bad)
    records = list(reader)
    sessions = {record.session for record in records}
    marked = [record for record in records if record.marked]
    print(f"{arguments.log}: {len(records)} records, {len(marked)} marked, {len(sessions)} sessions")
    without = f", {reader.skipped} entries without a record" if reader.skipped else ""
    print(f"  format: {reader.format}{without}")
    groups = sorted({(r.key_id, r.scheme, r.payload_len) for r in records})
    for key_id, scheme, payload_len in groups:
        mine = [r for r in marked if (r.key_id, r.scheme, r.payload_len) == (key_id, scheme, payload_len)]
        print(f"  key {key_id}, scheme {scheme}, payload of {payload_len} bits: {len(mine)} marked steps")
        if mine:
            distributions = [r.distribution for r in mine if r.distribution is not None]
            carried = capacity if scheme == "F" else race_capacity
            evidence = sum([carried(distribution) for distribution in distributions])
            print(
                f"    mean candidates {sum(map(len, distributions)) / len(mine):.1f}, "
                f"mean entropy {sum(map(entropy, distributions)) / len(mine):.2f} bits, "
                f"expected evidence {evidence:.0f} bits in all"
            )
    reasons = sorted({r.reason for r in records if r.reason is not None})
    for reason in reasons:
        print(f"  unmarked: {sum(r.reason == reason for r in records)} because of: {reason}")
    for line in reader.torn_lines:
        print(f"  line {line} was cut short by a crash and passed over")
    for note in [*reader.damage, *reader.bad_lines]:
        print(f"  passed over: {note}")
    for record in records[: arguments.steps]:
        print(_step_line(record))
    return EXIT_DONE


def _step_line(record: StepRecord) -> str:
    shares = []
    if record.distribution is not None:
        for name in record.distribution.behaviors:
            shown = f"[{name}]" if name == record.behavior else name
            shares.append(f"{shown} {record.distribution.probability(name):.0%}")
    return f"  {record.where}: {', '.join(shares) or record.behavior}"
