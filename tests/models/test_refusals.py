"""Waits that servers ask for, and the sentences for what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from app.models import refusals
from app.models.refusals import ATTEMPTS, MOST_WAIT, pause_before, refusal, retry_after


@pytest.mark.parametrize("text", ["", "soon", "-3", "1.5", "٣", "Mon, 99 Foo 9999", "\x00"])
def test_nonsense_is_no_wait(text: str) -> None:
    assert retry_after({"Retry-After": text}) is None


def test_a_wait_is_a_number_of_seconds_or_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    before = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    assert retry_after({"Retry-After": " 7 "}) == 7
    assert 30 < (retry_after({"Retry-After": later}) or 0) <= 40
    assert retry_after({"Retry-After": before}) == 0
    assert retry_after({"Retry-After": "9" * 5000}) is not None


def test_a_short_wait_is_kept_and_a_long_one_is_told() -> None:
    assert pause_before(429, {"Retry-After": "30"}, 0) == 30
    assert pause_before(503, {"Retry-After": str(int(MOST_WAIT) + 1)}, 0) is None
    assert refusal(429, {"Retry-After": "900"}).remedy == "Try again in 15 minutes; what is there is kept."
    assert refusal(429, {"Retry-After": "90"}).remedy.startswith("Try again in 90 seconds")
    assert refusal(503, {"Retry-After": "86400"}).remedy.startswith("Try again in 24 hours")


def test_pauses_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "BACKOFF", 1.0)
    assert [pause_before(502, {}, attempt) for attempt in range(ATTEMPTS)] == [1.0, 2.0, None]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 416])
def test_a_refusal_for_good_is_not_waited_for(status: int) -> None:
    assert pause_before(status, {"Retry-After": "1"}, 0) is None


@pytest.mark.parametrize(
    ("status", "what", "remedy"),
    [
        (401, "token", "Settings"),
        (403, "owner", "terms"),
        (404, "gone", "Update Pooled"),
        (410, "gone", "Update Pooled"),
        (429, "too often", "few minutes"),
        (500, "not well", "later"),
        (504, "not well", "later"),
        (204, "no file", "later"),
    ],
)
def test_each_refusal_says_what_happened_and_what_to_do(status: int, what: str, remedy: str) -> None:
    error = refusal(status, {})
    assert str(status) in error.what
    assert what in error.what
    assert remedy in error.remedy
