"""`agentmark verify`."""

import argparse
import sys
from collections.abc import Sequence
from math import isinf
from pathlib import Path

from agentmark.audit.case import Answer, Case, LostPlace, ReportOrder
from agentmark.audit.material import Material
from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_NOT_ATTRIBUTED,
    EXIT_NOTHING_USABLE,
    limits_of,
    load_keys,
    print_json,
    printable,
)
from agentmark.cli.input import given_logs
from agentmark.cli.judging_options import check_work_limit
from agentmark.cli.progress import ProgressLine
from agentmark.cli.public_options import check_public_options, public_question, signers_of
from agentmark.cli.roll import STDOUT, keys_line, run_roll
from agentmark.cli.roll_report import is_folder
from agentmark.cli.verify_report import ALL, ReportFiles, named_by, repeating_command, wants_report
from agentmark.cli.weight_lines import parse_payload
from agentmark.core.payload import PayloadLike
from agentmark.core.theory import SMALLEST_RATE, false_positive_rate
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.text import counted
from agentmark.verify.defaults import DEFAULT_OFFSETS, DEFAULT_THRESHOLD, MAX_OFFSETS
from agentmark.verify.intake import Outcome
from agentmark.verify.keyring import AnyKey
from agentmark.verify.roll import By
from agentmark.verify.verdict import Standing, Verdict, rate_text


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    # Once: what a folder holds may change while this runs.
    with given_logs(arguments.log, skip_bad=arguments.skip_bad) as found, ProgressLine() as progress:
        arguments.log = list(found.files)
        arguments.left_out = found.passed_over
        return _run(arguments, progress)


def _run(arguments: argparse.Namespace, progress: ProgressLine) -> int:
    arguments.report_in_folder = is_folder(arguments.report)
    arguments.report = None if arguments.report is None else Path(arguments.report)
    case = _case(arguments)
    if _surely_pooled(arguments):
        # What is asked for and cannot be written is refused before the logs are read.
        files = ReportFiles(arguments) if case.report is not None else None
        return _run_pooled(arguments, case, case.read(progress), files, progress)
    material = case.read(progress)
    by = _judged_by(arguments, material)
    if by is not None:
        return run_roll(arguments, case, material, by, progress)
    files = ReportFiles(arguments) if case.report is not None else None
    return _run_pooled(arguments, case, material, files, progress)


def _run_pooled(
    arguments: argparse.Namespace, case: Case, material: Material, files: ReportFiles | None, progress: ProgressLine
) -> int:
    """One verdict over everything."""
    answer = case.answer(material, progress=progress)
    progress.clear()
    report = answer.report or answer.stranger_report
    if files is not None and report is not None:
        files.write(report)
    _print(arguments, answer)
    if answer.verdict.accepted:
        return EXIT_ATTRIBUTED
    # What was there is not for strangers.
    if answer.verdict.standing is Standing.NOTHING_USABLE and not arguments.for_stranger:
        print(printable(keys_line(material.key_ids, case.verifier().keys.ids)), file=sys.stderr)
        return EXIT_NOTHING_USABLE
    return EXIT_NOT_ATTRIBUTED


def _surely_pooled(arguments: argparse.Namespace) -> bool:
    """Whether it is one verdict, however many sessions there are."""
    return bool(arguments.pool or arguments.by == ALL or arguments.find_offset)


def _judged_by(arguments: argparse.Namespace, material: Material) -> By | None:
    """What makes a row; None for one verdict over everything."""
    if arguments.by is not None:
        return By(arguments.by)
    several = len(material.sessions) > 1
    for_many = arguments.csv is not None or arguments.fdr is not None or arguments.report_in_folder
    return By.SESSION if several or for_many else None


def _check(arguments: argparse.Namespace) -> None:
    """Options that only make sense together."""
    _check_rows(arguments)
    if arguments.find_offset and len(arguments.session or []) != 1:
        raise SettingError("--find-offset", "goes together with one --session")
    if arguments.offsets is not None and not arguments.find_offset:
        raise SettingError("--offsets", "goes together with --find-offset")
    if arguments.offsets is not None and arguments.offsets < 1:
        raise SettingError("--offsets", f"{arguments.offsets} is not a number of places")
    if arguments.for_stranger:
        for name, reason in _NOT_FOR_STRANGERS.items():
            if getattr(arguments, name):
                raise SettingError(f"--{name.replace('_', '-')}", f"does not go with --for-stranger: {reason}")
    check_public_options(arguments)
    if arguments.offsets is not None and not 1 <= arguments.offsets <= MAX_OFFSETS:
        raise SettingError("--offsets", f"{arguments.offsets} is not a number of places from 1 to {MAX_OFFSETS:,}")
    check_work_limit(arguments)


def _check_rows(arguments: argparse.Namespace) -> None:
    """The same of those that are about one verdict or many."""
    if arguments.pool and arguments.by not in (None, ALL):
        raise SettingError("--pool", f"is --by all, and not --by {arguments.by}")
    if arguments.csv == STDOUT and arguments.json:
        raise SettingError("--csv", "standard output is taken by --json: give a file")
    if arguments.fdr is not None:
        if not SMALLEST_RATE <= arguments.fdr < 1:
            raise SettingError("--fdr", f"{arguments.fdr:g} is not a rate from {SMALLEST_RATE:g} to below 1")
        if arguments.threshold != DEFAULT_THRESHOLD:
            raise SettingError("--fdr", "takes the place of --threshold: give one of them")
    if not _surely_pooled(arguments):
        return
    for name in ("csv", "fdr"):
        if getattr(arguments, name) is not None:
            raise SettingError(f"--{name}", "is for several sessions, and here all are one verdict")
    if is_folder(arguments.report):
        raise SettingError("--report", f"{arguments.report} is a folder, and one verdict is one page: name a file")


