"""A figure with its unit: 41.8 tok/s."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QFontMetricsF, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui import theme
from app.ui.fonts import font
from app.ui.paint import painting, width_of, write


class Figure(QWidget):
    def __init__(self, unit: str, widest: str) -> None:
        super().__init__()
        self._value, self._unit, self._widest = "–", unit, widest
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def display(self, value: str, unit: str = "") -> None:
        unit = unit or self._unit
        if (value, unit) != (self._value, self._unit):
            self._value, self._unit = value, unit
            self.setAccessibleName(f"{value} {unit}")
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        big, small = font(theme.TITLE, 600), font(theme.SMALL)
        number = max(width_of(self._widest, big), width_of(self._value, big))
        return QSize(int(number + width_of(self._unit, small)) + 6, theme.px(28))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, big, small = theme.palette(), font(theme.TITLE, 600), font(theme.SMALL)
        unit_wide = width_of(self._unit, small)
        number_wide = width_of(self._value, big)
        left = max(0.0, self.width() - unit_wide - number_wide - 4)
        with painting(self) as painter:
            box = QRectF(left, 0, number_wide + 1, self.height())
            write(painter, box, self._value, big, palette.ink)
            lower = QFontMetricsF(big).ascent() / 2 - QFontMetricsF(small).ascent() / 2
            write(
                painter, QRectF(box.right() + 4, lower, unit_wide + 1, self.height()), self._unit, small, palette.muted
            )
