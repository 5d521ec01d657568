"""How long a provider asks to be left alone."""

import random
from datetime import UTC, datetime

import pytest

from agentmark.elicit.delays import own_delay_s, stated_delay_s, worth_another_try

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Wed, 18 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:59:30 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-tokens": "17", "x-ratelimit-reset-tokens": "9s"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": ""}, None),
        ({}, None),
    ],
)
def test_the_providers_own_delay(headers: dict[str, str], delay_s: float | None) -> None:
    assert stated_delay_s(headers, now=NOW) == delay_s


def test_what_is_worth_another_try() -> None:
    assert [status for status in range(400, 600) if worth_another_try(status, {})] == [
        *(408, 429, 500, 502, 503, 504),
        *(520, 521, 522, 523, 524, 529),
    ]
    assert not worth_another_try(429, {"x-should-retry": "false"})
    assert worth_another_try(429, {"x-should-retry": "true"})


def test_our_own_delay_doubles_and_is_not_the_same_for_all() -> None:
    rng = random.Random(1)
    for attempt in range(4):
        delays = [own_delay_s(attempt, rng) for _ in range(50)]
        assert 0.375 * 2**attempt <= min(delays) < max(delays) <= 0.625 * 2**attempt


def test_a_date_beyond_all_dates_is_no_delay() -> None:
    assert stated_delay_s({"retry-after": "Mon, 01 Jan 2020 99999999999999999999:00:00 GMT"}) is None
