"""Long work on the window's thread, cut into slices so that no slice holds it for a frame."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer

BUDGET_S = 0.002


class Slices(QObject):
    """Runs iterators, oldest first, a few milliseconds a turn of the event loop."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work: deque[Iterator[None]] = deque()
        self._timer = QTimer(self, interval=0)
        self._timer.setObjectName("slices")
        self._timer.timeout.connect(self._turn)

    @property
    def busy(self) -> bool:
        return bool(self._work)

    def add(self, work: Iterator[None]) -> None:
        self._work.append(work)
        self._timer.start()

    def _turn(self) -> None:
        began = time.perf_counter()
        while self._work and time.perf_counter() - began < BUDGET_S:
            self._step()
        if not self._work:
            self._timer.stop()

    def _step(self) -> None:
        try:
            next(self._work[0])
        except StopIteration:
            self._work.popleft()

    def drain(self) -> None:
        """Does all of it now."""
        while self._work:
            self._step()
        self._timer.stop()

    def clear(self) -> None:
        self._work.clear()
        self._timer.stop()
