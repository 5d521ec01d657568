"""Honest logs, and how well they pack: what a reader's limits must leave room for."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from agentmark.core.statistics import dirichlet, named
from agentmark.embed.embedder import Embedder
from agentmark.log.jsonl import LogWriter
from agentmark.log.otel import span_attributes
from agentmark.log.read.limits import LimitError, Limits
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark_lab.kit.data import imported
from agentmark_lab.kit.draws import generator, random_key

OPTIONS = 5
COPIES = 5
# A prompt's words are drawn from so many made-up ones, and it grows by so many bytes at each step.
VOCABULARY = 2000
GROWTH = 100
PROMPTS = (30_000, 300_000)
PLAIN = "AgentMark JSON lines"
WITHOUT_WEIGHTS = "the same without weights"
COPIED = f"each record {COPIES} times"
GET_ZSTD = "pip install '.[zstd]' in a clone of AgentMark"
# The level that the command gzip takes by itself, and RotatingLog too.
GZIP_LEVEL = 6
PACKERS = ("gzip", "zstd, level 3", "zstd, level 19")


@dataclass(frozen=True, slots=True)
class Packed:
    """One log, packed by each packer: how many bytes that makes, and the limit at which a default reader stops."""

    log: str
    records: int
    # How many times each record is in it.
    copies: int
    plain_bytes: int
    packed_bytes: Mapping[str, int]
    # None: it was read whole.
    stopped_by: Mapping[str, str | None]

    def ratio(self, packer: str) -> float:
        return self.plain_bytes / self.packed_bytes[packer]

    @property
    def least_per_record(self) -> float:
        return min(self.packed_bytes.values()) / self.records

    @property
    def most_records_per_kib(self) -> float:
        return 1024 / self.least_per_record

    def is_within(self, packer: str, limits: Limits) -> bool:
        """Whether its rates are: of both limits, a small file has some free."""
        per_kib = 1024 * self.records / self.packed_bytes[packer]
        return self.ratio(packer) <= limits.unpacked_ratio and per_kib <= limits.records_per_kib


def steps(seed: int, count: int, options: int = OPTIONS) -> list[StepRecord]:
    """The records of one run with random lists (Dirichlet 1)."""
    rng = generator(seed, "log_costs", "steps", count)
    session = Embedder(random_key(rng), 42, payload_len=16).session(rng.randbytes(16).hex())
    return [session.choose(named(dirichlet(rng, 1.0, options))).record for _ in range(count)]


def pack_all(seed: int, records: int, prompts: Mapping[int, int], folder: Path) -> Iterator[Packed]:
    """Each log in turn; `prompts` has the number of steps for each first length of a prompt."""
    plain = steps(seed, records)
    yield packed(PLAIN, records, lines_of(plain, folder), folder)
    bare = [record.with_partial_weights({}) for record in plain]
    yield packed(WITHOUT_WEIGHTS, records, lines_of(bare, folder), folder)
    again = [record for record in plain for _ in range(COPIES)]
    yield packed(COPIED, len(again), lines_of(again, folder), folder, copies=COPIES)
    for length, count in prompts.items():
        content = b"".join(otlp_lines(steps(seed, count), length, generator(seed, "log_costs", "otlp", length)))
        yield packed(f"OTLP, a prompt from {length // 1000} kB on", count, content, folder)


def packed(log: str, records: int, content: bytes, folder: Path, *, copies: int = 1) -> Packed:
    sizes, stopped_by = {}, {}
    path = folder / "packed"
    for packer, pack in packers().items():
        path.write_bytes(pack(content))
        sizes[packer] = path.stat().st_size
        stopped_by[packer] = _stopped_by(path, records)
    path.unlink()
    return Packed(log, records, copies, len(content), sizes, stopped_by)


def packers() -> dict[str, Callable[[bytes], bytes]]:
    zstandard = imported("zstandard", remedy=GET_ZSTD)
    gzipped: Callable[[bytes], bytes] = lambda content: gzip.compress(content, GZIP_LEVEL, mtime=0)  # noqa: E731
    levels = [zstandard.ZstdCompressor(level=level).compress for level in (3, 19)]
    return dict(zip(PACKERS, (gzipped, *levels), strict=True))


def _stopped_by(path: Path, records: int) -> str | None:
    """The limit at which `open_log` with its defaults stops; None if it reads all records that were written."""
    try:
        found = sum(1 for _ in open_log(path))
    except LimitError as error:
        return error.limit
    if found != records:
        raise RuntimeError(f"{found} of {records} records were read")
    return None


def lines_of(records: Iterable[StepRecord], folder: Path) -> bytes:
    """The bytes that LogWriter writes."""
    path = folder / "log.jsonl"
    path.unlink(missing_ok=True)
    with LogWriter(path) as log:
        for record in records:
            log.write(record)
    return path.read_bytes()


# OTLP ----------------------------------------------------------------------------------------------------------------


def otlp_lines(records: Iterable[StepRecord], length: int, rng: Random) -> Iterator[bytes]:
    """As OpenTelemetry's JSON file exporter writes them, a request a line: at each step the span of the model's call,
    with the whole prompt in it, and the span of the decision under it."""
    words = made_up_words(rng)
    prompt = text_of(words, rng, length)
    trace, now = rng.randbytes(16).hex(), 1_795_000_000_000_000_000
    for record in records:
        call = {"traceId": trace, "spanId": rng.randbytes(8).hex()}
        decision = {"traceId": trace, "spanId": rng.randbytes(8).hex(), "parentSpanId": call["spanId"]}
        now += rng.randrange(1, 5_000_000_000)
        attributes = span_attributes(record, record.to_json())
        yield otlp_line(decision, "decide", now, attributes)
        yield otlp_line(call, "chat", now, {"gen_ai.input.messages": prompt})
        prompt += " " + text_of(words, rng, GROWTH - 1)


def made_up_words(rng: Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(VOCABULARY)]


def text_of(words: list[str], rng: Random, length: int) -> str:
    """So many characters of words."""
    # No word has fewer than two letters, and a blank follows it.
    return " ".join(rng.choices(words, k=length // 3 + 1))[:length]


def otlp_line(ids: Mapping[str, str], name: str, began: int, attributes: Mapping[str, str | int | bool]) -> bytes:
    content = {
        **ids,
        "flags": 256,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + 4_372_632),
        "attributes": _pairs(attributes),
        "status": {},
    }
    resource = {"telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "service.name": "agent"}
    scopes = [{"scope": {"name": "agent"}, "spans": [content]}]
    request = {"resourceSpans": [{"resource": {"attributes": _pairs(resource)}, "scopeSpans": scopes}]}
    return json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n"


def _pairs(attributes: Mapping[str, str | int | bool]) -> list[dict[str, object]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: str | int | bool) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
