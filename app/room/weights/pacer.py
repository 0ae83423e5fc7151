"""How fast weights may flow while the room answers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from app.core.clock import Clock

FIRST = 24e6
SLOWEST, FASTEST = 2e6, 100e6
DOWN, UP = 0.6, 1.08
TOLERATED, SLACK, USUAL = 1.5, 0.0005, 0.9
"""A round trip says that tokens wait when it takes half a millisecond more than 1.5 idle ones, and than nine of
ten idle ones: what is noise anyway must not count."""
_REMEMBERED = 64
_QUIET = 1.0


class Pacer:
    """A bucket whose rate follows the round trips of the chain's links. Safe from any thread.

    While nobody waits for an answer nothing is held back. ``rate`` is in bytes a second.
    """

    def __init__(self, answering: Callable[[], bool], clock: Clock, first: float = FIRST) -> None:
        self.rate = first
        self.on_rate: Callable[[float], None] = lambda _rate: None
        self._answering = answering
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._sent_at = float("-inf")
        self._first = first
        self._pacing = False
        self._sent = 0
        self._since = clock.now()
        self._idle: deque[float] = deque(maxlen=_REMEMBERED)

    def delay(self, count: int) -> float:
        """Seconds to wait before ``count`` more bytes are sent."""
        with self._lock:
            now = self._sent_at = self._clock.now()
            if not self._answering():
                self._free_at, self._pacing = now, False
                return 0.0
            if not self._pacing:
                # What went well beside the last answer may not beside this one.
                self.rate, self._pacing = min(self.rate, self._first), True
            start = max(now, self._free_at)
            self._free_at = start + count / self.rate
            self._sent += count
            return start - now

    def measured(self, rtt: float) -> None:
        """A round trip in seconds: what is usual without weights on the way, else whether they are in the way."""
        with self._lock:
            if not self._idle or self._clock.now() - self._sent_at > _QUIET:
                self._idle.append(rtt)
                return
            if not self._answering():
                return
            self._adapt(waits=rtt > self._usual() + SLACK)
        self.on_rate(self.rate)

    def _adapt(self, *, waits: bool) -> None:
        """A rate that was not used up to its half proves nothing, so it does not grow."""
        now = self._clock.now()
        used = self._sent >= self.rate * (now - self._since) / 2
        self._sent, self._since = 0, now
        if waits:
            self.rate = max(SLOWEST, self.rate * DOWN)
        elif used:
            self.rate = min(FASTEST, self.rate * UP)

    def _usual(self) -> float:
        idle = sorted(self._idle)
        return max(TOLERATED * idle[len(idle) // 2], idle[int(len(idle) * USUAL)])
