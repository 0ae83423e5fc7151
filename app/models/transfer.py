"""How far a download is: a value, and the meter that measures it (spec: product §4.7, D-006)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

WINDOW = 5.0
"""Seconds over which speed is measured."""
TELL_EVERY = 0.1


class Stage(Enum):
    """What is counted; the value is how a person is told."""

    FETCH = "fetching"
    CHECK = "checking"


@dataclass(frozen=True)
class Transfer:
    """How far a download is: bytes done of ``total``, bytes a second, seconds left (None while unknown)."""

    done: int
    total: int
    speed: float
    left: float | None
    stage: Stage = Stage.FETCH

    @property
    def share(self) -> float:
        """Of the whole, from 0 to 1; 0 while the whole is not known."""
        return min(self.done / self.total, 1.0) if self.total > 0 else 0.0


Tell = Callable[[Transfer], None]
Seconds = Callable[[], float]


class Meter:
    """Speed over the last seconds, told at most ten times a second."""

    def __init__(
        self, tell: Tell, done: int, total: int, stage: Stage = Stage.FETCH, now: Seconds = time.monotonic
    ) -> None:
        self._tell = tell
        self._total = total
        self._stage = stage
        self._now = now
        self._marks = deque([(now(), done)])
        self._told = now() - TELL_EVERY

    def add(self, done: int) -> None:
        """So many bytes are there in all."""
        now = self._now()
        self._marks.append((now, done))
        # The last mark before the window stays: after a pause there is still something to measure from.
        while len(self._marks) > 2 and now - self._marks[1][0] >= WINDOW:
            self._marks.popleft()
        if now - self._told >= TELL_EVERY or done >= self._total:
            self._told = now
            self._tell(self._transfer(now, done))

    def _transfer(self, now: float, done: int) -> Transfer:
        start, before = self._marks[0]
        speed = (done - before) / (now - start) if now > start else 0.0
        left = (self._total - done) / speed if speed > 0 and self._total >= done else None
        return Transfer(done, self._total, speed, left, self._stage)
