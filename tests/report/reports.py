"""Reports to test with, and what takes a page apart."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from agentmark import Identity, LogWriter, Registry, SharedKey, StepRecord, Verifier
from agentmark.keys.signing import SigningKey
from agentmark.report import Provenance, Report, build_report

SECRET = bytes(range(100, 132))
KEY = SharedKey(SECRET)
STRANGER = SharedKey(bytes(range(7, 39)))
SIGNER = SigningKey(bytes(range(200, 232)))
TENANTS = Registry(16, [Identity("acme-eu", 0x5EED), Identity("globex", 0x1234)])
DOCUMENT = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
NOON = datetime(2030, 1, 2, 12, 0, 0, tzinfo=UTC)

Run = Callable[..., tuple[int, str, str]]


def report_on(
    records: list[StepRecord], *, key: SharedKey = KEY, registry: Registry | None = TENANTS, **settings: Any
) -> Report:
    """A report whose every byte is fixed: the control has a given key, and few records, to be quick."""
    noise, claim = settings.pop("noise", None), settings.pop("claim", None)
    provenance = {"made_at": NOON, "command": "agentmark verify log.jsonl", "key_ids": [key.id]}
    provenance |= settings.pop("provenance", {})
    verifier = Verifier(key, registry=registry, noise=noise)
    control = Verifier(STRANGER, registry=registry, noise=noise, any_key_id=True).verify(records[:9], claim=claim)
    return build_report(
        verifier.verify(records, claim=claim),
        control=control,
        intake=verifier.take_in(records),
        noise_rates=verifier.noise_rates,
        provenance=Provenance(**provenance),
        registry_size=None if registry is None else len(registry),
        **settings,
    )


def with_foreign_steps(records: list[StepRecord], every: int) -> list[StepRecord]:
    """Every so many choices replaced by the likeliest one, as another agent may have made it."""
    changed = []
    for i, record in enumerate(records):
        assert record.distribution is not None
        behavior = record.distribution.behaviors[0] if i % every == 0 else record.behavior
        changed.append(replace(record, behavior=behavior))
    return changed


class Tags(HTMLParser):
    """Collects the tags and the text of a page; unknown tags or open ones are what injection looks like."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    return tags


def write_log(path: str, records: list[StepRecord]) -> None:
    with LogWriter(path) as log:
        for record in records:
            log.write(record)
