"""`agentmark verify`."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_NOT_ATTRIBUTED,
    add_key_option,
    load_keys,
    new_command,
    show_progress,
)
from agentmark.core.errors import SettingError
from agentmark.core.payload import payload_to_int
from agentmark.decode.splice import SHORTEST_WINDOW, Stretch, segment
from agentmark.intake import USED, Intake
from agentmark.keys import SharedKey
from agentmark.log import LogReader
from agentmark.record import StepRecord
from agentmark.registry import Registry
from agentmark.verdict import DEFAULT_THRESHOLD, Segment, Verdict
from agentmark.verify import Verifier

if TYPE_CHECKING:
    from agentmark.report import InputFile, Report

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
        "  agentmark verify log.jsonl --key key.json --report report.html",
    )
    parser.add_argument("log", type=Path, nargs="+", help="JSON lines, plain or gzip; several are pooled")
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
    parser.add_argument("--skip-bad", action="store_true", help="judge the rest of a log that holds broken records")
    parser.add_argument("--control", action="store_true", help="also read the log with a random key, for comparison")
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
    outputs = _outputs(arguments)
    keys = load_keys(arguments)
    files = _files(arguments) if outputs else []
    registry = Registry.load(arguments.registry) if arguments.registry else None
    readers = [LogReader(path, skip_bad=arguments.skip_bad) for path in arguments.log]
    records = [record for reader in readers for record in reader]
    verifier = Verifier(
        keys,
        payload_len=arguments.payload_len,
        threshold=arguments.threshold,
        registry=registry,
        noise=arguments.noise,
        any_key_id=arguments.any_key_id,
    )
    claim = _claim(arguments.claim, verifier, registry, records)
    verdict = verifier.verify(records, claim=claim)
    wants_control = arguments.control or bool(outputs)
    control = verifier.control(records, claim=claim) if wants_control else None
    passed_over = [f"{reader.path}:{line}: cut short by a crash" for reader in readers for line in reader.torn_lines]
    passed_over += [str(error) for reader in readers for error in reader.bad_lines]
    passed_over += [str(error) for reader in readers for error in reader.bad_checkpoints]
    report = None
    if outputs and control is not None:
        case = _Case(verifier, records, verifier.take_in(records), keys, registry, files, passed_over)
        report = _report(arguments, case, verdict, control)
        _write(report, arguments)
    _print(arguments, verdict, control, passed_over, report)
    return EXIT_ATTRIBUTED if verdict.accepted else EXIT_NOT_ATTRIBUTED


@dataclass(frozen=True, slots=True)
class _Case:
    """What was read, and with what."""

    verifier: Verifier
    records: Sequence[StepRecord]
    intake: Intake
    keys: Sequence[SharedKey]
    registry: Registry | None
    files: Sequence["InputFile"]
    passed_over: Sequence[str]


def _claim(
    text: str | None, verifier: Verifier, registry: Registry | None, records: Sequence[StepRecord]
) -> int | None:
    if text is None:
        return None
    if registry is not None and any(identity.name == text for identity in registry):
        return registry.named(text).payload
    payload: int | str
    try:
        payload = int(text, 0)
    except ValueError:
        payload = text
    payload_len = verifier.payload_len
    if payload_len is None:
        payload_len = verifier.take_in(records).payload_len
    return payload_to_int(payload, payload_len)[0]


def _print(
    arguments: argparse.Namespace,
    verdict: Verdict,
    control: Verdict | None,
    passed_over: Sequence[str],
    report: "Report | None",
) -> None:
    if not arguments.json:
        print("\n".join(_verdict_lines(verdict, control)))
        for line in passed_over:
            print(f"passed over: {line}", file=sys.stderr)
        return
    content: Any = report or verdict.as_dict() | {
        "passed_over": passed_over,
        "control": None if control is None else control.as_dict(),
    }
    print(json.dumps(content, ensure_ascii=False, indent=2))


def _outputs(arguments: argparse.Namespace) -> list[Path]:
    """The files to write; refused now if they cannot be meant, not after the work is done."""
    if (arguments.signed is None) != (arguments.signing_key is None):
        raise SettingError("--signed", "goes together with --signing-key")
    if arguments.segments and arguments.report is None and arguments.signed is None:
        raise SettingError("--segments", "goes into a report: give --report or --signed")
    outputs = [path for path in (arguments.report, arguments.signed) if path is not None]
    inputs = [*arguments.log, *(arguments.key or []), arguments.registry, arguments.signing_key]
    for path in outputs:
        if not path.parent.is_dir():
            raise SettingError(str(path), "there is no such folder")
        for source in inputs:
            if source is not None and path.exists() and source.exists() and path.samefile(source):
                raise SettingError(str(path), "is read by this command; it would be overwritten")
    if arguments.signed is not None:
        from agentmark.signing import SigningKey

        SigningKey.load(arguments.signing_key)
    return outputs


def _files(arguments: argparse.Namespace) -> list["InputFile"]:
    from agentmark.report import describe_file

    files = [describe_file("log", path) for path in arguments.log]
    if arguments.registry:
        files.append(describe_file("registry", arguments.registry))
    return files


def _report(arguments: argparse.Namespace, case: _Case, verdict: Verdict, control: Verdict) -> "Report":
    from agentmark.report import Provenance, build_report

    segments, hints = _segments(arguments, case, _foreign_stretches(case, verdict))
    return build_report(
        verdict,
        control=control,
        intake=case.intake,
        noise_rates=case.verifier.noise_rates,
        provenance=Provenance(
            made_at=datetime.now(UTC),
            command=_command(arguments),
            key_ids=[key.id for key in case.keys],
            inputs=case.files,
        ),
        claim=arguments.claim,
        registry_size=None if case.registry is None else len(case.registry),
        findings=[*hints, *_changed_files(arguments, case.files)],
        passed_over=case.passed_over,
        segments=segments,
    )


def _foreign_stretches(case: _Case, verdict: Verdict) -> list[Stretch]:
    """Stretches that the accepted identity does not explain: another agent's, if they are long."""
    if not verdict.accepted or verdict.candidate is None or verdict.contradicting == 0:
        return []
    readings = [step.reading for step in case.intake.steps]
    stretches = segment(readings, [verdict.candidate], bits_paid=lambda _: verdict.bits_paid)
    return [s for s in stretches if s.payload is None and s.last - s.first + 1 >= SHORTEST_WINDOW]


