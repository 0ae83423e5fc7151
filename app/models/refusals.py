"""What a person reads when a server does not give a file, and how long to wait first (spec: product R-223)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from app.core.errors import LinkError

MOST_WAIT = 60.0
"""Seconds a download waits by itself; whoever is told to wait longer is told so."""
BACKOFF = 1.0
ATTEMPTS = 3

_BUSY = frozenset({429, 500, 502, 503, 504})
_MEANINGS = {
    401: ("the model asks for a token, or does not take the one it got", "Give your hub token in Settings."),
    403: ("its owner does not give it to you", "Accept its terms on its page at the hub and give your hub token."),
    404: ("the file is gone", "Update Pooled, or put the file there by hand."),
    410: ("the file is gone", "Update Pooled, or put the file there by hand."),
    416: ("the file has other bytes than it should", "Update Pooled, or choose another model."),
    429: ("it was asked too often", "Try again in a few minutes; what is there is kept."),
}
_BROKEN = ("it is not well", "Try again later; what is there is kept.")
_ODD = ("that is no file", "Try again later.")


def pause_before(status: int, headers: Mapping[str, str], attempt: int) -> float | None:
    """Seconds to wait before attempt number ``attempt`` + 1 (from 0), None when there is no point in one."""
    if status not in _BUSY or attempt + 1 >= ATTEMPTS:
        return None
    asked = retry_after(headers)
    if asked is None:
        return BACKOFF * 2**attempt
    return asked if asked <= MOST_WAIT else None


def refusal(status: int, headers: Mapping[str, str]) -> LinkError:
    """The error for a server that answered so."""
    what, remedy = _MEANINGS.get(status, _BROKEN if status >= 500 else _ODD)
    asked = retry_after(headers) if status in _BUSY else None
    if asked is not None and asked > 0:
        remedy = f"Try again in {_spoken(asked)}; what is there is kept."
    return LinkError(f"The server answered {status}: {what}.", remedy)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait (RFC 9110 §10.2.3); None when it does not say, or says nonsense."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max((parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _spoken(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"