_NOT_FOR_STRANGERS = {
    "control": "a stranger sees no evidence to compare",
    "segments": "stretches tell of single records",
    "find_offset": "it asks about many places at once",
    "fdr": "such a threshold moves with what the other sessions show",
    "public_key": "`agentmark chain` checks a chain, and needs no key",
}


def _case(arguments: argparse.Namespace) -> Case:
    place = None
    if arguments.find_offset:
        offsets = DEFAULT_OFFSETS if arguments.offsets is None else arguments.offsets
        place = LostPlace(session=arguments.session[0], offsets=offsets)
    report = None
    if wants_report(arguments):
        report = ReportOrder(
            command=repeating_command(arguments),
            segments=arguments.segments,
            for_stranger=arguments.for_stranger,
            **named_by(arguments),
        )
    keys: Sequence[AnyKey]
    keys, basis = public_question(arguments) if arguments.disclosure else (load_keys(arguments), None)
    registry = Registry.load(arguments.registry) if arguments.registry else None
    return Case(
        logs=arguments.log,
        left_out=arguments.left_out,
        keys=keys,
        basis=basis,
        registry=registry,
        registry_file=arguments.registry,
        claim=claim_of(arguments.claim, registry),
        payload_len=arguments.payload_len,
        threshold=arguments.threshold,
        noise=arguments.noise,
        any_key_id=arguments.any_key_id,
        work_limit=arguments.work_limit,
        skip_bad=arguments.skip_bad,
        limits=limits_of(arguments),
        control=arguments.control,
        place=place,
        sessions=() if arguments.find_offset else tuple(arguments.session or ()),
        public_keys=signers_of(arguments),
        report=report,
    )


def claim_of(text: str | None, registry: Registry | None) -> PayloadLike:
    """A name in the registry goes before a number: a tenant may be called 42."""
    if text is None or (registry is not None and text in registry):
        return text
    return parse_payload(text)


# Printing ------------------------------------------------------------------------------------------------------------


def _print(arguments: argparse.Namespace, answer: Answer) -> None:
    if arguments.json:
        content = answer.verdict.for_stranger().as_dict() if arguments.for_stranger else answer.as_dict()
        print_json(answer.report or answer.stranger_report or content, indent=2)
        return
    lines = [answer.verdict.for_stranger().sentence] if arguments.for_stranger else verdict_lines(answer)
    print("\n".join(map(printable, lines)))
    for line in answer.passed_over:
        print(f"passed over: {printable(line)}", file=sys.stderr)


def verdict_lines(answer: Answer) -> list[str]:
    """The answer as lines for a terminal."""
    verdict = answer.verdict
    outcomes = [f"{verdict.counts[Outcome.USED]:,} used"]
    outcomes += [
        f"{count:,} {outcome}" for outcome, count in sorted(verdict.counts.items()) if outcome is not Outcome.USED
    ]
    lines = [
        verdict.sentence,
        "",
        f"  records       {verdict.record_count:,}: {', '.join(outcomes)}",
        f"  scheme        {' and '.join(verdict.schemes) or '-'}, payload of {counted(verdict.payload_len, 'bit')}",
        f"  evidence      {_evidence(verdict)}",
        f"  consistent    {_CONSISTENT[verdict.consistent]}",
        f"  bound         {verdict.bound_text} (accepted at {verdict.threshold:g} or below)",
    ]
    if answer.basis is not None:
        lines.append(f"  rests on      {answer.basis.sentence}")
        lines += _ownership(verdict)
    lines += [f"  disclosed     {sentence}" for sentence in answer.missing]
    if answer.claim is not None:
        lookup = "; a name is looked up in a --registry" if str(answer.claim_taken_as).startswith("text") else ""
        lines.append(f"  claim         {answer.claim}, taken as {answer.claim_taken_as}{lookup}")
    if verdict.work_note is not None:
        lines.append(f"  WORK LIMIT    {verdict.work_note} (--work-limit)")
    if answer.place is not None:
        where = "none proved" if answer.place.offset is None else f"from step {answer.place.offset:,} on"
        lines.append(f"  place         {where}; {answer.place.tried:,} tried and paid for")
    lines += [f"  tampering     {finding}" for finding in verdict.tampering]
    lines += [f"  chain         {chain['log']}: {chain['sentence']}" for chain in answer.chains]
    if answer.control is not None:
        lines.append(f"  control       with a random key: {answer.control.sentence}")
    return lines


def _ownership(verdict: Verdict) -> list[str]:
    """Without a payload the key is the identity, and this is evidence of the same. It is no part of the verdict."""
    if verdict.payload_len or verdict.ownership_bits is None or isinf(verdict.ownership_bits):
        return []
    bound = rate_text(false_positive_rate(verdict.ownership_bits - verdict.bits_paid))
    return [
        f"  ownership     {verdict.ownership_bits + 0.0:,.1f} bits that it was made with this key at all: bound "
        f"{bound}, beside the verdict"
    ]


def _evidence(verdict: Verdict) -> str:
    said = f"{verdict.potential_bits:,.1f} bits if every step agrees, rank {verdict.rank} of {verdict.payload_len}"
    if verdict.candidate is None:
        return said
    if isinf(verdict.evidence_bits):
        return f"the payload is ruled out: a step contradicts it, and no noise is allowed for ({said})"
    return (
        f"{verdict.evidence_bits + 0.0:,.1f} bits for the best payload less {verdict.bits_paid:.1f} for naming it "
        f"({verdict.route}; {said})"
    )


_CONSISTENT = {True: "yes: one payload explains every used step", False: "no", None: "not settled by this log"}
