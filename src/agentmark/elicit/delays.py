"""How long a provider asks to be left alone, and which of its errors are worth another try."""

import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_DELAY_S = 0.5
# A request that the provider had no time for. 501 is none of these: it says that there is no such thing.
_FOR_NOW = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def worth_another_try(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the same request may be answered later. A provider that says outright that it may not is believed."""
    return status in _FOR_NOW and headers.get("x-should-retry", "").strip().lower() != "false"


def stated_delay_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """The provider's own delay: `retry-after-ms`, `Retry-After` in seconds or as a date, or the time until a limit
    that is used up is lifted. `headers` are looked up in lower case."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after")
    seconds = _number(stated)
    if seconds is not None:
        return seconds
    if stated:
        return _until(stated, now or datetime.now(UTC))
    resets = [
        _duration_s(headers.get(f"x-ratelimit-reset-{what}"))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    return max([reset for reset in resets if reset is not None], default=None)


def own_delay_s(attempt: int, rng: random.Random) -> float:
    """Ours, where the provider states none: twice as long each time, and not the same for all who wait."""
    return float(FIRST_DELAY_S * 2**attempt * rng.uniform(0.75, 1.25))


def _number(text: str | None) -> float | None:
    stated = (text or "").strip()
    return float(stated) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", stated, re.ASCII) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _duration_s(text: str | None) -> float | None:
    """Written as 6m0s, 1.5s or 20ms."""
    found = _DURATION.fullmatch((text or "").strip())
    if found is None or not any(found.groups()):
        return None
    hours, minutes, seconds, milliseconds = [float(part or 0) for part in found.groups()]
    return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000
