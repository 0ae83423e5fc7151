"""How much of the context is used, as a ring."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.room.state import Speed
from app.ui import theme, words
from app.ui.paint import painting

FULL_TURN = 360 * 16
TIGHT = 0.8


class Ring(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._share = 0.0
        self._speed: Speed | None = None
        self.setFixedSize(theme.px(32), theme.px(32))

    def sizeHint(self) -> QSize:
        return self.size()

    def display(self, speed: Speed) -> None:
        if speed == self._speed:
            return
        self._speed = speed
        self._share = min(1.0, speed.context_share)
        used = f"{words.tokens(speed.context_used)} of {words.positions(speed.context_max)} tokens of context used"
        text = f"{words.percent(self._share)}: {used}" if speed.context_max else "No context used yet"
        if self._share > TIGHT:
            text += ". The oldest words are forgotten when it is full; a new chat empties it."
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, thick = theme.palette(), theme.px(4)
        box = QRectF(self.rect()).adjusted(thick / 2, thick / 2, -thick / 2, -thick / 2)
        colour = palette.bad if self._share > TIGHT else palette.accent
        with painting(self) as painter:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(palette.empty), thick))
            painter.drawEllipse(box)
            painter.setPen(QPen(QColor(colour), thick, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawArc(box, FULL_TURN // 4, -int(self._share * FULL_TURN))
