"""What is fuzzed: every reader, every parser, every file of ours, what was accumulated, and the command line."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from log_run import KEY

from agentmark import Monitor, Registry, StepRecord
from agentmark.audit.case import Case, ReportOrder
from agentmark.chain.check import verify_chain
from agentmark.chain.checkpoint import Checkpoint
from agentmark.cli.weight_lines import parse_payload, parse_weight_lines
from agentmark.core.canonical import canonical_bytes
from agentmark.core.errors import AgentMarkError
from agentmark.core.evidence import Evidence
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.strict_json import StrictJsonError, parse_json, parse_json_at, parse_json_pairs
from agentmark.disclosure.document import Disclosure
from agentmark.disclosure.tenants import Tenants
from agentmark.elicit.parse import ParseFault, parse_weights, parse_weights_and_arguments
from agentmark.keys.public import PublicKey
from agentmark.keys.shared import SharedKey
from agentmark.keys.signing import SigningKey
from agentmark.log.read.open import open_log, read_log
from agentmark.report import check_report, render_report
from agentmark.verify.judge import Judge
from agentmark.verify.state import LogState
from fuzz import command_line, seeds
from fuzz.mutate import mutate


@dataclass(frozen=True)
class Target:
    """Something that takes bytes of others. `run` gets an input and an empty folder; the typed errors are its own.

    `make` draws an input; without it, seeds are mutated. `weight` is its share of the time.
    """

    name: str
    run: Callable[[bytes, Path], None]
    originals: Callable[[], list[bytes]] = list
    make: Callable[[random.Random], bytes] | None = None
    weight: float = 1.0

    @cached_property
    def seeds(self) -> list[bytes]:
        return self.originals()

    def draw(self, rng: random.Random) -> bytes:
        if self.make is not None:
            return self.make(rng)
        return mutate(rng, rng.choice(self.seeds), self.seeds)


# Logs ----------------------------------------------------------------------------------------------------------------


def _read(data: bytes, folder: Path) -> None:
    """As a log of whatever it seems to be, with and without its broken records; and its chain."""
    path = folder / "log"
    path.write_bytes(data)
    for skip_bad in (False, True):
        log = open_log(path, skip_bad=skip_bad)
        try:
            records = list(log)
        except AgentMarkError:
            continue
        assert all(isinstance(record, StepRecord) for record in records)
        assert all(isinstance(sentence, str) for sentence in log.summary.passed_over)
    lines = read_log(path, skip_bad=True, as_json_lines=True)
    verify_chain(lines.records, lines.summary.checkpoints, None, lines=lines.lines, unreadable=lines.summary.bad_lines)


def _audit(data: bytes, folder: Path) -> None:
    """The whole way: read, judged, compared with a random key, reported."""
    path = folder / "log"
    path.write_bytes(data)
    order = ReportOrder(command="agentmark verify")
    answer = Case(logs=[path], keys=[KEY], registry=seeds.registry(), skip_bad=True, report=order).answer()
    answer.as_dict()
    assert answer.report is not None
    render_report(answer.report)


# Parsers -------------------------------------------------------------------------------------------------------------


def _record(data: bytes, _: Path) -> None:
    record = StepRecord.from_json(data)
    assert StepRecord.from_json(record.to_json()) == record
    record.context_matches()


def _checkpoint(data: bytes, _: Path) -> None:
    checkpoint = Checkpoint.from_json(data)
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint
    assert len(checkpoint.digest) == 64
    checkpoint.is_genuine()


def _strict_json(data: bytes, _: Path) -> None:
    for parse in (parse_json_pairs, lambda text: parse_json(text, allow_constants=True)):
        try:
            parse(data)
        except StrictJsonError:
            continue
    parse_json_at(data.decode("utf-8", "replace"), 0)
    parse_json(data)


def _canonical(data: bytes, _: Path) -> None:
    """Canonical bytes are JSON of the same value, and their own canonical form."""
    value = parse_json(data)
    encoded = canonical_bytes(value)
    assert parse_json(encoded) == value
    assert canonical_bytes(parse_json(encoded)) == encoded


def _weight_lines(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "replace")
    parse_payload(text)
    list(parse_weight_lines(text.splitlines()))


def _reply(data: bytes, _: Path) -> None:
    """What a model says when it is asked for a list."""
    text = data.decode("utf-8", "replace")
    for parse in (parse_weights, parse_weights_and_arguments):
        try:
            parse(text, ["Search", "Book"])
        except ParseFault:
            continue


# Files of ours -------------------------------------------------------------------------------------------------------


def _private(data: bytes, folder: Path) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _key_file(data: bytes, folder: Path) -> None:
    key = SharedKey.load(_private(data, folder))
    assert len(key.id) == 16


def _signing_key_file(data: bytes, folder: Path) -> None:
    key = SigningKey.load(_private(data, folder))
    assert len(key.public_key) == 64


def _registry(data: bytes, folder: Path) -> None:
    registry = Registry.load(_private(data, folder))
    registry.save(folder / "again")
    assert list(Registry.load(folder / "again")) == list(registry)


def _public_key_file(data: bytes, folder: Path) -> None:
    key = PublicKey.load(_private(data, folder))
    assert PublicKey.from_dict(key.as_dict()) == key


def _disclosure(data: bytes, folder: Path) -> None:
    disclosure = Disclosure.load(_private(data, folder))
    disclosure.save(folder / "again")
    assert Disclosure.load(folder / "again") == disclosure


def _tenants(data: bytes, folder: Path) -> None:
    tenants = Tenants.load(_private(data, folder))
    tenants.save(folder / "again")
    assert list(Tenants.load(folder / "again")) == list(tenants)


def _signed_report(data: bytes, _: Path) -> None:
    signed = parse_json(data)
    if check_report(signed) is not None:
        canonical_bytes(signed["report"])


# What was accumulated ------------------------------------------------------------------------------------------------


def _log_state(data: bytes, _: Path) -> None:
    state = LogState.from_bytes(data)
    assert LogState.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()
    Judge().verdict(state.intake())


def _monitor(data: bytes, _: Path) -> None:
    monitor = Monitor.from_bytes(data, KEY)
    assert monitor.to_bytes() == data


def _evidence(data: bytes, _: Path) -> None:
    evidence = Evidence.from_bytes(data)
    assert evidence.to_bytes() == data
    assert evidence.bits == evidence.bits
    assert evidence.likely_noise in evidence.noise_rates
    evidence.merge(Evidence.from_bytes(data))


def _linear_system(data: bytes, _: Path) -> None:
    system = LinearSystem.from_bytes(data)
    assert LinearSystem.from_bytes(system.to_bytes()).to_bytes() == system.to_bytes()
    system.merge(LinearSystem.from_bytes(data))
    system.update(Equation(1, 1))
    system.solution()


def _first_lines(logs: list[bytes], beginning: bytes) -> list[bytes]:
    return [line for log in logs for line in log.split(b"\n") if line.startswith(beginning)][:40]


def _records() -> list[bytes]:
    return _first_lines(seeds.native_logs(), b'{"agentmark"')


def _checkpoints() -> list[bytes]:
    return _first_lines(seeds.native_logs(), b'{"agentmark_checkpoint"')


def _signed_reports(rng: random.Random) -> bytes:
    """Changed, and half of them signed again."""
    changed = mutate(rng, rng.choice(seeds.signed_reports()), seeds.signed_reports())
    return seeds.signed_again(rng, changed) if rng.random() < 0.5 else changed


_REPLIES = (
    b'{"Search": 0.6, "Book": 0.4}',
    b'Sure: {"action_weights": {"Search": 1, "Book": 2}, "action_args": {"Search": {"q": "x"}, "Book": {}}}',
)

_ALL = (
    Target("read-lines", _read, seeds.native_logs),
    Target("read-packed", _read, seeds.packed_logs),
    Target("read-array", _read, lambda: seeds.export("native array")),
    Target("read-otlp", _read, lambda: seeds.export("otlp")),
    Target("read-langfuse", _read, lambda: seeds.export("langfuse")),
    Target("read-phoenix", _read, lambda: seeds.export("phoenix") + seeds.recorded("phoenix*.gz")),
    Target("read-langsmith", _read, lambda: seeds.export("langsmith")),
    Target("read-inspect", _read, lambda: seeds.export("inspect") + seeds.recorded("inspect*")),
    Target("read-sqlite", _read, seeds.databases),
    Target("read-parquet", _read, lambda: seeds.recorded("*.parquet")),
    Target("audit", _audit, seeds.logs, weight=4),
    Target("record", _record, _records),
    Target("checkpoint", _checkpoint, _checkpoints),
    Target("strict-json", _strict_json, lambda: _records() + seeds.signed_reports()),
    Target("canonical", _canonical, lambda: _records() + _checkpoints() + seeds.signed_reports()),
    Target("weight-lines", _weight_lines, seeds.weight_lines),
    Target("reply", _reply, lambda: list(_REPLIES)),
    Target("key-file", _key_file, seeds.key_files),
    Target("signing-key-file", _signing_key_file, seeds.signing_key_files),
    Target("registry-lines", _registry, seeds.registry_files),
    Target("registry-table", _registry, seeds.registry_tables),
    Target("public-key-file", _public_key_file, seeds.public_key_files),
    Target("disclosure", _disclosure, seeds.disclosures),
    Target("tenants", _tenants, seeds.tenants_files),
    Target("signed-report", _signed_report, seeds.signed_reports, make=_signed_reports),
    Target("log-state", _log_state, seeds.states),
    Target("monitor", _monitor, seeds.monitors),
    Target("evidence", _evidence, seeds.evidences),
    Target("linear-system", _linear_system, seeds.linear_systems),
    Target("command-line", command_line.run, make=command_line.make, weight=12),
)
TARGETS = {target.name: target for target in _ALL}
