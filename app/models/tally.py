"""Counts what is there of what is needed, for the bar."""

from __future__ import annotations

from app.models.transfer import Meter, Tell


class Tally:
    """``missing`` of ``total`` bytes are still to come."""

    def __init__(self, total: int, missing: int, tell: Tell) -> None:
        self._total = total
        self._done = total - missing
        self._meter = Meter(tell, self._done, total)

    def came(self, count: int) -> None:
        # A range that was fetched twice counts once.
        self._done = min(self._done + count, self._total)
        self._meter.add(self._done)
