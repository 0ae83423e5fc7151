"""Tells when something held the window's thread longer than a frame (``POOLED_DEBUG=1``)."""

from __future__ import annotations

import logging
import time

from PySide6.QtCore import QObject, Qt, QTimer

log = logging.getLogger(__name__)

FRAME_S = 0.016
TICK_MS = 5


class HoldWatcher(QObject):
    """A quick timer that looks how late it comes. ``holds`` are the long ones, in seconds."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.holds: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.setObjectName("hold watcher")
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = time.perf_counter()
        late = now - self._last - TICK_MS / 1000
        self._last = now
        if late > FRAME_S:
            self.holds.append(late)
            log.warning("the window was held for %.0f ms", late * 1000)
