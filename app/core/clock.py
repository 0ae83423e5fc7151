"""Time as an argument, so that time-outs are tested without sleeping."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's monotonic clock; where the system has one that also counts sleep, that one."""

    def __init__(self) -> None:
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        self._read = time.monotonic if boot is None else lambda: time.clock_gettime(boot)

    def now(self) -> float:
        return self._read()


class VirtualClock:
    """A clock that moves only when told."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
