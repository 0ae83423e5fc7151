"""How long it usually takes to a device and back: single pings differ too much to plan by."""

from __future__ import annotations

from collections import deque
from statistics import median

REMEMBERED = 5


class RoundTrips:
    """The last few of every device, by peer id."""

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}

    def add(self, id: str, seconds: float) -> None:
        self._last.setdefault(id, deque(maxlen=REMEMBERED)).append(seconds)

    def forget(self, id: str) -> None:
        self._last.pop(id, None)

    def usual(self) -> dict[str, float]:
        """Seconds, the middle one of each."""
        return {id: median(last) for id, last in self._last.items()}
