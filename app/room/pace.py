"""How fast words come: over the whole answer, and just now."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW = 4.0


@dataclass
class Pace:
    """Fed with the clock at every word."""

    words: int = 0
    first: float = 0.0
    last: float = 0.0
    times: deque[float] = field(default_factory=lambda: deque[float](maxlen=4096))

    def word(self, now: float) -> None:
        self.first = self.first if self.words else now
        self.last = now
        self.words += 1
        self.times.append(now)

    @property
    def per_second(self) -> float:
        """Over all gaps between words; 0 until there is one."""
        took = self.last - self.first
        return (self.words - 1) / took if took > 0 else 0.0

    def recent(self, now: float) -> float:
        """Over the last four seconds."""
        while self.times and now - self.times[0] > WINDOW:
            self.times.popleft()
        took = now - self.times[0] if self.times else 0.0
        return len(self.times) / took if took > 0 else 0.0
