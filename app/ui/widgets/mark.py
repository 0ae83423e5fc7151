"""The mark: nine dots, fading up to the left, the last one in the accent. It moves while something works."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, QTimer
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.paint import dot, painting

FRAME_MS = 50
PERIOD_S = 1.6
STRENGTH = (0.25, 0.55, 0.85)


class Mark(QWidget):
    """``side`` in pixels at 100 % text. Still until ``set_moving``."""

    def __init__(self, side: int = 24, *, moving: bool = False) -> None:
        super().__init__()
        self._side = theme.px(side)
        self._time = 0.0
        self._timer = QTimer(self, interval=FRAME_MS)
        self._timer.setObjectName("mark")
        self._timer.timeout.connect(self._step)
        self.setFixedSize(self._side, self._side)
        self.set_moving(moving)

    def sizeHint(self) -> QSize:
        return QSize(self._side, self._side)

    def set_moving(self, moving: bool) -> None:
        if moving and theme.current().motion:
            self._timer.start()
        else:
            self._timer.stop()
            self._time = 0.0
        self.update()

    def _step(self) -> None:
        if self.isVisible():
            self._time += FRAME_MS / 1000
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            draw_mark(painter, QRectF(self.rect()), self._wave() if self._timer.isActive() else STILL)

    def _wave(self) -> tuple[float, ...]:
        """A light that runs down to the right."""
        phase = self._time / PERIOD_S * 2 * math.pi
        return tuple(0.25 + 0.375 * (1 + math.sin(phase - (i // 3 + i % 3) * 0.8)) for i in range(9))


STILL = tuple(STRENGTH[row] for row in range(3) for _ in range(3))


def draw_mark(painter: QPainter, box: QRectF, strengths: tuple[float, ...] = STILL) -> None:
    palette = theme.palette()
    step, radius = box.width() / 3, box.width() / 9.6
    for i, strength in enumerate(strengths):
        colour = QColor(palette.accent if i == 8 else palette.ink)
        colour.setAlphaF(1.0 if i == 8 else min(1.0, strength))
        centre = QPointF(box.left() + step * (i % 3 + 0.5), box.top() + step * (i // 3 + 0.5))
        dot(painter, centre, radius, colour)


def mark_picture(side: int) -> QImage:
    """The mark as a picture, for the window's icon."""
    picture = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(0)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_mark(painter, QRectF(picture.rect()))
    painter.end()
    return picture
