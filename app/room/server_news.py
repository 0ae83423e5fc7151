"""When a lost room server is worth a word: one that comes and goes is told of once in a while (spec: rooms §2.2)."""

from __future__ import annotations

from app.core.clock import Clock

AGAIN_S = 30.0


class ServerNews:
    """What a person was told last, and what is to be told now.

    A loss is told at most once in ``AGAIN_S`` seconds, a return at once, and only after a loss that was told.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._there = self._told = True
        self._last_loss = float("-inf")

    def changed(self, there: bool) -> bool | None:
        """Whether to tell "there" or "lost"; None for nothing."""
        self._there = there
        return self.due()

    def due(self) -> bool | None:
        """The same without a change: a loss that was held back may be due."""
        if self._there == self._told or (not self._there and self._too_soon()):
            return None
        self._told = self._there
        if not self._there:
            self._last_loss = self._clock.now()
        return self._told

    def _too_soon(self) -> bool:
        return self._clock.now() - self._last_loss < AGAIN_S