def _segments(
    arguments: argparse.Namespace, case: _Case, foreign: Sequence[Stretch]
) -> tuple[tuple[Segment, ...], list[str]]:
    """The stretches of a spliced log; where looking for them takes long and was not asked for, a sentence instead."""
    if arguments.segments or (foreign and len(case.records) <= SEGMENTED_UNASKED):
        show_progress("looking for stretches of several identities")
        segments = case.verifier.segments(case.records)
        return (segments if len(segments) > 1 else ()), []
    places = ", ".join(f"{stretch.first + 1} to {stretch.last + 1}" for stretch in foreign)
    hint = f"records {places} do not fit this identity: another agent's, perhaps; --segments looks for whose they are"
    return (), [hint] if foreign else []


def _changed_files(arguments: argparse.Namespace, files: Sequence["InputFile"]) -> list[str]:
    """Files that were not the same after reading as before: the digest may not be that of what was judged."""
    after = _files(arguments)
    return [
        f"{file['path']} changed while it was read; its digest is that of the file before"
        for file, later in zip(files, after, strict=True)
        if file != later
    ]


def _command(arguments: argparse.Namespace) -> str:
    """The command that gives this verdict again. Keys appear as file names, never as secrets."""
    words = ["agentmark", "verify", *[_path(path) for path in arguments.log]]
    for path in arguments.key or []:
        words += ["--key", _path(path)]
    if arguments.registry:
        words += ["--registry", _path(arguments.registry)]
    if arguments.claim is not None:
        words.append(f"--claim={arguments.claim}")
    if arguments.payload_len is not None:
        words += ["--payload-len", str(arguments.payload_len)]
    if arguments.threshold != DEFAULT_THRESHOLD:
        words += ["--threshold", f"{arguments.threshold!r}"]
    if arguments.noise is not None:
        words += ["--noise", f"{arguments.noise!r}"]
    words += ["--any-key-id"] if arguments.any_key_id else []
    words += ["--skip-bad"] if arguments.skip_bad else []
    joined = shlex.join([*words, "--control"])
    # File names need not be UTF-8; the report is.
    return joined.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _path(path: Path) -> str:
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def _write(report: "Report", arguments: argparse.Namespace) -> None:
    from agentmark.report import render_report, sign_report

    if arguments.report is not None:
        as_data = arguments.report.suffix == ".json"
        text = _as_json(report) if as_data else render_report(report)
        arguments.report.write_text(text, encoding="utf-8")
    if arguments.signed is not None:
        from agentmark.signing import SigningKey

        signed = sign_report(report, SigningKey.load(arguments.signing_key))
        arguments.signed.write_text(_as_json(signed), encoding="utf-8")


def _as_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


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
        f"  bound         {verdict.bound_text} (accepted at {verdict.threshold:g} or below)",
    ]
    lines += [f"  tampering     {finding}" for finding in verdict.tampering]
    if control is not None:
        lines.append(f"  control       with a random key: {control.sentence}")
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
