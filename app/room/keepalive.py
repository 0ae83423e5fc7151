"""When to send a byte between laps, so that Wi-Fi power save never sets in (spec: rooms §5.5)."""

from __future__ import annotations

from collections.abc import Sequence

PERIOD_S = 0.010
ACTIVE_S = 1.5
FULL_BACKLOG = 1024
BYTE = b"\0"

_EARLY = 1e-6


class KeepAlive:
    """The rule alone; a caller ticks every ``PERIOD_S`` while ``active`` and sends what ``tick`` says."""

    def __init__(self) -> None:
        self._last_frame = float("-inf")
        self._last_sent = float("-inf")
        self._turn = 0

    def frame_sent(self, now: float) -> None:
        self._last_frame = self._last_sent = now

    def frame_received(self, now: float) -> None:
        self._last_frame = now

    def active(self, now: float) -> bool:
        """Whether a frame passed, either way, in the last 1.5 s."""
        return now - self._last_frame <= ACTIVE_S + _EARLY

    def tick(self, now: float, backlogs: Sequence[int]) -> int | None:
        """Index of the channel to send one byte on, taking turns; None when there is nothing to send.

        ``backlogs`` are the bytes queued on each open keep-alive channel.
        """
        if not self.active(now) or now - self._last_sent < PERIOD_S - _EARLY:
            return None
        for step in range(len(backlogs)):
            index = (self._turn + step) % len(backlogs)
            if backlogs[index] < FULL_BACKLOG:
                self._turn = index + 1
                self._last_sent = now
                return index
        return None
