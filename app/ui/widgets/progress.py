"""How much of something is there, as a bar."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui import theme, words
from app.ui.paint import fill, painting

HIGH = 6


class ProgressBar(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._share = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(theme.px(HIGH))

    def sizeHint(self) -> QSize:
        return QSize(theme.px(120), theme.px(HIGH))

    def display(self, share: float) -> None:
        """``share`` from 0 to 1."""
        if share != self._share:
            self._share = share
            self.setAccessibleName(words.percent(share))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        radius = box.height() / 2
        with painting(self) as painter:
            fill(painter, box, palette.empty, radius)
            if self._share > 0:
                done = QRectF(0, 0, max(box.height(), box.width() * self._share), box.height())
                fill(painter, done, palette.accent, radius)
