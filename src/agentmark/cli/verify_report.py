"""The report of `agentmark verify`: what goes into it beside the verdict, and where it is written."""

import argparse
import json
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentmark.cli import verify
from agentmark.cli.common import show_progress
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.shared import SharedKey
from agentmark.keys.signing import SigningKey
from agentmark.report import (
    ChainPart,
    InputFile,
    Provenance,
    Report,
    build_report,
    describe_file,
    render_report,
    sign_report,
)
from agentmark.verify.intake import Intake
from agentmark.verify.search.splice import SHORTEST_WINDOW, Stretch, segment
from agentmark.verify.search.symbols import DEFAULT_SEARCH_LIMIT
from agentmark.verify.verdict import DEFAULT_THRESHOLD, Placement, Segment, Verdict
from agentmark.verify.verifier import Verifier


class ReportCase:
    """A report that was asked for: refused before the work is done if it cannot be written, and written after."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        _check_outputs(arguments)
        self._arguments = arguments
        # Described before they are read, so that a change in between shows.
        self._files = _files(arguments)

    def write(
        self,
        verifier: Verifier,
        verdict: Verdict,
        control: Verdict,
        *,
        keys: Sequence[SharedKey],
        registry: Registry | None,
        place: Placement | None,
        chains: Sequence[ChainPart],
        lost: Sequence[str],
    ) -> Report:
        """Build the report and write it where it was asked for. `lost` are the lines that were passed over."""
        records = [finding.record for finding in verdict.findings]
        intake = verifier.take_in(records)
        segments, hints = _segments(self._arguments, verifier, intake, _foreign_stretches(intake, verdict))
        report = build_report(
            verdict,
            control=control,
            intake=intake,
            noise_rates=verifier.noise_rates,
            provenance=Provenance(
                made_at=datetime.now(UTC),
                command=_command(self._arguments),
                key_ids=[key.id for key in keys],
                inputs=self._files,
            ),
            claim=self._arguments.claim,
            registry_size=None if registry is None else len(registry),
            place=None if place is None else (self._arguments.session, place),
            findings=[*hints, *self._changed_files()],
            passed_over=lost,
            segments=segments,
            chains=chains,
        )
        _write(report, self._arguments)
        return report

    def _changed_files(self) -> list[str]:
        """Files that were not the same after reading as before: the digest may not be that of what was judged."""
        return [
            f"{file['path']} changed while it was read; its digest is that of the file before"
            for file, later in zip(self._files, _files(self._arguments), strict=True)
            if file != later
        ]


def _check_outputs(arguments: argparse.Namespace) -> None:
    if (arguments.signed is None) != (arguments.signing_key is None):
        raise SettingError("--signed", "goes together with --signing-key")
    outputs = [path for path in (arguments.report, arguments.signed) if path is not None]
    if not outputs:
        raise SettingError("--segments", "goes into a report: give --report or --signed")
    inputs = [*arguments.log, *(arguments.key or []), arguments.registry, arguments.signing_key]
    for path in outputs:
        if not path.parent.is_dir():
            raise SettingError(str(path), "there is no such folder")
        for source in inputs:
            if source is not None and path.exists() and source.exists() and path.samefile(source):
                raise SettingError(str(path), "is read by this command; it would be overwritten")
    if arguments.signed is not None:
        SigningKey.load(arguments.signing_key)


def _files(arguments: argparse.Namespace) -> list[InputFile]:
    files = [describe_file("log", path) for path in arguments.log]
    if arguments.registry:
        files.append(describe_file("registry", arguments.registry))
    return files


def _foreign_stretches(intake: Intake, verdict: Verdict) -> list[Stretch]:
    """Stretches that the accepted identity does not explain: another agent's, if they are long."""
    if not verdict.accepted or verdict.candidate is None or verdict.contradicting == 0:
        return []
    readings = [step.reading for step in intake.steps]
    stretches = segment(readings, [verdict.candidate], bits_paid=lambda _: verdict.bits_paid)
    return [s for s in stretches if s.payload is None and s.last - s.first + 1 >= SHORTEST_WINDOW]


def _segments(
    arguments: argparse.Namespace, verifier: Verifier, intake: Intake, foreign: Sequence[Stretch]
) -> tuple[tuple[Segment, ...], list[str]]:
    """The stretches of a spliced log; where looking for them takes long and was not asked for, a sentence instead."""
    if arguments.segments or (foreign and len(intake.steps) <= verify.SEGMENTED_UNASKED):
        show_progress("looking for stretches of several identities")
        segments = verifier.segments([step.record for step in intake.steps])
        return (segments if len(segments) > 1 else ()), []
    places = ", ".join(f"{stretch.first + 1} to {stretch.last + 1}" for stretch in foreign)
    hint = f"records {places} do not fit this identity: another agent's, perhaps; --segments looks for whose they are"
    return (), [hint] if foreign else []


def _command(arguments: argparse.Namespace) -> str:
    """The command that gives this verdict again. Keys appear as file names, never as secrets."""
    words = ["agentmark", "verify", *[_path(path) for path in arguments.log]]
    for path in arguments.key or []:
        words += ["--key", _path(path)]
    if arguments.registry:
        words += ["--registry", _path(arguments.registry)]
    if arguments.claim is not None:
        words.append(f"--claim={arguments.claim}")
    if arguments.find_offset:
        words += ["--find-offset", f"--session={arguments.session}"]
    for name, default in _NUMBERS.items():
        value = getattr(arguments, name)
        words += [] if value == default else [_option(name), f"{value!r}"]
    for public_key in arguments.public_key or []:
        words += ["--public-key", public_key]
    words += [_option(name) for name in ("any_key_id", "skip_bad") if getattr(arguments, name)]
    joined = shlex.join([*words, "--control"])
    # File names need not be UTF-8; the report is.
    return joined.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# Options that are a number, with their defaults.
_NUMBERS = {
    "payload_len": None,
    "threshold": DEFAULT_THRESHOLD,
    "noise": None,
    "offsets": None,
    "search_limit": DEFAULT_SEARCH_LIMIT,
}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _path(path: Path) -> str:
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def _write(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.report is not None:
        as_data = arguments.report.suffix == ".json"
        text = _as_json(report) if as_data else render_report(report)
        arguments.report.write_text(text, encoding="utf-8")
    if arguments.signed is not None:
        signed = sign_report(report, SigningKey.load(arguments.signing_key))
        arguments.signed.write_text(_as_json(signed), encoding="utf-8")


def _as_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
