"""`agentmark verify`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.chain.checkpoint import Checkpoint
from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_NOT_ATTRIBUTED,
    LOG_HELP,
    add_key_option,
    load_keys,
    new_command,
    printable,
    show_progress,
)
from agentmark.cli.weight_lines import parse_payload
from agentmark.core.payload import payload_to_int
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.signing import check_public_key
from agentmark.log.read.files import log_files
from agentmark.log.read.open import read_log
from agentmark.record import RecordError, StepRecord
from agentmark.verify.intake import USED
from agentmark.verify.search.symbols import DEFAULT_SEARCH_LIMIT
from agentmark.verify.verdict import DEFAULT_THRESHOLD, Placement, Verdict
from agentmark.verify.verifier import DEFAULT_OFFSETS, Verifier

if TYPE_CHECKING:
    from agentmark.report import ChainPart, Report

# Looking for stretches decodes many windows of a log: seconds for this many records, minutes for a thousand.
SEGMENTED_UNASKED = 300


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "verify",
        "Read the identity from whatever is left of a log.",
        "exit status: 0 attributed, 1 not attributed, 2 bad input\n"
        "examples:\n"
        "  agentmark verify log.jsonl --key key.json --registry registry.jsonl\n"
        "  agentmark verify log.jsonl --key key.json --registry registry.jsonl --claim tenant-0042\n"
        "  agentmark verify log.jsonl --key key.json --report report.html\n"
        "  agentmark verify part.jsonl --key key.json --find-offset --session ID",
    )
    parser.add_argument("log", type=Path, nargs="+", help=LOG_HELP + "; several, and folders of them, are pooled")
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="names of the identities")
    parser.add_argument(
        "--claim",
        metavar="PAYLOAD",
        help="only ask whether it is this identity: a name in the registry, a number, 0x..., or text that fits",
    )
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="default: what most records state")
    parser.add_argument(
        "--threshold",
        type=float,
        default=DEFAULT_THRESHOLD,
        help="accept only below this false-positive bound (default %(default)g)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="RATE",
        help="share of foreign or altered steps to expect (default: a mixture of rates; 0 tolerates none)",
    )
    parser.add_argument(
        "--any-key-id", action="store_true", help="read all records with this key, whatever id they state"
    )
    parser.add_argument(
        "--find-offset",
        action="store_true",
        help="the records are consecutive steps of one session (--session) that have lost their numbers and digests: "
        "find their place in it. Every place tried is paid for",
    )
    parser.add_argument("--session", metavar="ID", help="with --find-offset: the session they are from")
    parser.add_argument(
        "--offsets",
        type=int,
        metavar="N",
        help=f"with --find-offset: how many places to try, from the first step on (default {DEFAULT_OFFSETS})",
    )
    parser.add_argument(
        "--search-limit",
        type=int,
        default=DEFAULT_SEARCH_LIMIT,
        metavar="N",
        help="how many guesses a search for the payload may take (default %(default)s)",
    )
    parser.add_argument("--skip-bad", action="store_true", help="judge the rest of a log that holds broken records")
    parser.add_argument("--control", action="store_true", help="also read the log with a random key, for comparison")
    parser.add_argument(
        "--public-key",
        action="append",
        metavar="HEX",
        help="who must have signed the checkpoints of a chained log; give it again for each key of a rotation. The "
        "chain is reported and never part of the verdict",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the verdict as JSON; with --report or --signed, the whole report"
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write a report: one HTML page, or data if the name ends in .json"
    )
    parser.add_argument(
        "--segments",
        action="store_true",
        help="in a report, also look for stretches of several identities, however long it takes (by default only in "
        f"logs of up to {SEGMENTED_UNASKED} records that show signs of it)",
    )
    parser.add_argument("--signed", type=Path, metavar="FILE", help="write the report as signed JSON")
    parser.add_argument("--signing-key", type=Path, metavar="FILE", help="for --signed: see `agentmark signing-key`")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    arguments.log = log_files(arguments.log)
    case = None
    if arguments.report or arguments.signed or arguments.signing_key or arguments.segments:
        from agentmark.cli.verify_report import ReportCase

        case = ReportCase(arguments)
    keys = load_keys(arguments)
    registry = Registry.load(arguments.registry) if arguments.registry else None
    logs = [_read(path, skip_bad=arguments.skip_bad) for path in arguments.log]
    records = [record for log in logs for record in log.records]
    verifier = Verifier(
        keys,
        payload_len=arguments.payload_len,
        threshold=arguments.threshold,
        registry=registry,
        noise=arguments.noise,
        any_key_id=arguments.any_key_id,
        search_limit=arguments.search_limit,
    )
    claim = _claim(arguments.claim, verifier, registry, records)
    place = None
    if arguments.find_offset:
        place = _locate(arguments, verifier, records, claim)
        verifier, verdict = verifier.for_tries(place.tried), place.verdict
        records = [finding.record for finding in verdict.findings]
    else:
        verdict = verifier.verify(records, claim=claim)
    control = verifier.control(records, claim=claim) if arguments.control or case else None
    chains = _chains(logs, arguments.public_key)
    passed_over = [line for log in logs for line in log.passed_over]
    report = None
    if case is not None and control is not None:
        report = case.write(
            verifier,
            verdict,
            control,
            keys=keys,
            registry=registry,
            place=place,
            chains=chains,
            lost=passed_over,
        )
    _print(arguments, _Answer(verdict, control, place, chains, passed_over, report))
    return EXIT_ATTRIBUTED if verdict.accepted else EXIT_NOT_ATTRIBUTED


def _check(arguments: argparse.Namespace) -> None:
    """What cannot be meant is refused now, not after the work is done."""
    if arguments.find_offset != (arguments.session is not None):
        raise SettingError("--find-offset", "goes together with --session")
    if arguments.offsets is not None and not arguments.find_offset:
        raise SettingError("--offsets", "goes together with --find-offset")
    if arguments.offsets is not None and arguments.offsets < 1:
        raise SettingError("--offsets", f"{arguments.offsets} is not a number of places")
    if arguments.search_limit < 1:
        raise SettingError("--search-limit", f"{arguments.search_limit} is not a number of guesses")
    for public_key in arguments.public_key or ():
        check_public_key(public_key)


def _locate(
    arguments: argparse.Namespace, verifier: Verifier, records: Sequence[StepRecord], claim: int | None
) -> Placement:
    offsets = range(arguments.offsets or DEFAULT_OFFSETS)
    show_progress(f"trying {len(offsets)} places in session {arguments.session}")
    return verifier.locate(arguments.session, records, offsets=offsets, claim=claim)


# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Log:
    """One log: its records with their lines, its checkpoints, and what could not be read."""

    path: Path
    records: list[StepRecord]
    # None where a format has no lines, or several records on one.
    lines: list[int] | None
    checkpoints: list[Checkpoint]
    bad_lines: list[RecordError]
    bad_checkpoints: list[RecordError]
    passed_over: list[str]


def _read(path: Path, *, skip_bad: bool) -> _Log:
    """The one place where records are read."""
    log = read_log(path, skip_bad=skip_bad)
    return _Log(
        path=path,
        records=log.records,
        lines=log.lines,
        checkpoints=list(log.summary.checkpoints),
        bad_lines=list(log.summary.bad_lines),
        bad_checkpoints=list(log.summary.bad_checkpoints),
        passed_over=log.summary.passed_over,
    )


def _claim(
    text: str | None, verifier: Verifier, registry: Registry | None, records: Sequence[StepRecord]
) -> int | None:
    if text is None:
        return None
    if registry is not None and any(identity.name == text for identity in registry):
        return registry.named(text).payload
    payload_len = verifier.payload_len
    if payload_len is None:
        payload_len = verifier.take_in(records).payload_len
    return payload_to_int(parse_payload(text), payload_len)[0]


def _chains(logs: Sequence[_Log], public_keys: Sequence[str] | None) -> list["ChainPart"]:
    """What the chain of each log shows: of those that have one, and of all if somebody is to have signed them."""
    chained = [
        log
        for log in logs
        if public_keys or log.checkpoints or log.bad_checkpoints or any(record.prev for record in log.records)
    ]
    if not chained:
        return []
    from agentmark.report import describe_chain

    return [
        describe_chain(
            log.path,
            log.records,
            log.checkpoints,
            public_keys=public_keys,
            lines=log.lines,
            bad_lines=log.bad_lines,
            bad_checkpoints=log.bad_checkpoints,
        )
        for log in chained
    ]


# Printing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """All that there is to say."""

    verdict: Verdict
    control: Verdict | None
    place: Placement | None
    chains: Sequence["ChainPart"]
    passed_over: Sequence[str]
    report: "Report | None"


def _print(arguments: argparse.Namespace, answer: _Answer) -> None:
    if not arguments.json:
        print("\n".join(map(printable, _lines(answer))))
        for line in answer.passed_over:
            print(f"passed over: {printable(line)}", file=sys.stderr)
        return
    content: Any = answer.report or answer.verdict.as_dict() | {
        "passed_over": answer.passed_over,
        "control": None if answer.control is None else answer.control.as_dict(),
        "place": None if answer.place is None else {"offset": answer.place.offset, "tried": answer.place.tried},
        "chains": answer.chains,
    }
    print(json.dumps(content, ensure_ascii=False, indent=2))


def _lines(answer: _Answer) -> list[str]:
    verdict = answer.verdict
    outcomes = [f"{verdict.counts[USED]} used"]
    outcomes += [f"{count} {outcome}" for outcome, count in sorted(verdict.counts.items()) if outcome != USED]
    lines = [
        verdict.sentence,
        "",
        f"  records       {verdict.record_count}: {', '.join(outcomes)}",
        f"  scheme        {' and '.join(verdict.schemes) or '-'}, payload of {verdict.payload_len} bits",
        f"  evidence      {_evidence(verdict)}",
        f"  consistent    {_CONSISTENT[verdict.consistent]}",
        f"  bound         {verdict.bound_text} (accepted at {verdict.threshold:g} or below)",
    ]
    if answer.place is not None:
        where = "none proved" if answer.place.offset is None else f"from step {answer.place.offset} on"
        lines.append(f"  place         {where}; {answer.place.tried} tried and paid for")
    lines += [f"  tampering     {finding}" for finding in verdict.tampering]
    lines += [f"  chain         {chain['log']}: {chain['sentence']}" for chain in answer.chains]
    if answer.control is not None:
        lines.append(f"  control       with a random key: {answer.control.sentence}")
    return lines


def _evidence(verdict: Verdict) -> str:
    said = f"{verdict.potential_bits:.1f} bits if every step agrees, rank {verdict.rank} of {verdict.payload_len}"
    if verdict.candidate is None:
        return said
    if isinf(verdict.evidence_bits):
        return f"the payload is ruled out: a step contradicts it, and no noise is allowed for ({said})"
    return (
        f"{verdict.evidence_bits + 0.0:.1f} bits for the best payload less {verdict.bits_paid:.1f} for naming it "
        f"({verdict.route}; {said})"
    )


_CONSISTENT = {True: "yes: one payload explains every used step", False: "no", None: "not settled by this log"}
