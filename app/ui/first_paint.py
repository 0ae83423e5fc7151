"""Tells when a widget has been on the screen for the first time."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

AT_LATEST_MS = 1000
"""A window that starts out of sight is never painted."""


class FirstPaint(QObject):
    """``done`` is emitted once, in the turn of the loop after the paint."""

    done = Signal()

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._told = False
        widget.installEventFilter(self)
        QTimer.singleShot(AT_LATEST_MS, self, self._tell)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self._widget.removeEventFilter(self)
            QTimer.singleShot(0, self, self._tell)
        return False

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self.done.emit()
